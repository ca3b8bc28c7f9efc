"""All fixed points of networks with ReLU, by all sets of active units."""

import keras
import numpy as np
import pytest
from references import built
from relu_networks import RATE
from relu_networks import in_order
from relu_networks import network
from relu_networks import points_by_linear_programs

from keras_rin.diagnostics import fixed_points
from keras_rin.layers import RIN
from keras_rin.layers import ResidualRNN

pytestmark = pytest.mark.one_backend


@pytest.mark.parametrize("kind", [keras.layers.SimpleRNN, RIN, RATE])
@pytest.mark.parametrize("units, seed", [(3, 0), (4, 1), (5, 2), (6, 3)])
def test_they_are_those_of_a_linear_program_for_each_set(units, seed, kind):
    rng = np.random.default_rng(seed)
    drive, x = rng.uniform(0.5, 0.7, size=(2, units))
    noise = 0.3 * rng.normal(size=(units, units))
    matrix = 1.3 * np.eye(units) - 1 + noise
    points = fixed_points(network(matrix, drive, kind), x=x, complete=True)
    expected = points_by_linear_programs(matrix, drive + x)
    assert len(expected) > 1
    rates, active = np.maximum(points.states, 0), points.states > 0
    np.testing.assert_allclose(in_order(rates), in_order(expected), atol=1e-6)
    jacobians = active[:, :, None] * matrix.T
    if kind is RATE:  # whose states are the arguments of the activation
        arguments = rates @ matrix + drive + x
        np.testing.assert_allclose(points.states, arguments, atol=1e-12)
        jacobians = 0.75 * np.eye(units) + 0.25 * active[:, None] * matrix.T
    np.testing.assert_allclose(points.jacobians, jacobians, atol=1e-12)
    moduli = np.sort(np.abs(np.linalg.eigvals(jacobians)))
    np.testing.assert_allclose(
        np.sort(np.abs(points.eigenvalues)), moduli, atol=1e-12
    )
    assert (points.expanding == (moduli > 1).sum(axis=1)).all()
    assert points.speeds.max() < 1e-24 and not points.dimension.any()
    assert str(points).endswith(f"; all of them, from {2**units} active sets")


def test_the_search_finds_the_same_and_no_other():
    """Four units that inhibit each other: any of them may be active."""
    layer = network(1.3 * np.eye(4) - 1, 1.0)
    points = fixed_points(layer, complete=True)
    initial = np.random.default_rng(0).uniform(0, 2, size=(100, 4))
    searched = fixed_points(layer, [*initial, *points.states + 0.01])
    assert len(searched.states) == len(points.states) == 15
    offsets = searched.states[:, None] - points.states[None]
    distances = np.abs(offsets).max(axis=2)
    assert distances.min(axis=1).max() < 1e-7
    nearest = distances.argmin(axis=1)
    for field in ("expanding", "neutral", "eigenvalues", "dimension"):
        np.testing.assert_allclose(
            getattr(searched, field), getattr(points, field)[nearest], atol=1e-7
        )
    np.testing.assert_array_equal(points.stable.sum(), searched.stable.sum())


ROW = np.full((3, 3), 1 / 3)  # of eigenvalue 1, along (1, 1, 1)


@pytest.mark.parametrize(
    "matrix, drive, expected",
    [
        (np.eye(2), 0.0, "1 continuum of dimension 2"),
        (np.eye(3), [0.0, 0.0, -1.0], "1 continuum of dimension 2"),
        (np.eye(2), 1.0, "no fixed point"),
        (ROW, 0.0, "1 continuum of dimension 1"),
        (ROW, [1.0, 0.0, -1.0], "1 continuum of dimension 1"),
        # In float32 a third is off by 1e-8.
        (ROW.astype("float32"), 0.0, "1 continuum of dimension 1"),
        (np.diag([1.0, 0.5]), [0.0, 1.0], "1 continuum of dimension 1"),
        # The line h_1 = h_2 up to 1, where a third unit wakes and holds it.
        (np.diag([1.0, 1.0, 0.5]), [0, 0, -1.0], "1 continuum of dimension 2"),
        # Each of two units that inhibit each other holds any positive value.
        (np.eye(2) - np.eye(2)[::-1], 0.0, "1 continuum of dimension 1"),
        (np.eye(2) - 2 * np.eye(2)[::-1], [1.0, 1.0], "1 saddle"),
        (
            np.array([[1.0, -1.0], [-1.0, 0.5]]),
            [0.0, 1.0],
            "1 stable, 1 continuum of dimension 1",
        ),
    ],
)
def test_singular_sets_are_a_continuum_or_nothing(matrix, drive, expected):
    points = fixed_points(network(matrix, drive), complete=True)
    assert str(points).split(";")[0].startswith(expected), points
    for members in points.members:
        arguments = members @ matrix + drive
        np.testing.assert_allclose(np.maximum(arguments, 0), members, atol=1e-6)
    if "continuum" in expected:
        *_, members = points.members
        rank = np.linalg.matrix_rank(members - members[0], tol=1e-4)
        assert rank >= points.dimension[-1] <= points.neutral[-1]


@pytest.mark.parametrize("gain", [0.5, 1.5])
def test_on_a_border_of_linear_pieces_the_eigenvalues_do_not_decide(gain):
    points = fixed_points(network(gain * np.eye(2), 0.0), complete=True)
    assert points.states.tolist() == [[0, 0]]
    assert (points.neutral.tolist(), points.stable.tolist()) == ([2], [False])


@pytest.mark.parametrize(
    "layer, arguments, message",
    [
        (RIN(3, "tanh"), {}, "RateRNN or ResidualRNN with ReLU"),
        (
            keras.layers.LSTM(3, "relu"),
            {},
            "RateRNN or ResidualRNN with ReLU",
        ),
        (ResidualRNN(2, 3, "tanh"), {}, "ResidualRNN with ReLU"),
        (RIN(3), {"initial_states": np.zeros((1, 3))}, "either"),
        (RIN(3), {"complete": False}, "either"),
        (RIN(3), {"x": [1.0]}, "`x` must have"),
    ],
)
def test_what_cannot_be_enumerated_is_refused(layer, arguments, message):
    built(layer)
    with pytest.raises(ValueError, match=f"(?s){message}.*Received|{message}"):
        fixed_points(layer, **{"complete": True, **arguments})
