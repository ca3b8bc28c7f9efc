/* Prints y at every PRINT_EVERY-th of the steps in input.h. */
#include <stdio.h>

#include "input.h"
#include "rin.h"

int main(void)
{
    static rin_state state;
    static float y[rin_outputs];
    rin_reset(&state);
    for (int t = 0; t < STEPS; t++) {
        rin_step(&state, INPUT + t * rin_inputs, y);
        if ((t + 1) % PRINT_EVERY == 0)
            for (int i = 0; i < rin_outputs; i++)
                printf("%.9g\n", (double)y[i]);
    }
    return 0;
}
