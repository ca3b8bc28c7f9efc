"""A SavedModel must answer where keras_rin cannot be imported."""

import subprocess
import sys

import keras
import numpy as np
import pytest

from keras_rin.layers import RIN

SERVE = """
import sys
sys.modules["keras_rin"] = sys.modules["keras"] = None  # cannot be imported
import numpy, tensorflow
model = tensorflow.saved_model.load(sys.argv[1])
for name in sys.argv[2:]:
    x = numpy.load(name)
    numpy.save(name + ".answer.npy", model.serve(x))
"""


@pytest.mark.skipif(
    keras.backend.backend() == "torch",
    reason="Keras 3.15 cannot export an RNN from Torch to SavedModel",
)
def test_a_saved_model_serves_without_us(rng, tmp_path):
    model = keras.Sequential(
        [
            keras.Input((None, 2)),
            RIN(8, return_sequences=True),
            keras.layers.Bidirectional(RIN(4)),
            keras.layers.Dense(3),
        ]
    )
    model.export(tmp_path / "saved_model", verbose=False)
    inputs = {}
    for batch, time in [(1, 1), (7, 30)]:
        name = tmp_path / f"{batch}x{time}.npy"
        inputs[name] = rng.normal(size=(batch, time, 2)).astype("float32")
        np.save(name, inputs[name])
    subprocess.run(
        [sys.executable, "-c", SERVE, tmp_path / "saved_model", *inputs],
        check=True,
    )
    for name, x in inputs.items():
        answer = np.load(f"{name}.answer.npy")
        expected = model.predict(x, verbose=0)
        np.testing.assert_allclose(answer, expected, rtol=1e-5, atol=1e-6)
