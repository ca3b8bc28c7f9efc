import keras
import numpy as np
import pytest
from references import assert_same
from references import to_numpy

from keras_rin.initializers import Chain
from keras_rin.initializers import ChainIdentity
from keras_rin.initializers import FeedbackChain
from keras_rin.initializers import Ramp
from keras_rin.layers import RIN

pytestmark = pytest.mark.one_backend


def as_numpy(initializer, units, dtype=None):
    return to_numpy(initializer((units, units), dtype))


def impulse_response(layer, steps, units):
    """Where a pulse on unit 0 stands at each step, by the layer itself."""
    h = np.eye(1, units, dtype="float32")
    states = layer(np.zeros((1, steps, 1)), initial_state=h)
    return to_numpy(states)[0]


@pytest.mark.parametrize("units", [1, 2, 7])
def test_a_chain_is_the_shift_of_numpy(units):
    expected = 1.02 * np.eye(units, k=1)
    np.testing.assert_allclose(as_numpy(Chain(1.02), units), expected)


@pytest.mark.parametrize("units", [1, 2, 7])
def test_a_chain_to_the_power_of_its_length_is_zero(units):
    chain = as_numpy(Chain(1.5), units)
    assert not np.linalg.matrix_power(chain, units).any()
    assert np.linalg.matrix_power(chain, units - 1).any()


def test_chain_identity_is_the_sum():
    expected = 0.5 * np.eye(5, k=1) + 0.9 * np.eye(5)
    np.testing.assert_allclose(as_numpy(ChainIdentity(0.5, 0.9), 5), expected)


def test_in_simple_rnn_a_chain_hands_a_pulse_to_the_next_unit():
    layer = keras.layers.SimpleRNN(
        4, "relu", recurrent_initializer=Chain(0.5), return_sequences=True
    )
    expected = np.diag([1, 0.5, 0.25, 0.125])[1:]
    np.testing.assert_allclose(impulse_response(layer, 3, 4), expected)


def test_in_rin_chain_identity_less_one_is_the_same_chain():
    layer = RIN(
        4, recurrent_initializer=ChainIdentity(0.5, -1), return_sequences=True
    )
    expected = np.diag([1, 0.5, 0.25, 0.125])[1:]
    np.testing.assert_allclose(impulse_response(layer, 3, 4), expected)


def test_in_rin_a_chain_comes_on_top_of_the_identity():
    with pytest.warns(UserWarning, match="Offset"):
        layer = RIN(3, recurrent_initializer=Chain(0.5))
    layer.build((None, None, 1))
    expected = np.eye(3) + 0.5 * np.eye(3, k=1)
    assert_same(layer.effective_recurrent_kernel, expected)


@pytest.mark.parametrize(
    "make, name",
    [
        (lambda gain: Chain(gain), "gain"),
        (lambda gain: ChainIdentity(chain_gain=gain), "chain_gain"),
        (lambda gain: FeedbackChain(gain), "gain"),
        (lambda feedback: FeedbackChain(feedback=feedback), "feedback"),
        (lambda limit: Ramp(limit), "limit"),
    ],
)
@pytest.mark.parametrize("gain", [-1, float("nan"), float("inf"), "1", None])
def test_gains_must_be_finite_and_not_negative(make, name, gain):
    with pytest.raises(ValueError, match=f"`{name}` must.*Received: {name}="):
        make(gain)


@pytest.mark.parametrize("gain", [float("nan"), -float("inf"), "1", None])
def test_the_identity_gain_must_be_finite(gain):
    with pytest.raises(ValueError, match="`identity_gain` must"):
        ChainIdentity(identity_gain=gain)


@pytest.mark.parametrize("units", [1, 2, 7])
def test_a_feedback_chain_has_two_diagonals(units):
    expected = 0.9 * np.eye(units, k=1) + 0.1 * np.eye(units, k=-1)
    np.testing.assert_allclose(
        as_numpy(FeedbackChain(0.9, 0.1), units), expected
    )


def test_the_spectral_radius_of_a_feedback_chain_is_the_closed_form():
    matrix = as_numpy(FeedbackChain(0.99, 0.21), 100, "float64")
    radius = np.abs(np.linalg.eigvals(matrix)).max()
    expected = 2 * np.sqrt(0.99 * 0.21) * np.cos(np.pi / 101)
    np.testing.assert_allclose(radius, expected, rtol=1e-5)


@pytest.mark.parametrize("units", [2, 5])
def test_a_ramp_rises_with_the_place_of_the_receiver(units):
    ramp = as_numpy(Ramp(0.01), units)
    for j in range(units):
        for i in range(units):
            expected = 0.01 * (j - i) / (units - 1)
            np.testing.assert_allclose(ramp[i, j], expected, atol=1e-8)


def test_a_ramp_of_one_unit_is_zero():
    assert as_numpy(Ramp(), 1) == 0
