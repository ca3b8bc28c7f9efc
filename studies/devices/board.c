/* A program with a network, without one, or one that counts instructions.

With -icount shift=0 QEMU executes an instruction in a nanosecond, and the
timer counts at 25 MHz: one tick for 40 instructions. */
#ifdef NETWORK
#include "rin.h"
static rin_state state;
static float x[rin_inputs], y[rin_outputs];
#endif
#ifdef STEPS
#include <stdio.h>
#endif

static volatile float value = 1.0f;

int main(void)
{
#ifdef NETWORK
    rin_reset(&state);
    for (int i = 0; i < rin_inputs; i++)
        x[i] = value;
#ifdef STEPS
    volatile unsigned *timer = (volatile unsigned *)0xE000E010;
    timer[1] = 0xFFFFFF; /* the largest count */
    timer[2] = 0;
    timer[0] = 5; /* on, by the clock of the processor */
    for (int t = 0; t < STEPS; t++) {
        x[0] = 0.5f * (float)(t % 5 - 2);
        rin_step(&state, x, y);
    }
    printf("%u\n", (0xFFFFFF - timer[2]) & 0xFFFFFF);
#else
    rin_step(&state, x, y);
#endif
    value = y[0];
#endif
    return 0;
}
