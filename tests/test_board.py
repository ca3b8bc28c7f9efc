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
def test_the_blocks_of_the_page_end_in_the_emulator(tmp_path):
    page = (ROOT / "docs" / "small_device.md").read_text()
    (program,) = re.findall(r"^```c\n(.*?)^```", page, re.M | re.S)
    (commands,) = re.findall(r"^```bash\n(arm.*?)^```", page, re.M | re.S)
    for name in ("arm-none-eabi-gcc", "qemu-system-arm"):
        if not shutil.which(name):
            pytest.skip(f"needs {name}")
    model = keras.Sequential(
        [keras.Input((None, 2)), RIN(16, return_sequences=True)]
    )
    export_streaming(model, tmp_path / "rin.h", "c", False)
    (tmp_path / "main.c").write_text(program)
    (tmp_path / "tests").symlink_to(ROOT / "tests")
    options = {"cwd": tmp_path, "text": True}
    printed = subprocess.check_output(["bash", "-ec", commands], **options)
    x = np.tile(np.float32([3, 4]), (1, 100, 1))
    y = [float(line) for line in printed.splitlines()[-16:]]
    np.testing.assert_allclose(y, model.predict(x)[0, -1], 1e-4, 1e-4)


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
