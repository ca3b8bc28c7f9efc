"""A C header in integers: against Keras, and against integers in NumPy.

The simulation reads the constants of a header and computes in 64 bits, so that
it sees where 32 bits would not do.
"""

import re

import keras
import numpy as np
import pytest
from headers import COMPILERS
from headers import MODELS
from headers import SANITIZED
from headers import SHRINKING
from headers import compile_object
from headers import constants
from headers import counts
from headers import extremes
from headers import integer_header
from headers import model_of
from headers import product
from headers import rin
from headers import scale_of
from headers import within
from keras import layers
from step_files import run_c

from keras_rin.layers import RIN
from keras_rin.layers import MinGRU
from keras_rin.tasks import adding

pytestmark = pytest.mark.one_backend


@pytest.mark.parametrize("name", MODELS)
def test_a_header_in_integers_answers_as_keras(name, rng, tmp_path):
    x, path = counts(rng), tmp_path / "rin.h"
    model = model_of(MODELS[name](), x)
    integer_header(model, path, x[:2])
    y, again = run_c(path, x[2:], SANITIZED)
    np.testing.assert_array_equal(y, again)
    y, expected = y * scale_of(path), model.predict(x[2:], verbose=0)
    y = y if y.ndim == expected.ndim else y[:, -1]
    if name == "IRNN":
        y = keras.ops.convert_to_numpy(keras.ops.softmax(y))
    range_ = expected.max() - expected.min()
    assert np.abs(y - expected).max() < 0.04 * range_
    assert np.mean(y.argmax(-1) == expected.argmax(-1)) > 0.97
    run_c(path, extremes(100), SANITIZED)  # without an overflow


def simulated(path, x):
    """The outputs of a RIN and a dense layer, in integers without a limit."""
    weights = constants(path)
    bits = int(re.search(r">> (\d+),", path.read_text())[1])
    h = np.zeros((len(x), len(weights["rin_bias"])), "int64")
    outputs = []
    for t in range(x.shape[1]):
        z = weights["rin_bias"] + product(
            weights, "rin_kernel", x[:, t].astype("int64")
        )
        z += product(weights, "rin_recurrent_kernel", h)
        z = within(32, z + h * 2 ** (8 - bits))
        phase = (t + 1) * 157 % 256 >> bits
        h = np.clip(np.maximum(z, 0) + phase >> 8 - bits, 0, 32767)
        y = weights["dense_bias"] + product(weights, "dense_kernel", h)
        outputs.append(within(32, y))
    return np.stack(outputs, axis=1)


def spread(units):
    """Weights of rows far apart in size, of which one is 0."""
    sizes = np.float32(10.0) ** np.linspace(-6, 0, units)
    sizes[1] = 0
    return lambda shape, dtype=None: sizes * keras.random.normal(shape)


def two_layers(initializer=SHRINKING):
    dense = layers.Dense(7, kernel_initializer=spread(7), name="dense")
    return [rin(recurrent_initializer=initializer, name="rin"), dense]


@pytest.mark.parametrize(
    ("initializer", "unit"),
    [(SHRINKING, 1), (spread(12), 1), (SHRINKING, 100)],
    ids=["equal rows", "unequal rows", "few counts"],
)
def test_the_integers_are_those_of_numpy(initializer, unit, rng, tmp_path):
    """Along the calibration, and along inputs that no sensor has."""
    x, path = counts(rng) // unit, tmp_path / "rin.h"
    integer_header(model_of(two_layers(initializer), x), path, x)
    assert unit == 1 or constants(path)["rin_kernel_shifts"].min() < 0
    for streams in (x, extremes(300), rng.integers(-32768, 32768, (2, 300, 6))):
        y = run_c(path, streams, SANITIZED)[0]
        np.testing.assert_array_equal(y, simulated(path, streams))


@pytest.mark.exhaustive
def test_a_million_steps_end_as_they_began(rng, tmp_path):
    """Along a stream that repeats, which a RIN forgets, and so its phase."""
    x, path = counts(rng, 1, 1_024), tmp_path / "rin.h"
    integer_header(model_of(two_layers(), x), path, x)
    y, again = run_c(path, np.tile(x, (1, 488, 1)), SANITIZED)
    np.testing.assert_array_equal(y, again)
    expected = simulated(path, np.tile(x, (1, 3, 1)))[:, -1_024:]
    np.testing.assert_array_equal(y[:, -1_024:], expected)


def test_increments_below_a_unit_of_the_state_add_up(tmp_path):
    """A RIN whose states are t b, with b from 1/60 of their unit."""
    bias, steps, unit = 1.7e-5, 10_000, 2.0**-10
    cell = RIN(2, "relu", kernel_initializer="ones", return_sequences=True)
    scale = layers.Rescaling(1 / 1_024)
    model = keras.Sequential([keras.Input((None, 1)), scale, cell])
    cell.set_weights(
        [np.ones((1, 2)), np.zeros((2, 2)), np.array([bias, 2 * bias])]
    )
    path = tmp_path / "rin.h"
    integer_header(model, path, np.array([[[10_240], [0]]]))
    assert scale_of(path) == unit
    h = run_c(path, np.zeros((1, steps, 1)))[0] * unit
    expected = np.arange(1, steps + 1)[:, None] * [bias, 2 * bias]
    assert np.abs(h - expected).max() < unit + steps * unit / 512


def test_two_rare_increments_among_10_000_steps_add_up(rng, tmp_path):
    """The adding problem; the first unit is relu(value + mark - 1)."""
    layer = RIN(2, return_sequences=True)
    scale = layers.Rescaling(1e-4)
    model = keras.Sequential([keras.Input((None, 2)), scale, layer])
    recurrent = np.array([[-1, 1], [0, 0]])
    layer.set_weights([np.eye(2)[[0, 0]], recurrent, np.array([-1, 0])])
    x, sums = adding.generate(rng, 8, 10_000)
    path, counts = tmp_path / "rin.h", np.round(x * 1e4)
    integer_header(model, path, counts[:4])
    y = run_c(path, counts[4:])[0][:, -1, 1] * scale_of(path)
    np.testing.assert_allclose(y, np.ravel(sums[4:]), atol=0.01)


@pytest.mark.parametrize(
    "features", [300, pytest.param(40_000, marks=pytest.mark.exhaustive)]
)
def test_codes_have_8_bits_however_many_inputs_there_are(
    features, rng, tmp_path
):
    """A product of more than 258 columns is a sum of several."""
    x, path = counts(rng, 2, 30, features), tmp_path / "rin.h"
    model = model_of([rin(4, "tanh", use_bias=False), layers.Dense(7)], x)
    kernel = model.layers[1].cell.kernel
    kernel.assign(kernel / np.sqrt(features))
    integer_header(model, path, x)
    codes = [v for n, v in constants(path).items() if "_kernel" in n]
    codes = [values for values in codes if len(values) > 28]
    assert len(codes) == -(-features // 258)
    assert all(abs(values).max() > 63 for values in codes)
    y = run_c(path, x, SANITIZED)[0] * scale_of(path)
    expected = model.predict(x, verbose=0)
    assert np.abs(y - expected).max() < 0.04 * np.ptp(expected)
    run_c(path, extremes(9, features), SANITIZED)


def test_tanh_and_sigmoid_are_off_by_two_in_32768(tmp_path):
    """In the first step of a sequence, whose input each value is."""
    x = np.arange(-32768, 32768, 3, "int32")[:, None, None]
    z = x[:, :, 0] / 4096
    for name, y in {
        "tanh": np.tanh(z),
        "sigmoid": 1 / (1 + np.exp(-z)),
    }.items():
        cell = layers.SimpleRNN(1, name, kernel_initializer="ones")
        scale = layers.Rescaling(1 / 4096)
        model = keras.Sequential([keras.Input((None, 1)), scale, cell])
        path = tmp_path / "rin.h"
        integer_header(model, path, x)
        actual = run_c(path, x)[0][:, 0] / 32768
        assert np.abs(actual - y).max() < 2.5 / 32768
        assert scale_of(path) == 1 / 32768


TARGETS = ["gcc", "g++", "clang", "clang++", "m0plus", "avr", "avr, C++"]


@pytest.mark.runtime
@pytest.mark.parametrize("target", TARGETS)
def test_headers_in_integers_compile_without_a_warning(target, rng, tmp_path):
    """And without a floating-point number, but for the scale of the outputs."""
    x, names = counts(rng, 1, 50), ["one", "two", "three", "four", "five"]
    keys = "in a row", "GRU", "LSTM", "MinGRU in a row", "RateRNN"
    for name, key in zip(names, keys, strict=True):
        integer_header(model_of(MODELS[key](), x), tmp_path / f"{name}.h", x)
        text = (tmp_path / f"{name}.h").read_text()
        code = re.sub(r"/\*.*?\*/|#define \w+_scale.*", "", text, flags=re.S)
        assert not re.search(r"float|double|\d\.|\.\d", code)
    compile_object(tmp_path, COMPILERS[target], *names)


REFUSED = {
    "Embedding is not supported": lambda: [layers.Embedding(5, 2), RIN(2)],
    "'norm.*is not supported": lambda: [
        layers.LayerNormalization(name="norm"),
        RIN(2),
    ],
    "'elu'.*activation 'elu' is not supported": lambda: [
        layers.Dense(2, "elu", name="elu"),
        RIN(2),
    ],
    "'six'.*activation 'relu6' is not": lambda: [
        layers.Dense(2),
        layers.Activation("relu6", name="six"),
        RIN(2),
    ],
    "'limit'.*activation has a limit": lambda: [
        layers.Dense(2),
        layers.ReLU(6.0, name="limit"),
        RIN(2),
    ],
    "'slope'.*activation has a limit, a slope": lambda: [
        RIN(2, layers.LeakyReLU(), name="slope")
    ],
    "'cell'.*activation 'softmax' is not": lambda: [
        layers.SimpleRNN(2, "softmax", name="cell")
    ],
    "other gates than sigmoid and tanh": lambda: [layers.GRU(2, "relu")],
    "no layer with weights follows": lambda: [RIN(2), layers.Rescaling(2)],
    "its values are always 0": lambda: [RIN(2, kernel_initializer="zeros")],
    "a sum may reach.*column [0-5], counted from 0": lambda: [
        layers.Rescaling(1e5),
        layers.GRU(2),
    ],
    r"'scale'.*variance of the channels \(2, 5\)": lambda: [
        layers.Normalization(
            mean=[0.0] * 6, variance=[1, 1, 0] * 2, name="scale"
        ),
        RIN(2),
    ],
    "'bn.*a weight is not finite": lambda: [
        layers.BatchNormalization(
            beta_initializer=keras.initializers.Constant(np.nan), name="bn"
        ),
        RIN(2),
    ],
}


@pytest.mark.parametrize("message", REFUSED)
def test_a_model_without_a_form_in_integers_is_refused(message, rng, tmp_path):
    above = REFUSED[message]()
    shape = (None,) if isinstance(above[0], layers.Embedding) else (None, 6)
    model = keras.Sequential([keras.Input(shape), *above])
    with pytest.raises(ValueError, match=message):
        integer_header(model, tmp_path / "rin.h", counts(rng, 1, 20))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("weight", [0, 1, 2, -2, -1])
def test_a_weight_that_is_not_finite_is_refused(weight, value, rng, tmp_path):
    layer = layers.GRU(2, return_sequences=True, reset_after=False)
    model = keras.Sequential([keras.Input((None, 6)), layer, layers.Dense(2)])
    weights = model.get_weights()
    weights[weight].flat[-1] = value
    model.set_weights(weights)
    with pytest.raises(ValueError, match="(gru|dense).* is not finite"):
        integer_header(model, tmp_path / "rin.h", counts(rng, 1, 20))
    assert not list(tmp_path.iterdir())


NO_CALIBRATION = {
    "calibration=None": None,
    r"object of shape \(2,\)": np.array([[[1]], [[2], [3]]], dtype=object),
    r"int64 of shape \(2, 6\)": np.zeros((2, 6), "int64"),
    r"float64 of shape \(2, 3, 5\)": np.zeros((2, 3, 5)),
    "values that are not finite": np.full((1, 9, 6), np.nan),
    "values from -1.5 to 1.5, not all whole": np.tile([-1.5, 1.5], (1, 9, 3)),
    "values from 0 to 32768": np.tile([0, 32768], (1, 9, 3)),
    "7 alone": np.full((1, 9, 6), 7),
}


@pytest.mark.parametrize("message", NO_CALIBRATION)
def test_a_calibration_that_gives_no_ranges_is_refused(message, tmp_path):
    model = keras.Sequential([keras.Input((None, 6)), RIN(2)])
    with pytest.raises(
        ValueError, match=rf"\(sequences, steps, 6\).*{message}"
    ):
        integer_header(model, tmp_path / "rin.h", NO_CALIBRATION[message])


# Gates near 0 and 1, against closed forms.
GATED = {"MinGRU": MinGRU, "GRU": layers.GRU, "LSTM": layers.LSTM}


def logit(p):
    return np.log(p / (1 - p))


def one_unit(name, kernel, bias):
    """A layer of one unit that reads one feature and not its state."""
    layer = GATED[name](1, return_sequences=True)
    model = keras.Sequential([keras.Input((None, 1)), layer])
    biases = [bias, np.zeros_like(bias)] if name == "GRU" else bias
    weights = [np.array([kernel]), np.array(biases)]
    if name != "MinGRU":
        weights.insert(1, np.zeros((1, len(kernel))))
    layer.set_weights(weights)
    return model


@pytest.mark.parametrize("bias", [-6.8, -8.5, -10, -12.5])
@pytest.mark.parametrize("name", GATED)
def test_a_gate_almost_closed_arrives_at_its_candidate(name, bias, tmp_path):
    """h_t = (1 - (1 - z)^t) / 2 of 2 / z steps, where z is from 1e-3 to 4e-6.

    A gate has 15 bits in a product; 8 more, where it is below 2^-10.
    """
    z, tanh = 1 / (1 + np.exp(-bias)), np.arctanh(0.5)
    biases = {
        "MinGRU": [bias, 0.5],
        "GRU": [-bias, 0.0, tanh],
        "LSTM": [logit(z / 2 / 0.99), -bias, np.arctanh(0.99), 20.0],
    }[name]
    model = one_unit(name, np.zeros(len(biases)), biases)
    path = tmp_path / "rin.h"
    integer_header(model, path, np.array([[[-1], [1]]]))
    steps = int(2 / z)
    y = run_c(path, np.zeros((1, steps, 1)))[0][0, :, 0] * scale_of(path)
    expected = (1 - (1 - z) ** np.arange(1, steps + 1)) / 2
    expected = np.tanh(expected) if name == "LSTM" else expected
    assert np.abs(y - expected).max() < 0.01


# Gates that are closed but for x of 1,000, and a candidate of 0.9 x.
OPEN, ATANH = 0.04, np.arctanh(0.9) / 1_000
CLOSED = {
    "MinGRU": ([OPEN, 0.9 / 1_000], [-20.0, 0.0]),
    "GRU": ([-OPEN, 0.0, ATANH], [20.0, 0.0, 0.0]),
    "LSTM": ([OPEN, 0.0, ATANH, 0.0], [-20.0, 20.0, 0.0, 20.0]),
}


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("name", CLOSED)
def test_a_closed_gate_keeps_its_state_for_ever(name, sign, tmp_path):
    """At the end of its range as well, without an overflow."""
    kernel, bias = CLOSED[name]
    candidate = {"MinGRU": 1, "GRU": 2, "LSTM": 2}[name]
    kernel = np.where(np.arange(len(kernel)) == candidate, sign, 1) * kernel
    model = one_unit(name, kernel, bias)
    path, x = tmp_path / "rin.h", np.zeros((2, 100_000, 1))
    x[0, 0], x[1, :1_000] = 1_000, 32_767
    integer_header(model, path, x[:1, :10])
    y = sign * run_c(path, x, SANITIZED)[0][..., 0] * scale_of(path)
    assert not np.ptp(y[:, 1_000:], axis=1).any()
    value = np.tanh(0.9) if name == "LSTM" else 0.9
    np.testing.assert_allclose(y[0, -1], value, atol=2e-3)
    assert y[1, -1] > value


@pytest.mark.parametrize("forget", [0.99, 0.999, 0.9999])
def test_the_cell_of_an_lstm_returns_to_0(forget, tmp_path):
    """After 20 inputs, along 12 time constants of zeros."""
    kernel, bias = [0.4, 0, 0.04, 0], [-20.0, logit(forget), 0, 20]
    model, path = one_unit("LSTM", kernel, bias), tmp_path / "rin.h"
    steps = np.arange(int(12 / (1 - forget)))
    x = np.where(steps < 20, 100, 0)[None, :, None]
    integer_header(model, path, x)
    y = run_c(path, x)[0][0, :, 0] * scale_of(path)
    c = np.minimum(steps + 1, 20)
    c = (1 - forget**c) / (1 - forget) * forget ** np.maximum(steps - 19, 0)
    assert np.abs(y - np.tanh(np.tanh(4) * c)).max() < 0.02
    assert abs(y[-1]) < 0.001
