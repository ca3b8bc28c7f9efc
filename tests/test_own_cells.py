"""A cell of a user's own, which Keras and the diagnostics do not know."""

import dataclasses

import keras
import numpy as np
import pytest
from references import built
from references import to_numpy
from references import weights64
from step_files import assert_near
from step_files import write_and_run

import keras_rin
from keras_rin import diagnostics
from keras_rin._cell_descriptions import DESCRIPTIONS
from keras_rin._cell_descriptions import description_of
from keras_rin.cells import CellDescription
from keras_rin.cells import describe
from keras_rin.cells import transition
from keras_rin.export import export_c

LEAK = 0.3


class LeakyCell(keras.layers.Layer):
    """h + leak (tanh(x W + h V + b) - h), and a state that counts the steps.

    V and b lie in a layer of the cell.
    """

    state_size, output_size = [4, 1], 4

    def build(self, input_shape):
        self.kernel = self.add_weight((input_shape[-1], 4))
        self.recurrent = keras.layers.Dense(4)
        self.recurrent.build((None, 4))
        self.activation = keras.activations.tanh

    @property
    def recurrent_kernel(self):
        return self.recurrent.kernel

    def call(self, inputs, states):
        h, count = states
        z = inputs @ self.kernel + self.recurrent(h)
        h = h + LEAK * (self.activation(z) - h)
        return h, [h, count + 1.0]


@pytest.fixture
def cell(rng):
    cell = built(LeakyCell())
    cell.set_weights([rng.normal(size=w.shape) for w in cell.get_weights()])
    return cell


def test_its_states_and_derivatives_are_those_of_numpy(cell, rng):
    kernel, recurrent, bias = weights64(cell)
    x, h = rng.normal(size=(3, 6, 2)), rng.normal(size=(3, 4))
    states, jacobians = [h], np.zeros((3, 6, 5, 5))
    for t in range(6):
        phi = np.tanh(x[:, t] @ kernel + states[-1] @ recurrent + bias)
        states.append((1 - LEAK) * states[-1] + LEAK * phi)
        slopes = LEAK * (1 - phi**2)[:, :, None] * recurrent.T
        jacobians[:, t, :4, :4] = (1 - LEAK) * np.eye(4) + slopes
        jacobians[:, t, 4, 4] = 1
    states = np.stack(states, axis=1)
    arguments = {"layer": cell, "x": x, "initial_states": [h, np.zeros((3, 1))]}
    actual = diagnostics.state_trajectories(**arguments, dtype="float64")
    np.testing.assert_allclose(actual[..., :4], states, atol=1e-14)
    np.testing.assert_array_equal(actual[:, :, 4], [range(7)] * 3)
    actual = diagnostics.state_jacobians(**arguments, dtype="float64")
    np.testing.assert_allclose(actual, jacobians, atol=1e-14)
    x = rng.normal(size=(2, 100, 2))
    few, every = (  # by directional derivatives, and by Jacobians
        diagnostics.lyapunov_spectrum(cell, x, exponents=count).exponents
        for count in (2, 5)
    )
    np.testing.assert_allclose(few, every[:2], rtol=1e-6)


@pytest.mark.one_backend
def test_its_matrices_are_those_that_it_names(cell):
    kernel, recurrent, bias = weights64(cell)
    (matrix,) = diagnostics.recurrent_matrices(cell).values()
    np.testing.assert_array_equal(matrix, recurrent)
    chain = diagnostics.hidden_chain(cell, steps=5, pulse=[1.0, 2.0])
    h = LEAK * np.tanh([1.0, 2.0] @ kernel + bias)
    np.testing.assert_allclose(chain.activity[0], h, rtol=1e-5)


@keras.saving.register_keras_serializable(package="tests")
class KeepCell(keras.layers.Layer):
    """h = keep h + (1 - keep) tanh(c), with offsets from the identity.

    keep = sigmoid(k), and k and c are x W + h + h U + b.
    """

    state_size = output_size = 4

    def build(self, input_shape):
        self.kernel = self.add_weight((input_shape[-1], 8))
        self.recurrent_kernel = self.add_weight((4, 8))
        self.bias = self.add_weight((8,))
        self.activation = keras.activations.tanh
        self.recurrent_activation = keras.activations.sigmoid

    def call(self, inputs, states):
        (h,) = keras.tree.flatten(states)
        z = inputs @ self.kernel + h @ self.recurrent_kernel + self.bias
        keep, candidate = keras.ops.split(z, 2, axis=-1)
        keep = self.recurrent_activation(keep + h)
        h = keep * h + (1 - keep) * self.activation(candidate + h)
        return h, [h]


def _keep_step(writer, cell):
    writer.project()
    writer.add_product("h")
    writer.activate("keep", "recurrent_activation")
    writer.activate("candidate")
    writer.call("interpolate", "keep", "candidate", "h")


KEEP = CellDescription(
    _keep_step,
    gates=("keep", "candidate"),
    offsets=("recurrent_kernel",),
    is_centered=True,
)


@pytest.fixture
def forgotten():
    """What a test describes is described in this test alone."""
    rows = dict(DESCRIPTIONS)
    yield
    DESCRIPTIONS.clear()
    DESCRIPTIONS.update(rows)


@pytest.mark.one_backend
def test_one_row_describes_a_cell(rng, forgotten, tmp_path):
    layer = keras.layers.RNN(KeepCell(), return_sequences=True)
    model = keras.Sequential([keras.Input((None, 2)), layer])
    model.set_weights([rng.normal(size=w.shape) for w in model.get_weights()])
    x = rng.normal(size=(3, 20, 2)).astype("float32")
    with pytest.raises(ValueError, match="KeepCell is not supported"):
        write_and_run(model, "c", tmp_path, x)
    describe(KeepCell(), KEEP)
    assert_near(write_and_run(model, "c", tmp_path, x), model, x)
    kernel, recurrent, _ = weights64(layer)
    matrices = diagnostics.recurrent_matrices(layer)
    assert list(matrices) == ["keep", "candidate"]
    for matrix, offset in zip(
        matrices.values(), np.split(recurrent, 2, axis=1), strict=True
    ):
        np.testing.assert_array_equal(matrix, offset + np.eye(4))
    keras_rin.adapt(model, x)
    expected = -x.mean(axis=(0, 1)) @ kernel
    np.testing.assert_allclose(to_numpy(layer.cell.bias), expected, atol=1e-5)


@keras.saving.register_keras_serializable(package="tests")
class PlainCell(keras.layers.SimpleRNNCell):
    """A SimpleRNNCell by another name."""


@pytest.mark.one_backend
def test_a_plain_cell_of_ones_own_gains_integers_and_all_fixed_points(
    rng, forgotten, tmp_path
):
    cell = PlainCell(4, activation="relu")
    layer = keras.layers.RNN(cell)
    model = keras.Sequential([keras.Input((None, 2)), layer])
    x = rng.integers(0, 100, size=(3, 20, 2)).astype("float32")
    with pytest.raises(ValueError, match="takes a SimpleRNN"):
        diagnostics.fixed_points(layer, complete=True)
    describe(cell, CellDescription(transition))
    header = export_c(
        model, tmp_path / "a.h", arithmetic="integer", calibration=x
    )
    assert header.compare(model, x).share < 0.05
    known = keras.layers.SimpleRNN(4, activation="relu")
    known.build((None, None, 2))
    known.set_weights(layer.get_weights())
    points, expected = (
        diagnostics.fixed_points(item, complete=True).states
        for item in (layer, known)
    )
    np.testing.assert_allclose(points, expected, atol=1e-12)


def _without_activation(writer, cell):
    writer.project()
    writer.add_product("h")
    writer.activate("keep", "recurrent_activation")
    writer.call("interpolate", "keep", "candidate", "h")


def _with_another_name(writer, cell):
    writer.project()
    writer.activate("forget")


def _with_another_operation(writer, cell):
    writer.project()
    writer.divide("keep", "candidate")


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"step": _without_activation}, "KeepCell computes another h than"),
        ({"offsets": ()}, "computes another h"),
        ({"step": _with_another_name}, "do not have: KeyError: 'forget'"),
        ({"step": _with_another_operation}, "do not have: .*divide"),
        ({"states": ("h", "c")}, "has 1 states"),
    ],
)
def test_a_row_that_is_wrong_is_refused(changes, message, forgotten):
    row = dataclasses.replace(KEEP, **changes)
    with pytest.raises(ValueError, match=message):
        describe(KeepCell(), row)
    assert "tests>KeepCell" not in DESCRIPTIONS


@pytest.mark.parametrize("cell", [LeakyCell(), keras.layers.GRUCell(3)])
def test_a_class_that_is_not_registered_or_is_known_is_refused(cell):
    with pytest.raises(ValueError, match="a class of your own"):
        describe(cell, KEEP)


BUILT_IN = {
    "SimpleRNN": lambda: keras.layers.SimpleRNNCell(4),
    "GRU": lambda: keras.layers.GRUCell(4),
    "GRU, reset before": lambda: keras.layers.GRUCell(4, reset_after=False),
    "LSTM": lambda: keras.layers.LSTMCell(4),
    "RIN": lambda: keras_rin.layers.RINCell(4),
    "MinGRU": lambda: keras_rin.layers.MinGRUCell(4),
    "RateRNN": lambda: keras_rin.layers.RateRNNCell(4, tau=3.0),
    "ResidualRNN": lambda: keras_rin.layers.ResidualRNNCell(4, 6),
    "DeepTransitionRIN": lambda: keras_rin.layers.DeepTransitionRINCell(4),
}


@pytest.mark.parametrize("name", BUILT_IN)
def test_the_rows_that_come_along_are_the_cells(name, forgotten):
    """As a subclass of another name they pass the check of a user's cell."""
    cell = BUILT_IN[name]()
    kind = type(f"Own{type(cell).__name__}", (type(cell),), {})
    keras.saving.register_keras_serializable(package="tests")(kind)
    describe(kind.from_config(cell.get_config()), description_of(cell))
