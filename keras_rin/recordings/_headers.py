"""The C files of what follows a stream, their cost, and what they answer.

All that the room takes from `keras_rin.export` is here.
"""

import json
import math
import pathlib
import re
import shutil
import string
import subprocess
import tempfile
import textwrap
import typing

import keras
import numpy as np
import pandas as pd

from keras_rin import export

COMPILERS = "cc", "gcc", "clang"
DEVICES = {"uno": "ATmega328P", "m0plus": "Cortex-M0+", "m4f": "Cortex-M4F"}
SEQUENCES, STEPS = 40, 1000  # of the calibration
NAME = "rin"  # of the header


class Counts(typing.NamedTuple):
    """What a header reads of each channel: (value - offset) / unit.

    That is the value where it is a whole number of 16 bits, else less than
    2**14.
    """

    offset: np.ndarray
    unit: np.ndarray

    @classmethod
    def fitted(cls, pieces):
        """The counts of rows, which are in pieces."""
        low = np.min([x.min(axis=0) for x in pieces], axis=0)
        high = np.max([x.max(axis=0) for x in pieces], axis=0)
        is_whole = [(x == np.round(x)).all(axis=0) for x in pieces]
        largest = np.maximum(abs(low), abs(high))
        is_far = largest > 8 * (high - low)
        whole = np.all(is_whole, axis=0) & (largest < 2**15)
        offset = np.where(is_far & ~whole, (low + high) / 2, 0.0)
        largest = np.maximum(abs(low - offset), abs(high - offset))
        unit = 2.0 ** np.ceil(np.log2(np.maximum(largest, 1e-30) / 2**14))
        return cls(offset, np.where(whole | (largest == 0), 1.0, unit))

    def of(self, pieces):
        """The counts of rows, which are in pieces."""
        return np.concatenate([self._counts(x).astype("int16") for x in pieces])

    def _counts(self, x):
        counts = np.floor((x - self.offset) / self.unit + 0.5)
        return np.clip(counts, -(2**15), 2**15 - 1)


def can_compile():
    return any(map(shutil.which, COMPILERS))


def _template(file, **fields):
    path = pathlib.Path(__file__).with_name(file)
    return string.Template(path.read_text()).substitute(name=NAME, **fields)


def _literals(values):
    return textwrap.fill(", ".join(map(str, values)), 79)


def _string(text):
    """A string literal of C."""
    text = json.dumps(text, ensure_ascii=False).replace("?", "\\?")
    return re.sub(r"\\u00(..)", lambda hit: f"\\{int(hit[1], 16):03o}", text)


def write_network(layers, scale, units, counts, folder):
    """Writes `rin.h` of the layers behind another one, which scales rows."""
    mean, deviation = (
        np.ravel(values) for values in (scale.mean, np.sqrt(scale.variance))
    )
    length = min(STEPS, len(counts))
    firsts = np.linspace(0, len(counts) - length, SEQUENCES).astype(int)
    rows = [counts[first : first + length] for first in firsts]
    moments = {"mean": (mean - units.offset) / units.unit}
    moments["variance"] = (deviation / units.unit) ** 2
    inputs = keras.Input((None, len(mean)))
    normalization = keras.layers.Normalization(**moments)
    path = pathlib.Path(folder, f"{NAME}.h")
    export.export_c(
        keras.Sequential([inputs, normalization, *layers]),
        path,
        arithmetic="integer",
        calibration=np.stack(rows),
    )


def write_regression(regression, window, folder):
    """Writes `rin.h` of a regression on windows of counts."""
    scaler, logistic = (step for _, step in regression.steps)
    weights = logistic.coef_ / scaler.scale_
    bias = logistic.intercept_ - weights @ scaler.mean_
    if len(weights) == 1:  # of two classes, the second one's
        weights, bias = np.append(0 * weights, weights, 0), np.append(0, bias)
    channels = weights.shape[1] // 3
    divided = np.repeat([window, window, window - 1], channels)
    weights = weights / divided
    largest = np.repeat([2**15, 2**15, 2**16], channels) * divided
    bound = (abs(weights) @ largest + abs(bias)).max()
    bits = int(min(62 - np.log2(bound), 30 - np.log2(abs(weights).max())))
    kept = int(min(bits, 30 - np.log2(bound)))
    text = _template(
        "window.h",
        window=window,
        inputs=channels,
        outputs=len(bias),
        flash=4 * (weights.size + len(bias)),
        ram=8 * math.ceil(((2 * window + 16) * channels + 4) / 8),  # of int64
        scale=repr(2.0**-kept),
        weights=_literals(np.round(weights * 2.0**bits).astype(int).ravel()),
        bias=_literals(np.round(bias * 2.0**kept).astype(int)),
        top=int(np.log2(window)) + 15,
        shift=bits - kept,
    )
    pathlib.Path(folder, f"{NAME}.h").write_text(text)


def finish(folder, data, counts, rule):
    """Adds the follower to `rin.h`, and `main.c`, which reads such tables."""
    path = pathlib.Path(folder, f"{NAME}.h")
    text = path.read_text()
    (scale,) = map(float, re.findall(r"_output_scale (\S+)", text))
    evidence, lead = (  # so that sums have 32 bits
        min(int(value / scale), 10**9) for value in rule[:2]
    )
    follower = _template("follow.h", evidence=evidence, lead=lead)
    path.write_text(text + follower)
    program = _template(
        "main.c",
        separator=f"'{data.text[0]}'".replace("\t", "\\t"),
        decimal=f"'{data.text[1]}'",
        classes=", ".join(map(_string, data.classes)),
        channels=", ".join(map(_string, data.channels)),
        offset=_literals(map(repr, counts.offset.tolist())),
        unit=_literals(map(repr, counts.unit.tolist())),
    )
    pathlib.Path(folder, "main.c").write_text(program)


def cost(folder, device):
    """What `rin.h` takes of a device, of which all may be `None`."""
    path = pathlib.Path(folder, f"{NAME}.h")
    return export.Header(path).cost(DEVICES[device])


def answers(folder, data):
    """The number of the class that `main.c` prints for each row, or -1."""
    x, _ = data.rows()
    compiler = next(filter(shutil.which, COMPILERS))
    separator, decimal = data.text
    with tempfile.TemporaryDirectory() as temporary:
        table, program = (
            pathlib.Path(temporary, name) for name in ("x", "main")
        )
        options: list = ["-O2", '-DPRINT(n)=printf("%d\\n", n)', "-o", program]
        source = pathlib.Path(folder, "main.c")
        subprocess.run([compiler, *options, source, "-lm"], check=True)
        frame = pd.DataFrame(x, columns=data.channels)
        frame.to_csv(table, sep=separator, decimal=decimal, index=False)
        output = subprocess.check_output([program, table])
    return np.array(output.split(), int)
