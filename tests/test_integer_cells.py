"""The step of a described cell in integers, written from its row alone.

The statements of a header are computed again in NumPy, in 64 bits, so that it
is seen where 32 bits would not do.
"""

import dataclasses
import re

import keras
import numpy as np
import pytest
from headers import SANITIZED
from headers import SHRINKING
from headers import constants
from headers import counts
from headers import extremes
from headers import integer_header
from headers import model_of
from headers import product
from headers import scale_of
from headers import within
from step_files import run_c

from keras_rin import layers
from keras_rin._cell_descriptions import DESCRIPTIONS
from keras_rin._cell_descriptions import description_of
from keras_rin.cells import describe

pytestmark = pytest.mark.one_backend


def scaled(z, shift):
    """z 2^shift, to the nearest, and up from the middle."""
    if shift >= 0:
        return within(32, z * 2**shift)
    return (z + 2 ** (-1 - shift)) // 2**-shift


def times(gate, z):
    return (gate * (z // 256) + gate * (z % 256) // 256 + 64) // 128


def tanh(x):
    """Taylor's third order at the nearest of 0, 1/4, 1/2 ..."""
    size = np.minimum(abs(x), 2**18)
    nearest = (size + 4096) // 8192
    t = np.round(32768 * np.tanh(nearest / 4)).astype("int64")
    distance, s = size - nearest * 8192, 32768 - t * t // 32768
    rest = 32768 - distance * (t + distance * (s - 21845) // 32768) // 32768
    y = t + (within(32, s * distance // 8192 * rest) + 65536) // 2**17
    return np.sign(x) * np.where(nearest < 22, y, 32768)


FUNCTIONS = {  # of z and other arguments, to what z becomes
    "tanh": tanh,
    "sigmoid": lambda z: (32768 + tanh(z // 2)) // 2,
    "relu": lambda z: np.maximum(z, 0),
    "softsign": lambda z: np.sign(z) * (32768 - 2**30 // (32768 + abs(z))),
    "scale_state": lambda z, h, factor: h * factor,
    "add_state": lambda z, h, factor: z + h * factor,
    "copy_sums": lambda z, source, shift: scaled(source, shift),
    "add_sums": lambda z, terms, shift: z + scaled(terms, shift),
    "subtract_sums": lambda z, terms, shift: z - scaled(terms, shift),
}


def multiply(z, factors, factor_shift, before, after):
    factor = np.clip(scaled(factors, factor_shift), -(2**15), 2**15)
    value = np.clip(scaled(z, before), 1 - 2**23, 2**23 - 1)
    return scaled(within(32, factor * value // 256), after)


def interpolate(z, gate, gate_shift, candidate, shift):
    rest = np.clip(32768 - scaled(gate, gate_shift), -(2**15), 2**15)
    way = within(32, scaled(candidate, shift) - z) // 2
    return z + 2 * times(rest, np.clip(way, 1 - 2**23, 2**23 - 1))


FUNCTIONS |= {"multiply_sums": multiply, "interpolate_sums": interpolate}


class Simulation:
    """The statements of a step, of many streams at once."""

    def __init__(self, path, streams):
        self.weights = constants(path)
        step = path.read_text().rpartition("rin_step(")[2]
        step = re.sub(r"/\*.*?\*/|\s+", " ", step.partition("\n}")[0])
        statements = re.findall(r"_private_(\w+)\((.*?)\);", step)
        self.statements = [(f, text.split(", ")) for f, text in statements]
        self.memory, self.streams = {}, streams

    def values(self, text, count):
        """A view of an array, or a number."""
        name, _, first = text.partition(" + ")
        if name.startswith(("*state", "state")) or name in ("x", "y", "z", "a"):
            first = int(first or 0)
            empty = np.zeros((self.streams, 200), "int64")
            array = self.memory.setdefault(name.strip("*"), empty)
            return array[:, first : first + count]
        return int(text)

    def step(self, x):
        self.memory["x"] = x.astype("int64")
        for function, arguments in self.statements:
            if function == "set":
                name, z, count = arguments
                weights = self.weights[name.partition("private_")[2]]
                self.values(z, int(count))[:] = weights
            elif function == "add_product":
                name, _, source, columns, z, rows = arguments
                x = self.values(source, int(columns))
                name = name.partition("private_")[2]
                z = self.values(z, int(rows))
                z[:] = within(32, z + product(self.weights, name, x))
            elif function == "advance":
                phase = self.values(arguments[0], 1)
                phase[:] = (phase + int(arguments[1])) & int(arguments[2])
            elif function in ("drop_fraction", "saturate"):
                z, *dropped, h, count = arguments
                z = self.values(z, int(count))
                if dropped:
                    phase, bits = dropped
                    phase, bits = phase.split(" >> "), int(bits)
                    offset = self.values(phase[0], 1) >> int(phase[1])
                    z = within(32, z + offset) >> bits
                h = self.values(h, int(count))
                h[:] = np.clip(z, -(2**15), 2**15 - 1)
            else:
                *sources, z, count = arguments
                terms = [self.values(text, int(count)) for text in sources]
                z = self.values(z, int(count))
                z[:] = within(32, FUNCTIONS[function](z, *terms))

    def outputs(self, x, size):
        y = []
        for t in range(x.shape[1]):
            self.step(x[:, t])
            y.append(self.memory["y"][:, :size].copy())
        return np.stack(y, axis=1)


def own(cell, **changes):
    """A layer of a cell that only its row is known of."""
    row = description_of(cell)
    kind = type(f"Own{type(cell).__name__}", (type(cell),), changes)
    keras.saving.register_keras_serializable(package="tests")(kind)
    cell = kind.from_config(cell.get_config())
    step = row.step
    row = dataclasses.replace(row, layer=None, step=lambda *both: step(*both))
    describe(cell, row)
    return keras.layers.RNN(cell, return_sequences=True)


CELLS = {
    "SimpleRNN": lambda: own(keras.layers.SimpleRNNCell(8)),
    "GRU": lambda: own(keras.layers.GRUCell(5)),
    "GRU, reset first": lambda: own(keras.layers.GRUCell(5, reset_after=False)),
    "LSTM": lambda: own(keras.layers.LSTMCell(5)),
    "MinGRU": lambda: own(layers.MinGRUCell(7)),
    "MinGRU of softsign": lambda: own(
        layers.MinGRUCell(7, activation="softsign")
    ),
    "RateRNN": lambda: layers.RateRNN(6, tau=5.0, return_sequences=True),
    "RateRNN of relu": lambda: layers.RateRNN(
        6, activation="relu", tau=5.0, return_sequences=True
    ),
    "ResidualRNN": lambda: layers.ResidualRNN(4, 6, return_sequences=True),
    "DeepTransition": lambda: keras.layers.RNN(
        layers.DeepTransitionRINCell(6, recurrent_initializer=SHRINKING),
        return_sequences=True,
    ),
}


@pytest.fixture(autouse=True)
def forgotten():
    rows = dict(DESCRIPTIONS)
    yield
    DESCRIPTIONS.clear()
    DESCRIPTIONS.update(rows)


@pytest.mark.parametrize("name", CELLS)
def test_a_row_in_integers_is_that_of_numpy_and_near_the_cell(
    name, rng, tmp_path
):
    x, path = counts(rng), tmp_path / "rin.h"
    model = model_of([CELLS[name](), keras.layers.Dense(7)], x)
    integer_header(model, path, x[:2])
    wild = rng.integers(-32768, 32768, (2, 100, 6))
    for streams in (x, extremes(100), wild):
        y = run_c(path, streams, SANITIZED)[0]
        expected = Simulation(path, len(streams)).outputs(streams, 7)
        np.testing.assert_array_equal(y, expected)
    y = run_c(path, x[2:])[0] * scale_of(path)
    expected = model.predict(x[2:], verbose=0)
    assert np.abs(y - expected).max() < 0.04 * np.ptp(expected)
    assert np.mean(y.argmax(-1) == expected.argmax(-1)) > 0.97


@pytest.mark.parametrize("kind", ["MinGRU", "RateRNN"])
@pytest.mark.parametrize("tau", [30, 300, 1_000])
def test_a_state_that_decays_reaches_its_end(kind, tau, tmp_path):
    """(1 - e^(-t / tau)) / 2, along ten time constants."""
    if kind == "MinGRU":
        layer = own(layers.MinGRUCell(1))
        z = 1 - np.exp(-1 / tau)
        weights = [np.zeros((1, 2)), np.array([np.log(z / (1 - z)), 0.5])]
    else:
        layer = layers.RateRNN(1, tau=tau, return_sequences=True)
        weights = [np.zeros((1, 1)), np.zeros((1, 1)), np.array([0.5])]
    model = keras.Sequential([keras.Input((None, 1)), layer])
    layer.set_weights(weights)
    path, steps = tmp_path / "rin.h", 10 * tau
    integer_header(
        model, path, np.where(np.arange(steps) % 2, 1, -1)[None, :, None]
    )
    y = run_c(path, np.zeros((1, steps, 1)))[0][0, :, 0] * scale_of(path)
    expected = (1 - np.exp(-np.arange(1, steps + 1) / tau)) / 2
    assert np.abs(y - expected).max() < 0.01
    assert abs(y[-1] - 0.5) < 1e-3


def test_what_has_no_form_is_refused_with_the_class_of_the_cell(rng, tmp_path):
    x = counts(rng, 1, 20)
    for activation, problem in (
        ("elu", "'elu' is not supported"),
        (keras.layers.ReLU(6.0), "its activation has a limit"),
    ):
        layer = own(keras.layers.SimpleRNNCell(3, activation))
        message = f"'rnn.* of OwnSimpleRNNCell has no form in i.*{problem}"
        with pytest.raises(ValueError, match=message):
            integer_header(model_of([layer], x), tmp_path / "rin.h", x)
