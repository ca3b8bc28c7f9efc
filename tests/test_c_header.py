"""A model as a C header: compiled, run, and compared with Keras."""

import os
import pathlib
import re
import shutil
import subprocess

import keras
import numpy as np
import pytest
from chains import ACTIVATIONS
from chains import random_chain
from keras import layers
from keras import ops
from step_files import BOARD
from step_files import assert_near
from step_files import round_weights
from step_files import run_c

from keras_rin import _files
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


def made(make, rng):
    """A model with biases that are not 0."""
    model = make()
    for weight in model.weights:
        if "bias" in weight.name:
            weight.assign(0.1 * rng.random(weight.shape).astype("float32"))
    return model


def inputs(model, rng, steps, streams=2):
    """As the data that its normalization is for."""
    mean, variance = (
        ops.convert_to_numpy(value)
        for value in (model.layers[0].mean, model.layers[0].variance)
    )
    x = rng.normal(size=(streams, steps, 2)) * np.sqrt(variance) + mean
    return x.astype("float32")


def header(model, folder, name="rin", **options):
    path = folder / f"{name}.h"
    export_streaming(model, path, format="c", verbose=False, **options)
    return path


@needs("gcc")
@pytest.mark.exhaustive
@pytest.mark.parametrize(
    "make",
    [
        pytest.param(adding, marks=pytest.mark.runtime),
        pytest.param(far_from_zero, marks=pytest.mark.each_backend),
    ],
)
def test_two_streams_of_5000_steps_equal_keras(make, rng, tmp_path):
    model = made(make, rng)
    x = inputs(model, rng, 5_000)
    for y in run_c(header(model, tmp_path), x):
        assert_near(y, model, x)


@needs("gcc")
@pytest.mark.exhaustive
def test_int8_weights_are_codes_with_a_scale_for_each_unit(rng, tmp_path):
    model = made(adding, rng)
    x = inputs(model, rng, 5_000)
    y, _ = run_c(header(model, tmp_path, weights="int8"), x)
    assert_near(y, model, x, tolerance=0.05)
    with pytest.raises(AssertionError):
        assert_near(y, model, x)
    round_weights(model)
    assert_near(y, model, x)


@pytest.fixture(scope="module")
def headers(tmp_path_factory):
    """A folder with headers of chains, and their names."""
    folder = tmp_path_factory.mktemp("headers")
    names = [f"chain_{seed}" for seed in range(12)]
    for seed, name in enumerate(names):
        weights = ["float32", "int8"][seed % 2]
        header(random_chain(seed)[0], folder, name, weights=weights)
    return folder, names


@pytest.mark.exhaustive
@pytest.mark.runtime
@pytest.mark.parametrize("compiler", COMPILERS)
def test_headers_compile_together_without_a_warning(compiler, headers):
    """And need nothing but functions of `math.h`, and memcpy."""
    if not shutil.which(compiler):
        pytest.skip(f"needs {compiler}")
    folder, names = headers
    compile_object(folder, command_of(compiler), *names)
    run = subprocess.run(
        ["nm", "-u", folder / "headers.o"], capture_output=True, text=True
    )
    needed = set(run.stdout.split()) - {"U", "_GLOBAL_OFFSET_TABLE_"}
    assert (
        {"expf", "tanhf"}
        <= needed
        <= {
            *("memcpy", "memset", "memmove"),
            *(
                "erff",
                "expf",
                "expm1f",
                "fabsf",
                "log1pf",
                "logf",
                "sqrtf",
                "tanhf",
            ),
        }
    )


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
    assert "scale: Normalization, in-1: RIN" in text
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


def with_activation(activation):
    """y is the activation of x, in the first step of a sequence."""
    options = {"use_bias": False, "kernel_initializer": "ones"}
    cell = layers.SimpleRNN(1, activation, **options)
    return chain(cell, shape=(None, 1))


PARAMETRIZED = [
    layers.ReLU(),
    layers.ReLU(6.0),
    layers.ReLU(negative_slope=0.1),
    layers.ReLU(2.0, negative_slope=0.1),
    layers.ReLU(threshold=0.7),
    layers.ReLU(5.0, negative_slope=0.1, threshold=0.7),
    layers.LeakyReLU(0.3),
    layers.ELU(0.7),
]


@needs("gcc")
def test_each_activation_is_that_of_keras(rng, tmp_path):
    """In one program, which has a header of each."""
    functions = [
        getattr(keras.activations, name)
        for name in ACTIVATIONS
        if name != "softmax"  # of one value it is 1, of which Keras warns
    ]
    assert len(functions) > 20
    functions += PARAMETRIZED
    for number, function in enumerate(functions):
        header(with_activation(function), tmp_path, f"f{number}")
    x = np.concatenate([rng.normal(size=100), SPECIAL]).astype("float32")
    rows = run_activations(len(functions), x, tmp_path)
    for function, y in zip(functions, rows, strict=True):
        expected = ops.convert_to_numpy(function(x[:, None]))[:, 0]
        np.testing.assert_allclose(
            y, expected, rtol=3e-6, atol=1e-6, err_msg=str(function)
        )


def run_activations(count, x, folder):
    """The outputs of the headers f0, f1, ... for each value of x."""
    call = (
        "for (int i = 0; i < COUNT; i++) { static PREFIX_state state; float y; "
        "PREFIX_reset(&state); PREFIX_step(&state, x + i, &y); "
        "fwrite(&y, sizeof y, 1, stdout); }\n"
    )
    prefixes = [f"f{number}" for number in range(count)]
    source, program = folder / "activations.c", folder / "activations"
    source.write_text(
        "#include <stdio.h>\n"
        + "".join(f'#include "{prefix}.h"\n' for prefix in prefixes)
        + "int main(void) { static float x[COUNT];\n"
        "if (fread(x, sizeof x, 1, stdin) != 1) return 1;\n"
        + "".join(call.replace("PREFIX", prefix) for prefix in prefixes)
        + "return 0; }\n"
    )
    command = ["gcc", "-std=c99", f"-DCOUNT={len(x)}", *STRICT[:4], "-O2"]
    subprocess.run([*command, "-o", program, source, "-lm"], check=True)
    run = subprocess.run(
        [program], input=x.tobytes(), capture_output=True, check=True
    )
    return np.frombuffer(run.stdout, "float32").reshape(count, -1)


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


@pytest.mark.exhaustive  # where a compiler reads them as well
def test_names_of_layers_become_different_identifiers(tmp_path):
    names = ["a", "a-b", "a_b", "3", "\u00fc", "double", "a_recurrent", "x_h"]
    cells = [layers.LSTM, RIN, layers.SimpleRNN, layers.GRU] * 2
    model = chain(
        *(
            cell(2, return_sequences=True, name=name)
            for name, cell in zip(names, cells, strict=True)
        )
    )
    path = header(model, tmp_path)
    if shutil.which("gcc"):
        compile_object(tmp_path, ["gcc", "-std=c99"], "rin")
    declared = re.findall(r"(\w+)\[[\d *]+\](?: =)?[;{ ]", path.read_text())
    assert len(declared) == len(set(declared)) > 4 * len(names)


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


REFUSED = {
    "class": (
        lambda: chain(rin(), layers.Conv1D(2, 1)),
        "'conv1d\\w*'.*Conv1D",
    ),
    "subclass": (lambda: chain(rin(), MyDense(2, name="my")), "'my'.*MyDense"),
    "cell": (
        lambda: chain(layers.RNN(MyCell(3), name="mine")),
        "'mine'.*MyCell",
    ),
    "activation": (
        lambda: chain(rin(activation=ops.cos, name="cosine")),
        "'cosine'.*'cos'",
    ),
    "axis": (
        lambda: chain(RIN(3), layers.Softmax(0, name="batch")),
        "'batch'.*axis",
    ),
    "axis of an activation": (
        lambda: chain(RIN(3), layers.Dense(3, layers.Softmax(0, name="of"))),
        "'of'.*axis",
    ),
    "images": (
        lambda: chain(
            layers.TimeDistributed(layers.Flatten()), rin(), shape=(None, 2, 2)
        ),
        "Flatten",
    ),
    "branches": (
        lambda: graph(lambda x: layers.Add()([x, rin()(x)])),
        "Add is not supported",
    ),
    "mask of a layer": (
        lambda: graph(
            lambda x: rin()(
                layers.Embedding(5, 2)(x), mask=layers.Rescaling(0.5)(x)
            ),
            (None,),
            dtype="int32",
        ),
        "it must read the output of the layer before",
    ),
    "mask of other tokens": (
        lambda: graph(
            lambda x: rin()(layers.Embedding(5, 2)(x), mask=x[:, :] != 1),
            (None,),
            dtype="int32",
        ),
        "no form in C",
    ),
    "training": (
        lambda: graph(lambda x: layers.Dropout(0.5)(rin()(x), training=True)),
        "'dropout\\w*'.*training=True",
    ),
    "state": (
        lambda: graph(lambda x: layers.LSTM(3, return_state=True)(x)[2]),
        "output of a model must be that of its last",
    ),
    "Masking": (lambda: chain(layers.Masking(), rin()), "'masking\\w*'"),
    "zero output": (
        lambda: tokens(chain(rin(zero_output_for_mask=True, name="zeros"))),
        "'zeros'.*zero_output_for_mask",
    ),
    "Softmax with a mask": (
        lambda: tokens(layers.Softmax(name="soft"), rin()),
        "'soft'.*mask",
    ),
    "the same in two models": (
        lambda: chain(
            tokens(layers.Dropout(0.5)),
            chain(layers.Softmax(name="soft")),
            rin(),
            shape=(None,),
            dtype="int32",
        ),
        "'soft'.*mask",
    ),
    "late tokens": (
        lambda: chain(RIN(1), layers.Embedding(5, 2, name="late")),
        "'late'.*first layer",
    ),
    "quantized by Keras": (quantized_by_keras, "'eight'.*has quantized it"),
}


@pytest.mark.each_backend
@pytest.mark.parametrize("case", REFUSED)
def test_a_model_without_a_form_in_c_is_refused(case, tmp_path):
    make, message = REFUSED[case]
    with pytest.raises(ValueError, match=message):
        header(make(), tmp_path, stepwise=(MyDense,))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_weight_that_is_not_finite_is_named(value, tmp_path):
    model = adding()
    kernel, offset, bias = model.layers[2].get_weights()
    offset[1, 2] = value
    model.layers[2].set_weights([kernel, offset, bias])
    with pytest.raises(ValueError, match="'in-1: recurrent_kernel'"):
        header(model, tmp_path)
    large = chain(layers.Rescaling(1e39, name="large"), RIN(2))
    with pytest.raises(ValueError, match="'large: scale'"):
        header(large, tmp_path)
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
        header(far_from_zero(), tmp_path)
    assert path.read_text() == before
    assert sorted(p.name for p in tmp_path.iterdir()) == ["file", "rin.h"]


def test_it_says_what_it_wrote(tmp_path, capfd):
    export_streaming(chain(RIN(4)), tmp_path / "rin.h", "c")
    weights = 4 * (4 * 2 + 4 * 4 + 4)
    assert f"rin_step, {weights} bytes" in capfd.readouterr().out


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
    model = made(adding, rng)
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
    run = subprocess.run(
        [*command.split(), program],
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    y = np.array(run.stdout.split(), "float32")
    assert len(y) == steps // print_every
    if weights == "int8":
        round_weights(model)
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
