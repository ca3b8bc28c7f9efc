import math

import keras
import numpy as np
import pytest
from references import Around
from references import assert_same
from references import built
from references import to_numpy
from references import warning_of
from scipy import linalg

from keras_rin import diagnostics
from keras_rin.callbacks import RecurrentDiagnostics
from keras_rin.initializers import Chain
from keras_rin.initializers import Offset
from keras_rin.layers import RIN
from keras_rin.layers import MinGRU

pytestmark = pytest.mark.one_backend

layers = keras.layers
X = np.random.default_rng(0).normal(size=(16, 6, 2)).astype("float32")
DATA = X, X[:, 0, :1]
# Without a graph TensorFlow is sooner done with so few steps.
EAGER = keras.backend.backend() == "tensorflow"


def model_of(*above, rate=0.0, run_eagerly=EAGER):
    model = keras.Sequential([*above, layers.Dense(1)])
    optimizer = keras.optimizers.SGD(rate)
    model.compile(optimizer, "mse", run_eagerly=run_eagerly)
    return model


def fit(model, *others, data=DATA, epochs=1, **kwargs):
    """The logs of a training with the callback before the others."""
    callback = RecurrentDiagnostics(**kwargs)
    callbacks = [callback, *others]
    return model.fit(
        *data, epochs=epochs, verbose=0, callbacks=callbacks
    ).history


def begin(model, **kwargs):
    """The callback in a training loop of the user's own, which begins."""
    callback = RecurrentDiagnostics(**kwargs)
    callback.set_model(model)
    callback.on_train_begin()
    return callback


def logs_of(model, logs=None, **kwargs):
    """What the callback adds to the logs after the first epoch."""
    logs = {} if logs is None else logs
    begin(model, **kwargs).on_epoch_end(0, logs)
    return logs


def simple_rnn(gain, units=3, activation=None, **kwargs):
    """A layer with the recurrent matrix gain I, named rnn."""
    identity = keras.initializers.Identity(gain)
    kwargs = {"recurrent_initializer": identity, "name": "rnn", **kwargs}
    return layers.SimpleRNN(units, activation, **kwargs)


def test_the_last_logs_describe_the_trained_layer(rng):
    """A feature that is not read, here the last, has no memory."""
    layer = RIN(5, recurrent_initializer=Offset(Chain(0.9)), name="rin")
    built(layer, features=3).cell.kernel.assign(rng.normal(size=(3, 5)))
    layer.cell.kernel.assign(layer.cell.kernel * [[1], [1], [0]])
    x = rng.normal(size=(16, 6, 3)) * [1, 1, 0]
    logs = fit(model_of(layer, rate=0.01), data=(x, X[:, 0, :1]), epochs=2)
    w = to_numpy(layer.effective_recurrent_kernel).astype("float64")
    eigenvalues = np.linalg.eigvals(w)
    rows = to_numpy(layer.cell.kernel).astype("float64")[:2]
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    memories = [
        diagnostics.total_memory(w, input_vector=row, horizon=5) for row in rows
    ]
    expected = {
        "spectral_radius": np.abs(eigenvalues).max(),
        "henrici_departure": np.sqrt(
            (w**2).sum() - (np.abs(eigenvalues) ** 2).sum()
        ),
        "distance_from_identity": np.linalg.norm(w - np.eye(5)),
        "distance_from_orthogonal": np.linalg.norm(w - linalg.polar(w)[0]),
        "total_memory": np.mean(memories),
    }
    for quantity, value in expected.items():
        _, last = logs[f"rin_{quantity}"]
        np.testing.assert_allclose(last, value, rtol=1e-4, err_msg=quantity)


def test_gradient_and_exponent_are_followed_through_the_layers_before():
    first = layers.GRU(3, return_sequences=True, name="first")
    second = layers.SimpleRNN(4, name="second")
    model = model_of(keras.Input((6, 2)), first, second)
    logs = logs_of(model, x=X[:4], lyapunov=True)
    for layer, inputs in ((first, X[:4]), (second, to_numpy(first(X[:4])))):
        norms = diagnostics.gradient_norms(layer, inputs)
        spectrum = diagnostics.lyapunov_spectrum(layer, inputs, exponents=1)
        for quantity, value in (
            ("gradient_at_start", norms[0]),
            ("lyapunov_exponent", spectrum.exponents[0]),
        ):
            logged = logs[f"{layer.name}_{quantity}"]
            np.testing.assert_allclose(logged, value, rtol=1e-3)


def test_a_min_gru_has_gradients_and_no_matrix():
    """Its derivative in a step is 1 - z, here of a constant gate z."""
    options = {"gate_bias": -1.0, "kernel_initializer": "zeros"}
    model = model_of(keras.Input((6, 2)), MinGRU(3, name="gru", **options))
    (layer,) = diagnostics.preflight(model, *DATA).layers
    logs = logs_of(model, x=X)
    assert logs.keys() == {"gru_gradient_at_start", "gru_gradient_horizon"}
    expected = (1 - 1 / (1 + np.e)) ** 6
    measured = [layer.gradient_norms[0], logs["gru_gradient_at_start"]]
    np.testing.assert_allclose(measured, expected, rtol=1e-5)


def test_of_a_multiple_of_the_identity_each_value_is_known():
    """The gradient g^k falls below a hundredth after `horizon` of 6 steps."""
    horizons = {1.5: 6, 1.0: 6, 0.3003: 3}
    stack = [
        simple_rnn(gain, return_sequences=True, name=f"rnn{gain}")
        for gain in horizons
    ]
    logs = logs_of(model_of(keras.Input((6, 2)), *stack), x=X)
    for gain, horizon in horizons.items():
        assert logs[f"rnn{gain}_gradient_horizon"] == horizon
        assert logs[f"rnn{gain}_total_memory"] == pytest.approx(1)
        assert logs[f"rnn{gain}_spectral_radius"] == pytest.approx(gain)
    assert not any("lyapunov" in name for name in logs)


def test_amplification_beyond_double_precision_has_no_total_memory():
    huge = keras.initializers.Constant(1e30)
    rnn = simple_rnn(1, activation="tanh", recurrent_initializer=huge)
    logs = logs_of(model_of(keras.Input((6, 2)), rnn))
    assert math.isnan(logs["rnn_total_memory"])


@pytest.mark.each_backend
def test_padded_time_steps_count_neither_in_gradient_nor_in_exponent():
    tokens = np.array([[1, 2, 1, 1, 2, 1, 2, 2, 1]] * 2)
    embedding = layers.Embedding(3, 2, "random_normal", mask_zero=True)
    rnn = simple_rnn(0.5, activation="tanh", bias_initializer="ones")
    model = model_of(keras.Input((None,)), embedding, rnn)
    expected, logs = (
        logs_of(model, x=x, lyapunov=True)
        for x in (tokens, np.pad(tokens, [(0, 0), (0, 40)]))
    )
    for name in ("rnn_gradient_at_start", "rnn_lyapunov_exponent"):
        assert logs[name] == pytest.approx(expected[name], rel=1e-5)


@pytest.mark.each_backend
def test_training_goes_on_as_without_it():
    # On Torch, Keras 3.15 trains a stateful layer for one batch alone.
    stateful = {"stateful": keras.backend.backend() != "torch"}

    def train(*callbacks):
        keras.utils.set_random_seed(1)
        dropout = {"dropout": 0.3, "recurrent_dropout": 0.3, "seed": 2}
        gru = layers.GRU(3, **dropout, **stateful)
        inputs = keras.Input(batch_shape=(16, 6, 2))
        model = model_of(inputs, gru, rate=0.01)
        options = {"epochs": 2, "batch_size": 16, "verbose": 0}
        history = model.fit(*DATA, **options, callbacks=list(callbacks))
        return [*history.history["loss"], *model.get_weights()]

    assert_same(train(RecurrentDiagnostics(X)), train(), 0, 0)


def followed_model():
    return model_of(keras.Input((6, 2)), layers.SimpleRNN(2, name="rnn"))


def test_a_second_one_on_a_model_is_refused():
    model = followed_model()
    logs = logs_of(model)
    with pytest.raises(ValueError, match="already. A model may have one"):
        logs_of(model, logs)


def test_layers_of_one_name_have_logs_of_their_own():
    rnn = simple_rnn(0.5, 2, return_sequences=True)
    inner = keras.Sequential([keras.Input((6, 2)), rnn])
    logs = logs_of(model_of(inner, simple_rnn(2.0)), x=X)
    for name, gain in {"rnn": 0.5, "rnn#2": 2.0}.items():
        assert logs[f"{name}_spectral_radius"] == gain
        expected = pytest.approx(gain**6, rel=1e-5)
        assert logs[f"{name}_gradient_at_start"] == expected


def test_of_the_calls_of_a_layer_the_first_is_followed():
    inputs, rnn = keras.Input((6, 2)), simple_rnn(1.0, activation="tanh")
    inside = keras.Sequential([keras.Input((6, 2)), rnn])
    calls = inside(inputs), rnn(layers.Rescaling(3.0)(inputs))
    logs = logs_of(keras.Model(inputs, layers.Add()(calls)), x=X)
    norms = diagnostics.gradient_norms(rnn, X)
    assert logs["rnn_gradient_at_start"] == pytest.approx(norms[0])


def test_weights_and_inputs_that_are_nan_do_not_end_training():
    first = layers.SimpleRNN(3, return_sequences=True, name="first")
    second = layers.SimpleRNN(3, name="second")
    model = model_of(keras.Input((6, 2)), first, second)
    first.cell.recurrent_kernel.assign(np.full((3, 3), np.nan))
    logs = logs_of(model, x=X, lyapunov=True)
    finite = {name for name, value in logs.items() if math.isfinite(value)}
    radii = "radius", "departure", "identity", "orthogonal", "memory"
    assert all(name.startswith("second_") for name in finite)
    assert {name.split("_")[-1] for name in finite} == set(radii)


def test_every_third_epoch_is_measured():
    callback = begin(followed_model(), every=3)
    measured = []
    for epoch in range(7):
        logs = {}
        callback.on_epoch_end(epoch, logs)
        measured.append("rnn_spectral_radius" in logs)
    assert measured == [True, False, False] * 2 + [True]


class Subclassed(keras.Model):
    def __init__(self):
        super().__init__()
        self.rnn = layers.SimpleRNN(1)
        self.build((None, 6, 2))

    def build(self, shape):
        self.rnn.build(shape)


# name: (model, arguments, words of the error)
REFUSED = {
    "lists": (followed_model, {"x": X.tolist()}, "`x` must be an array, or a"),
    "NaN": (followed_model, {"x": np.nan * X}, "`x` must contain finite"),
    "exponent": (followed_model, {"lyapunov": True}, "needs inputs `x`"),
    "no layer": (lambda: model_of(keras.Input((2,))), {}, "needs a layer with"),
    "unknown inputs": (Subclassed, {"x": X}, "needs a Sequential or funct"),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_what_it_cannot_follow_is_refused(kind):
    make, kwargs, words = REFUSED[kind]
    with pytest.raises(ValueError, match=words):
        begin(make(), **kwargs)


def test_every_gate_and_every_layer_is_followed():
    lstm = layers.LSTM(2, name="lstm", return_sequences=True)
    cells = [layers.GRUCell(3), layers.SimpleRNNCell(3)]
    stack = keras.Sequential([layers.RNN(cells)])
    both_ways = layers.Bidirectional(lstm)
    logs = logs_of(model_of(keras.Input((6, 2)), both_ways, stack))
    radii = [name for name in logs if name.endswith("spectral_radius")]
    assert len(radii) == 2 * 4 + 3 + 1
    assert "forward_lstm_cell_spectral_radius" in radii
    assert "backward_lstm_forget_spectral_radius" in radii
    assert sum("total_memory" in name for name in logs) == 1


class Block(layers.Layer):
    """A layer of a user's own, which holds others, and itself."""

    def __init__(self):
        super().__init__()
        self.first = layers.GRU(2, return_sequences=True, name="first")
        self.held = {"b": [Around(layers.SimpleRNN(2, name="inside"))]}
        vars(self)["own"] = [self]

    def build(self, shape):
        self.call(keras.Input(batch_shape=shape))

    def call(self, x):
        return self.held["b"][0](self.first(x))


def test_layers_whose_inputs_are_unknown_are_followed_and_named():
    block, rin = Block(), RIN(3, name="rin", return_sequences=True)
    model = model_of(keras.Input((6, 2)), rin, block)
    with pytest.warns(UserWarning) as caught:
        logs = logs_of(model, x=X)
    message = warning_of(caught)
    assert __file__ in [warning.filename for warning in caught]
    assert "gradients of first, inside are not" in message
    assert "gradient_norms(layer, its_inputs)" in message
    assert {name[:3] for name in logs if "gradient" in name} == {"rin"}
    radii = [name for name in logs if name.endswith("spectral_radius")]
    assert [name.split("_")[0] for name in radii] == (
        ["rin", "first", "first", "first", "inside"]
    )
