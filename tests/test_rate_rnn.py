import keras
import numpy as np
import pytest
from references import ACTIVATIONS
from references import MASKS
from references import assert_same
from references import built
from references import outputs_of_steps
from references import to_numpy
from references import weights64
from scipy import integrate
from scipy import optimize

from keras_rin import diagnostics
from keras_rin.export import check_header
from keras_rin.export import export_streaming
from keras_rin.export import streaming_step
from keras_rin.layers import NoisyRNN
from keras_rin.layers import RateRNN
from keras_rin.layers import RateRNNCell
from keras_rin.layers import RINCell


def drawn(rng, units, tau, features=2, **options):
    """A built layer with weights from a normal distribution, and J."""
    layer = built(RateRNN(units, tau, **options), features)
    layer.set_weights([rng.normal(size=w.shape) for w in layer.get_weights()])
    kernel, *recurrent, bias = weights64(layer)
    matrix = recurrent[0]
    if layer.rank:
        left, right = recurrent
        matrix = np.einsum("ir,jr->ij", left, right) / units
    return layer, (kernel, matrix, bias)


def euler(x, weights, leak, activation="tanh", mask=None):
    kernel, matrix, bias = weights
    h, states = np.zeros((len(x), len(matrix))), []
    for t in range(x.shape[1]):
        drive = ACTIVATIONS[activation](h) @ matrix + x[:, t] @ kernel + bias
        new = (1 - leak) * h + leak * drive
        h = new if mask is None else np.where(mask[:, t, None], new, h)
        states.append(h)
    return np.stack(states, axis=1)


@pytest.mark.parametrize(
    "activation, rank, mask",
    [("tanh", None, "none"), ("relu", 2, "alternating"), ("linear", 1, "none")],
)
def test_its_states_are_those_of_euler_steps(rng, activation, rank, mask):
    options = {"activation": activation, "rank": rank}
    options["return_sequences"] = True
    layer, weights = drawn(rng, 4, 5.0, dt=0.5, noise=3.0, **options)
    x, mask = rng.normal(size=(3, 7, 2)), MASKS[mask](7, 3)
    mask = None if mask is None else mask.T
    expected = euler(x, weights, 0.1, activation, mask)
    mask = mask if mask is None else keras.ops.convert_to_tensor(mask)
    actual = layer(x.astype("float32"), mask=mask)
    if mask is None:
        assert_same(actual, expected)
    else:
        assert_same(actual[:, -2:], expected[:, -2:])
    assert_same(diagnostics.recurrent_matrices(layer)["recurrent"], weights[1])


@pytest.mark.one_backend
def test_small_steps_are_the_differential_equation(rng):
    layer, (kernel, matrix, bias) = drawn(rng, 3, 2.0, dt=0.005, rank=1)
    x = np.tile([0.5, -1.0], (1, 1000, 1))  # for a time of 5

    def flow(t, h):
        return (np.tanh(h) @ matrix + x[0, 0] @ kernel + bias - h) / 2.0

    solution = integrate.solve_ivp(flow, (0, 5), np.zeros(3), rtol=1e-9)
    assert_same(layer(x)[0], solution.y[:, -1], rtol=0.01, atol=0.01)


@pytest.mark.parametrize("training, inference_noise", [(1, 0), (0, 1), (0, 0)])
def test_noise_is_that_of_an_ornstein_uhlenbeck_process(
    training, inference_noise
):
    """Var = noise^2 2 / (2 - dt / tau), correlated over tau."""
    layer = RateRNN(
        200,
        tau=4.0,
        recurrent_initializer="zeros",
        noise=0.5,
        inference_noise=bool(inference_noise),
        seed=1,
        return_sequences=True,
    )
    h = to_numpy(layer(np.zeros((60, 90, 1)), training=bool(training)))[:, 40:]
    if not training and not inference_noise:
        assert not h.any()
        return
    np.testing.assert_allclose(h.var(), 0.25 * 2 / (2 - 0.25), rtol=0.02)
    np.testing.assert_allclose(h.mean(), 0, atol=0.01)
    for lag in (1, 4):
        product = (h[:, lag:] * h[:, :-lag]).mean() / h.var()
        np.testing.assert_allclose(product, 0.75**lag, atol=0.02)
    assert abs(np.corrcoef(h[0, :, 0], h[1, :, 0])[0, 1]) < 0.6


@pytest.mark.one_backend
def test_a_noisy_rnn_has_the_same_switch():
    cell = RINCell(3, None, recurrent_initializer="zeros")
    layer = NoisyRNN(cell, 0.5, inference_noise=False)
    x = np.zeros((2, 4, 1))
    assert not to_numpy(layer(x)).any()
    assert to_numpy(layer(x, training=True)).all()
    assert NoisyRNN.from_config(layer.get_config()).inference_noise is False


@pytest.mark.parametrize("rank", [None, 2])
def test_its_jacobians_and_exponents_are_in_closed_form(rng, rank):
    layer, (kernel, matrix, bias) = drawn(rng, 5, 2.0, rank=rank)
    x, h = rng.normal(size=(3, 4, 2)), rng.normal(size=(3, 5))
    options = {"initial_states": h, "dtype": "float64"}
    states = diagnostics.state_trajectories(layer, x, **options)[:, :-1]
    slopes = 1 - np.tanh(states) ** 2
    expected = np.eye(5) / 2 + matrix.T * slopes[:, :, None] / 2
    actual = diagnostics.state_jacobians(layer, x, **options)
    np.testing.assert_allclose(actual, expected, atol=1e-12)
    linear = built(RateRNN(5, 2.0, activation=None, rank=rank))
    linear.set_weights(layer.get_weights())
    spectrum = diagnostics.lyapunov_spectrum(
        linear, rng.normal(size=(1, 900, 2))
    )
    moduli = np.abs(np.linalg.eigvals(np.eye(5) / 2 + matrix / 2))
    expected = np.log(np.sort(moduli)[::-1])
    np.testing.assert_allclose(spectrum.exponents, expected, atol=0.02)


@pytest.mark.one_backend
def test_a_population_of_rank_one_remembers_a_bit():
    """With m = n = v in every unit h = v k, and k = v tanh(v k)."""
    layer = built(RateRNN(30, 3.0, rank=1), features=1)
    vectors = np.full((30, 1), 1.5)
    layer.set_weights([np.zeros((1, 30)), vectors, vectors, np.zeros(30)])
    k = optimize.brentq(lambda k: 1.5 * np.tanh(1.5 * k) - k, 0.1, 3)
    initial = np.outer(np.linspace(-2, 2, 5), vectors)
    points = diagnostics.fixed_points(layer, initial)
    assert str(points).startswith("2 stable, 1 saddle (1 expanding direction)")
    expected = np.outer([-1.5 * k, 1.5 * k], np.ones(30))
    actual = sorted(points.states[:2].tolist())
    np.testing.assert_allclose(actual, expected, atol=1e-6)


@pytest.mark.one_backend
def test_all_fixed_points_of_units_with_relu(rng):
    """Of h they are r J + c, where r = relu(r J + c)."""
    matrix = 1.3 * np.eye(3) - 1
    rates = built(RateRNN(3, 4.0, activation="relu", dtype="float64"), 3)
    rates.set_weights([np.eye(3), matrix, np.full(3, 0.5)])
    x = np.array([0.5, 0.6, 0.7])
    points = diagnostics.fixed_points(rates, x=x, complete=True)
    simple = built(keras.layers.SimpleRNN(3, "relu", dtype="float64"), 3)
    simple.set_weights([np.eye(3), matrix, np.full(3, 0.5)])
    expected = diagnostics.fixed_points(simple, x=x, complete=True)
    active = np.maximum(points.states, 0)
    np.testing.assert_allclose(
        sorted(active.tolist()), sorted(expected.states.tolist()), atol=1e-12
    )
    np.testing.assert_allclose(
        active @ matrix + x + 0.5, points.states, atol=1e-12
    )
    searched = diagnostics.fixed_points(rates, points.states + 1e-3, x=x)
    np.testing.assert_allclose(searched.states, points.states, atol=1e-7)
    np.testing.assert_allclose(searched.jacobians, points.jacobians, atol=1e-12)
    assert searched.expanding.tolist() == points.expanding.tolist()


@pytest.mark.one_backend
@pytest.mark.parametrize("rank", [None, 2])
def test_it_streams(rng, rank, tmp_path):
    layer, weights = drawn(rng, 4, 5.0, rank=rank, return_sequences=True)
    model = keras.Sequential([keras.Input((None, 2)), layer])
    x = rng.normal(size=(1, 6, 2))
    outputs = outputs_of_steps(streaming_step(model), x.astype("float32"))
    assert_same(outputs, euler(x, weights, 0.2))
    file = tmp_path / "rates.h"
    export_streaming(model, file, format="c")
    difference, _ = check_header(model, file, x)
    assert difference < 1e-5
    noisy = RateRNN(4, 5.0, noise=0.1, inference_noise=True)
    model = keras.Sequential([keras.Input((None, 2)), noisy])
    with pytest.raises(ValueError, match="adds noise in inference"):
        streaming_step(model)


@pytest.mark.one_backend
@pytest.mark.parametrize(
    "options, message",
    [
        ({"tau": 0}, "`tau` must be a finite number"),
        ({"dt": 3.0}, "`dt` must be a finite number"),
        ({"noise": -1}, "`noise` must be a finite number"),
        ({"rank": 0}, "`rank` must be an integer"),
    ],
)
def test_other_arguments_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        RateRNN(**{"units": 3, "tau": 2.0, **options})


@pytest.mark.one_backend
def test_a_cell_is_the_layer_without_its_noise(rng):
    layer, _ = drawn(rng, 4, 3.0, noise=2.0)
    cell = RateRNNCell.from_config(layer.cell.get_config())
    again = built(keras.layers.RNN(cell))
    again.set_weights(layer.get_weights()[:3])
    x = rng.normal(size=(2, 5, 2))
    assert_same(again(x, training=True), layer(x))
