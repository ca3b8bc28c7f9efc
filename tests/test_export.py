"""Exported models run where neither keras_rin nor Keras can be imported."""

import importlib.util
import subprocess
import sys

import keras
import numpy as np
import pytest
from cases import needs_keras
from references import assert_same
from test_layer_contract import LAYERS

from keras_rin.export import export_streaming
from keras_rin.layers import RIN
from keras_rin.models import residual_convnet

BACKEND = keras.backend.backend()
ON_TENSORFLOW = pytest.mark.skipif(
    BACKEND != "tensorflow",
    reason="Keras exports to LiteRT and ONNX from TensorFlow",
)
WRITES = pytest.mark.skipif(
    BACKEND == "torch" or not importlib.util.find_spec("tensorflow"),
    reason="Keras 3.15 cannot export an RNN from Torch or without TensorFlow",
)
NEEDS_ONNX = needs_keras("3.8", "this Keras cannot export to ONNX")
ALONE = """
import sys
sys.modules["keras_rin"] = sys.modules["keras"] = None  # cannot be imported
import numpy
path, *files = sys.argv[1:]
"""
SAVED_MODEL = """
import tensorflow
served = tensorflow.saved_model.load(path)
serve = served.serve
step = lambda **inputs: served.step(inputs)
"""
ONNX = """
sys.modules["tensorflow"] = None
import onnxruntime
session = onnxruntime.InferenceSession(path)
serve = lambda x: session.run(None, {session.get_inputs()[0].name: x})[0]
"""
LITERT = """
sys.modules["tensorflow"] = None
from ai_edge_litert.interpreter import Interpreter
interpreter = Interpreter(path)
serve_runner = interpreter.get_signature_runner("serve")
serve = lambda x: serve_runner(x=x)["y"]
step = interpreter.get_signature_runner("step")
"""
SERVE = """
for file in files:
    numpy.save(file + ".answer.npy", serve(numpy.load(file)))
"""
FOLD = """
x = numpy.load(files[0])
sizes = {"rin": 8, "lstm_0": 4, "lstm_1": 4}
state = {n: numpy.zeros((len(x), size), "float32") for n, size in sizes.items()}
answers = []
for t in range(x.shape[1]):
    state = dict(step(x=x[:, t], **state))
    answers.append(state.pop("y"))
numpy.save(files[0] + ".step.npy", numpy.stack(answers, axis=1))
"""


def run_alone(program, path, *inputs):
    """Runs a program on an exported model, and returns what it saved."""
    files = [path.with_name(f"{n}.npy") for n in range(len(inputs))]
    for file, x in zip(files, inputs, strict=True):
        np.save(file, x)
    command = [sys.executable, "-c", ALONE + program, path, *files]
    subprocess.run(command, check=True)
    return {
        file.name.removesuffix(".npy"): np.load(file)
        for file in path.parent.glob("*.npy.*.npy")
    }


def assert_serves_alone(model, path, program, *shapes):
    model.predict(np.ones(shapes[0]), verbose=0)  # Keras's ONNX wants that
    form = "onnx" if program is ONNX else "tf_saved_model"
    model.export(path, format=form, verbose=False)
    rng = np.random.default_rng(0)
    inputs = [rng.normal(size=shape).astype("float32") for shape in shapes]
    answers = run_alone(program + SERVE, path, *inputs)
    for number, x in enumerate(inputs):
        expected = model.predict(x, verbose=0)
        assert_same(answers[f"{number}.npy.answer"], expected, atol=1e-6)


FORMATS = pytest.mark.parametrize(
    "name, program",
    [
        pytest.param(
            "saved_model", SAVED_MODEL, marks=[pytest.mark.exhaustive, WRITES]
        ),
        pytest.param("model.onnx", ONNX, marks=[NEEDS_ONNX, ON_TENSORFLOW]),
    ],
    ids=["SavedModel", "ONNX"],
)
FROM_TF2ONNX = pytest.mark.filterwarnings("ignore:.*np.object:FutureWarning")


@FROM_TF2ONNX
@FORMATS
def test_an_exported_model_serves_alone(tmp_path, name, program):
    model = keras.Sequential(
        [
            keras.Input((None, 2)),
            RIN(8, return_sequences=True),
            keras.layers.Bidirectional(RIN(4)),
            keras.layers.Dense(3),
        ]
    )
    assert_serves_alone(model, tmp_path / name, program, (1, 1, 2), (7, 30, 2))


@pytest.mark.exhaustive
@FROM_TF2ONNX
@FORMATS
def test_a_residual_network_serves_alone(tmp_path, name, program):
    # JAX cannot tell whether a stride divides a size that it does not know.
    size, shape = (None, None), (1, 6, 4, 1)
    if BACKEND == "jax":
        size, shape = (8, 8), (1, 8, 8, 1)
    model = residual_convnet(
        (*size, 1), stem_filters=4, filters=(4, 8), blocks=1
    )
    path = tmp_path / name
    assert_serves_alone(model, path, program, shape, (3, 8, 8, 1))


@NEEDS_ONNX
@ON_TENSORFLOW
@FROM_TF2ONNX
def test_a_call_in_training_mode_serves_alone(tmp_path):
    inputs = keras.Input((10, 3))
    model = keras.Model(inputs, RIN(4)(inputs, training=True))
    assert_serves_alone(model, tmp_path / "model.onnx", ONNX, (2, 10, 3))


@WRITES
@pytest.mark.parametrize("wrapper", [None, keras.layers.Bidirectional])
def test_a_masked_model_is_exported(tmp_path, wrapper):
    import tensorflow as tf

    layer, inputs = RIN(3), keras.Input((4,), dtype="int32")
    embedding = keras.layers.Embedding(9, 5, mask_zero=True)
    layer = wrapper(layer) if wrapper else layer
    model = keras.Sequential([inputs, embedding, layer])
    tokens = np.array([[3, 4, 0, 0], [5, 1, 2, 0]], "int32")
    model.export(tmp_path, verbose=False)
    served = tf.saved_model.load(tmp_path)
    answer = served.serve(tokens)
    expected = model.predict(tokens, verbose=0)
    np.testing.assert_allclose(answer, expected, rtol=1e-5, atol=1e-6)


IN_ONNX = [
    "RIN with everything",
    "RNN(DeepTransitionRINCell) with everything",
    "RNN of two cells",
    "LinearResidual",
    "LinearResidual with everything",
    "ResidualDense with everything",
    "ResidualConv2D with everything",
]


@pytest.mark.exhaustive
@NEEDS_ONNX
@ON_TENSORFLOW
@FROM_TF2ONNX
@pytest.mark.parametrize("name", IN_ONNX)
def test_each_layer_answers_the_same_as_onnx(tmp_path, name):
    import onnxruntime

    make, input_shape, _, _ = LAYERS[name]
    model = keras.Sequential([keras.Input(input_shape), make()])
    x = np.random.default_rng(0).normal(size=(3, *input_shape))
    expected = model.predict(x, verbose=0)
    model.export(tmp_path / "m.onnx", format="onnx", verbose=False)
    session = onnxruntime.InferenceSession(tmp_path / "m.onnx")
    inputs = {session.get_inputs()[0].name: x.astype("float32")}
    (answer,) = session.run(None, inputs)
    np.testing.assert_allclose(answer, expected, rtol=1e-4, atol=1e-5)
    assert np.ptp(expected) > 0


@pytest.fixture
def model():
    return keras.Sequential(
        [
            keras.Input((None, 2)),
            keras.layers.Dropout(0.5),
            RIN(8, return_sequences=True, dropout=0.5, name="rin"),
            keras.layers.LSTM(4, return_sequences=True, name="lstm"),
            keras.layers.Dense(3),
        ]
    )


def assert_streams_alone(model, path, program, x):
    """Sequences and steps of a file are what the model answers."""
    answers = run_alone(program + SERVE + FOLD, path, x)
    expected = model.predict(x, verbose=0)
    for name in ("0.npy.answer", "0.npy.step"):
        assert_same(answers[name], expected, atol=1e-6)


@WRITES
def test_a_saved_model_serves_and_steps_alone(model, rng, tmp_path, capfd):
    path = tmp_path / "streaming"
    export_streaming(model, path)
    assert "step of x, rin, lstm_0, lstm_1" in capfd.readouterr().out
    x = rng.normal(size=(5, 30, 2)).astype("float32")
    assert_streams_alone(model, path, SAVED_MODEL, x)


@ON_TENSORFLOW
@pytest.mark.parametrize(
    "time", [30, pytest.param(1, marks=pytest.mark.exhaustive)]
)
def test_litert_serves_and_steps_alone(model, rng, tmp_path, time):
    path = tmp_path / "streaming.tflite"
    export_streaming(model, path, format="litert", verbose=False)
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]
    x = rng.normal(size=(1, time, 2)).astype("float32")
    assert_streams_alone(model, path, LITERT, x)


@WRITES
def test_a_saved_step_refuses_a_state_of_another_batch_size(rng, tmp_path):
    import tensorflow as tf

    model = keras.Sequential([keras.Input((None, 2)), RIN(4, name="rin")])
    path = tmp_path / "streaming"
    export_streaming(model, path, verbose=False, step_only=True)
    served = tf.saved_model.load(path)
    assert not hasattr(served, "serve")
    x = rng.normal(size=(5, 2)).astype("float32")
    state = np.zeros((5, 4), "float32")
    assert served.step({"x": x, "rin": state})["y"].shape == (5, 4)
    for batch in (1, 10):
        with pytest.raises((tf.errors.OpError, ValueError)):
            served.step({"x": x, "rin": np.zeros((batch, 4), "float32")})


@ON_TENSORFLOW
def test_the_converter_takes_its_attributes(tmp_path):
    import tensorflow as tf

    wide = keras.Sequential([keras.Input((None, 64)), RIN(128)])
    sizes = []
    for number, options in enumerate(
        [{}, {"optimizations": [tf.lite.Optimize.DEFAULT]}]
    ):
        path = tmp_path / f"{number}.tflite"
        export_streaming(wide, path, "litert", verbose=False, **options)
        sizes.append(path.stat().st_size)
    assert sizes[1] < 0.5 * sizes[0]


INT16 = {"weights": "int8", "states": "int16"}


@pytest.mark.parametrize(
    ("name", "format", "options", "message"),
    [
        ("m", "gguf", {}, "`format` must be one of"),
        ("m", "litert", {}, "tflite"),
        ("m", "onnx", {}, "onnx|ONNX"),
        ("m", "tf_saved_model", {"weights": "int8"}, "the format 'tf_saved_mo"),
        ("m.onnx", "onnx", {"states": "int8"}, "in the format 'onnx'"),
        ("m.h", "c", {"weights": "int4"}, "`weights` must be one of"),
        ("m.h", "c", {"states": "int8"}, "in the format 'c'"),
        pytest.param(
            *("m.tflite", "litert", {"wings": 2}, "no attribute 'wings'"),
            marks=ON_TENSORFLOW,
        ),
        pytest.param(
            *("m.tflite", "litert", INT16, "a `representative_dataset`"),
            marks=ON_TENSORFLOW,
        ),
        pytest.param(
            *("m.tflite", "litert", {"states": "int8"}, "needs weights='int8'"),
            marks=ON_TENSORFLOW,
        ),
    ],
)
def test_options_that_a_format_lacks_are_refused(
    model, tmp_path, name, format, options, message
):
    with pytest.raises(ValueError, match=message):
        export_streaming(model, tmp_path / name, format, False, **options)
    assert not list(tmp_path.iterdir())
