/*
A regression on mean, deviation and mean change of the last $window steps, in
integers, in C99 and C++.

x[$inputs]: one step of the input, as the sensor counts.
y[$outputs]: the score of each class; the largest is the answer.

Flash: $flash bytes for the weights, and the code.
RAM: $ram bytes for each ${name}_state.
*/
#ifndef ${name}_WINDOW
#define ${name}_WINDOW
#include <stdint.h>
#include <string.h>
#ifdef __AVR__
#include <avr/pgmspace.h>
#define ${name}_PLACE PROGMEM
#define ${name}_READ(place) ((int32_t)pgm_read_dword(place))
#else
#define ${name}_PLACE
#define ${name}_READ(place) (*(place))
#endif

/* What 1 in y stands for, for the computer that compares. */
#define ${name}_output_scale $scale

enum { ${name}_inputs = $inputs, ${name}_outputs = $outputs };

/* The last steps and their sums: one for each stream. */
typedef struct {
    int16_t ring[$window][$inputs];
    int32_t sum[$inputs], change[$inputs];
    int64_t square[$inputs];
    int16_t place, is_filled;
} ${name}_state;

/* By output, and by sum, deviation and change of each channel. */
static const int32_t ${name}_weights[] ${name}_PLACE = {
$weights
};
static const int32_t ${name}_bias[] ${name}_PLACE = {
$bias
};

static inline void ${name}_reset(${name}_state *state)
{
    memset(state, 0, sizeof *state);
}

static inline int32_t ${name}_root(int64_t square)
{
    int32_t root = 0;
    for (int32_t bit = INT32_C(1) << $top; bit; bit >>= 1)
        if ((int64_t)(root + bit) * (root + bit) <= square)
            root += bit;
    return root;
}

static inline int32_t ${name}_distance(int32_t a, int32_t b)
{
    return a < b ? b - a : a - b;
}

/* Reads one time step x and writes y; before the first one were others like it. */
static inline void ${name}_step(${name}_state *state, const int16_t x[],
        int32_t y[])
{
    int32_t read[3 * $inputs];
    const int place = state->place;
    const int next = place + 1 < $window ? place + 1 : 0;
    const int last = place ? place - 1 : $window - 1;
    for (int i = 0; i < $inputs; i++) {
        if (!state->is_filled) {
            for (int t = 0; t < $window; t++)
                state->ring[t][i] = x[i];
            state->sum[i] = (int32_t)x[i] * $window;
            state->square[i] = (int64_t)x[i] * x[i] * $window;
        }
        const int32_t oldest = state->ring[place][i];
        state->change[i] += ${name}_distance(x[i], state->ring[last][i]);
        state->change[i] -= ${name}_distance(state->ring[next][i], oldest);
        state->sum[i] += x[i] - oldest;
        state->square[i] += (int64_t)x[i] * x[i] - (int64_t)oldest * oldest;
        state->ring[place][i] = x[i];
        read[i] = state->sum[i];
        read[$inputs + i] = ${name}_root($window * state->square[i]
            - (int64_t)state->sum[i] * state->sum[i]);
        read[2 * $inputs + i] = state->change[i];
    }
    state->is_filled = 1;
    state->place = (int16_t)next;
    const int32_t *weight = ${name}_weights;
    for (int k = 0; k < $outputs; k++) {
        int64_t sum = 0;
        for (int i = 0; i < 3 * $inputs; i++)
            sum += (int64_t)${name}_READ(weight++) * read[i];
        y[k] = (int32_t)(sum >> $shift) + ${name}_READ(${name}_bias + k);
    }
}
#endif
