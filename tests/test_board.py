"""The networks of the study of devices, on an emulated Cortex-M4F."""

import pathlib
import re

import keras
import numpy as np
import pytest
from keras import layers
from step_files import M4F
from step_files import ON_BOARD
from step_files import QEMU
from step_files import assert_near
from step_files import round_weights
from step_files import run_c

from keras_rin.export import export_streaming
from keras_rin.layers import RIN

STUDY = pathlib.Path(__file__).parents[1] / "studies" / "devices" / "README.md"
ROW = re.compile(r"^\| (\w+) +\| (float32|int8) +\| +(\d+) \|", re.M)
LAYERS = {"RIN": RIN, **vars(layers)}


@pytest.mark.exhaustive
@pytest.mark.runtime
@pytest.mark.one_backend
@pytest.mark.parametrize(
    ("layer", "weights", "units"),
    dict.fromkeys(ROW.findall(STUDY.read_text())),
)
def test_each_row_of_the_study_equals_keras(
    layer, weights, units, rng, tmp_path
):
    mean, variance = np.arange(6), np.arange(1, 7)
    model = keras.Sequential(
        [
            keras.Input((None, 6)),
            layers.Normalization(mean=mean, variance=variance),
            LAYERS[layer](int(units), return_sequences=True),
            layers.Dense(4),
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
