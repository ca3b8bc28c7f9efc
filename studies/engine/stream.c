/* Reads steps of STREAMS streams from stdin and writes their outputs. */
#include <stdio.h>

#include "rin.h"

int main(void)
{
    static rin_state states[STREAMS];
    static float x[STREAMS][rin_inputs], y[STREAMS][rin_outputs];
    for (int i = 0; i < STREAMS; i++)
        rin_reset(&states[i]);
    while (fread(x, sizeof x, 1, stdin) == 1) {
        for (int i = 0; i < STREAMS; i++)
            rin_step(&states[i], x[i], y[i]);
        fwrite(y, sizeof y, 1, stdout);
    }
    return 0;
}
