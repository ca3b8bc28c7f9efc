"""What is exported must answer where keras_rin cannot be imported."""

import subprocess
import sys

import keras
import numpy as np
import pytest

from keras_rin.layers import RIN

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
NOT_ON = {
    "torch": "Keras 3.15 cannot export an RNN from Torch",
    "jax": "Keras 3.15 needs jax2onnx to export ONNX from JAX",
}


@pytest.mark.filterwarnings("ignore:.*np.object:FutureWarning")  # tf2onnx
@pytest.mark.parametrize(
    ("name", "program"),
    [("saved_model", SAVED_MODEL), ("model.onnx", ONNX)],
    ids=["SavedModel", "ONNX"],
)
def test_what_is_exported_serves_without_us(rng, tmp_path, name, program):
    backend = keras.backend.backend()
    if backend == "torch" or (backend == "jax" and program is ONNX):
        pytest.skip(NOT_ON[backend])
    model = keras.Sequential(
        [
            keras.Input((None, 2)),
            RIN(8, return_sequences=True),
            keras.layers.Bidirectional(RIN(4)),
            keras.layers.Dense(3),
        ]
    )
    model.predict(np.ones((1, 2, 2)), verbose=0)  # Keras's ONNX wants that
    form = "onnx" if program is ONNX else "tf_saved_model"
    model.export(tmp_path / name, format=form, verbose=False)
    inputs = {}
    for batch, time in [(1, 1), (7, 30)]:
        file = tmp_path / f"{batch}x{time}.npy"
        inputs[file] = rng.normal(size=(batch, time, 2)).astype("float32")
        np.save(file, inputs[file])
    command = [sys.executable, "-c", ALONE + program + SERVE, tmp_path / name]
    subprocess.run([*command, *inputs], check=True)
    for file, x in inputs.items():
        answer = np.load(f"{file}.answer.npy")
        expected = model.predict(x, verbose=0)
        np.testing.assert_allclose(answer, expected, rtol=1e-5, atol=1e-6)
