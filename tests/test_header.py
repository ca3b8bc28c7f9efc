"""A C header is compared with its model in a line.

The reference is the program of the tests, which runs each stream twice.
"""

import os
import pathlib
import re
import shutil
import subprocess

import keras
import numpy as np
import pytest
from keras import layers
from step_files import assert_near
from step_files import run
from step_files import run_c

from keras_rin.export import Header
from keras_rin.export import check_header
from keras_rin.export import export_c
from keras_rin.export import export_streaming
from keras_rin.layers import RIN

pytestmark = pytest.mark.one_backend
ROOT = pathlib.Path(__file__).parents[1]


def of_numbers(*above):
    rin = RIN(6, "tanh", return_sequences=True)
    return keras.Sequential([keras.Input((None, 2)), rin, *above])


def of_tokens():
    embedding = layers.Embedding(5, 4, mask_zero=True)
    inputs = keras.Input((None,), dtype="int32")
    return keras.Sequential([inputs, embedding, RIN(3)])


@pytest.fixture
def path(tmp_path):
    return tmp_path / "rin.h"


@pytest.mark.parametrize(
    "make", [lambda: of_numbers(layers.Dense(3)), of_tokens]
)
@pytest.mark.parametrize("weights", ["float32", "int8"])
def test_a_header_is_compared_with_its_model(make, weights, rng, path):
    model = make()
    export_c(model, path, weights)
    x = rng.integers(5, size=(4, 30, *model.inputs[0].shape[2:]))
    largest = {"float32": 1e-5, "int8": 0.2}[weights]
    assert Header(path).compare(model, x)[0] < largest
    for weight in model.weights:  # the header is that of other weights
        weight.assign(weight + 0.3 * rng.normal(size=weight.shape))
    y = run_c(path, x)[0]
    expected = model.predict(x, verbose=0)
    y = y if y.ndim == expected.ndim else y[:, -1]
    difference, agreement = Header(path).compare(model, x)
    np.testing.assert_allclose(difference, abs(y - expected).max())
    assert agreement == np.mean(y.argmax(-1) == expected.argmax(-1)) < 1


def strided(**options):
    front = layers.Conv1D(3, 4, strides=3, padding="causal")
    return keras.Sequential([keras.Input((None, 2)), front, RIN(4, **options)])


def in_a_dictionary():
    x = keras.Input((None, 2))
    return keras.Model(x, {"y": RIN(4)(x)})


@pytest.mark.parametrize(
    ("make", "steps"),
    [
        *((lambda: strided(return_sequences=True), n) for n in (6, 7, 11)),
        (strided, 10),
        (in_a_dictionary, 5),
    ],
)
def test_a_right_header_of_any_model_is_called_right(make, steps, rng, path):
    """Of strides that do not divide the steps, and of outputs with names."""
    model = make()
    export_c(model, path)
    x = rng.normal(size=(3, steps, 2))
    difference, agreement = Header(path).compare(model, x)
    assert difference < 1e-5 and agreement == 1


def test_fewer_samples_than_a_step_reads_are_refused(path):
    model = strided()
    export_c(model, path)
    with pytest.raises(ValueError, match="at least 3.*Received.*2, 2"):
        Header(path).compare(model, np.ones((1, 2, 2)))


@pytest.mark.parametrize("activation", ["softmax", "linear"])
def test_a_header_in_integers_is_compared(activation, rng, path):
    """Along its calibration, and along counts that are far larger."""
    rescaling = layers.Rescaling(1 / 256)
    rin = RIN(6, "relu", return_sequences=True, recurrent_initializer="zeros")
    model = keras.Sequential(
        [keras.Input((None, 2)), rescaling, rin, layers.Dense(3, activation)]
    )
    rin.set_weights([*rin.get_weights()[:1], -0.1 * np.eye(6), np.zeros(6)])
    x = rng.integers(-256, 257, size=(4, 300, 2))
    options = {"arithmetic": "integer", "calibration": x}
    export_c(model, path, **options)
    check = Header(path).compare(model, x)
    y = run_c(path, x)[0].astype("float64")
    if activation == "softmax":
        y *= float(re.search(r"output_scale (\S+)", path.read_text())[1])
        y = keras.ops.convert_to_numpy(keras.ops.softmax(y))
    expected = model.predict(x, verbose=0)
    is_equal = y.argmax(-1) == expected.argmax(-1)
    assert check.agreement == np.mean(is_equal)
    trend = is_equal[:, -30:].mean() - is_equal[:, :30].mean()
    assert check.trend == pytest.approx(trend)
    assert f"by {trend:+.2%}" in str(check)
    assert check == (check.difference, check.agreement)
    np.testing.assert_allclose(
        check.share, check.difference / np.ptp(expected), rtol=1e-6
    )
    assert check.share < 0.03
    assert check.saturated == check.outside == 0
    assert "Warning" not in str(check)
    assert f"{check.agreement:.2%} of the answers" in str(check)
    wide = Header(path).compare(model, 100 * x)
    assert wide.outside == np.mean(abs(100 * x).max(axis=-1) > 256)
    assert 0.1 < wide.saturated < 1
    for line in ("leave the range of the calib", "unlike the model"):
        assert line in str(wide)
    with pytest.raises(ValueError, match="whole numbers from -32768 to 32767"):
        Header(path).compare(model, x / 3)


@pytest.mark.parametrize("make", [strided, of_tokens])
def test_an_opened_header_predicts_every_step(make, rng, path):
    """After it was moved and called otherwise, and compiled once."""
    model = make()
    export_c(model, path)
    moved = path.rename(path.with_name("moved.h"))
    header = Header(moved)
    moved.unlink()
    x = rng.integers(5, size=(4, 31, *model.inputs[0].shape[2:]))
    steps = 31 if make is of_tokens else 10
    for _ in range(2):
        y = header.predict(x)
        assert y.shape == (4, steps, 3 if make is of_tokens else 4)
        expected = model.predict(x[:, : 31 // steps * steps], verbose=0)
        np.testing.assert_allclose(y[:, -1], expected, atol=1e-5)
    with pytest.raises(ValueError, match=r"\(batch, time, ...\).*\(4, 31, 7\)"):
        header.predict(np.ones((4, 31, 7)))
    assert "moved.h" in repr(header) and "moved.h: " in str(header)


def test_a_file_that_is_no_header_is_refused(path):
    path.write_text("#define rin_inputs 3\n")
    with pytest.raises(ValueError, match="header of keras_rin.*rin.h"):
        Header(path)


def test_names_of_before_say_what_took_their_place(path):
    with pytest.raises(NotImplementedError, match="export_c.*Received.*'c'"):
        export_streaming(of_numbers(), path, "c", False, weights="int8")
    with pytest.raises(NotImplementedError, match="export_saved_model"):
        export_streaming(of_numbers(), path)
    with pytest.raises(NotImplementedError, match=r"Header\(path\).compare"):
        check_header(of_numbers(), path, np.ones((2, 5, 2)))


@pytest.mark.parametrize("missing", ["rin.h", "cc"])
def test_a_missing_header_or_compiler_is_named(missing, path, monkeypatch):
    model = of_numbers()
    if missing == "cc":
        export_c(model, path)
        monkeypatch.setenv("PATH", "")
    with pytest.raises(FileNotFoundError, match=missing):
        Header(path).compare(model, np.ones((2, 5, 2)))


@pytest.mark.exhaustive
def test_the_example_in_the_comment_runs(path):
    model = of_numbers(layers.Dense(1))
    export_c(model, path)
    example = re.search(r"Example:\n\n(.*?)\*/", path.read_text(), re.S)[1]
    include, *statements = example.strip().splitlines()
    path.with_name("example.c").write_text(
        "#include <stdio.h>\n"
        f"{include}\n"
        "static int read_input(float *x) { static int t; *x = x[1] = 0.5f;\n"
        "    return t++ < 9; }\n"
        'static void use_output(float *y) { printf("%.9g ", (double)*y); }\n'
        f"int main(void) {{ {' '.join(statements)} return 0; }}\n"
    )
    program = path.with_name("example")
    run(["gcc", "-o", program, program.with_suffix(".c"), "-lm"])
    y = np.array(run([program]).split(), "float32")
    assert_near(y[None, :, None], model, np.full((1, 9, 2), 0.5, "float32"))


@pytest.mark.exhaustive
def test_the_sketch_of_the_page_compiles(path):
    page = (ROOT / "docs" / "small_device.md").read_text()
    options = {"arithmetic": "integer"}
    options["calibration"] = np.arange(8).reshape(1, 4, 2)
    above = [layers.Rescaling(0.1), *of_numbers().layers]
    model = keras.Sequential([keras.Input((None, 2)), *above])
    export_c(model, path, **options)
    path.with_name("sketch.cpp").write_text(
        "struct { void begin(long) {} void println(float) {} } Serial;\n"
        "enum { A0, A1 };\n"
        "static int analogRead(int) { return 0; }\n"
        "static unsigned long micros() { return 0; }\n"
        + re.search(r"```cpp\n(.*?)```", page, re.S)[1]
    )
    command = "g++ -std=c++17 -pedantic -Wall -Wextra -Werror -c -o".split()
    run([*command, os.devnull, path.with_name("sketch.cpp")])


@pytest.mark.runtime
def test_the_program_of_the_page_prints_answers(rng, tmp_path):
    page = (ROOT / "docs" / "small_device.md").read_text()
    (program,) = re.findall(r"^```c\n(.*?)^```", page, re.M | re.S)
    (commands,) = re.findall(r"^```bash\n(gcc.*?)^```", page, re.M | re.S)
    if not shutil.which("gcc"):
        pytest.skip("needs gcc")
    model = keras.Sequential(
        [
            keras.Input((None, 2)),
            layers.Rescaling(0.1),
            RIN(16, "tanh", return_sequences=True),
        ]
    )
    x = rng.integers(-9, 10, size=(1, 100, 2))
    options = {"arithmetic": "integer", "calibration": x}
    export_c(model, tmp_path / "rin.h", **options)
    (tmp_path / "main.c").write_text(program)
    np.savetxt(tmp_path / "counts.txt", x[0], "%d")
    options = {"cwd": tmp_path, "text": True}
    printed = subprocess.check_output(["bash", "-ec", commands], **options)
    y = run_c(tmp_path / "rin.h", x)[0]
    np.testing.assert_array_equal(
        [int(line) for line in printed.split()], y[0].argmax(axis=-1)
    )
