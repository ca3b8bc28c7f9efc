/* Reads steps of STREAMS streams from stdin and writes their outputs.

The states are reset after every STEPS steps. */
#include <stdio.h>

#include "rin.h"

int main(void)
{
    static rin_state states[STREAMS];
    float x[STREAMS][rin_inputs], y[rin_outputs];
    for (long t = 0; fread(x, sizeof x, 1, stdin) == 1; t++)
        for (int i = 0; i < STREAMS; i++) {
            if (t % STEPS == 0)
                rin_reset(&states[i]);
            rin_step(&states[i], x[i], y);
            fwrite(y, sizeof y, 1, stdout);
        }
    return 0;
}
