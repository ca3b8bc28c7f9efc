/* Sequences through a header: the library that `Header` loads. */
#include "${name}.h"

#ifdef ${name}_output_scale /* in integers */
typedef int16_t input;
typedef int32_t output;
#else
typedef float input, output;
#endif

void run(const input *x, output *y, ${name}_state *states, long sequences,
        long steps);
void run(const input *x, output *y, ${name}_state *states, long sequences,
        long steps)
{
    static ${name}_state state;
    for (; sequences > 0; sequences--) {
        ${name}_reset(&state);
        for (long t = 0; t < steps; t++) {
            ${name}_step(&state, x, y);
            x += ${name}_inputs;
            y += ${name}_outputs;
            *states++ = state;
        }
    }
}
