"""States other than zero at which trajectories begin."""

import keras
import numpy as np
import pytest
from cases import first_of
from references import built

from keras_rin.diagnostics import gradient_norms
from keras_rin.diagnostics import lyapunov_spectrum
from keras_rin.diagnostics import state_jacobians
from keras_rin.diagnostics import state_trajectories
from keras_rin.layers import RIN


@pytest.mark.parametrize(
    "kind",
    first_of([(keras.layers.LSTM,), (RIN,)], 1, pytest.mark.one_backend),
)
def test_the_rest_of_a_sequence_is_as_in_the_whole(rng, kind):
    layer, x = built(kind(3)), rng.normal(size=(4, 10, 2))
    states = state_trajectories(layer, x, dtype="float64")
    rest = {"x": x[:, 4:], "initial_states": states[:, 4]}
    actual = state_trajectories(layer, **rest, dtype="float64")
    np.testing.assert_allclose(actual, states[:, 4:])
    jacobians = state_jacobians(layer, x, dtype="float64")[:, 4:]
    actual = state_jacobians(layer, **rest, dtype="float64")
    np.testing.assert_allclose(actual, jacobians)
    norms = gradient_norms(layer, x)[4:]
    np.testing.assert_allclose(gradient_norms(layer, **rest), norms, 1e-5)
    spectrum = lyapunov_spectrum(layer, warmup=0, **rest)
    volumes = np.linalg.slogdet(jacobians)[1]
    np.testing.assert_allclose(spectrum.exponents.sum(), volumes.mean())


@pytest.mark.one_backend
def test_a_masked_sequence_stays_where_it_begins(rng):
    layer, x = built(keras.layers.LSTM(3)), rng.normal(size=(3, 5, 2))
    states, mask = rng.normal(size=(3, 6)), np.ones((3, 5), bool)
    mask[1] = False
    arguments = {"x": x, "mask": mask, "initial_states": states}
    trajectory = state_trajectories(layer, **arguments)[1]
    np.testing.assert_allclose(trajectory, np.tile(states[1], (6, 1)), 1e-6)
    rest = {"x": x[::2], "initial_states": states[::2]}
    for function in (gradient_norms, lyapunov_spectrum):
        actual, expected = function(layer, **arguments), function(layer, **rest)
        np.testing.assert_allclose(actual[0], expected[0], 1e-5)


@pytest.mark.one_backend
@pytest.mark.parametrize("backwards", [False, True])
def test_they_are_the_initial_state_of_keras(rng, backwards):
    options = {"return_sequences": True, "go_backwards": backwards}
    layer = built(keras.layers.LSTM(3, **options))
    x, h, c = (rng.normal(size=(4, *size)) for size in [(5, 2), (3,), (3,)])
    initial_state = [keras.ops.cast(part, "float32") for part in (h, c)]
    outputs = layer(x, initial_state=initial_state)
    for initial_states in ([h, c], np.concatenate([h, c], axis=1)):
        states = state_trajectories(layer, x, initial_states=initial_states)
        np.testing.assert_allclose(states[:, 1:, :3], outputs, atol=1e-6)


@pytest.mark.one_backend
@pytest.mark.parametrize(
    "states", [np.zeros((2, 3)), np.zeros((1, 6)), [np.zeros((2, 3))], [0] * 6]
)
def test_states_of_another_shape_or_not_finite_are_refused(states):
    layer, x = built(keras.layers.LSTM(3)), np.ones((2, 4, 2))
    sequence_diagnostics = (
        *(state_trajectories, state_jacobians),
        *(gradient_norms, lyapunov_spectrum),
    )
    for function in sequence_diagnostics:
        with pytest.raises(ValueError, match=r"`initial_states`.*\(2, 6\)"):
            function(layer, x, initial_states=states)
        with pytest.raises(ValueError, match="`initial_states` must contain"):
            function(layer, x, initial_states=np.full((2, 6), np.nan))


@pytest.mark.one_backend
def test_an_exponent_above_0_of_a_state_that_rests_is_warned_of(rng):
    """Without bias, input and initial state 0 is an unstable fixed point."""
    layer = built(
        keras.layers.SimpleRNN(
            100,
            use_bias=False,
            recurrent_initializer=keras.initializers.RandomNormal(stddev=0.15),
        )
    )
    x = np.zeros((3, 300, 2))
    message = "in 3 of 3 sequences do not move"
    with pytest.warns(UserWarning, match=message) as caught:
        resting = lyapunov_spectrum(layer, x, exponents=1).exponents
    assert resting > 0.3
    assert __file__ in [warning.filename for warning in caught]
    states = rng.normal(size=(3, 100))
    options = {"exponents": 1, "warmup": 100}  # warnings are errors
    moving = lyapunov_spectrum(layer, x, initial_states=states, **options)
    driven = lyapunov_spectrum(layer, x + 1e-3, **options)
    assert moving.exponents < 0.1 and driven.exponents < 0.1
