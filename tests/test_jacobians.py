import keras
import numpy as np
import pytest
from cases import first_of
from cases import one_backend_after
from references import ACTIVATIONS
from references import Map
from references import MapFromFive
from references import Power
from references import built
from references import to_numpy
from scipy import special

from keras_rin import layers
from keras_rin.diagnostics import gradient_norms
from keras_rin.diagnostics import lyapunov_spectrum
from keras_rin.diagnostics import state_jacobians
from keras_rin.diagnostics import state_trajectories


@pytest.mark.parametrize(
    "kind, go_backwards",
    first_of(
        [("LSTM", True), ("GRU", False)],
        *(1, pytest.mark.one_backend),
    ),
)
def test_masked_time_steps_leave_the_state_as_it_is(rng, kind, go_backwards):
    layer = built(
        getattr(keras.layers, kind)(
            3, return_sequences=True, go_backwards=go_backwards
        )
    )
    x = rng.normal(size=(3, 6, 2)).astype("float32")
    mask = rng.random((3, 6)) < 0.6
    mask[0], mask[1, -1] = False, True
    states = state_trajectories(layer, x, mask=mask)
    outputs = to_numpy(layer(x, mask=mask))
    np.testing.assert_allclose(states[:, 1:, :3], outputs, atol=1e-6)
    jacobians = state_jacobians(layer, x, mask=mask)
    order = -1 if go_backwards else 1
    for sequence, used in enumerate(mask):
        actual, used_steps = jacobians[sequence], used[::order]
        assert (actual[~used_steps] == np.eye(states.shape[-1])).all()
        if used.any():
            expected = state_jacobians(layer, x[sequence, used][None])[0]
            np.testing.assert_allclose(actual[used_steps], expected, atol=1e-6)


@pytest.mark.one_backend
@pytest.mark.parametrize(
    "kind, options",
    [
        (keras.layers.LSTMCell, {"recurrent_activation": "hard_sigmoid"}),
        (keras.layers.LSTMCell, {"use_bias": False, "activation": "softmax"}),
        (keras.layers.GRUCell, {"use_bias": False, "activation": None}),
        (keras.layers.GRUCell, {"reset_after": False}),
        (keras.layers.SimpleRNNCell, {"activation": "softmax"}),
    ],
)
def test_a_cell_of_keras_is_as_a_class_of_ones_own(rng, kind, options):
    """Weights and options are those of the cell that it extends."""
    cell, subclass = (
        built(cell_class(5, **options))
        for cell_class in (kind, type("Own", (kind,), {}))
    )
    weights = [rng.normal(size=w.shape) for w in cell.get_weights()]
    cell.set_weights(weights)
    subclass.set_weights(weights)
    x = rng.normal(size=(3, 4, 2))
    actual, expected = (
        state_jacobians(layer, x, dtype="float64") for layer in (cell, subclass)
    )
    np.testing.assert_allclose(actual, expected, atol=1e-13)


def test_a_trajectory_begins_where_the_cell_says():
    cell = MapFromFive(lambda state, x: state + x, 1)
    states = state_trajectories(cell, np.ones((2, 3, 1)))
    np.testing.assert_array_equal(states[..., 0], [[5, 6, 7, 8]] * 2)


def test_a_step_that_ignores_the_state_has_the_derivative_0(rng):
    cell, x = Map(lambda state, x: x, 3, 3), rng.normal(size=(2, 3, 3))
    assert not state_jacobians(cell, x).any()
    assert lyapunov_spectrum(cell, x, exponents=1).exponents == -np.inf


@pytest.mark.one_backend
def test_many_rows_are_as_few(rng):
    """Those that one chunk does not hold."""
    layer = built(keras.layers.SimpleRNN(64, "softmax"))
    x = rng.normal(size=(1100, 1, 2))
    jacobians = state_jacobians(layer, x)
    for part in (slice(-2, None), slice(1023, 1025)):
        few = state_jacobians(layer, x[part])
        np.testing.assert_allclose(jacobians[part], few, atol=1e-6)


@pytest.mark.parametrize(
    "kind",
    one_backend_after([layers.RIN, keras.layers.SimpleRNN, keras.layers.GRU]),
)
def test_an_activation_without_a_hash_is_that_of_its_function(rng, kind):
    x = rng.normal(size=(2, 4, 2))
    layer = built(kind(3, Power(3)))
    plain = built(kind(3, lambda z: keras.ops.tanh(z) ** 3))
    plain.set_weights(layer.get_weights())
    for function in (state_trajectories, state_jacobians, gradient_norms):
        np.testing.assert_allclose(function(layer, x), function(plain, x), 1e-6)
    exponents = [
        lyapunov_spectrum(each, x).exponents for each in (layer, plain)
    ]
    np.testing.assert_allclose(*exponents)


@pytest.mark.one_backend
@pytest.mark.parametrize(
    "function", [state_trajectories, gradient_norms, lyapunov_spectrum]
)
def test_a_state_that_is_no_vector_is_refused(function):
    layer = keras.layers.ConvLSTM1D(3, 2)
    layer.build((None, None, 5, 2))
    with pytest.raises(ValueError, match="states that are vectors.*ConvLSTM1D"):
        function(layer, np.ones((2, 4, 2)))


EXACT = {
    **ACTIVATIONS,
    "exponential": np.exp,
    "hard_sigmoid": lambda z: np.clip(z / 6 + 0.5, 0, 1),
    "silu": lambda z: z * special.expit(z),
    "softplus": lambda z: np.logaddexp(0, z),
}
del EXACT["leaky_relu"]  # TensorFlow rounds its slope


def unit_of(activation):
    layer = built(keras.layers.SimpleRNN(1, activation), features=1)
    layer.set_weights([np.ones((1, 1)), np.ones((1, 1)), np.zeros(1)])
    return layer


@pytest.mark.parametrize("activation", one_backend_after(EXACT, 5))
def test_activations_of_keras_are_computed_in_float64(activation):
    z = np.linspace(-8, 8, 401)[:, None, None]
    states = state_trajectories(unit_of(activation), z, dtype="float64")[:, 1]
    np.testing.assert_allclose(states, EXACT[activation](z[:, 0]), 1e-14, 1e-14)


def test_the_slope_of_tanh_is_computed_in_float64():
    """J = 1 - tanh(z)^2 where V = 1 and the state is 0."""
    z = np.linspace(-4, 4, 32)[:, None, None]
    slopes = state_jacobians(unit_of("tanh"), z, dtype="float64")
    expected = 1 - np.tanh(z) ** 2
    np.testing.assert_allclose(slopes[:, 0], expected, 1e-13, 1e-13)
