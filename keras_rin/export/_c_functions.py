"""The C functions of a header: products, activations, gates."""

from keras_rin.export._c_quantization import TYPES

# NAME stands for the private prefix of the header, WEIGHT, SCALES and SCALED
# for what `_c_quantization.TYPES` has for its matrices.
_PRODUCTS = {
    "float32": """
/* z += matrix x, with one row of the matrix for each value of z. */
static inline void NAME_add_product(const float matrix[],
        const float x[], int columns, float z[], int rows)
{
    for (int row = 0; row < rows; row++) {
        float sum = 0.0f;
        for (int column = 0; column < columns; column++)
            sum += *matrix++ * x[column];
        z[row] += sum;
    }
}
""",
    # 127 * 32767 * 512 is below 2^31. In two rows at a time a code is read
    # once, for fewer instructions than a product of floats takes.
    "int8": """
/* z += matrix x, in integers, with x rounded to 16 bits of its largest value.

Where a value of x is not finite, the results are NaN. */
static inline void NAME_add_product(const signed char matrix[],
        const float scale[], const float x[], short codes[], int columns,
        float z[], int rows)
{
    const float limit = columns > 512 ? 16777216.0f / (float)columns : 32767.0f;
    float largest = 0.0f, zero = 0.0f;
    for (int i = 0; i < columns; i++) {
        const float size = x[i] < 0.0f ? -x[i] : x[i];
        largest = size > largest ? size : largest;
        zero += 0.0f * x[i];
    }
    if (zero != 0.0f || largest < 1e-30f) {
        for (int row = 0; row < rows; row++)
            z[row] += zero;
        return;
    }
    const float factor = limit / largest, unit = largest / limit;
    for (int i = 0; i < columns; i++)
        codes[i] = (short)((long)(factor * x[i] + 32768.5f) - 32768);
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
""",
}
_LOOPS = {
    "lookup": """
/* z = the row of a token; a token out of range gets the nearest row. */
static inline void NAME_lookup(const WEIGHT rows[],SCALES
        float token, long count, float z[], int n)
{
    const float last = (float)(count - 1);
    const long row = (long)(token > 0.0f ? token < last ? token : last : 0.0f);
    for (int i = 0; i < n; i++)
        z[i] = SCALED(rows[row * n + i]);
}
""",
    "interpolate": """
/* The state of a GRU: h = gate h + (1 - gate) candidate. */
static inline void NAME_interpolate(const float gate[],
        const float candidate[], float h[], int n)
{
    for (int i = 0; i < n; i++)
        h[i] = gate[i] * h[i] + (1.0f - gate[i]) * candidate[i];
}
""",
    "normalize": """
/* z is given a mean of 0 and a variance of 1. */
static inline void NAME_normalize(float z[], int n, float epsilon)
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
""",
    "softmax": """
static inline void NAME_softmax(float z[], int n)
{
    float largest = z[0], sum = 0.0f;
    for (int i = 1; i < n; i++)
        largest = z[i] > largest ? z[i] : largest;
    for (int i = 0; i < n; i++)
        sum += z[i] = expf(z[i] - largest);
    for (int i = 0; i < n; i++)
        z[i] /= sum;
}
""",
    "log_softmax": """
static inline void NAME_log_softmax(float z[], int n)
{
    float largest = z[0], sum = 0.0f;
    for (int i = 1; i < n; i++)
        largest = z[i] > largest ? z[i] : largest;
    for (int i = 0; i < n; i++)
        sum += expf(z[i] - largest);
    for (int i = 0; i < n; i++)
        z[i] = z[i] - largest - logf(sum);
}
""",
    # |b| <= 1/4, where the polynomial is off by at most 1.2e-7.
    "tanh_at": """
/* tanh x, off by at most 2e-7: for the nearest of a = 0, 1/2, 1 ... and b = x -
a it is (tanh a + tanh b) / (1 + tanh a tanh b), with a polynomial in b. */
static inline float NAME_tanh_at(float x)
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
""",
}

_LOOP = """
static inline void NAME_{name}({parameters}, int n)
{{
    for (int i = 0; i < n; i++)
        {statement};
}}
"""
_STATEMENTS = {
    "zero": ("float z[]", "z[i] = 0.0f"),
    "copy": ("const float from[], float to[]", "to[i] = from[i]"),
    "add": ("const float terms[], float z[]", "z[i] += terms[i]"),
    "multiply": ("const float factors[], float z[]", "z[i] *= factors[i]"),
}
_ELEMENTWISE = """
static inline void NAME_{name}(float z[], int n{parameters})
{{
    for (int i = 0; i < n; i++) {{
        const float x = z[i];
        z[i] = {formula};
    }}
}}
"""

# What the activations of Keras, by its names for them, and the activation
# layers with parameters make of x, down to its special values: where Keras has
# NaN or a limit for an infinity or for NaN, so have these.
_SOFTPLUS = "(x > 0.0f ? x : 0.0f) + log1pf(expf(-fabsf(x)))"
_HARD_SIGMOID = "x < -3.0f ? 0.0f : x > 3.0f ? 1.0f : (x + 3.0f) / 6.0f"
_FORMULAS = {
    "celu": "x < 0.0f ? expm1f(x) : x",
    "elu": "x < 0.0f ? expm1f(x) : x",
    "exponential": "expf(x)",
    "gelu": "0.5f * x * (1.0f + erff(x * 0.70710678f))",
    "hard_shrink": "x < -0.5f || x > 0.5f ? x : 0.0f",
    "hard_sigmoid": _HARD_SIGMOID,
    "hard_silu": f"x * ({_HARD_SIGMOID})",
    "hard_tanh": "x < -1.0f ? -1.0f : x > 1.0f ? 1.0f : x",
    "leaky_relu": "x < 0.0f ? 0.2f * x : x",
    "log_sigmoid": "(x < 0.0f ? x : 0.0f) - log1pf(expf(-fabsf(x)))",
    "mish": f"x * tanhf({_SOFTPLUS})",
    "relu": "x < 0.0f ? 0.0f : x",
    "relu6": "x < 0.0f ? 0.0f : x > 6.0f ? 6.0f : x",
    "selu": "1.05070099f * (x < 0.0f ? 1.67326324f * expm1f(x) : x)",
    "sigmoid": "0.5f + 0.5f * NAME_tanh_at(0.5f * x)",
    "silu": "x / (1.0f + expf(-x))",
    "soft_shrink": "x > 0.5f ? x - 0.5f : x < -0.5f ? x + 0.5f : 0.0f",
    "softplus": _SOFTPLUS,
    "softsign": "x / (1.0f + fabsf(x))",
    "sparse_plus": (
        "x < -1.0f ? 0.0f : x > 1.0f ? x : 0.25f * (x + 1.0f) * (x + 1.0f)"
    ),
    "sparse_sigmoid": "x < -1.0f ? 0.0f : x > 1.0f ? 1.0f : 0.5f * (x + 1.0f)",
    "squareplus": "0.5f * (x + sqrtf(x * x + 4.0f))",
    "tanh": "NAME_tanh_at(x)",
    "tanh_shrink": "x - tanhf(x)",
}
CALLED = {"sigmoid": ["tanh_at"], "tanh": ["tanh_at"]}
ACTIVATIONS = (*_FORMULAS, "softmax", "log_softmax")
_WITH_PARAMETERS = {
    "elu_layer": (["alpha"], "x < 0.0f ? alpha * expm1f(x) : x"),
    "relu_layer": (
        ["slope", "threshold"],
        "x > threshold ? x : slope == 0.0f ? 0.0f : slope * (x - threshold)",
    ),
    "minimum": (["largest"], "x > largest ? largest : x"),
}


_TEXTS = (
    _LOOPS
    | {
        name: _LOOP.format(name=name, parameters=parameters, statement=text)
        for name, (parameters, text) in _STATEMENTS.items()
    }
    | {
        name: _ELEMENTWISE.format(
            name=name,
            parameters="".join(f", float {p}" for p in parameters),
            formula=formula,
        )
        for name, (parameters, formula) in (
            {name: ([], text) for name, text in _FORMULAS.items()}
            | _WITH_PARAMETERS
        ).items()
    }
)


def function_text(name, prefix, weights):
    """The C function of a name, for a type of weights."""
    text = _PRODUCTS[weights] if name == "add_product" else _TEXTS[name]
    for word, replacement in ({"NAME": prefix} | TYPES[weights]).items():
        text = text.replace(word, replacement)
    return text
