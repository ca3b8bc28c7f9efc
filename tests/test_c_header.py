"""A model as a C header: compiled, run, and compared with Keras."""

import os
import pathlib
import re
import shutil
import subprocess

import keras
import numpy as np
import pytest
from keras import layers
from keras import ops

from keras_rin import _files
from keras_rin.export import export_streaming
from keras_rin.export._c_functions import ACTIVATIONS
from keras_rin.export._c_functions import function_text
from keras_rin.layers import RIN
from keras_rin.layers import DeepTransitionRINCell
from keras_rin.layers import NoisyRNN
from keras_rin.layers import RINCell

pytestmark = pytest.mark.one_backend

ROOT = pathlib.Path(__file__).parents[1]
BOARD = pathlib.Path(__file__).with_name("board")
STRICT = ["-pedantic", "-Wall", "-Wextra", "-Werror", "-ffreestanding"]
COMPILERS = [
    ("gcc", "c99"),
    ("g++", "c++17"),
    ("clang", "c99"),
    ("clang++", "c++17"),
]
STREAMS = 2


def needs(*programs):
    """Marks an exhaustive test, which needs these programs installed."""
    missing = [program for program in programs if not shutil.which(program)]
    skip = pytest.mark.skipif(
        bool(missing), reason=f"needs {', '.join(missing)}"
    )
    return lambda test: pytest.mark.exhaustive(skip(test))


def adding():
    return keras.Sequential(
        [
            keras.Input((None, 2)),
            layers.Normalization(
                mean=[1.0, -2.0], variance=[4.0, 0.25], name="scale"
            ),
            layers.Dropout(0.5),
            RIN(
                20,
                activation="tanh",
                dropout=0.5,
                return_sequences=True,
                name="in-1",
            ),
            layers.Dense(1),
        ]
    )


def far_from_zero():
    # The GRU of Keras 3.15 fails without a bias if JAX has float64.
    use_bias = keras.backend.backend() == "jax"
    return keras.Sequential(
        [
            keras.Input((None, 2)),
            layers.Normalization(mean=[1e4, 0.0], variance=[1.0, 1.0]),
            layers.GRU(5, use_bias=use_bias),
            layers.Rescaling([1.0, 2.0, 3.0, 4.0, 5.0], offset=0.5),
        ]
    )


def many_layers():
    return keras.Sequential(
        [
            keras.Input((None, 3)),
            layers.Rescaling(0.5, offset=-0.3),
            layers.SimpleRNN(8, return_sequences=True),
            layers.GaussianNoise(1.0),
            layers.LayerNormalization(),
            layers.GRU(7, return_sequences=True),
            layers.Dense(6, activation="gelu"),
            layers.BatchNormalization(),
            layers.LSTM(5, implementation=1, return_sequences=True),
            layers.LayerNormalization(center=False),
            layers.Activation("softmax"),
            layers.LSTM(4, use_bias=False, return_sequences=True),
            layers.Activation("linear"),
            layers.BatchNormalization(scale=False),
        ]
    )


def nested():
    inner = keras.Sequential(
        [
            keras.Input((None, 4)),
            layers.RNN(DeepTransitionRINCell(6, "tanh"), return_sequences=True),
            layers.Dense(5, activation=layers.LeakyReLU(0.1)),
            layers.ReLU(max_value=0.5, negative_slope=0.1, threshold=0.2),
        ],
        name="3.layers",
    )
    inverse = layers.Normalization(
        invert=True, mean=5 * [0.1], variance=5 * [0.5]
    )
    x = keras.Input((None, 4))
    y, _ = layers.RNN(
        [layers.SimpleRNNCell(4), layers.GRUCell(3, reset_after=False)],
        return_sequences=True,
        return_state=True,
        name="double",
    )(inverse(inner(x)))[:2]
    y = layers.Dense(4, activation="softmax")(layers.ELU(0.5)(y))
    return keras.Model(x, y)


def distributed():
    return keras.Sequential(
        [
            keras.Input((None, 2)),
            layers.TimeDistributed(layers.Dense(6, activation="relu")),
            RIN(3, return_sequences=True),
            layers.TimeDistributed(layers.LayerNormalization()),
        ]
    )


def tokens():
    return keras.Sequential(
        [
            keras.Input((None,), dtype="int32"),
            layers.Embedding(6, 4, mask_zero=True),
            layers.RNN(
                [RINCell(5, "tanh"), layers.GRUCell(3)], return_sequences=True
            ),
            layers.Dense(2),
        ]
    )


MODELS = [adding, far_from_zero, many_layers, nested, tokens, distributed]
ON_JAX = pytest.mark.each_backend
MARKS = {adding: pytest.mark.runtime, far_from_zero: ON_JAX, tokens: ON_JAX}


def made(make, rng):
    """A model whose biases, gains and moments are not those of the start."""
    model = make()
    for weight in model.weights:
        if "recurrent" not in weight.name and "count" not in weight.name:
            noise = 0.1 * rng.random(weight.shape)
            weight.assign(weight + noise.astype("float32"))
    for layer in model.layers:
        if isinstance(layer, layers.Normalization) and layer.built:
            layer.finalize_state()
    return model


def inputs(model, rng, steps):
    shape = (STREAMS, steps, *model.inputs[0].shape[2:])
    if model.inputs[0].dtype == "int32":
        return rng.integers(0, 6, size=shape).astype("int32")
    x = rng.normal(size=shape)
    first = model.layers[0]
    if isinstance(first, layers.Normalization):  # as the data that it is for
        mean, variance = map(ops.convert_to_numpy, (first.mean, first.variance))
        x = x * np.sqrt(variance) + mean
    return x.astype("float32")


def header(model, folder, **options):
    path = folder / "rin.h"
    export_streaming(model, path, format="c", verbose=False, **options)
    return path


def streamed(path, x):
    """The outputs in C for x (streams, steps, ...), of two passes over x."""
    program = path.with_name("stream")
    steps = x.shape[1]
    command = ["gcc", "-O2", "-std=c99", "-I", path.parent, "-o", program]
    command += [f"-DSTREAMS={STREAMS}", f"-DSTEPS={steps}"]
    subprocess.run([*command, BOARD / "stream.c", "-lm"], check=True)
    x = np.concatenate([x, x], axis=1).swapaxes(0, 1).astype("float32")
    done = subprocess.run(
        [program], input=x.tobytes(), capture_output=True, check=True
    )
    y = np.frombuffer(done.stdout, "float32").reshape(2, steps, STREAMS, -1)
    return y.swapaxes(1, 2)


def assert_equal(y, model, x, tolerance=1e-5):
    expected = model.predict(x, verbose=0)
    if expected.ndim == 2:  # the last output
        y, expected = y[:, :, -1:], expected[:, None]
    tolerance *= np.abs(expected).max()
    for one_pass in y:
        np.testing.assert_allclose(one_pass, expected, atol=tolerance, rtol=0)


@needs("gcc")
@pytest.mark.parametrize(
    "make", [pytest.param(m, marks=MARKS.get(m, ())) for m in MODELS]
)
def test_two_streams_of_5000_steps_equal_keras(make, rng, tmp_path):
    model = made(make, rng)
    # Keras calls the layer in a TimeDistributed once for each step.
    x = inputs(model, rng, 20 if make is distributed else 5_000)
    assert_equal(streamed(header(model, tmp_path), x), model, x)


def dequantized(model):
    """The model with the weights that int8 codes stand for."""
    copy = keras.models.clone_model(model)
    weights = []
    for weight in model.weights:
        value = ops.convert_to_numpy(weight)
        if "kernel" in weight.name or "embeddings" in weight.name:
            axis = 1 if "embeddings" in weight.name else 0
            scale = np.abs(value).max(axis=axis, keepdims=True) / 127
            value = np.round(value / scale) * scale
        weights.append(value)
    copy.set_weights(weights)
    return copy


@needs("gcc")
@pytest.mark.parametrize("make", [adding, tokens])
def test_int8_weights_are_codes_with_a_scale_for_each_unit(make, rng, tmp_path):
    model = made(make, rng)
    x = inputs(model, rng, 5_000)
    y = streamed(header(model, tmp_path, weights="int8"), x)
    assert_equal(y, dequantized(model), x)
    assert_equal(y, model, x, tolerance=0.05)
    with pytest.raises(AssertionError):
        assert_equal(y, model, x)


@pytest.fixture(scope="module")
def headers(tmp_path_factory):
    """A folder with a header of each model."""
    folder = tmp_path_factory.mktemp("headers")
    for make, weights in zip(MODELS, ["float32", "int8"] * 3, strict=True):
        path = folder / f"{make.__name__}.h"
        export_streaming(make(), path, "c", verbose=False, weights=weights)
    return folder


@pytest.mark.exhaustive
@pytest.mark.runtime
@pytest.mark.parametrize(("compiler", "standard"), COMPILERS)
def test_headers_compile_together_without_a_warning(
    compiler, standard, headers
):
    """And need nothing but functions of `math.h`, and memcpy."""
    if not shutil.which(compiler):
        pytest.skip(f"needs {compiler}")
    language = "c++" if "++" in standard else "c"
    command = [compiler, f"-std={standard}", "-x", language]
    compile_object(headers, command, *(make.__name__ for make in MODELS))
    names = subprocess.run(
        ["nm", "-u", headers / "headers.o"], capture_output=True, text=True
    )
    needed = set(names.stdout.split()) - {"U", "_GLOBAL_OFFSET_TABLE_"}
    assert {"expf", "tanhf"} <= needed
    assert needed <= {
        *("memcpy", "memset", "memmove"),
        *("erff", "expf", "expm1f", "sqrtf", "tanhf"),
    }


USE = """
#include "PREFIX.h"
extern PREFIX_state PREFIX_stream;
PREFIX_state PREFIX_stream;
void PREFIX_call(const float x[], float y[]);
void PREFIX_call(const float x[], float y[])
{
    PREFIX_reset(&PREFIX_stream);
    PREFIX_step(&PREFIX_stream, x, y);
}
"""


def compile_object(folder, command, *prefixes):
    """Compiles headers with a state of each and calls of its functions."""
    source = folder / "headers.c"
    source.write_text("".join(USE.replace("PREFIX", p) for p in prefixes))
    program, *options = command
    command = [program, "-O2", *options, *STRICT, "-c", source]
    subprocess.run([*command, "-o", folder / "headers.o"], check=True)


def test_math_h_is_included_for_functions_alone(tmp_path):
    for activation, includes in (("relu", False), ("tanh", True)):
        model = keras.Sequential([keras.Input((None, 2)), RIN(3, activation)])
        text = header(model, tmp_path).read_text()
        assert ("#include" in text.replace('#include "rin.h"', "")) == includes


@needs("gcc")
def test_the_example_in_the_comment_runs(rng, tmp_path):
    model = made(adding, rng)
    text = header(model, tmp_path).read_text()
    example = re.search(r"Example:\n\n(.*?)\*/", text, re.S)[1]
    include, *statements = example.strip().splitlines()
    (tmp_path / "example.c").write_text(
        "#include <stdio.h>\n"
        f"{include}\n"
        "static int read_input(float *x) { static int t; *x = x[1] = 0.5f;\n"
        "    return t++ < 9; }\n"
        'static void use_output(float *y) { printf("%.9g ", (double)*y); }\n'
        f"int main(void) {{ {' '.join(statements)} return 0; }}\n"
    )
    command = ["gcc", "-o", tmp_path / "example", tmp_path / "example.c", "-lm"]
    subprocess.run(command, check=True)
    run = subprocess.run([tmp_path / "example"], capture_output=True, text=True)
    x = np.full((1, 9, 2), 0.5, "float32")
    y = [float(value) for value in run.stdout.split()]
    assert len(y) == 9
    expected = model.predict(x, verbose=0)
    np.testing.assert_allclose(y, expected[0, :, 0], atol=1e-6)


@needs("g++")
def test_the_sketch_of_the_page_compiles(tmp_path):
    page = (ROOT / "docs" / "small_device.md").read_text()
    header(adding(), tmp_path)
    (tmp_path / "sketch.cpp").write_text(
        "struct { void begin(long) {} void println(float) {} } Serial;\n"
        "enum { A0, A1 };\n"
        "static int analogRead(int) { return 0; }\n"
        "static void delay(int) {}\n"
        + re.search(r"```cpp\n(.*?)```", page, re.S)[1]
    )
    command = ["g++", "-std=c++17", *STRICT[:4], "-c", "-o", os.devnull]
    subprocess.run([*command, tmp_path / "sketch.cpp"], check=True)


def test_a_normalization_is_part_of_the_next_weights(tmp_path):
    """Where float32 is as exact, and in int8 where it has one factor."""
    text = header(adding(), tmp_path).read_text()
    assert "scale: Normalization, in-1: RIN" in text
    assert "_factor" not in text and "_minus_mean" not in text
    text = header(far_from_zero(), tmp_path).read_text()
    assert "_minus_mean" in text
    for variance, folds in (([1.0, 4.0], False), ([4.0, 4.0], True)):
        model = keras.Sequential(
            [
                keras.Input((None, 2)),
                layers.Normalization(mean=[0.0, 0.0], variance=variance),
                RIN(3, use_bias=False),
            ]
        )
        text = header(model, tmp_path, weights="int8").read_text()
        assert ("_factor" not in text) == folds


ACTIVATION_PROGRAM = """
#include <math.h>
#include <stdio.h>
{functions}
int main(void)
{{
    float x[COUNT], z[COUNT];
    if (fread(x, sizeof x, 1, stdin) != 1)
        return 1;
{calls}
    return 0;
}}
"""
ACTIVATION_CALL = """
    for (int i = 0; i < COUNT; i++)
        z[i] = x[i];
    rin_{name}(z, COUNT);
    fwrite(z, sizeof z, 1, stdout);
"""


def activations_in_c(names, values, folder):
    """A row of values for each activation."""
    source, program = folder / "activations.c", folder / "activations"
    functions = [function_text(name, "rin", "float32") for name in names]
    calls = [ACTIVATION_CALL.format(name=name) for name in names]
    source.write_text(
        ACTIVATION_PROGRAM.format(
            functions="".join(functions), calls="".join(calls)
        )
    )
    command = ["gcc", "-std=c99", f"-DCOUNT={len(values)}", *STRICT[:4], "-O2"]
    subprocess.run([*command, "-o", program, source, "-lm"], check=True)
    run = subprocess.run(
        [program], input=values.tobytes(), capture_output=True, check=True
    )
    return np.frombuffer(run.stdout, "float32").reshape(len(names), -1)


@needs("gcc")
def test_each_activation_is_that_of_keras(rng, tmp_path):
    names = [name for name in ACTIVATIONS if hasattr(keras.activations, name)]
    assert len(names) > 15
    x = [-100, -3, -1, -0.5, -0.0, 0, 0.5, 1, 3, 6, 7, 100]
    x = np.concatenate([rng.normal(size=100), x]).astype("float32")
    rows = activations_in_c(names, x, tmp_path)
    for name, y in zip(names, rows, strict=True):
        expected = ops.convert_to_numpy(
            getattr(keras.activations, name)(x[None])
        )
        np.testing.assert_allclose(
            y, expected[0], rtol=3e-6, atol=1e-6, err_msg=name
        )
    rows = activations_in_c(names, np.array([np.nan], "float32"), tmp_path)
    assert np.isnan(rows).all()


@pytest.mark.exhaustive  # where a compiler reads them as well
def test_names_of_layers_become_different_identifiers(tmp_path):
    names = ["a", "a-b", "a_b", "3", "\u00fc", "double", "a_recurrent", "x_h"]
    cells = [layers.LSTM, RIN, layers.SimpleRNN, layers.GRU] * 2
    model = keras.Sequential([keras.Input((None, 1))])
    for name, cell in zip(names, cells, strict=True):
        model.add(cell(2, return_sequences=True, name=name))
    path = header(model, tmp_path)
    if shutil.which("gcc"):
        compile_object(tmp_path, ["gcc", "-std=c99"], "rin")
    declared = re.findall(r"(\w+)\[[\d *]+\](?: =)?[;{ ]", path.read_text())
    assert len(declared) == len(set(declared)) > 4 * len(names)


def test_a_path_whose_stem_is_no_prefix_is_refused(tmp_path):
    model = adding()
    for name, message in {
        "rin.c": "must end in .h",
        "3rin.h": "'3rin'",
        "my-rin.h": "'my-rin'",
        "r\u00fcn.h": "'r\u00fcn'",
        "_rin.h": "'_rin'",
        "float.h": "'float'",
        "class.h": "'class'",
        "math.h": "'math'",
    }.items():
        with pytest.raises(ValueError, match=message):
            export_streaming(model, tmp_path / name, "c", verbose=False)
    assert not list(tmp_path.iterdir())


UNSUPPORTED = getattr(keras.activations, "glu", ops.cos)  # since Keras 3.7


class MyDense(layers.Dense):
    pass


class MyRNN(layers.RNN):
    pass


def with_layers(*after, shape=(None, 2), dtype="float32", before=()):
    first, *rest = after
    return keras.Sequential(
        [
            keras.Input(shape, dtype=dtype),
            *before,
            RIN(3, return_sequences=True) if not before else first,
            *(rest if before else after),
        ]
    )


def branches():
    x = keras.Input((None, 3))
    return keras.Model(x, layers.Add()([x, RIN(3, return_sequences=True)(x)]))


def mask_of_a_layer():
    x = keras.Input((None,), dtype="int32")
    mask = layers.Rescaling(0.5)(x)
    return keras.Model(x, RIN(3)(layers.Embedding(5, 2)(x), mask=mask))


def noise_in_use():
    x = keras.Input((None, 3))
    y = layers.Dropout(0.5, name="noisy")(RIN(3)(x), training=True)
    return keras.Model(x, y)


def state_as_output():
    x = keras.Input((None, 3))
    _, _, c = layers.LSTM(3, return_state=True)(x)
    return keras.Model(x, c)


def masked(recurrent, mask):
    return keras.Sequential([keras.Input((None, 2)), mask, recurrent])


REFUSED = {
    "convolution": (
        lambda: with_layers(layers.Conv1D(2, 1, name="conv")),
        "'conv' has no form in C: Conv1D",
    ),
    "subclass": (lambda: with_layers(MyDense(2, name="mine")), "'mine'.*MyD"),
    "recurrent subclass": (
        lambda: with_layers(MyRNN(RINCell(3), name="mine")),
        "'mine'.*MyRNN",
    ),
    "convolutional cell": (
        lambda: masked(
            layers.TimeDistributed(layers.Dense(2)),
            layers.Activation("linear"),
        ),
        "recurrent layer",
    ),
    "noisy": (
        lambda: with_layers(NoisyRNN(RINCell(3), 0.1, name="noise")),
        "'noise'",
    ),
    "activation": (
        lambda: with_layers(layers.Dense(4, UNSUPPORTED, name="gated")),
        "'gated'",
    ),
    "own activation": (
        lambda: with_layers(RIN(4, activation=ops.cos, name="cosine")),
        "'cosine'.*'cos'",
    ),
    "axis": (
        lambda: keras.Sequential(
            [keras.Input((None, 2)), RIN(3), layers.Softmax(0, name="batch")]
        ),
        "'batch'.*axis",
    ),
    "images": (
        lambda: keras.Sequential(
            [
                keras.Input((None, 2, 2)),
                layers.TimeDistributed(layers.Flatten()),
                RIN(2),
            ]
        ),
        r"'time_distributed\w*'|'flatten\w*'",
    ),
    "branches": (branches, "'add\\w*'.*Add is not supported"),
    "two branches": (
        mask_of_a_layer,
        "it must read the output of the layer before",
    ),
    "training": (noise_in_use, "'noisy'.*training=True"),
    "state": (state_as_output, "output of a model must be that of its last"),
    "masking": (
        lambda: masked(RIN(3, name="masked"), layers.Masking()),
        "'masking\\w*'",
    ),
    "zero output": (
        lambda: keras.Sequential(
            [
                keras.Input((None,), dtype="int32"),
                layers.Embedding(5, 2, mask_zero=True),
                layers.LSTM(
                    3,
                    return_sequences=True,
                    zero_output_for_mask=True,
                    name="zeros",
                ),
            ]
        ),
        "'zeros'.*zero_output_for_mask",
    ),
    "late tokens": (
        lambda: keras.Sequential(
            [
                keras.Input((None, 2)),
                RIN(1),
                layers.Embedding(5, 2, name="late"),
            ]
        ),
        "'late'.*first layer",
    ),
}


@pytest.mark.each_backend
@pytest.mark.parametrize("case", REFUSED)
def test_a_model_without_a_form_in_c_is_refused(case, tmp_path):
    make, message = REFUSED[case]
    with pytest.raises(ValueError, match=message):
        export_streaming(
            make(),
            tmp_path / "rin.h",
            "c",
            verbose=False,
            stepwise=(MyDense, MyRNN),
        )
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_weight_that_is_not_finite_is_named(value, tmp_path):
    model = adding()
    kernel, offset, bias = model.layers[2].get_weights()
    offset[1, 2] = value
    model.layers[2].set_weights([kernel, offset, bias])
    with pytest.raises(ValueError, match="'in-1: recurrent_kernel'"):
        header(model, tmp_path)
    large = keras.Sequential(
        [keras.Input((None, 2)), layers.Rescaling(1e39, name="large"), RIN(2)]
    )
    with pytest.raises(ValueError, match="'large: scale'"):
        header(large, tmp_path)
    assert not list(tmp_path.iterdir())


def test_other_weights_are_refused(tmp_path):
    for format, weights in (("c", "int4"), ("tf_saved_model", "int8")):
        with pytest.raises(ValueError, match=f"`weights`.*{weights}"):
            export_streaming(
                adding(), tmp_path / "rin.h", format, weights=weights
            )
    with pytest.raises(ValueError, match="Only format='litert'"):
        header(adding(), tmp_path, optimizations=[])
    assert not list(tmp_path.iterdir())


def test_a_path_that_cannot_be_written_keeps_the_file(tmp_path, monkeypatch):
    path = header(adding(), tmp_path)
    before = path.read_text()
    blocked = tmp_path / "file" / "rin.h"
    blocked.parent.write_text("")
    with pytest.raises(OSError, match="C header cannot be written"):
        export_streaming(adding(), blocked, "c", verbose=False)

    def full(*args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(_files.os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        header(many_layers(), tmp_path)
    assert path.read_text() == before
    assert sorted(p.name for p in tmp_path.iterdir()) == ["file", "rin.h"]


def test_it_says_what_it_wrote(tmp_path, capfd):
    model = keras.Sequential([keras.Input((None, 2)), RIN(4)])
    export_streaming(model, tmp_path / "rin.h", "c")
    weights = 4 * (4 * 2 + 4 * 4 + 4)
    assert f"rin_step, {weights} bytes" in capfd.readouterr().out


CORTEX = {
    "m0plus": ["-mcpu=cortex-m0plus"],
    "m4f": ["-mcpu=cortex-m4", "-mfloat-abi=hard", "-mfpu=fpv4-sp-d16"],
}


@needs("arm-none-eabi-gcc", "arm-none-eabi-size", "qemu-system-arm")
@pytest.mark.runtime
@pytest.mark.parametrize("weights", ["float32", "int8"])
@pytest.mark.parametrize("cpu", CORTEX)
def test_on_a_cortex_m_it_equals_keras(cpu, weights, rng, tmp_path):
    """On QEMU's board with a Cortex-M4, which runs code for an M0+, too."""
    model = made(adding, rng)
    path = header(model, tmp_path, weights=weights)
    compiler = ["arm-none-eabi-gcc", "-std=c99", "-mthumb", *CORTEX[cpu]]
    assert_sizes_are_those_of_the_comment(path, compiler)
    steps, print_every = 5_000, 100
    x = inputs(model, rng, steps)[:1]
    values = ", ".join(f"{value!s}f" for value in x.ravel())
    (tmp_path / "input.h").write_text(
        f"enum {{ STEPS = {steps}, PRINT_EVERY = {print_every} }};\n"
        f"static const float INPUT[] = {{ {values} }};\n"
    )
    program = tmp_path / "board.elf"
    command = [*compiler, "-O2", "-I", tmp_path, "-o", program]
    command += [BOARD / "board.c", BOARD / "boot.c", "-T"]
    command += [BOARD / "cortex_m.ld", "--specs=rdimon.specs", "-lm"]
    subprocess.run(command, check=True)
    command = "qemu-system-arm -M mps2-an386 -nographic -semihosting -kernel"
    run = subprocess.run(
        [*command.split(), program],
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    y = np.array(run.stdout.split(), "float32")
    assert len(y) == steps // print_every
    model = dequantized(model) if weights == "int8" else model
    expected = model.predict(x, verbose=0)[0, :, 0]
    np.testing.assert_allclose(
        y,
        expected[print_every - 1 :: print_every],
        atol=1e-5 * np.abs(expected).max(),
    )


def assert_sizes_are_those_of_the_comment(path, compiler):
    """Constants, but for the gaps before the next word, and one state."""
    compile_object(path.parent, [*compiler, "-O0"], "rin")
    command = ["arm-none-eabi-size", "-A", path.with_name("headers.o")]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    sizes = dict(re.findall(r"^(\.\w+)\S*\s+(\d+)", run.stdout, re.M))
    text = path.read_text()
    flash, ram = (
        int(re.search(rf"{kind}: ([\d,]+)", text)[1].replace(",", ""))
        for kind in ("Flash", "RAM")
    )
    gaps = int(sizes[".rodata"]) - flash
    assert 0 <= gaps <= 3 * text.count("const signed char rin_")
    assert int(sizes[".bss"]) == ram
    assert sizes[".data"] == "0"


@needs("riscv64-unknown-elf-gcc")
def test_it_compiles_for_risc_v(tmp_path):
    """Debian's compiler has no `math.h`, so the activation needs none."""
    model = keras.Sequential([keras.Input((None, 2)), RIN(3)])
    header(model, tmp_path)
    command = "riscv64-unknown-elf-gcc -std=c99 -march=rv32imac -mabi=ilp32"
    compile_object(tmp_path, command.split(), "rin")
