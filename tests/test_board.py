"""The networks of the study of devices, on an emulated Cortex-M4F."""

import pathlib
import re
import shutil
import subprocess
from functools import partial

import keras
import numpy as np
import pytest
from keras import layers
from keras.initializers import Identity
from step_files import M4F
from step_files import ON_BOARD
from step_files import QEMU
from step_files import assert_near
from step_files import round_weights
from step_files import run_c

from keras_rin.export import export_streaming
from keras_rin.initializers import Chain
from keras_rin.initializers import Offset
from keras_rin.layers import RIN

ROOT = pathlib.Path(__file__).parents[1]
LAYERS = {  # with about 350 weights, as in the study of devices
    "RIN": (partial(RIN, recurrent_initializer=Identity(-0.05)), 13),
    "RIN, chain": (partial(RIN, recurrent_initializer=Offset(Chain())), 13),
    "SimpleRNN": (layers.SimpleRNN, 13),
    "GRU": (layers.GRU, 7),
    "LSTM": (layers.LSTM, 6),
}


@pytest.mark.runtime
@pytest.mark.one_backend
def test_the_program_of_the_page_prints_answers(rng, tmp_path):
    page = (ROOT / "docs" / "small_device.md").read_text()
    (program,) = re.findall(r"^```c\n(.*?)^```", page, re.M | re.S)
    (commands,) = re.findall(r"^```bash\n(gcc.*?)^```", page, re.M | re.S)
    if not shutil.which("gcc"):
        pytest.skip("needs gcc")
    model = keras.Sequential(
        [
            keras.Input((None, 2)),
            keras.layers.Rescaling(0.1),
            RIN(16, "tanh", return_sequences=True),
        ]
    )
    x = rng.integers(-9, 10, size=(1, 100, 2))
    options = {"weights": "int8", "states": "int16", "calibration": x}
    export_streaming(model, tmp_path / "rin.h", "c", False, **options)
    (tmp_path / "main.c").write_text(program)
    np.savetxt(tmp_path / "counts.txt", x[0], "%d")
    options = {"cwd": tmp_path, "text": True}
    printed = subprocess.check_output(["bash", "-ec", commands], **options)
    y = run_c(tmp_path / "rin.h", x)[0]
    np.testing.assert_array_equal(
        [int(line) for line in printed.split()], y[0].argmax(axis=-1)
    )


@pytest.mark.exhaustive
@pytest.mark.runtime
@pytest.mark.one_backend
@pytest.mark.parametrize("weights", ["float32", "int8"])
@pytest.mark.parametrize("name", LAYERS)
def test_each_layer_of_the_study_equals_keras(name, weights, rng, tmp_path):
    layer, units = LAYERS[name]
    mean, variance = np.arange(6), np.arange(1, 7)
    model = keras.Sequential(
        [
            keras.Input((None, 6)),
            layers.Normalization(mean=mean, variance=variance),
            layer(units, return_sequences=True),
            layers.Dense(7),
        ]
    )
    path = tmp_path / "rin.h"
    export_streaming(model, path, "c", False, weights=weights)
    x = rng.normal(mean, np.sqrt(variance), (2, 300, 6)).astype("float32")
    y, again = run_c(path, x, M4F.split(), ON_BOARD, QEMU.split())
    np.testing.assert_array_equal(y, again)
    if weights == "int8":
        round_weights(model)
    assert_near(y, model, x, {"float32": 1e-5, "int8": 2e-4}[weights])
