import keras
import numpy as np
import pytest
from scipy import optimize
from witnesses import to_numpy

from keras_rin.diagnostics import fixed_points
from keras_rin.diagnostics import state_trajectories
from keras_rin.layers import RIN
from keras_rin.tasks import flip_flop


def simple_rnn(matrix, activation="tanh", bias=0.0):
    layer = keras.layers.SimpleRNN(len(matrix), activation)
    layer.build((None, None, 1))
    layer.cell.recurrent_kernel.assign(matrix)
    layer.cell.bias.assign(np.full(len(matrix), bias))
    return layer


def starts(rng, units, count=60):
    return rng.normal(size=(count, units))


def test_two_units_that_hold_a_bit_each_have_nine_points(rng):
    """h = tanh(2 h) in each: 0 and -0.9575 and 0.9575, by bisection."""
    root = optimize.brentq(lambda h: np.tanh(2 * h) - h, 0.1, 1)
    found = fixed_points(simple_rnn(2 * np.eye(2)), None, starts(rng, 2))
    held = [-root, 0, root]
    expected = {(round(a, 6), round(b, 6)) for a in held for b in held}
    assert {tuple(np.round(s, 6) + 0.0) for s in found.states} == expected
    assert len(found.states) == 9
    at_zero = np.abs(found.states) < 1e-3
    np.testing.assert_array_equal(found.unstable, at_zero.sum(axis=1))
    np.testing.assert_array_equal(found.stable, ~at_zero.any(axis=1))
    assert found.unstable.tolist() == sorted(found.unstable)
    slopes = np.where(at_zero, 2, 2 * (1 - root**2))
    np.testing.assert_allclose(
        found.eigenvalues, -np.sort(-slopes, axis=1), rtol=1e-6
    )
    np.testing.assert_allclose(
        np.einsum("pii->pi", found.jacobians), slopes, rtol=1e-6
    )
    assert found.starts.sum() == 60 and len(found.unconverged_states) == 0
    assert (found.dimension == 0).all() and (found.speeds <= 1e-16).all()


@pytest.mark.parametrize("kind", ["GRU", "LSTM", "SimpleRNN"])
def test_points_under_an_input_are_those_that_scipy_finds(rng, kind):
    layer = getattr(keras.layers, kind)(4)
    layer.build((None, None, 2))
    recurrent = layer.cell.recurrent_kernel
    recurrent.assign(0.5 * to_numpy(recurrent))  # it converges in 300 steps
    inputs = rng.normal(size=2)
    trajectory = state_trajectories(
        layer, np.tile(inputs, (1, 300, 1)), "float64"
    )[0]
    found = fixed_points(layer, inputs, trajectory[::10])
    assert found.stable.tolist() == [True]
    np.testing.assert_allclose(found.states[0], trajectory[-1], atol=1e-6)

    def speed(state):
        parts = [
            keras.ops.convert_to_tensor(part[None], "float32")
            for part in np.split(state, len(trajectory[0]) // 4)
        ]
        _, new = layer.cell(inputs[None].astype("float32"), parts)
        return np.concatenate([to_numpy(s)[0] for s in new]) - state

    root = optimize.root(speed, trajectory[-1] + 0.01, options={"eps": 1e-3})
    np.testing.assert_allclose(found.states[0], root.x, atol=1e-4)


def test_an_identity_without_input_is_one_continuum(rng):
    layer = RIN(3, recurrent_initializer="zeros")
    layer.build((None, None, 1))
    found = fixed_points(layer, [0.0], np.abs(starts(rng, 3)))
    assert len(found.states) == 1 and len(found.members[0]) == 60
    assert found.dimension.tolist() == [3] and found.starts.tolist() == [60]
    assert not found.stable.any() and found.unstable.tolist() == [0]


def test_a_line_attractor_is_one_line_and_a_ring_one_ring(rng):
    line = np.array([0.6, 0.8, 0.0])
    layer = simple_rnn(np.outer(line, line), None)
    found = fixed_points(layer, None, starts(rng, 3))
    assert found.dimension.tolist() == [1] and found.unstable.tolist() == [0]
    (members,) = found.members
    np.testing.assert_allclose(
        members, np.outer(members @ line, line), atol=1e-6
    )
    cell = RingCell()
    cell.build((None, 1))
    found = fixed_points(cell, None, [[0, 0], *starts(rng, 2)])
    assert found.dimension.tolist() == [1, 0]
    assert found.unstable.tolist() == [0, 2]
    radii = np.linalg.norm(found.members[0], axis=1)
    np.testing.assert_allclose(radii, np.ones(len(radii)), atol=1e-6)


class RingCell(keras.layers.Layer):
    """h moves to the circle of radius 1, at every angle."""

    state_size = output_size = 2

    def call(self, inputs, states, training=False):
        h = states[0]
        square = keras.ops.sum(h**2, axis=-1, keepdims=True)
        return h, [h + 0.2 * h * (1 - square)]


class TwoLinesCell(keras.layers.Layer):
    """Attracting lines at x = -1 and x = 1, a repelling one at x = 0."""

    state_size = output_size = 2

    def call(self, inputs, states, training=False):
        x, y = keras.ops.split(states[0], 2, axis=-1)
        new = keras.ops.concatenate([x + 0.2 * (x - x**3), y], axis=-1)
        return new, [new]


def test_lines_side_by_side_are_several(rng):
    cell = TwoLinesCell()
    cell.build((None, 1))
    found = fixed_points(cell, None, starts(rng, 2, 90))
    assert found.dimension.tolist() == [1, 1, 1]
    assert found.unstable.tolist() == [0, 0, 1]
    assert sorted(np.round(found.states[:, 0])) == [-1, 0, 1]


def test_an_isolated_point_with_an_eigenvalue_near_1_stays_isolated(rng):
    """h = tanh(1.002 h): three points within 0.16, slopes within 0.01 of 1."""
    layer = simple_rnn(np.diag([1.002, 0.5]))
    found = fixed_points(layer, None, 0.1 * starts(rng, 2))
    assert found.dimension.tolist() == [0, 0, 0]
    assert found.unstable.tolist() == [0, 0, 1]


def test_slow_points_are_no_fixed_points(rng):
    """h = relu(h) + 1 has none: the speed is 1 wherever h is positive."""
    layer = simple_rnn(np.eye(2), "relu", bias=1.0)
    found = fixed_points(layer, None, np.abs(starts(rng, 2)))
    assert len(found.states) == 0 and found.eigenvalues.shape == (0, 2)
    assert found.members == [] and found.stable.shape == (0,)
    assert found.unconverged_states.shape == (60, 2)
    np.testing.assert_allclose(found.unconverged_speeds, np.full(60, 2.0))
    found = fixed_points(layer, None, np.abs(starts(rng, 2)), tolerance=3.0)
    assert found.starts.sum() == 60


def test_weights_and_dtype_stay(rng):
    layer = keras.layers.LSTM(3, dropout=0.5, dtype="mixed_bfloat16")
    layer.build((None, None, 2))
    before = [to_numpy(variable).copy() for variable in layer.variables]
    policy = layer.cell.dtype_policy
    found = fixed_points(layer, [0.0, 0.0], starts(rng, 6))
    assert found.states.shape[1] == 6 and found.states.dtype == np.float64
    assert layer.cell.dtype_policy is policy
    for variable, value in zip(layer.variables, before, strict=True):
        np.testing.assert_array_equal(to_numpy(variable), value)


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"inputs": [0.0, 1.0]}, r"`inputs` must have the shape \(1,\)"),
        ({"inputs": [np.nan]}, "`inputs` must contain finite"),
        ({"initial_states": np.zeros((4, 3))}, "`initial_states` must have"),
        ({"initial_states": np.zeros(2)}, "`initial_states` must have"),
        ({"initial_states": np.zeros((0, 2))}, "must not be empty"),
        (
            {"initial_states": [[np.inf, 0]]},
            "`initial_states` must contain fin",
        ),
        ({"initial_states": [[1e308, 1e308]]}, "to finite states"),
        ({"tolerance": 0}, "`tolerance` must be a finite number"),
        ({"distance": -1}, "`distance` must be a finite number"),
        ({"iterations": 0}, "`iterations` must be an integer"),
    ],
)
def test_bad_arguments_are_named(arguments, message):
    layer = simple_rnn(np.array([[2.0, 2.0], [2.0, 2.0]]), None)
    usual = {"inputs": [0.0], "initial_states": np.zeros((1, 2))}
    with pytest.raises(ValueError, match=message):
        fixed_points(layer, **{**usual, **arguments})


def test_bad_layers_are_named():
    with pytest.raises(ValueError, match="no weights yet"):
        fixed_points(keras.layers.GRU(2), None, np.zeros((1, 2)))
    layer = simple_rnn(np.full((2, 2), np.nan))
    with pytest.raises(ValueError, match="weights of .* must be finite"):
        fixed_points(layer, None, np.zeros((1, 2)))


@pytest.mark.exhaustive
@pytest.mark.each_backend
def test_a_trained_flip_flop_has_a_stable_point_for_each_word(rng):
    model = keras.Sequential(
        [
            keras.Input((25, 2)),
            RIN(12, "tanh", return_sequences=True),
            keras.layers.Dense(2),
        ]
    )
    model.compile(keras.optimizers.Adam(0.01), "mse")
    model.fit(*flip_flop.generate(rng, 10_000, 25, bits=2), verbose=0)
    layer, read_out = model.layers
    x, _ = flip_flop.generate(rng, 20, 25, bits=2)
    states = state_trajectories(layer, x)[:, 1:].reshape(-1, 12)
    found = fixed_points(layer, [0.0, 0.0], states)
    words = to_numpy(read_out(found.states[found.stable].astype("float32")))
    assert len(words) == 4 and (np.abs(np.abs(words) - 1) < 0.2).all()
    assert len(np.unique(np.sign(words), axis=0)) == 4


def test_eigenvalues_are_in_the_order_of_their_modulus(rng):
    layer = simple_rnn(np.diag([0.3, -0.9, 0.5]))
    found = fixed_points(layer, None, starts(rng, 3)).eigenvalues
    np.testing.assert_allclose(found, [[-0.9, 0.5, 0.3]], rtol=1e-6)


class Map(keras.layers.Layer):
    """A cell of a function of its state alone."""

    state_size = output_size = 2

    def __init__(self, function):
        super().__init__()
        self.function = function
        self.build((None, 1))

    def call(self, inputs, states, training=False):
        new = self.function(states[0])
        return new, [new]


def test_the_speed_is_relative_to_the_size_of_the_state():
    cell = Map(lambda s: s + 1e-3)
    found = fixed_points(cell, None, [[1e6, 0.0]])
    assert len(found.unconverged_states) == 0


def test_points_of_a_line_are_not_apart_along_it(rng):
    """A line that attracts, along which the map stretches by 0.1 percent."""
    cell = Map(lambda s: s * keras.ops.convert_to_tensor([1.001, 0.5], s.dtype))
    points = rng.normal(size=(30, 2)) * [1e-4, 1]
    found = fixed_points(cell, None, points, tolerance=1e-12, distance=1e-9)
    assert found.dimension.tolist() == [1] and found.unstable.tolist() == [0]
