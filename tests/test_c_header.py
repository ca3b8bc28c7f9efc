"""A model as a C header: compiled, run, and compared with Keras."""

import re

import keras
import numpy as np
import pytest
from cases import first_of
from chains import ACTIVATIONS
from chains import random_chain
from headers import COMPILERS
from headers import chain
from headers import compile_object
from headers import header
from keras import layers
from keras import ops
from models import MODELS
from models import WITHOUT_STEPS
from models import blocks_of
from models import causal
from models import some_input
from references import to_numpy
from step_files import ON_BOARD
from step_files import QEMU
from step_files import assert_near
from step_files import round_weights
from step_files import run
from step_files import run_c

from keras_rin.export import export_c
from keras_rin.layers import RIN
from keras_rin.layers import RINCell

pytestmark = [
    pytest.mark.one_backend,
    pytest.mark.filterwarnings("ignore:.*does not support masking"),
]


def tokens(*layers_):
    embedding = layers.Embedding(5, 2, mask_zero=True)
    return chain(embedding, *layers_, shape=(None,), dtype="int32")


def rin(**options):
    return RIN(3, return_sequences=True, **options)


def adding():
    return chain(
        layers.Normalization(mean=[1.0, -2.0], variance=[4.0, 0.25]),
        RIN(20, "tanh", return_sequences=True, name="in-1"),
        layers.Dense(1, bias_initializer="ones"),
    )


def far_from_zero():
    # The GRU of Keras 3.15 fails without a bias if JAX has float64.
    use_bias = keras.backend.backend() == "jax"
    return chain(
        layers.Normalization(mean=[1e4, 0.0], variance=[1.0, 1.0]),
        layers.GRU(5, use_bias=use_bias),
        layers.Rescaling([1.0, 2.0, 3.0, 4.0, 5.0], offset=0.5),
    )


def gates():
    return chain(
        layers.Normalization(mean=[0.0, 1.0], variance=[1.0, 2.0]),
        layers.SimpleRNN(4, return_sequences=True),
        layers.LSTM(6, return_sequences=True),
        layers.GRU(7, return_sequences=True),
    )


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("target", "make", "weights"),
    [
        pytest.param(
            "gcc", far_from_zero, "float32", marks=pytest.mark.each_backend
        ),
        *(
            pytest.param(target, adding, weights, marks=pytest.mark.runtime)
            for target in ("gcc", "m0plus", "m4")
            for weights in ("float32", "int8")
        ),
        pytest.param("m4", gates, "int8", marks=pytest.mark.runtime),
    ],
)
def test_two_streams_of_5000_steps_equal_keras(
    target, make, weights, rng, tmp_path
):
    """On QEMU's board with a Cortex-M4, which runs code for an M0+, too."""
    model = make()
    normalization = model.layers[0]
    mean, variance = map(to_numpy, (normalization.mean, normalization.variance))
    x = rng.normal(size=(2, 5_000, 2)) * np.sqrt(variance) + mean
    x = x.astype("float32")
    on_board = (ON_BOARD, QEMU.split()) if target != "gcc" else ()
    path = header(model, tmp_path, arithmetic=weights)
    y, again = run_c(path, x, COMPILERS[target].split(), *on_board)
    np.testing.assert_array_equal(y, again)
    tolerance = 1e-5
    if weights == "int8":
        assert_near(y, model, x, tolerance=0.05)
        round_weights(model)
        tolerance = 2e-4  # of 16 bits, to which a product rounds what it reads
    assert_near(y, model, x, tolerance)


# Down to subnormal numbers; the largest of float32 among them.
SPECIAL = [0, -0.0, np.inf, -np.inf, np.nan, 1e-40, -1e-40, 3.4e38, -3.4e38]
SPECIAL += [-100, -17, -6, -3, -1, -0.5, 0.5, 1, 3, 6, 7, 17, 100]
ACTIVATION_LAYERS = [
    layers.ReLU(),
    layers.ReLU(6.0),
    layers.ReLU(negative_slope=0.1),
    layers.ReLU(2.0, negative_slope=0.1),
    layers.ReLU(threshold=0.7),
    layers.ReLU(5.0, negative_slope=0.1, threshold=0.7),
    layers.LeakyReLU(0.3),
    layers.ELU(0.7),
]
FUNCTIONS = [
    (getattr(keras.activations, name),)
    for name in ("hard_shrink", "softplus", *ACTIVATIONS)
    if name != "softmax"  # of one value it is 1, of which Keras warns
]


def activated(function, x, folder):
    """In the first step of a sequence, whose input each value is."""
    options = {"use_bias": False, "kernel_initializer": "ones"}
    cell = layers.SimpleRNN(1, function, **options)
    path = header(chain(cell, shape=(None, 1)), folder)
    return run_c(path, x[:, None, None])[0, :, 0]


@pytest.mark.parametrize(
    "function", first_of([*FUNCTIONS, *zip(ACTIVATION_LAYERS)], 2)
)
def test_each_activation_is_that_of_keras(function, rng, tmp_path):
    x = np.concatenate([rng.normal(size=100), SPECIAL]).astype("float32")
    y = activated(function, x, tmp_path)
    expected = to_numpy(function(x[:, None]))
    np.testing.assert_allclose(y, expected, rtol=3e-6, atol=1e-6)


def test_gates_are_off_by_at_most_2e_7(tmp_path):
    """Within the range of the table of tanh and beyond."""
    x = np.linspace(-20, 20, 100_001).astype("float32").astype("float64")
    logistic = 1 / (1 + np.exp(-x))
    for name, expected in {"tanh": np.tanh(x), "sigmoid": logistic}.items():
        y = activated(name, x, tmp_path)[:, 0]
        np.testing.assert_allclose(y, expected, rtol=0, atol=2e-7)


@pytest.mark.runtime
def test_products_of_integers_keep_what_floats_do(rng, tmp_path):
    """Where a long has 32 bits: large sums, NaN and infinities."""
    wide = layers.Dense(
        600, kernel_initializer="zeros", bias_initializer="ones"
    )
    model = chain(rin(), wide, layers.Dense(2, kernel_initializer="ones"))
    path = header(model, tmp_path, arithmetic="int8")
    x = rng.normal(size=(3, 4, 2)).astype("float32")
    on_board = (COMPILERS["m4"].split(), ON_BOARD, QEMU.split())
    np.testing.assert_allclose(run_c(path, x, *on_board), 600, rtol=1e-3)
    x[0, 1, 1], x[1, 1, 1], x[2, 1] = np.nan, np.inf, 0.0
    finite = np.isfinite(run_c(path, x, *on_board)[0]).all(axis=2)
    assert (finite == [[True, i == 2, i == 2, i == 2] for i in range(3)]).all()


def test_no_rounding_of_integers_adds_up_in_silence(rng, tmp_path):
    """Unit 0 is given the sum of constant states, which is 0."""
    units, steps = 12, 10_000
    states, codes = rng.uniform(0.2, 2, units), rng.integers(-99, 99, units)
    codes[:2], states[0] = [0, 127], 0
    states[1] -= states @ codes / 127
    offset = np.zeros((units, units))
    offset[:, 0] = codes / 127
    cell = RINCell(units, None, use_bias=False)
    model = chain(layers.RNN(cell, return_sequences=True), shape=(None, 1))
    model.set_weights([states[None], offset])
    x = np.eye(1, steps)[:, :, None]  # 1, and 0 ever after
    y = run_c(header(model, tmp_path, arithmetic="int8"), x)[0, 0]
    # A product of floats is off by up to 1e-3 as well.
    assert abs(y - states).max() < 2e-3 * abs(states).max()


def test_a_product_of_integers_has_any_number_of_columns(rng, tmp_path):
    columns = 4_096
    codes = rng.integers(-127, 128, (columns, 3))
    codes[::100] = 127  # in each part with a scale of its own
    initial = {
        "kernel_initializer": "identity",
        "recurrent_initializer": "zeros",
    }
    rin = RIN(3, None, **initial)
    dense = layers.Dense(3, use_bias=False)
    model = chain(dense, rin, shape=(None, columns))
    dense.set_weights([codes / 64])
    x = rng.normal(size=(1, 1, columns)).astype("float32")
    x[0, 0, 9] = 20.0
    y = run_c(header(model, tmp_path, arithmetic="int8"), x)[0, 0]
    expected = x[0].astype("float64") @ codes / 64
    np.testing.assert_allclose(y, expected, atol=2e-4 * abs(expected).max())


def test_a_softmax_along_the_features(rng, tmp_path):
    model = chain(
        rin(),
        layers.Dense(3, layers.Softmax(axis=2)),
        layers.Activation(layers.Softmax(axis=-1)),
        layers.TimeDistributed(layers.Dense(3, layers.Softmax(axis=1))),
    )
    x = rng.normal(size=(2, 5, 2)).astype("float32")
    assert_near(run_c(header(model, tmp_path), x)[0], model, x)


@pytest.mark.parametrize(
    ("name", "weights"),
    [
        *(("strided", weights) for weights in ("float32", "int8")),
        *(("dilated", "float32"), ("two strided", "float32")),
    ],
)
def test_a_causal_convolution(name, weights, rng, tmp_path):
    model = MODELS[name]()
    x = some_input(rng, model, batch=2, time=12)
    path = header(model, tmp_path, arithmetic=weights)
    y = run_c(path, blocks_of(model, x))[0]
    if weights == "int8":
        round_weights(model)
    assert_near(y, model, x, 2e-4 if weights == "int8" else 2e-5)


class MyDense(layers.Dense):
    pass


class MyCell(RINCell):
    pass


def graph(function, shape=(None, 3), **options):
    x = keras.Input(shape, **options)
    return keras.Model(x, function(x))


def quantized_by_keras():
    model = chain(rin(), layers.Dense(3, name="eight"))
    model.layers[1].quantize("int8")
    return model


def of_tokens(function):
    return graph(function, (None,), dtype="int32")


REFUSED = {
    "'my'.*MyDense": lambda: chain(rin(), MyDense(2, name="my")),
    "'mine'.*MyCell": lambda: chain(layers.RNN(MyCell(3), name="mine")),
    "'cosine'.*'cos'": lambda: chain(rin(activation=ops.cos, name="cosine")),
    "Add is not supported": lambda: graph(
        lambda x: layers.Add()([x, rin()(x)])
    ),
    "it must read the output of the layer before": lambda: of_tokens(
        lambda x: rin()(layers.Embedding(5, 2)(x), mask=layers.Rescaling(1)(x))
    ),
    "no form in C": lambda: of_tokens(
        lambda x: rin()(layers.Embedding(5, 2)(x), mask=x[:, :] != 1)
    ),
    "'dropout\\w*'.*training=True": lambda: graph(
        lambda x: layers.Dropout(0.5)(RIN(3)(x), training=True)
    ),
    "output of a model must be that of its last": lambda: graph(
        lambda x: layers.LSTM(3, return_state=True)(x)[2]
    ),
    "'masking\\w*'": lambda: chain(layers.Masking(), rin()),
    "'zeros'.*zero_output_for_mask": lambda: tokens(
        chain(rin(zero_output_for_mask=True, name="zeros"))
    ),
    "'soft'.*mask": lambda: tokens(layers.Softmax(name="soft"), rin()),
    "'late'.*first layer": lambda: chain(
        RIN(1), layers.Embedding(5, 2, name="late")
    ),
    "'eight'.*has quantized it": quantized_by_keras,
    "'groups'.*`groups` must be 1": lambda: chain(
        layers.Conv1D(4, 1, groups=2, name="groups"), rin()
    ),
    "'first'.*axis must be that of the features": lambda: chain(
        RIN(4), layers.Softmax(axis=0, name="first")
    ),
    "'inner'.*axis must be that of the features": lambda: chain(
        RIN(4), layers.Dense(2, layers.Softmax(axis=0, name="inner"))
    ),
    "'inside'": lambda: graph(
        lambda x: RIN(2)(
            layers.TimeDistributed(layers.Flatten())(
                layers.TimeDistributed(causal(3, 2), name="inside")(x)
            )
        ),
        (None, 4, 2),
    ),
    "'gates'.*axis must be that of the features": lambda: chain(
        layers.GRU(3, recurrent_activation=layers.Softmax(0, name="gates"))
    ),
    "'early'.*to compute each time step": lambda: chain(
        layers.Conv1D(4, 3, padding="same", name="early"), rin()
    ),
    "'by_step'.*to compute each time step": lambda: chain(
        layers.Rescaling(np.ones((5, 2)), name="by_step"), rin(), shape=(5, 2)
    ),
}
IN_C = ("must have names", "used twice")  # each call has states of its own
OTHERS = [r for r in WITHOUT_STEPS if not any(reason in r for reason in IN_C)]


@pytest.mark.each_backend
@pytest.mark.parametrize("message", REFUSED)
def test_a_model_without_a_form_in_c_is_refused(message, tmp_path):
    with pytest.raises(ValueError, match=message):
        header(REFUSED[message](), tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("reason", OTHERS)
def test_a_model_that_has_no_steps_is_refused(reason, tmp_path):
    words = "|".join([reason, "is not supported", "its mask is not"])
    with pytest.raises(ValueError, match=words):
        header(WITHOUT_STEPS[reason](), tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_layer_that_is_called_twice_has_two_states(rng, tmp_path):
    twice = RIN(2, return_sequences=True, name="x")
    model = chain(twice, layers.Dense(2), twice, layers.Dense(2, name="y"))
    x = rng.normal(size=(2, 9, 2)).astype("float32")
    assert_near(run_c(header(model, tmp_path), x)[0], model, x)


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e39])
def test_a_weight_that_is_not_a_finite_float32_is_named(value, tmp_path):
    model = chain(layers.Rescaling(value, name="large"), RIN(2))
    with pytest.raises(ValueError, match="'large_factor'"):
        header(model, tmp_path)


# It compiles, whatever its name, the compiler's flags and its layers are.
STRICTER = """-Wconversion -Wdouble-promotion -Wfloat-equal -Wshadow
    -Wstrict-aliasing"""
LEVELS = {"gcc": "-O0", "g++": "-O2", "clang": "-O3", "clang++": "-Os"}
# What templates of C may contain, and names that mean something to a compiler.
STEMS = """NAME PREFIX_name WEIGHTS SCALES_TYPE SIZE VALUE private2 formula
    float_z state_step reset_inputs linux""".split()


@pytest.mark.exhaustive
@pytest.mark.runtime
@pytest.mark.parametrize("compiler", LEVELS)
def test_headers_compile_together_without_a_warning(compiler, tmp_path):
    """And need nothing but functions of `math.h`, and memcpy."""
    for seed, stem in enumerate(STEMS):
        weights = ["float32", "int8"][seed % 2]
        header(random_chain(seed)[0], tmp_path, stem, arithmetic=weights)
    command = f"{COMPILERS[compiler]} {STRICTER} {LEVELS[compiler]}"
    compile_object(tmp_path, command, *STEMS)
    needed = set(run(["nm", "-u", tmp_path / "headers.o"]).split())
    needed -= {"U", "_GLOBAL_OFFSET_TABLE_"}
    possible = """memcpy memset memmove erff expf expm1f fabsf log1pf logf
        sqrtf tanhf"""
    assert {"expf", "tanhf"} <= needed <= set(possible.split())


@pytest.mark.parametrize(
    "layer",
    [
        layers.Conv1D(4, 1),
        layers.ReLU(max_value=float("inf")),
        layers.ReLU(negative_slope=0.5, threshold=0.5),
    ],
    ids=lambda layer: type(layer).__name__,
)
def test_what_once_did_not_compile(layer, tmp_path):
    for weights, stem in (("float32", "my_SCALED_net"), ("int8", "WEIGHTS")):
        header(chain(layer, RIN(3)), tmp_path, stem, arithmetic=weights)
        compile_object(tmp_path, f"gcc -std=c99 {STRICTER}", stem)


def named(layer, activation):
    dense = layers.Dense(2, activation, name="private")
    return chain(RIN(3, name=layer), dense)


# Of each header the stem, a layer and an activation.
TOGETHER = {
    "functions": (
        ("gait", "rin", "log_softmax"),
        ("gait_log", "rin", "softmax"),
    ),
    "guards": (("Net", "rin", "relu"), ("NET", "rin", "relu")),
    "public names": (("a", "step", "relu"), ("a_step", "state", "relu")),
}


@pytest.mark.parametrize("case", TOGETHER)
def test_names_of_two_headers_do_not_meet(case, tmp_path):
    stems = [stem for stem, *_ in TOGETHER[case]]
    for stem, *layer in TOGETHER[case]:
        header(named(*layer), tmp_path, stem)
    for prefixes in (stems, stems[::-1]):
        compile_object(tmp_path, COMPILERS["g++"], *prefixes)


@pytest.mark.parametrize(
    ("activation", "include"), [("tanh", ""), ("elu", "#include <math.h>\n")]
)
def test_a_header_in_a_namespace_of_cpp(activation, include, tmp_path):
    """It has to find `math.h` included, if it needs it, as its comment says."""
    text = header(named("rin", activation), tmp_path, "net").read_text()
    assert "namespace" in text
    before, after = f"{include}namespace gesture {{\n", "}\n"
    command = COMPILERS["g++"]
    compile_object(tmp_path, command, "net", before=before, after=after)


@pytest.mark.exhaustive
@pytest.mark.parametrize("compiler", ["gcc", "riscv"])
def test_names_of_layers_become_different_identifiers(compiler, tmp_path):
    """Debian's compiler for RISC-V has no `math.h`, so none is needed."""
    names = ["a", "a-b", "a_b", "3", "\u00fc", "double", "a_recurrent", "x_h"]
    header(
        chain(*(RIN(3, return_sequences=True, name=name) for name in names)),
        tmp_path,
    )
    compile_object(tmp_path, COMPILERS[compiler], "rin")


@pytest.mark.exhaustive
@pytest.mark.runtime
@pytest.mark.parametrize("weights", ["float32", "int8"])
def test_the_bytes_on_a_cortex_m4(weights, tmp_path):
    """Constants, but for the gaps before the next word, one state, the code.

    Beside the weights is the table of tanh, of 19 floats.
    """
    path = tmp_path / "rin.h"
    model = chain(RIN(20, "tanh", return_sequences=True), layers.Dense(1))
    written = export_c(model, path, weights)
    text = path.read_text()
    assert f"Flash: {written.weight_bytes:,} bytes" in text
    assert f"RAM: {written.state_bytes:,} bytes" in text
    compile_object(tmp_path, f"{COMPILERS['m4']} -O0", "rin")
    sizes = run(["arm-none-eabi-size", "-A", tmp_path / "headers.o"])
    sizes = dict(re.findall(r"^(\.\w+)\S*\s+(\d+)", sizes, re.M))
    gaps = int(sizes[".rodata"]) - written.weight_bytes - 4 * 19
    assert 0 <= gaps <= 3 * text.count("const signed char")
    assert int(sizes[".bss"]) == written.state_bytes
    assert sizes[".data"] == "0"
    code_bytes = written.cost("Cortex-M4F").flash - written.weight_bytes
    assert 100 < code_bytes < int(sizes[".text"])
    assert written.path == path
