/* Reads steps of STREAMS streams from stdin and writes their outputs.

A step is a flag, whether to reset the state before it, and the inputs. */
#include <stdio.h>

#include "rin.h"

int main(void)
{
    static rin_state states[STREAMS];
    static float x[STREAMS][1 + rin_inputs], y[STREAMS][rin_outputs];
    for (int i = 0; i < STREAMS; i++)
        rin_reset(&states[i]);
    while (fread(x, sizeof x, 1, stdin) == 1) {
        for (int i = 0; i < STREAMS; i++) {
            if (x[i][0] > 0.0f)
                rin_reset(&states[i]);
            rin_step(&states[i], x[i] + 1, y[i]);
        }
        fwrite(y, sizeof y, 1, stdout);
    }
    return 0;
}
