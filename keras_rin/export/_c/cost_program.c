/* A program with a header, if NETWORK is defined, which takes STEPS steps. */
#include <stdint.h>
#include <string.h>
#ifdef NETWORK
#include "${name}.h"
#ifdef ${name}_output_scale
int16_t x[${name}_inputs];
int32_t y[${name}_outputs];
#else
float x[${name}_inputs], y[${name}_outputs];
#endif
static ${name}_state state;
#endif
static volatile int sink;
static char bytes[2];

int main(void)
{
    /* A program that has no network may have these functions as well. */
    memset(bytes, sink, (size_t)sink);
    memcpy(bytes, bytes + sink, (size_t)sink);
#ifdef NETWORK
    ${name}_reset(&state);
#ifdef STEPS
    unsigned long count = 0;
    START
    for (int t = 0; t < STEPS; t++) {
        for (int i = 0; i < ${name}_inputs; i++)
            x[i] = (int16_t)((t + i) & 3);
        const uint32_t begin = TIMER;
        ${name}_step(&state, x, y);
        count += (TIMER - begin) & LARGEST;
    }
    for (unsigned long unit = 1000000000; unit; unit /= 10)
        print((char)('0' + count / unit % 10));
    print('\n');
    STOP
#else
    do /* more than the first step, whose state is known to be 0 */
        ${name}_step(&state, x, y);
    while (sink);
#endif
    sink = y[0] > 0;
#endif
    return 0;
}
