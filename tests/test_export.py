"""What is exported must answer where keras_rin cannot be imported."""

import functools
import subprocess
import sys

import keras
import numpy as np
import pytest
from cases import needs_keras
from test_layer_contract import LAYERS

from keras_rin.layers import RIN
from keras_rin.layers import LinearResidual
from keras_rin.models import residual_convnet

ALONE = """
import sys
sys.modules["keras_rin"] = sys.modules["keras"] = None  # cannot be imported
import numpy
"""
SAVED_MODEL = """
import tensorflow
model = tensorflow.saved_model.load(sys.argv[1])
serve = model.serve
"""
ONNX = """
sys.modules["tensorflow"] = None
import onnxruntime
session = onnxruntime.InferenceSession(sys.argv[1])
serve = lambda x: session.run(None, {session.get_inputs()[0].name: x})[0]
"""
SERVE = """
for name in sys.argv[2:]:
    numpy.save(name + ".answer.npy", serve(numpy.load(name)))
"""
NEEDS_ONNX = needs_keras("3.8", "this Keras cannot export to ONNX")
NOT_ON = {
    "torch": "Keras 3.15 cannot export an RNN from Torch",
    "jax": "Keras 3.15 needs jax2onnx to export ONNX from JAX",
}


@pytest.mark.filterwarnings("ignore:.*np.object:FutureWarning")  # tf2onnx
@pytest.mark.parametrize(
    ("name", "program"),
    [
        pytest.param("saved_model", SAVED_MODEL, marks=pytest.mark.exhaustive),
        pytest.param("model.onnx", ONNX, marks=NEEDS_ONNX),
    ],
    ids=["SavedModel", "ONNX"],
)
def test_what_is_exported_serves_without_us(rng, tmp_path, name, program):
    model = keras.Sequential(
        [
            keras.Input((None, 2)),
            RIN(8, return_sequences=True),
            keras.layers.Bidirectional(RIN(4)),
            keras.layers.Dense(3),
        ]
    )
    shapes = [(1, 1, 2), (7, 30, 2)]
    serve_alone(model, tmp_path / name, program, rng, shapes)


@pytest.mark.exhaustive
@pytest.mark.filterwarnings("ignore:.*np.object:FutureWarning")  # tf2onnx
@pytest.mark.parametrize(
    ("name", "program"),
    [
        ("saved_model", SAVED_MODEL),
        pytest.param("model.onnx", ONNX, marks=NEEDS_ONNX),
    ],
    ids=["SavedModel", "ONNX"],
)
def test_a_residual_network_serves_without_us(rng, tmp_path, name, program):
    # JAX cannot tell whether a stride divides a size that it does not know.
    on_jax = keras.backend.backend() == "jax"
    size = (8, 8) if on_jax else (None, None)
    model = residual_convnet(
        (*size, 1), stem_filters=4, filters=(4, 8), blocks=1
    )
    shapes = [(1, 8, 8, 1) if on_jax else (1, 6, 4, 1), (3, 8, 8, 1)]
    serve_alone(model, tmp_path / name, program, rng, shapes)


@NEEDS_ONNX
@pytest.mark.filterwarnings("ignore:.*np.object:FutureWarning")  # tf2onnx
def test_a_call_in_training_mode_serves_without_us(rng, tmp_path):
    inputs = keras.Input((10, 3))
    model = keras.Model(inputs, RIN(4)(inputs, training=True))
    serve_alone(model, tmp_path / "model.onnx", ONNX, rng, [(2, 10, 3)])


@pytest.mark.parametrize("wrapper", [None, keras.layers.Bidirectional])
def test_a_masked_model_is_exported(tmp_path, wrapper):
    tf = pytest.importorskip("tensorflow")
    if keras.backend.backend() == "torch":
        pytest.skip(NOT_ON["torch"])
    layer = RIN(3)
    model = keras.Sequential(
        [
            keras.Input((4,), dtype="int32"),
            keras.layers.Embedding(9, 5, mask_zero=True),
            wrapper(layer) if wrapper else layer,
        ]
    )
    tokens = np.array([[3, 4, 0, 0], [5, 1, 2, 0]], "int32")
    model.export(tmp_path, verbose=False)
    served = tf.saved_model.load(tmp_path)
    answer = served.serve(tokens)
    expected = model.predict(tokens, verbose=0)
    np.testing.assert_allclose(answer, expected, rtol=1e-5, atol=1e-6)


def serve_alone(model, path, program, rng, shapes):
    backend = keras.backend.backend()
    if backend == "torch" or (backend == "jax" and program is ONNX):
        pytest.skip(NOT_ON[backend])
    model.predict(np.ones(shapes[0]), verbose=0)  # Keras's ONNX wants that
    form = "onnx" if program is ONNX else "tf_saved_model"
    model.export(path, format=form, verbose=False)
    inputs = {}
    for number, shape in enumerate(shapes):
        file = path.with_name(f"{number}.npy")
        inputs[file] = rng.normal(size=shape).astype("float32")
        np.save(file, inputs[file])
    command = [sys.executable, "-c", ALONE + program + SERVE, path]
    subprocess.run([*command, *inputs], check=True)
    for file, x in inputs.items():
        answer = np.load(f"{file}.answer.npy")
        expected = model.predict(x, verbose=0)
        np.testing.assert_allclose(answer, expected, rtol=1e-5, atol=1e-6)


IN_ONNX = [
    "RIN with everything",
    "RNN(DeepTransitionRINCell) with everything",
    "RNN of two cells",
    "LinearResidual",
    "LinearResidual with everything",
    "ResidualDense with everything",
    "ResidualConv2D with everything",
    "FixedProjection with everything",
]
NOT_IN_ONNX = {  # with tf2onnx 1.17; the part of the message is its own
    "NoisyRNN": "StatelessRandomNormal",  # drawn anew at each call
    "ResidualDenseStack": "while",  # the scan over units
    "L1 of activities": "metagraph",
}
L1 = functools.partial(LinearResidual, activity_regularizer="l1"), (3,), (3,), 1


def as_onnx(name, path):
    """What a layer of the contract answers, by Keras and by ONNX."""
    import onnxruntime

    make, input_shape, _, _ = {**LAYERS, "L1 of activities": L1}[name]
    model = keras.Sequential([keras.Input(input_shape), make()])
    x = np.random.default_rng(0).normal(size=(3, *input_shape))
    expected = model.predict(x, verbose=0)
    model.export(path, format="onnx", verbose=False)
    session = onnxruntime.InferenceSession(path)
    inputs = {session.get_inputs()[0].name: x.astype("float32")}
    return expected, session.run(None, inputs)[0]


ONNX_IS_WRITTEN = pytest.mark.skipif(
    keras.backend.backend() != "tensorflow",
    reason="Keras 3.15 writes ONNX from TensorFlow and Torch alone",
)


@NEEDS_ONNX
@ONNX_IS_WRITTEN
@pytest.mark.exhaustive
@pytest.mark.filterwarnings("ignore:.*np.object:FutureWarning")  # tf2onnx
@pytest.mark.parametrize("name", IN_ONNX)
def test_each_layer_answers_the_same_as_onnx(tmp_path, name):
    expected, answer = as_onnx(name, tmp_path / "m.onnx")
    np.testing.assert_allclose(answer, expected, rtol=1e-4, atol=1e-5)
    assert np.ptp(expected) > 0


@NEEDS_ONNX
@ONNX_IS_WRITTEN
@pytest.mark.exhaustive
@pytest.mark.filterwarnings("ignore:.*np.object:FutureWarning")
@pytest.mark.parametrize("name", NOT_IN_ONNX)
def test_what_onnx_does_not_hold_is_an_error(tmp_path, name):
    with pytest.raises(Exception, match=NOT_IN_ONNX[name]):
        as_onnx(name, tmp_path / "m.onnx")
