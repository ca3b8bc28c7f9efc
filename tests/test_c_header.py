"""A model as a C header: compiled, run, and compared with Keras."""

import os
import pathlib
import re
import shutil
import subprocess

import keras
import numpy as np
import pytest
from cases import first_of
from chains import ACTIVATIONS
from chains import random_chain
from keras import layers
from keras import ops
from step_files import BOARD
from step_files import assert_near
from step_files import round_weights
from step_files import run_c

from keras_rin.export import export_streaming
from keras_rin.layers import RIN
from keras_rin.layers import RINCell

pytestmark = [
    pytest.mark.one_backend,
    pytest.mark.filterwarnings("ignore:.*does not support masking"),
]

ROOT = pathlib.Path(__file__).parents[1]
STRICT = ["-pedantic", "-Wall", "-Wextra", "-Werror", "-ffreestanding"]
COMPILERS = {
    "gcc": "c99",
    "g++": "c++17",
    "clang": "c99",
    "clang++": "c++17",
}


def needs(*programs):
    missing = [program for program in programs if not shutil.which(program)]
    return pytest.mark.skipif(
        bool(missing), reason=f"needs {', '.join(missing)}"
    )


def chain(*layers_, shape=(None, 2), dtype="float32"):
    return keras.Sequential([keras.Input(shape, dtype=dtype), *layers_])


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


def inputs(model, rng, steps, streams=2):
    """As the data that its normalization is for."""
    mean, variance = model.layers[0].mean, model.layers[0].variance
    deviation = np.sqrt(ops.convert_to_numpy(variance))
    x = rng.normal(size=(streams, steps, 2)) * deviation
    return (x + ops.convert_to_numpy(mean)).astype("float32")


def header(model, folder, name="rin", **options):
    path = folder / f"{name}.h"
    export_streaming(model, path, format="c", verbose=False, **options)
    return path


@needs("gcc")
@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("make", "weights"),
    [
        pytest.param(adding, "float32", marks=pytest.mark.runtime),
        pytest.param(far_from_zero, "float32", marks=pytest.mark.each_backend),
        (adding, "int8"),
    ],
)
def test_two_streams_of_5000_steps_equal_keras(make, weights, rng, tmp_path):
    model = make()
    x = inputs(model, rng, 5_000)
    y, again = run_c(header(model, tmp_path, weights=weights), x)
    np.testing.assert_array_equal(y, again)
    if weights == "int8":
        assert_near(y, model, x, tolerance=0.05)
        round_weights(model)
    assert_near(y, model, x)


@pytest.mark.exhaustive
@pytest.mark.runtime
@pytest.mark.parametrize("compiler", COMPILERS)
def test_headers_compile_together_without_a_warning(compiler, tmp_path):
    """And need nothing but functions of `math.h`, and memcpy."""
    if not shutil.which(compiler):
        pytest.skip(f"needs {compiler}")
    names = [f"chain_{seed}" for seed in range(12)]
    for seed, name in enumerate(names):
        weights = ["float32", "int8"][seed % 2]
        header(random_chain(seed)[0], tmp_path, name, weights=weights)
    compile_object(tmp_path, command_of(compiler), *names)
    needed = set(output_of("nm", "-u", tmp_path / "headers.o").split())
    needed -= {"U", "_GLOBAL_OFFSET_TABLE_"}
    possible = """memcpy memset memmove erff expf expm1f fabsf log1pf logf
        sqrtf tanhf"""
    assert {"expf", "tanhf"} <= needed <= set(possible.split())


def output_of(*command, **options):
    run = subprocess.run(command, capture_output=True, check=True, **options)
    return run.stdout.decode()


def command_of(compiler):
    standard = COMPILERS[compiler]
    language = "c++" if "++" in standard else "c"
    return [compiler, f"-std={standard}", "-x", language]


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


def compile_object(folder, command, *prefixes, before="", after=""):
    """Compiles headers with a state of each and calls of its functions."""
    source = folder / "headers.c"
    uses = "".join(USE.replace("PREFIX", prefix) for prefix in prefixes)
    source.write_text(before + uses + after)
    program, *options = command
    command = [program, "-O2", *options, *STRICT, "-c", source]
    subprocess.run([*command, "-o", folder / "headers.o"], check=True)


def named(layer, activation):
    dense = layers.Dense(2, activation, name="private")
    return chain(RIN(3, name=layer), dense)


# Of each header the stem, a layer and an activation, whose parts a name of the
# other may be made of.
TOGETHER = {
    "functions": (
        ("gait", "rin", "log_softmax"),
        ("gait_log", "rin", "softmax"),
    ),
    "weights": (("foot", "left_rin", "relu"), ("foot_left", "rin", "relu")),
    "guards": (("Net", "rin", "relu"), ("NET", "rin", "relu")),
    "macros": (("va", "copy", "relu"), ("va_copy", "private_h", "relu")),
    "public names": (("a", "step", "relu"), ("a_step", "state", "relu")),
}


@needs("gcc", "g++")
@pytest.mark.parametrize("case", TOGETHER)
def test_names_of_two_headers_do_not_meet(case, tmp_path):
    stems = [stem for stem, *_ in TOGETHER[case]]
    for stem, *layer in TOGETHER[case]:
        header(named(*layer), tmp_path, stem)
    own_guards = "".join(f"#define {stem.upper()}_H\n" for stem in stems)
    for compiler in ("gcc", "g++"):
        for prefixes in (stems, stems[::-1]):
            command = command_of(compiler)
            before = f"#include <stdarg.h>\n{own_guards}"
            compile_object(tmp_path, command, *prefixes, before=before)


@needs("g++")
def test_a_header_in_a_namespace_of_cpp(tmp_path):
    """It has to find `math.h` included; its comment says so."""
    text = header(named("rin", "tanh"), tmp_path, "net").read_text()
    assert "namespace" in text
    before = "#include <math.h>\nnamespace gesture {\n"
    command = command_of("g++")
    compile_object(tmp_path, command, "net", before=before, after="}\n")


def test_math_h_is_included_for_functions_alone(tmp_path):
    for activation, includes in (("relu", False), ("tanh", True)):
        text = header(chain(RIN(3, activation)), tmp_path).read_text()
        assert ("#include" in text.replace('#include "rin.h"', "")) == includes


@needs("gcc")
@pytest.mark.exhaustive
def test_the_example_in_the_comment_runs(tmp_path):
    model = adding()
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
    y = np.array(output_of(tmp_path / "example").split(), "float32")
    assert_near(y[None, :, None], model, np.full((1, 9, 2), 0.5, "float32"))


@needs("g++")
@pytest.mark.exhaustive
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
    assert ": Normalization, in-1: RIN" in text
    assert "_factor" not in text and "_minus_mean" not in text
    text = header(far_from_zero(), tmp_path).read_text()
    assert "_minus_mean" in text
    for variance, folds in (([1.0, 4.0], False), ([4.0, 4.0], True)):
        normalization = layers.Normalization(mean=[0, 0], variance=variance)
        model = chain(normalization, RIN(3, use_bias=False))
        text = header(model, tmp_path, weights="int8").read_text()
        assert ("_factor" not in text) == folds


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


@needs("gcc")
@pytest.mark.parametrize(
    "function", first_of([*FUNCTIONS, *zip(ACTIVATION_LAYERS)], 2)
)
def test_each_activation_is_that_of_keras(function, rng, tmp_path):
    """In the first step of a sequence, whose input each value is."""
    x = np.concatenate([rng.normal(size=100), SPECIAL]).astype("float32")
    options = {"use_bias": False, "kernel_initializer": "ones"}
    cell = layers.SimpleRNN(1, function, **options)
    path = header(chain(cell, shape=(None, 1)), tmp_path)
    y = run_c(path, x[:, None, None])[0, :, 0]
    expected = ops.convert_to_numpy(function(x[:, None]))
    np.testing.assert_allclose(y, expected, rtol=3e-6, atol=1e-6)


@needs("gcc")
@pytest.mark.parametrize(
    "layer",
    [
        layers.Dense(3, layers.Softmax(axis=2)),
        layers.Activation(layers.Softmax(axis=-1)),
        layers.TimeDistributed(layers.Dense(3, layers.Softmax(axis=1))),
    ],
)
def test_a_softmax_along_the_features(layer, rng, tmp_path):
    model = chain(rin(), layer)
    x = rng.normal(size=(2, 5, 2)).astype("float32")
    assert_near(run_c(header(model, tmp_path), x)[0], model, x)


@pytest.mark.exhaustive
@needs("gcc")
def test_names_of_layers_become_different_identifiers(tmp_path):
    names = ["a", "a-b", "a_b", "3", "\u00fc", "double", "a_recurrent", "x_h"]
    cells = [layers.LSTM, RIN, layers.SimpleRNN, layers.GRU] * 2
    model = chain(
        *(
            cell(2, return_sequences=True, name=name)
            for name, cell in zip(names, cells, strict=True)
        )
    )
    header(model, tmp_path)
    compile_object(tmp_path, ["gcc", "-std=c99"], "rin")


@pytest.mark.parametrize(
    "name",
    [
        *("rin.c", "3rin.h", "my-rin.h", "r\u00fcn.h", "_rin.h", "math.h"),
        *("a_private.h", "private_a.h"),
    ],
)
def test_a_path_whose_stem_is_no_prefix_is_refused(name, tmp_path):
    with pytest.raises(ValueError, match=f"stem is the prefix.*{name}"):
        export_streaming(adding(), tmp_path / name, "c", verbose=False)
    assert not list(tmp_path.iterdir())


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
    "'conv1d\\w*'.*Conv1D": lambda: chain(rin(), layers.Conv1D(2, 1)),
    "'my'.*MyDense": lambda: chain(rin(), MyDense(2, name="my")),
    "'mine'.*MyCell": lambda: chain(layers.RNN(MyCell(3), name="mine")),
    "'cosine'.*'cos'": lambda: chain(rin(activation=ops.cos, name="cosine")),
    "'batch'.*axis": lambda: chain(RIN(3), layers.Softmax(0, name="batch")),
    "'of'.*axis": lambda: chain(
        RIN(3), layers.Dense(3, layers.Softmax(0, name="of"))
    ),
    "Flatten": lambda: chain(
        layers.TimeDistributed(layers.Flatten()), rin(), shape=(None, 2, 2)
    ),
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
        lambda x: layers.Dropout(0.5)(rin()(x), training=True)
    ),
    "output of a model must be that of its last": lambda: graph(
        lambda x: layers.LSTM(3, return_state=True)(x)[2]
    ),
    "'masking\\w*'": lambda: chain(layers.Masking(), rin()),
    "'zeros'.*zero_output_for_mask": lambda: tokens(
        chain(rin(zero_output_for_mask=True, name="zeros"))
    ),
    "'soft'.*mask": lambda: tokens(layers.Softmax(name="soft"), rin()),
    "'within'.*mask": lambda: chain(
        tokens(layers.Dropout(0.5)),
        chain(layers.Softmax(name="within")),
        rin(),
        shape=(None,),
        dtype="int32",
    ),
    "'late'.*first layer": lambda: chain(
        RIN(1), layers.Embedding(5, 2, name="late")
    ),
    "'eight'.*has quantized it": quantized_by_keras,
}


@pytest.mark.each_backend
@pytest.mark.parametrize("message", REFUSED)
def test_a_model_without_a_form_in_c_is_refused(message, tmp_path):
    with pytest.raises(ValueError, match=message):
        header(REFUSED[message](), tmp_path, stepwise=(MyDense,))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e39])
def test_a_weight_that_is_not_a_finite_float32_is_named(value, tmp_path):
    model = chain(layers.Rescaling(value, name="large"), RIN(2))
    with pytest.raises(ValueError, match="'large: scale'"):
        header(model, tmp_path)
    assert not list(tmp_path.iterdir())


CORTEX = {
    "m0plus": ["-mcpu=cortex-m0plus"],
    "m4f": ["-mcpu=cortex-m4", "-mfloat-abi=hard", "-mfpu=fpv4-sp-d16"],
}


@pytest.mark.exhaustive
@needs("arm-none-eabi-gcc", "arm-none-eabi-size", "qemu-system-arm")
@pytest.mark.runtime
@pytest.mark.parametrize("weights", ["float32", "int8"])
@pytest.mark.parametrize("cpu", CORTEX)
def test_on_a_cortex_m_it_equals_keras(cpu, weights, rng, tmp_path):
    """On QEMU's board with a Cortex-M4, which runs code for an M0+, too."""
    model = adding()
    path = header(model, tmp_path, weights=weights)
    compiler = ["arm-none-eabi-gcc", "-std=c99", "-mthumb", *CORTEX[cpu]]
    assert_sizes_are_those_of_the_comment(path, compiler)
    steps, print_every = 5_000, 100
    x = inputs(model, rng, steps, streams=1)
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
    y = np.array(output_of(*command.split(), program, timeout=300).split())
    assert len(y) == steps // print_every
    if weights == "int8":
        round_weights(model)
    expected = model.predict(x, verbose=0)[0, print_every - 1 :: print_every]
    np.testing.assert_allclose(y.astype("float32"), expected[:, 0], atol=1e-5)


def assert_sizes_are_those_of_the_comment(path, compiler):
    """Constants, but for the gaps before the next word, and one state."""
    compile_object(path.parent, [*compiler, "-O0"], "rin")
    text = output_of("arm-none-eabi-size", "-A", path.with_name("headers.o"))
    sizes = dict(re.findall(r"^(\.\w+)\S*\s+(\d+)", text, re.M))
    text = path.read_text()
    flash, ram = (
        int(re.search(rf"{kind}: ([\d,]+)", text)[1].replace(",", ""))
        for kind in ("Flash", "RAM")
    )
    gaps = int(sizes[".rodata"]) - flash
    assert 0 <= gaps <= 3 * text.count("const signed char")
    assert int(sizes[".bss"]) == ram
    assert sizes[".data"] == "0"


@pytest.mark.exhaustive
@needs("riscv64-unknown-elf-gcc")
def test_it_compiles_for_risc_v(tmp_path):
    """Debian's compiler has no `math.h`, so the activation needs none."""
    header(chain(RIN(3)), tmp_path)
    command = "riscv64-unknown-elf-gcc -std=c99 -march=rv32imac -mabi=ilp32"
    compile_object(tmp_path, command.split(), "rin")
