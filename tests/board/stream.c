/* Reads steps of STREAMS streams from x.bin and writes their outputs to y.bin.

The states are reset after every STEPS steps. */
#include <stdio.h>

#include "rin.h"
#ifdef rin_output_scale /* a header in integers */
typedef int16_t input;
typedef int32_t output;
#else
typedef float input, output;
#endif

int main(void)
{
    static rin_state states[STREAMS];
    static input x[STREAMS][rin_inputs];
    static output y[rin_outputs];
    FILE *in = fopen("x.bin", "rb"), *out = fopen("y.bin", "wb");
    for (long t = 0; fread(x, sizeof x, 1, in) == 1; t++)
        for (int i = 0; i < STREAMS; i++) {
            if (t % STEPS == 0)
                rin_reset(&states[i]);
            rin_step(&states[i], x[i], y);
            fwrite(y, sizeof y, 1, out);
        }
    return fclose(out);
}
