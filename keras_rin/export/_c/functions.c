/* The functions of a C header. A $ stands for the private prefix of its names.

Where Keras has NaN or a limit for an infinity or for NaN, so have these. */

static inline void $zero(float z[], int n)
{
    for (int i = 0; i < n; i++)
        z[i] = 0.0f;
}

static inline void $copy(const float from[], float to[], int n)
{
    for (int i = 0; i < n; i++)
        to[i] = from[i];
}

static inline void $add(const float terms[], float z[], int n)
{
    for (int i = 0; i < n; i++)
        z[i] += terms[i];
}

static inline void $subtract(const float terms[], float z[], int n)
{
    for (int i = 0; i < n; i++)
        z[i] -= terms[i];
}

static inline void $multiply(const float factors[], float z[], int n)
{
    for (int i = 0; i < n; i++)
        z[i] *= factors[i];
}

/* z += matrix x, with one row of the matrix for each value of z. */
static inline void $add_product_float32(const float matrix[],
        const float x[], int columns, float z[], int rows)
{
    for (int row = 0; row < rows; row++) {
        float sum = 0.0f;
        for (int column = 0; column < columns; column++)
            sum += *matrix++ * x[column];
        z[row] += sum;
    }
}

/* z += matrix x, in integers, with x rounded to 16 bits of its largest value.

The phase of a step, from 0 to 1, is what is added before the fraction is cut
off. Where a value of x is not finite, the results are NaN. */
static inline void $add_product_int8(const signed char matrix[],
        const float scale[], const float x[], float phase, short codes[],
        int columns, float z[], int rows)
{
    const float limit = 32766.0f, offset = 32768.0f + phase;
    float largest = 0.0f, zero = 0.0f;
    for (int i = 0; i < columns; i++) {
        const float size = x[i] < 0.0f ? -x[i] : x[i];
        largest = size > largest ? size : largest;
        zero += 0.0f * x[i];
    }
    if (!(zero >= 0.0f) || largest < 1e-30f) {
        for (int row = 0; row < rows; row++)
            z[row] += zero;
        return;
    }
    const float factor = limit / largest, unit = largest / limit;
    for (int i = 0; i < columns; i++)
        codes[i] = (short)((long)(factor * x[i] + offset) - 32768);
    /* In two rows at a time a code is read once. */
    for (int row = 0; row < rows; row += 2) {
        const int has_next = row + 1 < rows;
        const signed char *next = has_next ? matrix + columns : matrix;
        long sum = 0, sum_of_next = 0;
        for (int i = 0; i < columns; i++) {
            sum += (long)*matrix++ * codes[i];
            sum_of_next += (long)*next++ * codes[i];
        }
        matrix = next;
        z[row] += unit * scale[row] * (float)sum;
        if (has_next)
            z[row + 1] += unit * scale[row + 1] * (float)sum_of_next;
    }
}

/* The next of 256 phases. Any few of them in a row are spread over 0 to 1, so
what a constant x is rounded to is right on average. */
static inline void $advance(float phase[])
{
    *phase += *phase < 0.37890625f ? 0.62109375f : -0.37890625f;
}

/* The row of a token; a token out of range gets the nearest row. */
static inline long $token_row(float token, long count)
{
    const float last = (float)(count - 1);
    return (long)(token > 0.0f ? token < last ? token : last : 0.0f);
}

static inline void $lookup_float32(const float rows[],
        float token, long count, float z[], int n)
{
    $copy(rows + $token_row(token, count) * n, z, n);
}

static inline void $lookup_int8(const signed char rows[], const float scale[],
        float token, long count, float z[], int n)
{
    const long row = $token_row(token, count);
    for (int i = 0; i < n; i++)
        z[i] = scale[row] * (float)rows[row * n + i];
}

/* The state of a GRU: h = gate h + (1 - gate) candidate. */
static inline void $interpolate(const float gate[],
        const float candidate[], float h[], int n)
{
    for (int i = 0; i < n; i++)
        h[i] = gate[i] * h[i] + (1.0f - gate[i]) * candidate[i];
}

/* y = x, |x - last| and |x - mean|, of states that begin with the first x: last,
mean and whether they have begun. */
static inline void $move(const float x[], float rate, float states[],
        float y[], int n)
{
    for (int i = 0; i < n; i++) {
        float *last = states + i, *mean = last + n;
        if (!(states[2 * n] > 0.0f))
            *last = *mean = x[i];
        const float change = x[i] - *last;
        *mean += rate * (x[i] - *mean);
        *last = y[i] = x[i];
        y[i + n] = change < 0.0f ? -change : change;
        y[i + 2 * n] = x[i] < *mean ? *mean - x[i] : x[i] - *mean;
    }
    states[2 * n] = 1.0f;
}

/* z is given a mean of 0 and a variance of 1. */
static inline void $normalize(float z[], int n, float epsilon)
{
    float mean = 0.0f, variance = 0.0f;
    for (int i = 0; i < n; i++)
        mean += z[i];
    mean /= (float)n;
    for (int i = 0; i < n; i++)
        variance += (z[i] - mean) * (z[i] - mean);
    const float deviation = sqrtf(variance / (float)n + epsilon);
    for (int i = 0; i < n; i++)
        z[i] = (z[i] - mean) / deviation;
}

static inline void $softmax(float z[], int n)
{
    float largest = z[0], sum = 0.0f;
    for (int i = 1; i < n; i++)
        largest = z[i] > largest ? z[i] : largest;
    for (int i = 0; i < n; i++)
        sum += z[i] = expf(z[i] - largest);
    for (int i = 0; i < n; i++)
        z[i] /= sum;
}

static inline void $log_softmax(float z[], int n)
{
    float largest = z[0], sum = 0.0f;
    for (int i = 1; i < n; i++)
        largest = z[i] > largest ? z[i] : largest;
    for (int i = 0; i < n; i++)
        sum += expf(z[i] - largest);
    for (int i = 0; i < n; i++)
        z[i] = z[i] - largest - logf(sum);
}

/* tanh x, off by at most 2e-7: for the nearest of a = 0, 1/2, 1 ... and b = x -
a it is (tanh a + tanh b) / (1 + tanh a tanh b). Of |b| <= 1/4 a polynomial is
off by at most 1.2e-7. */
static inline float $tanh_at(float x)
{
    static const float tanh_a[] = {
        0.0f, 0.46211717f, 0.7615942f, 0.90514827f, 0.9640276f, 0.9866143f,
        0.9950548f, 0.9981779f, 0.9993293f, 0.99975324f, 0.9999092f,
        0.9999666f, 0.9999877f, 0.99999547f, 0.99999833f, 0.9999994f,
        0.99999976f, 0.99999994f, 0.99999994f
    };
    const float size = x < 0.0f ? -x : x;
    if (!(size < 9.0f)) /* or NaN */
        return x > 0.0f ? 1.0f : x < 0.0f ? -1.0f : x;
    const int nearest = (int)(2.0f * size + 0.5f);
    const float a = tanh_a[nearest], b = size - 0.5f * (float)nearest;
    const float s = b * b, t = b + b * s * (0.12877112f * s - 0.33324607f);
    const float y = (a + t) / (1.0f + a * t);
    return x < 0.0f ? -y : y;
}

/* The activations of Keras, by its names. */

static inline float $celu_at(float x)
{
    return x < 0.0f ? expm1f(x) : x;
}

static inline float $elu_at(float x)
{
    return x < 0.0f ? expm1f(x) : x;
}

static inline float $exponential_at(float x)
{
    return expf(x);
}

static inline float $gelu_at(float x)
{
    return 0.5f * x * (1.0f + erff(x * 0.70710678f));
}

static inline float $hard_shrink_at(float x)
{
    return x < -0.5f || x > 0.5f ? x : 0.0f;
}

static inline float $hard_sigmoid_at(float x)
{
    return x < -3.0f ? 0.0f : x > 3.0f ? 1.0f : (x + 3.0f) / 6.0f;
}

static inline float $hard_silu_at(float x)
{
    return x * $hard_sigmoid_at(x);
}

static inline float $hard_tanh_at(float x)
{
    return x < -1.0f ? -1.0f : x > 1.0f ? 1.0f : x;
}

static inline float $leaky_relu_at(float x)
{
    return x < 0.0f ? 0.2f * x : x;
}

static inline float $log_sigmoid_at(float x)
{
    return (x < 0.0f ? x : 0.0f) - log1pf(expf(-fabsf(x)));
}

static inline float $mish_at(float x)
{
    return x * tanhf($softplus_at(x));
}

static inline float $relu_at(float x)
{
    return x < 0.0f ? 0.0f : x;
}

static inline float $relu6_at(float x)
{
    return x < 0.0f ? 0.0f : x > 6.0f ? 6.0f : x;
}

static inline float $selu_at(float x)
{
    return 1.05070099f * (x < 0.0f ? 1.67326324f * expm1f(x) : x);
}

static inline float $sigmoid_at(float x)
{
    return 0.5f + 0.5f * $tanh_at(0.5f * x);
}

static inline float $silu_at(float x)
{
    return x / (1.0f + expf(-x));
}

static inline float $soft_shrink_at(float x)
{
    return x > 0.5f ? x - 0.5f : x < -0.5f ? x + 0.5f : 0.0f;
}

static inline float $softplus_at(float x)
{
    return (x > 0.0f ? x : 0.0f) + log1pf(expf(-fabsf(x)));
}

static inline float $softsign_at(float x)
{
    return x / (1.0f + fabsf(x));
}

static inline float $sparse_plus_at(float x)
{
    return x < -1.0f ? 0.0f : x > 1.0f ? x : 0.25f * (x + 1.0f) * (x + 1.0f);
}

static inline float $sparse_sigmoid_at(float x)
{
    return x < -1.0f ? 0.0f : x > 1.0f ? 1.0f : 0.5f * (x + 1.0f);
}

static inline float $squareplus_at(float x)
{
    return 0.5f * (x + sqrtf(x * x + 4.0f));
}

static inline float $tanh_shrink_at(float x)
{
    return x - tanhf(x);
}

/* Activation layers with parameters. */

static inline float $elu_layer_at(float x, float alpha)
{
    return x < 0.0f ? alpha * expm1f(x) : x;
}

static inline float $relu_layer_at(float x, float threshold)
{
    return x > threshold ? x : 0.0f;
}

static inline float $sloped_relu_layer_at(float x, float slope, float threshold)
{
    return x > threshold ? x : slope * (x - threshold);
}

static inline float $minimum_at(float x, float largest)
{
    return x > largest ? largest : x;
}
