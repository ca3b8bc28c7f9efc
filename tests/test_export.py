"""Exported models give in their runtimes what they give in Keras."""

import functools
import importlib.util

import keras
import numpy as np
import pytest
from cases import needs_keras
from references import assert_same
from step_files import assert_near
from step_files import run_micro
from step_files import write
from step_files import write_and_run
from test_layer_contract import LAYERS

from keras_rin.export import export_c
from keras_rin.export import export_litert
from keras_rin.export import export_onnx
from keras_rin.export import export_saved_model
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


def load_saved_model(path):
    import tensorflow as tf

    served = tf.saved_model.load(path)
    return served.serve, lambda inputs: served.step(inputs)


def load_onnx(path):
    import onnxruntime

    session = onnxruntime.InferenceSession(str(path))
    name = session.get_inputs()[0].name
    return lambda x: session.run(None, {name: x})[0], None


def load_litert(path):
    from ai_edge_litert.interpreter import Interpreter

    interpreter = Interpreter(str(path))
    serve = interpreter.get_signature_runner("serve")
    step = interpreter.get_signature_runner("step")
    return lambda x: serve(x=x)["y"], lambda inputs: step(**inputs)


# Of a file, the function of whole sequences and that of a step.
LOAD = {
    "tf_saved_model": load_saved_model,
    "onnx": load_onnx,
    "litert": load_litert,
}


def recurrent():
    inputs = keras.Input((None, 2))
    h = keras.layers.Bidirectional(RIN(4))(
        RIN(8, return_sequences=True)(inputs)
    )
    return keras.Model(inputs, keras.layers.Dense(3)(h)), (1, 1, 2), (7, 30, 2)


def residual():
    # JAX cannot tell whether a stride divides a size that it does not know.
    size, shape = (None, None), (1, 6, 4, 1)
    if BACKEND == "jax":
        size, shape = (8, 8), (1, 8, 8, 1)
    model = residual_convnet(
        (*size, 1), stem_filters=4, filters=(4, 8), blocks=1
    )
    return model, shape, (3, 8, 8, 1)


def masked(wrapper):
    above = [keras.layers.Masking(), wrapper(RIN(3))]
    return keras.Sequential([keras.Input((4, 2)), *above]), (3, 4, 2)


def of_a_layer(name):
    make, shape, _, _ = LAYERS[name]
    return keras.Sequential([keras.Input(shape), make()]), (3, *shape)


IN_ONNX = [
    "RIN with everything",
    "RNN(DeepTransitionRINCell) with everything",
    "RNN of two cells",
    "LinearResidual",
    "LinearResidual with everything",
    "ResidualDense with everything",
    "ResidualConv2D with everything",
]
EXHAUSTIVE = [
    *(("onnx", functools.partial(of_a_layer, name)) for name in IN_ONNX),
    *(("tf_saved_model", make) for make in (recurrent, residual)),
    ("tf_saved_model", functools.partial(masked, keras.layers.Bidirectional)),
]
MARKS = {"onnx": [NEEDS_ONNX, ON_TENSORFLOW], "tf_saved_model": [WRITES]}
DEFAULT = [
    ("onnx", recurrent),
    ("tf_saved_model", functools.partial(masked, lambda layer: layer)),
]
EXPORTED = [
    *(pytest.param(*case, marks=MARKS[case[0]]) for case in DEFAULT),
    *(
        pytest.param(*case, marks=[*MARKS[case[0]], pytest.mark.exhaustive])
        for case in EXHAUSTIVE
    ),
]


@pytest.mark.filterwarnings("ignore:.*np.object:FutureWarning")
@pytest.mark.parametrize(("format", "make"), EXPORTED)
def test_an_exported_model_serves(format, make, rng, tmp_path):
    model, *shapes = make()
    model.predict(np.ones(shapes[0]), verbose=0)  # Keras's ONNX wants that
    path = tmp_path / ("model.onnx" if format == "onnx" else "model")
    model.export(path, format=format, verbose=False)
    serve, _ = LOAD[format](path)
    for shape in shapes:
        x = rng.normal(size=shape).astype("float32")
        x[:, 1:2] = 0.0  # what a mask leaves out
        expected = model.predict(x, verbose=0)
        assert_same(serve(x), expected, rtol=1e-4, atol=1e-5)
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


@pytest.mark.parametrize(
    ("format", "name", "batch", "time"),
    [
        pytest.param(*("tf_saved_model", "streaming", 5, 30), marks=WRITES),
        pytest.param(*("litert", "a.tflite", 1, 30), marks=ON_TENSORFLOW),
        pytest.param(
            *("litert", "a.tflite", 1, 1),
            marks=[ON_TENSORFLOW, pytest.mark.exhaustive],
        ),
    ],
)
def test_a_file_serves_and_steps(
    model, rng, tmp_path, format, name, batch, time
):
    written = write(model, tmp_path / name, format)
    assert f"{name}: serve(x), and step of x, rin, lstm_0, lstm_1; " in str(
        written
    )
    assert [entry.name for entry in tmp_path.iterdir()] == [name]
    x = rng.normal(size=(batch, time, 2)).astype("float32")
    expected = model.predict(x, verbose=0)
    serve, step = LOAD[format](tmp_path / name)
    assert_same(serve(x), expected, rtol=1e-4, atol=1e-5)
    sizes = {"rin": 8, "lstm_0": 4, "lstm_1": 4}
    state = {n: np.zeros((batch, s), "float32") for n, s in sizes.items()}
    for t in range(time):
        state = dict(step({"x": x[:, t], **state}))
        assert_same(state.pop("y"), expected[:, t], rtol=1e-4, atol=1e-5)


@WRITES
def test_a_saved_step_refuses_a_state_of_another_batch_size(tmp_path):
    import tensorflow as tf

    model = keras.Sequential([keras.Input((None, 2)), RIN(4, name="rin")])
    export_saved_model(model, tmp_path, step_only=True)
    served = tf.saved_model.load(tmp_path)
    assert not hasattr(served, "serve")
    for batch in (1, 10):
        inputs = {"x": np.ones((5, 2)), "rin": np.zeros((batch, 4))}
        with pytest.raises((tf.errors.OpError, ValueError)):
            served.step({k: v.astype("float32") for k, v in inputs.items()})


@ON_TENSORFLOW
def test_large_matrices_of_8_bits_with_states_of_floats(rng, tmp_path):
    wide = keras.Sequential([keras.Input((None, 64)), RIN(128, "tanh")])
    x = rng.normal(size=(1, 20, 64)).astype("float32")
    sizes, path = [], tmp_path / "step.tflite"
    for arithmetic in ("float32", "int8"):
        y = write_and_run(wide, "litert", tmp_path, x, arithmetic=arithmetic)
        assert_near(y, wide, x, tolerance=0.05)
        sizes.append(path.stat().st_size)
    assert sizes[1] < 0.5 * sizes[0]
    with pytest.raises(RuntimeError, match="failed to allocate"):
        run_micro(path, x)


X = np.arange(40).reshape(1, 20, 2)
NO_PREFIX = """rin.c math.h 3rin.h my-rin.h r\u00fcn.h _rin.h a_private.h
    private_a.h""".split()
REFUSED = [
    (export_saved_model, "m.tflite", {}, "call `export_litert`"),
    (export_saved_model, "m.onnx", {}, "call `export_onnx`"),
    (export_saved_model, "m.h", {}, "call `export_c`"),
    (export_litert, "m", {}, "ending in .tflite"),
    (export_onnx, "m", {}, "ending in .onnx"),
    (export_c, "m.h", {"arithmetic": "int4"}, "`arithmetic` must be one of"),
    (export_c, "m.h", {"calibration": X}, "`calibration` is for"),
    (export_c, "m.h", {"arithmetic": "integer"}, "calibration=None"),
    *(
        (export_c, name, {}, f"stem is the prefix.*{name}")
        for name in NO_PREFIX
    ),
    *(
        pytest.param(export_litert, "m.tflite", *case, marks=ON_TENSORFLOW)
        for case in (
            ({"arithmetic": "int16"}, "`arithmetic` must be one of"),
            ({"calibration": X}, "`calibration` is for"),
            ({"arithmetic": "integer8"}, "needs `calibration`.*shape .0,"),
        )
    ),
]


@pytest.mark.parametrize(("export", "name", "options", "message"), REFUSED)
def test_what_a_function_cannot_write_is_refused(
    model, tmp_path, export, name, options, message
):
    with pytest.raises(ValueError, match=message):
        export(model, tmp_path / name, **options)
    assert not list(tmp_path.iterdir())
