"""What is exported runs where neither keras_rin nor Keras can be imported."""

import importlib.util
import pathlib
import subprocess
import sys

import keras
import numpy as np
import pytest

from keras_rin.export import export_streaming
from keras_rin.layers import RIN

ON_TENSORFLOW = pytest.mark.skipif(
    keras.backend.backend() != "tensorflow",
    reason="export to LiteRT needs TensorFlow",
)
WRITES = pytest.mark.skipif(
    keras.backend.backend() == "torch"
    or not importlib.util.find_spec("tensorflow"),
    reason="Keras 3.15 cannot export an RNN from Torch or without TensorFlow",
)
ALONE = """
import sys
sys.modules["keras_rin"] = sys.modules["keras"] = None  # cannot be imported
import numpy
path, data = sys.argv[1:]
x = numpy.load(data)
def zeros(sizes):
    return {name: numpy.zeros((len(x), n), "float32") for name, n in sizes}
"""
SAVED_MODEL = """
import tensorflow
served = tensorflow.saved_model.load(path)
serve = lambda x: served.serve(x)
step = lambda **inputs: served.step(inputs)
"""
LITERT = """
sys.modules["tensorflow"] = None
from ai_edge_litert.interpreter import Interpreter
interpreter = Interpreter(path)
serve_runner = interpreter.get_signature_runner("serve")
serve = lambda x: serve_runner(x=x)["y"]
step = interpreter.get_signature_runner("step")
"""
FOLD = """
state = zeros([("rin", 8), ("lstm_0", 4), ("lstm_1", 4)])
answers = []
for t in range(x.shape[1]):
    state = dict(step(x=x[:, t], **state))
    answers.append(state.pop("y"))
numpy.savez(data + ".npz", serve=serve(x), step=numpy.stack(answers, axis=1))
"""


@pytest.fixture
def model():
    return keras.Sequential(
        [
            keras.Input((None, 2)),
            RIN(8, return_sequences=True, name="rin"),
            keras.layers.LSTM(4, return_sequences=True, name="lstm"),
            keras.layers.Dense(3),
        ]
    )


def answers_alone(program, path, x):
    data = pathlib.Path(path).with_name("x.npy")
    np.save(data, x)
    command = [sys.executable, "-c", ALONE + program + FOLD, path, data]
    subprocess.run(command, check=True)
    return np.load(f"{data}.npz")


@WRITES
def test_a_saved_model_serves_and_steps_alone(model, rng, tmp_path):
    path = tmp_path / "streaming"
    export_streaming(model, path, verbose=False)
    x = rng.normal(size=(5, 30, 2)).astype("float32")
    expected = model.predict(x, verbose=0)
    alone = answers_alone(SAVED_MODEL, path, x)
    np.testing.assert_allclose(alone["serve"], expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(alone["step"], expected, rtol=1e-5, atol=1e-6)


@WRITES
def test_a_saved_step_refuses_a_state_of_another_batch_size(rng, tmp_path):
    import tensorflow as tf

    model = keras.Sequential([keras.Input((None, 2)), RIN(4, name="rin")])
    export_streaming(model, tmp_path / "streaming", verbose=False)
    served = tf.saved_model.load(tmp_path / "streaming")
    x = rng.normal(size=(5, 2)).astype("float32")
    state = np.zeros((5, 4), "float32")
    assert served.step({"x": x, "rin": state})["y"].shape == (5, 4)
    for batch in (1, 10):
        with pytest.raises((tf.errors.OpError, ValueError)):
            served.step({"x": x, "rin": np.zeros((batch, 4), "float32")})


@pytest.mark.exhaustive
@WRITES
def test_ten_thousand_steps_are_still_the_same(model, rng, tmp_path):
    """Nothing fades in a linear RIN without offset: it adds up its inputs."""
    rin = model.layers[0]
    rin.cell.activation = keras.activations.linear
    kernel, offset, bias = rin.get_weights()
    rin.set_weights([kernel, 0 * offset, bias])
    x = 0.01 * rng.normal(size=(1, 10_000, 2)).astype("float32")
    export_streaming(model, tmp_path / "streaming", verbose=False)
    alone = answers_alone(SAVED_MODEL, tmp_path / "streaming", x)
    assert np.ptp(alone["serve"][:, 5_000:]) > 0.1
    np.testing.assert_allclose(alone["step"], alone["serve"], atol=1e-4)


@ON_TENSORFLOW
@pytest.mark.parametrize(
    "time", [30, pytest.param(1, marks=pytest.mark.exhaustive)]
)
def test_litert_serves_and_steps_alone(model, rng, tmp_path, time):
    path = tmp_path / "streaming.tflite"
    export_streaming(model, path, format="litert", verbose=False)
    x = rng.normal(size=(1, time, 2)).astype("float32")
    expected = model.predict(x, verbose=0)
    alone = answers_alone(LITERT, path, x)
    np.testing.assert_allclose(alone["serve"], expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(alone["step"], expected, rtol=1e-5, atol=1e-6)


@ON_TENSORFLOW
def test_the_converter_takes_its_attributes(model, tmp_path):
    import tensorflow as tf

    plain, small = tmp_path / "plain.tflite", tmp_path / "small.tflite"
    wide = keras.Sequential([keras.Input((None, 64)), RIN(128)])
    export_streaming(wide, plain, "litert", verbose=False)
    export_streaming(
        wide,
        small,
        "litert",
        verbose=False,
        optimizations=[tf.lite.Optimize.DEFAULT],
    )
    assert small.stat().st_size < 0.5 * plain.stat().st_size


@ON_TENSORFLOW
def test_a_step_in_integers_alone(rng, tmp_path):
    import tensorflow as tf
    from ai_edge_litert.interpreter import Interpreter

    model = keras.Sequential([keras.Input((None, 2)), RIN(8, name="rin")])
    x = rng.normal(size=(100, 2)).astype("float32")
    zeros = np.zeros((1, 8), "float32")
    export_streaming(
        model,
        tmp_path / "int8.tflite",
        "litert",
        verbose=False,
        optimizations=[tf.lite.Optimize.DEFAULT],
        representative_dataset=lambda: (
            {"x": one[None], "rin": zeros} for one in x
        ),
        inference_input_type=tf.int8,
        inference_output_type=tf.int8,
    )
    interpreter = Interpreter(str(tmp_path / "int8.tflite"))
    assert list(interpreter.get_signature_list()) == ["step"]
    step = interpreter.get_signature_runner("step")
    (scale, zero), dtype = (
        step.get_input_details()["x"][key] for key in ("quantization", "dtype")
    )
    assert dtype == np.int8
    codes = np.clip(np.round(x / scale) + zero, -128, 127).astype("int8")
    start = step.get_input_details()["rin"]["quantization"][1]
    start = np.full((1, 8), start, "int8")
    scale, zero = step.get_output_details()["y"]["quantization"]
    answers = [step(x=one[None], rin=start)["y"] for one in codes]
    answers = scale * (np.concatenate(answers).astype("float32") - zero)
    expected = model.predict(x[:, None], verbose=0)
    np.testing.assert_allclose(answers, expected, atol=0.03 * expected.max())


@pytest.mark.one_backend
@WRITES
def test_it_says_what_it_wrote(model, tmp_path, capfd):
    export_streaming(model, tmp_path / "streaming")
    assert "step of x, rin, lstm_0, lstm_1" in capfd.readouterr().out


@pytest.mark.parametrize(
    ("path", "arguments", "message"),
    [
        ("m", {"format": "gguf"}, "`format`"),
        ("m", {"format": "litert"}, "tflite"),
        ("m", {"optimizations": []}, "Only format='litert'"),
        pytest.param(
            "m.tflite",
            {"format": "litert", "wings": 2},
            "no attribute 'wings'",
            marks=ON_TENSORFLOW,
        ),
    ],
)
def test_what_cannot_be_written_is_refused(
    model, tmp_path, path, arguments, message
):
    with pytest.raises(ValueError, match=message):
        export_streaming(model, tmp_path / path, verbose=False, **arguments)
    assert not list(tmp_path.iterdir())


@ON_TENSORFLOW
@pytest.mark.parametrize("name", ["my-rin", "r\u00fcn", "self"])
def test_a_name_that_litert_cannot_hold_is_refused(tmp_path, name):
    model = keras.Sequential([keras.Input((None, 2)), RIN(3, name=name)])
    with pytest.raises(ValueError, match=f"named '{name}'"):
        export_streaming(model, tmp_path / "m.tflite", "litert", verbose=False)
    assert not list(tmp_path.iterdir())


@ON_TENSORFLOW
@pytest.mark.exhaustive
def test_a_masked_step_alone(tmp_path):
    model = keras.Sequential(
        [
            keras.Input((None,), dtype="int32"),
            keras.layers.Embedding(5, 4, mask_zero=True),
            RIN(8, return_sequences=True, name="rin"),
            keras.layers.LSTM(4, return_sequences=True, name="lstm"),
        ]
    )
    x = np.array([[1, 0, 2, 0, 0, 4]], "int32")
    expected = model.predict(x, verbose=0)
    path = tmp_path / "streaming.tflite"
    export_streaming(model, path, "litert", verbose=False)
    alone = answers_alone(LITERT, path, x)
    np.testing.assert_allclose(alone["serve"], expected, atol=1e-6)
    np.testing.assert_allclose(alone["step"], expected, atol=1e-6)


@ON_TENSORFLOW
@pytest.mark.parametrize("name", ["streaming", "streaming.tflite"])
def test_nothing_is_dropped_out_of_what_is_exported(name, tmp_path):
    import tensorflow as tf
    from ai_edge_litert.interpreter import Interpreter

    model = keras.Sequential(
        [
            keras.Input((None, 2)),
            keras.layers.Dropout(0.5),
            RIN(4, return_sequences=True, dropout=0.5, name="rin"),
        ]
    )
    path = tmp_path / name
    if name.endswith(".tflite"):
        export_streaming(model, path, "litert", verbose=False)
        runner = Interpreter(str(path)).get_signature_runner
        serve, step = runner("serve"), runner("step")
    else:
        export_streaming(model, path, verbose=False)
        served = tf.saved_model.load(path)

        def serve(x):
            return {"y": served.serve(x)}

        def step(**inputs):
            return served.step(inputs)

    x = np.ones((1, 6, 2), "float32")
    expected = model.predict(x, verbose=0)
    np.testing.assert_allclose(serve(x=x)["y"], expected, rtol=1e-5)
    first = step(x=x[:, 0], rin=np.zeros((1, 4), "float32"))["y"]
    np.testing.assert_allclose(first, expected[:, 0], rtol=1e-5)
