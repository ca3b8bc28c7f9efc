/* The functions of a C header in integers. A $ stands for the private prefix of
its names, and $PLACE for PROGMEM on an AVR.

A sum has 32 bits, a state and a value between layers 16; `integer_sums.py`
computes a bound of each sum from the weights. */

static inline int8_t $read_int8(const int8_t *at)
{
#ifdef __AVR__
    return (int8_t)pgm_read_byte(at);
#else
    return *at;
#endif
}

static inline int16_t $read_int16(const int16_t *at)
{
#ifdef __AVR__
    return (int16_t)pgm_read_word(at);
#else
    return *at;
#endif
}

static inline int32_t $read_int32(const int32_t *at)
{
#ifdef __AVR__
    return (int32_t)pgm_read_dword(at);
#else
    return *at;
#endif
}

/* The nearest value of 16 bits: a state does not leave its range. */
static inline int16_t $int16(int32_t z)
{
    return (int16_t)(z < -32768 ? -32768 : z > 32767 ? 32767 : z);
}

static inline void $set(const int32_t values[], int32_t z[], int n)
{
    for (int i = 0; i < n; i++)
        z[i] = $read_int32(values + i);
}

static inline void $copy(const int16_t h[], int32_t z[], int n)
{
    for (int i = 0; i < n; i++)
        z[i] = h[i];
}

static inline void $add_state(const int16_t h[], int32_t factor, int32_t z[], int n)
{
    for (int i = 0; i < n; i++)
        z[i] += h[i] * factor;
}

static inline void $scale_state(const int16_t h[], int32_t factor, int32_t z[], int n)
{
    for (int i = 0; i < n; i++)
        z[i] = h[i] * factor;
}

/* |x|, or the largest value of 16 bits. */
static inline int16_t $size(int32_t x)
{
    x = x < 0 ? -x : x;
    return (int16_t)(x > 32767 ? 32767 : x);
}

/* y = x, |x - last| and |x - mean|, of states that begin with the first x: last,
mean, rest and whether they have begun. The mean is mean + 2^-shift rest, which
loses nothing. */
static inline void $move(const int16_t x[], int shift, int16_t states[],
        int16_t y[], int n)
{
    const int has_begun = states[3 * n];
    for (int i = 0; i < n; i++, states++, y++) {
        const int32_t now = x[i];
        if (!has_begun)
            states[0] = states[n] = (int16_t)now;
        const int32_t sum = states[2 * n] + now - states[n];
        const int32_t m = states[n] + (sum >> shift);
        states[2 * n] = (int16_t)(sum & (((int32_t)1 << shift) - 1));
        y[n] = $size(now - states[0]);
        y[2 * n] = $size(now - m);
        y[0] = states[0] = (int16_t)now;
        states[n] = (int16_t)m;
    }
    states[2 * n] = 1;
}

static inline int32_t $relu_at(int32_t x)
{
    return x < 0 ? 0 : x;
}

static inline void $saturate(const int32_t z[], int16_t h[], int n)
{
    for (int i = 0; i < n; i++)
        h[i] = $int16(z[i]);
}

/* Another phase at each step, as many as the mask; a few in a row are spread
over all. */
static inline void $advance(int16_t phase[], uint16_t increment, uint16_t mask)
{
    phase[0] = (int16_t)(((uint16_t)phase[0] + increment) & mask);
}

/* h = z without its fraction of some bits, to which the phase is added: what is
lost in one step is made good in others, however small it is. */
static inline void $drop_fraction(const int32_t z[], int phase, int bits,
        int16_t h[], int n)
{
    for (int i = 0; i < n; i++)
        h[i] = $int16((z[i] + phase) >> bits);
}

/* z += matrix x, where a row and its shift s stand for 2^-(s + 1) row. */
static inline void $add_product(const int8_t matrix[], const int8_t shifts[],
        const int16_t x[], int columns, int32_t z[], int rows)
{
    for (int row = 0; row < rows; row++) {
        const int8_t shift = $read_int8(shifts + row);
        int32_t sum = 0;
        for (int i = 0; i < columns; i++)
            sum += (int32_t)x[i] * (int16_t)$read_int8(matrix++);
        z[row] += shift < 0 ? sum * ((int32_t)1 << (-1 - shift))
                            : ((sum >> shift) + 1) >> 1;
    }
}

/* tanh x, where 32768 stands for 1, off by at most 2: Taylor's third order at
the nearest of 0, 1/4, 1/2 ..., so that tanh x is x near 0. With s = 1 - t t
the derivatives are s, -2 s t and 2 s (2 - 3 s). From 5.375 on it is 1. */
static inline int32_t $tanh_at(int32_t x)
{
    static const int16_t tanh_a[] $PLACE = {
        0, 8025, 15143, 20813, 24956, 27797, 29660, 30847, 31589,
        32048, 32329, 32501, 32606, 32670, 32708, 32732, 32746, 32755,
        32760, 32763, 32765, 32766
    };
    const int32_t size = x < 0 ? -x : x, nearest = (size + 4096) >> 13;
    int32_t y = 32768;
    if (nearest < 22) {
        const int32_t t = $read_int16(tanh_a + nearest);
        const int32_t d = size - nearest * 8192, s = 32768 - ((t * t) >> 15);
        const int32_t bend = t + ((d * (s - 21845)) >> 15);
        const int32_t rest = 32768 - ((d * bend) >> 15);
        y = t + ((((s * d) >> 13) * rest + 65536) >> 17);
    }
    return x < 0 ? -y : y;
}

static inline int32_t $sigmoid_at(int32_t x)
{
    return (32768 + $tanh_at(x >> 1)) >> 1;
}

/* x / (1 + |x|), where 32768 stands for 1. */
static inline int32_t $softsign_at(int32_t x)
{
    const int32_t y = 32768 - 1073741824 / (32768 + (x < 0 ? -x : x));
    return x < 0 ? -y : y;
}

/* gate z, where 32768 stands for a gate of 1, and z has 24 bits. */
static inline int32_t $times(int32_t gate, int32_t z)
{
    return (gate * (z >> 8) + ((gate * (z & 255)) >> 8) + 64) >> 7;
}

/* z 2^shift, rounded. */
static inline int32_t $scaled(int32_t z, int shift)
{
    return shift < 0 ? ((z >> (-1 - shift)) + 1) >> 1 : z * ((int32_t)1 << shift);
}

/* z, or the nearest value within a limit. */
static inline int32_t $within(int32_t z, int32_t limit)
{
    return z < -limit ? -limit : z > limit ? limit : z;
}

static inline void $copy_sums(const int32_t source[], int shift, int32_t z[], int n)
{
    for (int i = 0; i < n; i++)
        z[i] = $scaled(source[i], shift);
}

static inline void $add_sums(const int32_t terms[], int shift, int32_t z[], int n)
{
    for (int i = 0; i < n; i++)
        z[i] += $scaled(terms[i], shift);
}

static inline void $subtract_sums(const int32_t terms[], int shift, int32_t z[], int n)
{
    for (int i = 0; i < n; i++)
        z[i] -= $scaled(terms[i], shift);
}

/* The product of 16 bits of factors and 24 of z, where 2^15 stands for 1. */
static inline void $multiply_sums(const int32_t factors[], int factor_shift,
        int before, int after, int32_t z[], int n)
{
    for (int i = 0; i < n; i++) {
        const int32_t factor = $within($scaled(factors[i], factor_shift), 32768);
        const int32_t value = $within($scaled(z[i], before), 8388607);
        const int32_t product = factor * (value >> 8) + ((factor * (value & 255)) >> 8);
        z[i] = $scaled(product, after);
    }
}

/* z += (1 - gate) (candidate - z), where 2^15 stands for a gate of 1. */
static inline void $interpolate_sums(const int32_t gate[], int gate_shift,
        const int32_t candidate[], int shift, int32_t z[], int n)
{
    for (int i = 0; i < n; i++) {
        const int32_t rest = 32768 - $scaled(gate[i], gate_shift);
        const int32_t way = ($scaled(candidate[i], shift) - z[i]) >> 1;
        z[i] += 2 * $times($within(rest, 32768), $within(way, 8388607));
    }
}

static inline void $reset_state(const int32_t reset[], const int16_t h[], int16_t x[], int n)
{
    for (int i = 0; i < n; i++)
        x[i] = $int16($times($sigmoid_at(reset[i]), h[i]));
}

static inline void $reset_sums(const int32_t reset[], const int32_t sums[],
        int32_t candidate[], int n)
{
    for (int i = 0; i < n; i++)
        candidate[i] += $times($sigmoid_at(reset[i]), sums[i]);
}

/* sigmoid(x) d, of at most 17 bits, where 1 is 2^30. A gate below 2^-10 is
2^-8 e^y with y = x + 8 log 2, and of s = sigmoid(y) e^y is s + s^2 + s^3 ...,
so that it has 8 bits more. */
static inline int32_t $gated(int32_t x, int32_t d)
{
    const int is_small = x < -227130;
    const int32_t s = $sigmoid_at(is_small ? x + 181704 : x);
    const int32_t square = (s * s) >> 15;
    return is_small ? ((s + square + ((s * square) >> 15)) * d) >> 8 : s * d;
}

/* The state of a GRU or a minimal GRU: h += sigmoid(gate) (candidate - h), with
a phase of 15 bits as in drop_fraction. It stays between h and the candidate,
and the sum below 2^31. */
static inline void $approach(const int32_t gate[], const int32_t candidate[],
        int16_t phase, int16_t h[], int n)
{
    for (int i = 0; i < n; i++) {
        const int32_t difference = $int16(candidate[i]) - (int32_t)h[i];
        const int32_t change = $gated(gate[i], difference);
        h[i] = (int16_t)(h[i] + ((change + phase) >> 15));
    }
}

/* The states of an LSTM, from the sums of its gates, that of `forget` with the
other sign. In c, 1 is 32768, halved some times; the phase has 15 bits, and the
sums stay below 2^31. */
static inline void $remember(const int32_t z[], int halvings, int16_t phase,
        int16_t c[], int16_t h[], int n)
{
    for (int i = 0; i < n; i++, z++) {
        const int32_t rest = c[i] * (int32_t)32768 - $gated(z[n], c[i]);
        const int32_t input = $gated(z[0], $tanh_at(z[2 * n])) >> halvings;
        c[i] = $int16((rest + input + phase) >> 15);
        const int32_t y = $tanh_at((int32_t)c[i] * ((int32_t)1 << halvings));
        h[i] = $int16($times($sigmoid_at(z[3 * n]), y));
    }
}
