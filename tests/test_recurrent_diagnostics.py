import math
import types

import keras
import numpy as np
import pytest
from references import to_numpy
from scipy import linalg

import keras_rin
from keras_rin import diagnostics
from keras_rin.callbacks import KeepBest
from keras_rin.callbacks import RecurrentDiagnostics
from keras_rin.callbacks import RestoreOnNaN
from keras_rin.callbacks import ResumableTraining
from keras_rin.callbacks import _recurrent_diagnostics
from keras_rin.initializers import Chain
from keras_rin.initializers import Offset
from keras_rin.layers import RIN

pytestmark = pytest.mark.one_backend


def data(features=2):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(16, 6, features)).astype("float32")
    return x, x[:, 0, :1]


# Without a graph TensorFlow is sooner done with so few steps.
EAGER = keras.backend.backend() == "tensorflow"


def model_of(*layers, run_eagerly=EAGER):
    model = keras.Sequential([*layers, keras.layers.Dense(1)])
    optimizer = keras.optimizers.SGD(0.01)
    model.compile(optimizer, "mse", run_eagerly=run_eagerly)
    return model


def fit(model, *others, epochs=2, **kwargs):
    callback = RecurrentDiagnostics(**{"budget": None, **kwargs})
    history = model.fit(
        *data(), epochs=epochs, verbose=0, callbacks=[callback, *others]
    )
    return history.history, callback


def test_the_last_logs_describe_the_trained_layer():
    start = Offset(Chain(0.9))
    layer = RIN(5, recurrent_initializer=start, name="rin")
    logs, _ = fit(model_of(layer))
    w = to_numpy(layer.effective_recurrent_kernel).astype("float64")
    eigenvalues = np.linalg.eigvals(w)
    nearest, _ = linalg.polar(w)
    rows = to_numpy(layer.cell.kernel).astype("float64")
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    expected = {
        "spectral_radius": np.abs(eigenvalues).max(),
        "henrici_departure": np.sqrt(
            (w**2).sum() - (np.abs(eigenvalues) ** 2).sum()
        ),
        "distance_from_identity": np.linalg.norm(w - np.eye(5)),
        "distance_from_orthogonal": np.linalg.norm(w - nearest),
        "total_memory": np.mean(
            [
                diagnostics.total_memory(w, input_vector=row, horizon=5)
                for row in rows
            ]
        ),
    }
    for quantity, value in expected.items():
        found = logs[f"rin_{quantity}"]
        assert len(found) == 2
        np.testing.assert_allclose(
            found[-1], value, rtol=1e-4, err_msg=quantity
        )


@pytest.mark.each_backend
def test_the_gradient_is_followed_through_the_layers_before():
    first = keras.layers.GRU(3, return_sequences=True, name="first")
    second = keras.layers.SimpleRNN(4, name="second")
    model = model_of(first, second)
    x, _ = data()
    logs, _ = fit(model, x=x[:4])
    for layer, inputs in ((first, x[:4]), (second, to_numpy(first(x[:4])))):
        sizes = diagnostics.gradient_norms(layer, inputs)
        found = logs[f"{layer.name}_gradient_at_start"][-1]
        np.testing.assert_allclose(found, sizes[0], rtol=1e-3)


@pytest.mark.each_backend
def test_the_largest_lyapunov_exponent_is_followed_if_asked_for():
    gru = keras.layers.GRU(3, return_sequences=True, name="gru")
    model = model_of(gru, keras.layers.SimpleRNN(2, name="rnn"))
    x, _ = data()
    logs, _ = fit(model, x=x[:4], lyapunov=True)
    found = diagnostics.lyapunov_spectrum(gru, x[:4]).exponents[0]
    np.testing.assert_allclose(logs["gru_lyapunov_exponent"][-1], found)
    assert len(logs["rnn_lyapunov_exponent"]) == 2
    logs, _ = fit(model, x=x[:4])
    assert not any("lyapunov" in name for name in logs)
    gru.cell.bias.assign(np.full((2, 9), np.nan))
    logs, _ = fit(model, x=x[:4], lyapunov=True)
    assert np.isnan(logs["gru_lyapunov_exponent"]).all()
    with pytest.raises(ValueError, match="needs inputs `x`"):
        RecurrentDiagnostics(lyapunov=True)


@pytest.mark.parametrize(
    "gain, horizon", [(1.0, 6), (0.1, 2), (0.3, 3), (0.001, 0)]
)
def test_the_horizon_is_where_the_gradient_falls_below_a_hundredth(
    gain, horizon
):
    layer = keras.layers.SimpleRNN(
        3,
        None,
        recurrent_initializer=keras.initializers.Identity(gain * 1.001),
        trainable=False,
        name="rnn",
    )
    logs, _ = fit(model_of(layer), x=data()[0])
    assert logs["rnn_gradient_horizon"] == [horizon, horizon]


def far_from_zero():
    x = np.random.default_rng(0).uniform(40, 60, size=(8, 6, 2))
    return x.astype("float32"), np.zeros((8, 1))


def test_a_drift_is_logged_and_warned_of_once():
    x, y = far_from_zero()
    rin = RIN(8, name="rin")
    model = model_of(keras.Input((None, 2)), rin)
    drift, spread = diagnostics.input_drift(rin, x)
    most = np.argmax(abs(drift))
    assert abs(drift[most]) > _recurrent_diagnostics.DRIFT_LIMIT
    model.optimizer.learning_rate = 0.0
    with pytest.warns(UserWarning) as caught:
        logs = model.fit(
            *(x, y),
            epochs=2,
            verbose=0,
            callbacks=[RecurrentDiagnostics(x, budget=None)],
        ).history
    (warning,) = (
        warning
        for warning in caught
        if "keras_rin.adapt(model, x)" in str(warning.message)
    )
    assert warning.filename == __file__
    for quantity, value in (("drift", drift), ("spread", spread)):
        expected = [abs(value[most])] * 2
        np.testing.assert_allclose(logs[f"rin_input_{quantity}"], expected)


def test_an_adapted_layer_and_gates_are_not_warned_of():  # warnings are errors
    x, y = far_from_zero()
    rin = RIN(8, return_sequences=True, name="rin")
    lstm = keras.layers.LSTM(2, name="lstm")
    model = model_of(keras.Input((None, 2)), rin, lstm)
    rin.adapt(x)
    model.optimizer.learning_rate = 0.0
    callback = RecurrentDiagnostics(x, budget=None)
    logs = model.fit(x, y, verbose=0, callbacks=[callback]).history
    assert logs["rin_input_drift"][0] < logs["rin_input_spread"][0]
    assert "lstm_input_drift" not in logs


def test_padded_time_steps_are_no_drift():  # warnings are errors
    x, y = far_from_zero()
    padded = np.concatenate([x, np.zeros((8, 60, 2), "float32")], axis=1)
    rin = RIN(8, name="rin")
    model = model_of(keras.Input((None, 2)), keras.layers.Masking(), rin)
    keras_rin.adapt(model, padded)
    model.optimizer.learning_rate = 0.0
    callback = RecurrentDiagnostics(padded, budget=None)
    logs = model.fit(padded, y, verbose=0, callbacks=[callback]).history
    drift, spread = diagnostics.input_drift(rin, x)
    found = logs["rin_input_drift"][0], logs["rin_input_spread"][0]
    np.testing.assert_allclose(
        found, (0, spread[np.argmax(abs(drift))]), atol=1e-3, rtol=1e-5
    )
    unmasked, _ = diagnostics.input_drift(rin, padded)
    assert abs(unmasked).max() > _recurrent_diagnostics.DRIFT_LIMIT


@pytest.mark.each_backend
def test_padded_time_steps_keep_no_gradient():
    tokens = np.repeat([[1, 0]], [5, 40], axis=1).repeat(4, axis=0)
    half = keras.initializers.Identity(0.5)
    rnn = keras.layers.SimpleRNN(
        3, None, recurrent_initializer=half, name="rnn"
    )
    embedding = keras.layers.Embedding(2, 2, mask_zero=True)
    model = model_of(keras.Input((None,)), embedding, rnn)
    model.optimizer.learning_rate = 0.0
    callback = RecurrentDiagnostics(tokens, budget=None)
    y = np.ones((4, 1), "float32")
    logs = model.fit(tokens, y, verbose=0, callbacks=[callback]).history
    assert logs["rnn_gradient_at_start"] == pytest.approx([0.5**5])


def test_padded_time_steps_do_not_count_in_the_lyapunov_exponent():
    tokens = np.repeat([[1, 2, 0]], [5, 4, 40], axis=1).repeat(2, axis=0)
    rnn = keras.layers.SimpleRNN(3, name="rnn")
    embedding = keras.layers.Embedding(3, 2, "ones", mask_zero=True)
    model = model_of(keras.Input((None,)), embedding, rnn)
    model.optimizer.learning_rate = 0.0
    callback = RecurrentDiagnostics(tokens, budget=None, lyapunov=True)
    y = np.ones((2, 1), "float32")
    logs = model.fit(tokens, y, verbose=0, callbacks=[callback]).history
    alone = diagnostics.lyapunov_spectrum(rnn, np.ones((1, 9, 2)))
    found = logs["rnn_lyapunov_exponent"]
    np.testing.assert_allclose(found, alone.exponents[0], rtol=1e-5)


def test_every_gate_and_every_layer_is_followed():
    two = [keras.layers.GRUCell(3), keras.layers.SimpleRNNCell(3)]
    both_ways = keras.layers.Bidirectional(
        keras.layers.LSTM(2, name="lstm", return_sequences=True)
    )
    inner = keras.Sequential([keras.layers.RNN(two)])
    logs, _ = fit(model_of(both_ways, inner), epochs=1)
    radii = [name for name in logs if name.endswith("spectral_radius")]
    assert len(radii) == 2 * 4 + 3 + 1
    assert "forward_lstm_cell_spectral_radius" in radii
    assert "backward_lstm_forget_spectral_radius" in radii
    assert sum("total_memory" in name for name in logs) == 1


@pytest.mark.each_backend
def test_training_goes_on_as_without_it():
    # On Torch, Keras 3.15 trains a stateful layer for one batch alone.
    stateful = keras.backend.backend() != "torch"

    def train(*callbacks):
        keras.utils.set_random_seed(1)
        first = keras.layers.LSTM(
            3, return_sequences=True, dropout=0.3, stateful=stateful
        )
        second = keras.layers.GRU(
            3, recurrent_dropout=0.3, stateful=stateful, seed=2
        )
        inputs = keras.Input(batch_shape=(4, 6, 2))
        model = model_of(inputs, first, second, run_eagerly=False)
        history = model.fit(
            *data(),
            epochs=3,
            batch_size=4,
            verbose=0,
            callbacks=list(callbacks),
        )
        return history.history["loss"], model.get_weights()

    x, _ = data()
    loss, weights = train()
    followed = RecurrentDiagnostics(x[:4], budget=None)
    same_loss, same_weights = train(followed)
    assert loss == same_loss
    for one, other in zip(weights, same_weights, strict=True):
        np.testing.assert_array_equal(one, other)


# As Keras 3.6 does for several inputs, in whatever structure.
@pytest.mark.filterwarnings("ignore:The structure of `inputs` doesn")
def test_a_dict_of_inputs_is_read_by_their_names():
    x = {"z": np.full((2, 5, 1), 2.0), "a": np.full((2, 5, 1), 1.0)}
    inputs = {name: keras.Input((5, 1), name=name) for name in x}
    layers = [
        RIN(
            1,
            kernel_initializer="ones",
            recurrent_initializer="zeros",
            name=f"r{name}",
        )
        for name in x
    ]
    outputs = [
        layer(one) for layer, one in zip(layers, inputs.values(), strict=True)
    ]
    outputs = keras.layers.Dense(1)(keras.layers.concatenate(outputs))
    model = keras.Model([*inputs.values()], outputs)
    model.compile(keras.optimizers.SGD(0.0), "mse", run_eagerly=EAGER)
    reversed_x = dict(reversed(x.items()))
    callback = RecurrentDiagnostics(reversed_x, budget=None)
    model.fit(x, np.ones((2, 1)), verbose=0, callbacks=[callback])
    logs = model.history.history
    assert logs["rz_input_drift"] == [10.0]
    assert logs["ra_input_drift"] == [5.0]


@pytest.mark.parametrize("x", [[[[1.0], [2.0]]], range(3)])
def test_x_is_made_of_arrays(x):
    with pytest.raises(ValueError, match="`x` must be an array, or a list"):
        fit(model_of(RIN(3)), x=x)


def followed_model():
    return model_of(keras.Input((6, 2)), keras.layers.SimpleRNN(2, name="rnn"))


RADIUS = "rnn_spectral_radius"
READERS = {
    "CSVLogger": lambda folder: keras.callbacks.CSVLogger(folder / "log.csv"),
    "History": lambda folder: keras.callbacks.History(),
    "ResumableTraining": lambda folder: ResumableTraining(folder / "a.npz"),
    "Reads": lambda folder: Reads(),
    "LambdaCallback": lambda folder: keras.callbacks.LambdaCallback(
        on_epoch_end=lambda epoch, logs: None
    ),
}
MONITORS = {
    "EarlyStopping": lambda folder: keras.callbacks.EarlyStopping(
        RADIUS, mode="max"
    ),
    "KeepBest": lambda folder: KeepBest(folder / "a.keras", RADIUS, "max"),
    "ModelCheckpoint": lambda folder: keras.callbacks.ModelCheckpoint(
        folder / "best.keras", RADIUS, mode="max", save_best_only=True
    ),
}
WITHOUT_LOGS = {
    "RestoreOnNaN": lambda folder: RestoreOnNaN(),
    "LearningRateScheduler": lambda folder: (
        keras.callbacks.LearningRateScheduler(lambda epoch: 0.1)
    ),
    "EarlyStopping": lambda folder: keras.callbacks.EarlyStopping("loss"),
    "Callback": lambda folder: keras.callbacks.Callback(),
}
HAS_READ = {
    "CSVLogger": lambda reader, folder: (
        RADIUS in (folder / "log.csv").read_text()
    ),
    "History": lambda reader, folder: len(reader.history[RADIUS]) == 1,
    "ResumableTraining": lambda reader, folder: RADIUS in reader.history,
    "Reads": lambda reader, folder: RADIUS in reader.read,
    "LambdaCallback": lambda reader, folder: True,
    "EarlyStopping": lambda reader, folder: reader.best > 0,
    "KeepBest": lambda reader, folder: reader.best > 0,
    "ModelCheckpoint": lambda reader, folder: (folder / "best.keras").exists(),
}


class Reads(keras.callbacks.Callback):
    def on_epoch_end(self, epoch, logs=None):
        self.read = set(logs)


@pytest.mark.parametrize("kind", READERS | MONITORS)
def test_callbacks_after_it_read_its_logs(tmp_path, kind):
    reader = (READERS | MONITORS)[kind](tmp_path)
    fit(followed_model(), reader, epochs=1)
    assert HAS_READ[kind](reader, tmp_path)


@pytest.mark.parametrize("kind", READERS)
def test_a_reader_before_it_is_named(tmp_path, kind):
    callbacks = [READERS[kind](tmp_path), RecurrentDiagnostics(), Reads()]
    with pytest.warns(UserWarning) as caught:
        followed_model().fit(*data(), verbose=0, callbacks=callbacks)
    ours = [one for one in caught if one.category is UserWarning]
    (message,) = [str(one.message) for one in ours]
    assert f"callbacks=[RecurrentDiagnostics(...), {kind}(...)]" in message


@pytest.mark.parametrize("kind", WITHOUT_LOGS)
def test_what_loses_nothing_before_it_is_not_named(tmp_path, kind):
    callbacks = [WITHOUT_LOGS[kind](tmp_path), RecurrentDiagnostics()]
    followed_model().fit(*data(), verbose=0, callbacks=callbacks)


@pytest.mark.parametrize("kind", ["EarlyStopping", "ModelCheckpoint"])
def test_of_what_monitors_its_logs_before_it_keras_warns(tmp_path, kind):
    callbacks = [MONITORS[kind](tmp_path), RecurrentDiagnostics()]
    with pytest.warns(UserWarning, match=f"{RADIUS}.* available"):
        followed_model().fit(*data(), verbose=0, callbacks=callbacks)


def test_keep_best_of_its_logs_before_it_is_refused(tmp_path):
    callbacks = [MONITORS["KeepBest"](tmp_path), RecurrentDiagnostics()]
    with pytest.raises(ValueError, match=r"must be one of \['loss'\]"):
        followed_model().fit(*data(), verbose=0, callbacks=callbacks)


def test_in_a_loop_of_ones_own_it_writes_its_logs():
    model, callback, logs = followed_model(), RecurrentDiagnostics(), {}
    held = [Reads(), callback, model.fit(*data(), verbose=0)]  # no list of fit
    callback.set_model(model)
    callback.on_train_begin()
    callback.on_epoch_end(0, logs)
    assert logs[RADIUS] > 0
    assert held[1] is callback


def test_the_order_of_the_callbacks_is_that_of_the_list():
    told = []

    class Tells(keras.callbacks.Callback):
        def on_train_begin(self, logs=None):
            told.append(self)

        def on_epoch_end(self, epoch, logs=None):
            told.append(RADIUS in logs)

    first, second = Tells(), Tells()
    callbacks = [first, RecurrentDiagnostics(), second]
    with pytest.warns(UserWarning, match="Tells"):
        followed_model().fit(*data(), verbose=0, callbacks=callbacks)
    assert told == [first, second, False, True]


def test_several_on_one_model_need_a_prefix_each():
    model = followed_model()
    x, _ = data()

    def fit_with(*prefixes):
        pairs = zip((x, 2 * x), prefixes, strict=True)
        both = [RecurrentDiagnostics(x, prefix=p) for x, p in pairs]
        return model.fit(*data(), verbose=0, callbacks=both).history

    with pytest.raises(ValueError, match="a `prefix` each.* prefix='a'"):
        fit_with("a", "a")
    logs = fit_with("", "twice_")
    once, twice = logs["rnn_input_drift"], logs["twice_rnn_input_drift"]
    assert once != twice
    assert logs[RADIUS] == logs["twice_rnn_spectral_radius"]
    with pytest.raises(ValueError, match="`prefix` must be a string"):
        RecurrentDiagnostics(prefix=3)


def test_layers_of_one_name_have_logs_of_their_own():
    def inner(gain):
        start = keras.initializers.Identity(gain)
        rnn = keras.layers.SimpleRNN(
            2,
            None,
            recurrent_initializer=start,
            return_sequences=True,
            trainable=False,
            name="rnn",
        )
        return keras.Sequential([keras.Input((6, 2)), rnn])

    logs, _ = fit(model_of(inner(0.5), inner(0.25)), epochs=1)
    assert logs["rnn_spectral_radius"] == [0.5]
    assert logs["rnn#2_spectral_radius"] == [0.25]


def test_a_second_layer_that_reads_nan_does_not_end_training():
    first = keras.layers.SimpleRNN(3, return_sequences=True, name="first")
    model = model_of(
        keras.Input((6, 2)), first, keras.layers.SimpleRNN(3, name="second")
    )
    first.cell.recurrent_kernel.assign(np.full((3, 3), np.nan))
    logs, _ = fit(model, x=data()[0])
    assert len(logs["second_spectral_radius"]) == 2
    for quantity in ("gradient_at_start", "gradient_horizon", "input_drift"):
        assert np.isnan(logs[f"second_{quantity}"]).all()
    with pytest.raises(ValueError, match="`x` must be finite"):
        fit(model, x=np.full((2, 6, 2), np.nan))


class Clock:
    """A clock on which each look takes a second."""

    def __init__(self):
        self.now = 0

    def perf_counter(self):
        self.now += 1
        return self.now


@pytest.mark.exhaustive
def test_measurements_keep_within_the_budget(monkeypatch):
    monkeypatch.setattr(_recurrent_diagnostics, "time", Clock())
    layer = keras.layers.SimpleRNN(2, name="rnn")
    logs, callback = fit(model_of(layer), epochs=60, budget=0.1)
    measured = [not math.isnan(r) for r in logs["rnn_spectral_radius"]]
    assert measured[0] and sum(measured) > 3
    assert callback.seconds == sum(measured)
    assert callback.seconds <= 0.1 * _recurrent_diagnostics.time.now


@pytest.mark.parametrize("gain", [0.5, 1.0, 1.5])
def test_every_spectral_radius_has_a_total_memory(gain):
    start = keras.initializers.Identity(gain)
    layer = keras.layers.SimpleRNN(
        3, recurrent_initializer=start, trainable=False, name="rnn"
    )
    logs, _ = fit(model_of(layer), epochs=1)
    # A normal matrix, whatever it amplifies.
    assert logs["rnn_total_memory"] == pytest.approx([1])
    assert logs["rnn_spectral_radius"] == [gain]


def test_amplification_beyond_double_precision_has_no_total_memory():
    start = keras.initializers.Constant(1e30)
    layer = keras.layers.SimpleRNN(
        3, "tanh", recurrent_initializer=start, trainable=False, name="rnn"
    )
    logs, _ = fit(model_of(layer), epochs=1)
    assert math.isnan(logs["rnn_total_memory"][0])


def test_training_that_fails_is_followed_to_the_end():
    layer = keras.layers.SimpleRNN(3, name="rnn")
    model = model_of(layer)
    model.build((None, 6, 2))
    layer.cell.recurrent_kernel.assign(np.full((3, 3), np.nan))
    logs, _ = fit(model, x=data()[0])
    assert math.isnan(logs["rnn_spectral_radius"][0])
    assert math.isnan(logs["rnn_gradient_at_start"][0])


def test_a_model_without_recurrence_is_refused():
    model = model_of(keras.layers.Flatten())
    with pytest.raises(ValueError, match="needs a layer with a recurrent"):
        fit(model)


def test_x_needs_a_model_whose_layers_know_their_inputs():
    class Own(keras.Model):
        def __init__(self):
            super().__init__()
            self.rnn = keras.layers.SimpleRNN(1)

        def call(self, x):
            return self.rnn(x)

    model = Own()
    model.compile("sgd", "mse")
    fit(model, epochs=1)
    with pytest.raises(ValueError, match="`x` needs a Sequential or funct"):
        fit(model, x=data()[0])


def test_of_a_layer_called_twice_the_first_call_is_followed():
    inputs, rin = keras.Input((6, 2)), RIN(3, name="rin")
    doubled = keras.layers.Rescaling(2.0)(inputs)
    both = keras.layers.Add()([rin(inputs), rin(doubled)])
    model = keras.Model(inputs, keras.layers.Dense(1)(both))
    model.compile(keras.optimizers.SGD(0.01), "mse")
    x = 3 + data()[0]
    logs, _ = fit(model, epochs=1, x=x)
    drift, _ = diagnostics.input_drift(rin, x)
    assert logs["rin_input_drift"] == [pytest.approx(abs(drift).max())]


@pytest.mark.parametrize("budget", [0, -1, 2, "all", np.nan])
def test_the_budget_is_a_share(budget):
    with pytest.raises(ValueError, match="`budget` must be"):
        RecurrentDiagnostics(budget=budget)


def test_layers_in_wrappers_and_in_models_inside_are_followed():
    both_ways = keras.layers.Bidirectional(RIN(3, name="rin"))
    thrice = keras.layers.Rescaling(3.0)
    model = model_of(thrice, keras.Sequential([thrice, both_ways]))
    x, _ = data()
    logs, _ = fit(model, epochs=1, x=x)
    for way in ("forward", "backward"):
        layer = getattr(both_ways, f"{way}_layer")
        drift, _ = diagnostics.input_drift(layer, 9 * x)
        sizes = diagnostics.gradient_norms(layer, 9 * x)
        for quantity, value in (
            ("input_drift", abs(drift).max()),
            ("gradient_at_start", sizes[0]),
        ):
            found = logs[f"{way}_rin_{quantity}"][-1]
            np.testing.assert_allclose(found, value, rtol=1e-3)


def test_layers_whose_inputs_are_unknown_are_named_once():
    class Block(keras.layers.Layer):
        def __init__(self):
            super().__init__()
            self.rnn = keras.layers.SimpleRNN(
                2, return_sequences=True, name="inside"
            )

        def call(self, x):
            return self.rnn(x)

    cells = [keras.layers.GRUCell(2, name="gru"), keras.layers.SimpleRNNCell(2)]
    stack = keras.layers.RNN(cells, return_sequences=True)
    model = model_of(keras.Input((6, 2)), Block(), stack, RIN(3, name="rin"))
    model.optimizer.learning_rate = 0.0
    with pytest.warns(UserWarning) as caught:
        logs, _ = fit(model, x=data()[0])
    ours = [one for one in caught if one.category is UserWarning]
    (message,) = [str(one.message) for one in ours]
    assert f"drift of inside, gru, {cells[1].name} are not" in message
    assert "gradient_norms(layer, its_inputs)" in message
    assert {name[:3] for name in logs if "gradient" in name} == {"rin"}


@pytest.mark.each_backend
def test_layers_inside_a_layer_of_ones_own_are_followed():
    class Block(keras.layers.Layer):
        def __init__(self):
            super().__init__()
            self.rnn = keras.layers.SimpleRNN(3, name="inside")

        def call(self, x):
            return self.rnn(x)

    logs, _ = fit(model_of(Block(), run_eagerly=True), epochs=1)
    radii = [name for name in logs if name.endswith("spectral_radius")]
    assert radii == ["inside_spectral_radius"]


def test_all_logs_of_a_layer_have_its_name():
    inner = keras.Sequential(
        [keras.Input((6, 2)), RIN(2, return_sequences=True, name="rin")]
    )
    model = model_of(inner, RIN(3, name="rin"))
    model.optimizer.learning_rate = 0.0
    logs, _ = fit(model, epochs=1, x=data()[0])
    assert {"rin_spectral_radius", "rin#2_spectral_radius"} <= logs.keys()
    gradients = {name for name in logs if name.endswith("gradient_at_start")}
    assert gradients == {"rin_gradient_at_start", "rin#2_gradient_at_start"}


def test_the_memory_leaves_out_inputs_that_are_not_read():
    layer = RIN(4)
    layer.build((None, None, 2))
    kernel, offset, bias = layer.get_weights()
    kernel[1] = 0
    layer.set_weights([kernel, offset, bias])
    found = _recurrent_diagnostics._matrix_logs("rin", layer)
    matrix = diagnostics.recurrent_matrices(layer)["recurrent"]
    row = kernel[0] / np.linalg.norm(kernel[0])
    expected = diagnostics.total_memory(matrix, input_vector=row, horizon=4)
    assert found["rin_total_memory"] == pytest.approx(expected, rel=1e-6)


def test_a_drift_below_the_spread_is_not_warned_of(rng):
    x = rng.normal(8, 100, size=(64, 50, 1)).astype("float32")
    rin = RIN(1, kernel_initializer="ones", recurrent_initializer="zeros")
    model = keras.Sequential([keras.Input((None, 1)), rin])
    model.compile(keras.optimizers.SGD(0.0), "mse", run_eagerly=EAGER)
    (drift,), (spread,) = diagnostics.input_drift(rin, x)
    assert 30 < drift < spread
    callback = RecurrentDiagnostics(x, budget=None)
    model.fit(x, np.zeros((64, 1)), verbose=0, callbacks=[callback])


def test_a_measurement_has_to_fit_into_the_budget(monkeypatch):
    callback = RecurrentDiagnostics(budget=0.5)
    callback._begin, callback.seconds, callback._longest = 0.0, 1.0, 4.0
    for now, due in ((9.0, False), (10.0, True)):
        clock = types.SimpleNamespace(perf_counter=lambda now=now: now)
        monkeypatch.setattr(_recurrent_diagnostics, "time", clock)
        assert callback._is_due() == due
