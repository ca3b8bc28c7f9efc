"""What `preflight` measures and says of models before they are trained."""

import keras
import numpy as np
import pytest
from references import Averaging
from references import assert_same

from keras_rin.diagnostics import Preflight
from keras_rin.diagnostics import PreflightLayer
from keras_rin.diagnostics import gradient_norms
from keras_rin.diagnostics import preflight
from keras_rin.diagnostics import state_trajectories
from keras_rin.layers import RIN
from keras_rin.layers import StreamFeatures
from keras_rin.tasks import adding

pytestmark = pytest.mark.one_backend

LENGTH = 60


@pytest.fixture(scope="module")
def data():
    return adding.generate(np.random.default_rng(0), 64, LENGTH)


def model_of(*layers, optimizer="sgd", loss="mse", features=2):
    model = keras.Sequential([keras.Input((None, features)), *layers])
    model.compile(optimizer, loss)
    return model


def normalization(x):
    layer = keras.layers.Normalization()
    layer.adapt(x)
    return layer


@pytest.mark.each_backend
def test_it_measures_what_the_first_update_sees(data):
    """An update of SGD with the rate 1 is the gradient. Padding is left out."""
    x, y = data[0][:8, :6], data[1][:8]
    padded = np.concatenate([x, np.full_like(x[:, :3], -7)], axis=1)
    lstm = keras.layers.LSTM(3, recurrent_regularizer="l2")
    model = model_of(keras.layers.Masking(-7), lstm, keras.layers.Dense(1))
    lstm.cell.recurrent_kernel.assign(np.full((3, 12), 0.1))
    report = preflight(model, padded, y)
    (layer,) = report.layers
    states = state_trajectories(lstm, x)[..., :3]
    for actual, expected in [
        (layer.state_norms[1:7], np.sqrt((states**2).sum(2).mean(0))[1:]),
        (layer.gradient_norms[3:], gradient_norms(lstm, x, directions=5)),
        (layer.input_mean, x.mean((0, 1))),
        (layer.input_std, x.std((0, 1))),
    ]:
        np.testing.assert_allclose(actual, expected, rtol=1e-4)
    loss = model.evaluate(padded, y, verbose=0)
    assert report.loss == pytest.approx(loss, rel=1e-5)
    model.compile(keras.optimizers.SGD(1.0), "mse")
    before = model.get_weights()
    model.train_on_batch(padded, y)
    updates = map(np.subtract, before, model.get_weights())
    norm = np.linalg.norm([np.linalg.norm(update) for update in updates])
    assert report.gradient_norm == pytest.approx(norm, rel=1e-4)


def wrapped():
    adam = keras.optimizers.Adam(clipvalue=1.0)
    return keras.optimizers.LossScaleOptimizer(adam)


@pytest.mark.parametrize(
    "make, is_clipped",
    [
        (keras.optimizers.Adam, False),
        (lambda: keras.optimizers.Adam(global_clipnorm=1.0), True),
        (wrapped, True),
    ],
)
def test_clipping_is_found_inside_another_optimizer_too(make, is_clipped, data):
    model = model_of(RIN(3), keras.layers.Dense(1), optimizer=make())
    report = preflight(model, data[0][:4, :3], data[1][:4])
    assert report.is_clipped == is_clipped
    assert ("not clipped" in str(report)) != is_clipped
    assert ("global_clipnorm" in str(report)) != is_clipped


ADVICE = {  # by what is measured: mean, state norms, gradient norms, clipped
    "": (0.05, [0, 1, 1.4], [0.5, 1, 1], True),
    "center them": (0.5, [0, 1, 1.4], [0.5, 1, 1], True),
    "expands less": (0.05, [0, 1, 4], [0.5, 1, 1], True),
    "leaves the range": (0.05, [0, 1, np.inf], [0.5, 1, 1], True),
    "shorter sequences": (0.05, [0, 1, 1.4], [1e-3, 1, 1], True),
    "global_clipnorm": (0.05, [0, 1, 1.4], [0.5, 1, 1], False),
}


@pytest.mark.parametrize("advice", ADVICE)
def test_advice_is_printed_where_it_applies(advice):
    mean, states, gradients, is_clipped = ADVICE[advice]
    arrays = map(np.array, ([mean], [1.0], states, gradients))
    layer = PreflightLayer("rin", *arrays)
    text = str(Preflight((layer,), 1.0, 1.0, is_clipped))
    for other in filter(None, ADVICE):
        is_same = {advice, other} == {"expands less", "leaves the range"}
        assert (other in text) == (other == advice or is_same)


def growth_of(x, **options):
    options["recurrent_initializer"] = "zeros"  # V = 1
    rin = RIN(1, kernel_initializer="ones", name="rin", **options)
    model = model_of(rin, keras.layers.Dense(1), features=1)
    report = preflight(model, x, np.ones((len(x), 1)))
    return report, report.layers[0].growth


def test_growth_is_that_of_a_sum():
    """h_t = t of a constant, of t gaussians |h_t| = sqrt(t)."""
    report, growth = growth_of(np.ones((4, LENGTH, 1)))
    assert growth == pytest.approx(1, abs=1e-4)
    assert "rin: 60 time steps" in str(report)
    assert "to 60, like T^1.00" in str(report)
    late = np.repeat([0.0, 1.0], [20, 40])[:, None] * np.ones((4, 1, 1))
    assert growth_of(late)[1] == pytest.approx(1, abs=1e-4)
    x = np.random.default_rng(0).normal(size=(32, 400, 1))
    assert growth_of(x, activation="linear")[1] == pytest.approx(0.5, abs=0.1)
    assert growth_of(0 * x[:4])[1] == 0


def test_what_is_not_finite_is_printed(data):
    """9^60 is beyond float32."""
    rnn = keras.layers.SimpleRNN(
        *(16, "relu"), recurrent_initializer=keras.initializers.Identity(9.0)
    )
    model = model_of(rnn, keras.layers.Dense(1))
    report = preflight(model, *data)
    assert not np.isfinite([report.loss, report.layers[0].growth]).any()
    assert "like T^inf" in str(report) or "like T^nan" in str(report)


def test_it_looks_inside_models_and_wrappers(data):
    x, y = data
    keras.utils.set_random_seed(0)
    lstm = keras.layers.LSTM(4, return_sequences=True, name="rnn")
    model = model_of(
        keras.Sequential([keras.Input((None, 2)), normalization(x), lstm]),
        keras.layers.Reshape((3, 20, 4)),
        keras.layers.TimeDistributed(RIN(4, name="slices")),
        keras.layers.Flatten(),
        keras.layers.Dense(1),
    )
    first, second = preflight(model, x, y, batch_size=64).layers
    np.testing.assert_allclose(first.input_mean, 0, atol=1e-5)
    np.testing.assert_allclose(first.input_std, 1, rtol=1e-4)
    sizes = [len(layer.state_norms) - 1 for layer in (first, second)]
    assert sizes == [60, 20]


def test_a_layer_without_weights_is_left_out(data):
    features = StreamFeatures()
    model = model_of(features, RIN(3), keras.layers.Dense(1))
    (layer,) = preflight(model, *data, batch_size=64).layers
    x = keras.ops.convert_to_numpy(features(data[0]))
    assert_same(layer.input_mean, x.mean((0, 1)))


@pytest.mark.parametrize("loss", ["mse", {"a": "mse"}])
def test_one_output_may_be_in_a_dict(data, loss):
    x, y = data
    inputs = keras.Input((None, 2))
    model = keras.Model(inputs, {"a": keras.layers.Dense(1)(RIN(3)(inputs))})
    model.compile("sgd", loss)
    report = preflight(model, x, {"a": y}, batch_size=len(x))
    expected = model.evaluate(x, {"a": y}, verbose=0, return_dict=True)["loss"]
    assert report.loss == pytest.approx(expected, rel=1e-4)


def test_inputs_come_in_a_dict_and_targets_in_a_list_as_for_fit(data):
    x, y = data
    inputs = {name: keras.Input((None, 1), name=name) for name in "zam"}
    merged = keras.layers.Concatenate()(list(inputs.values())[:2])
    states = RIN(3)(merged)
    outputs = [states, keras.layers.Dense(1)(states + RIN(3)(inputs["m"]))]
    model = keras.Model(inputs, outputs)
    model.compile("sgd", ["mse", "mae"])
    arrays = {"m": x[..., :1], "a": x[..., 1:], "z": x[..., :1]}
    targets = [np.repeat(y, 3, axis=1), y]
    report = preflight(model, arrays, targets, batch_size=len(x))
    loss, *_ = model.evaluate(arrays, targets, verbose=0)
    assert report.loss == pytest.approx(loss, rel=1e-4)
    assert [len(layer.input_mean) for layer in report.layers] == [2, 1]


@pytest.mark.each_backend
def test_nothing_changes(data):
    x, y = data[0][:8, :4], data[1][:8]
    model = model_of(
        Averaging(),
        keras.layers.Dropout(0.5, seed=0),
        RIN(4, dropout=0.5, seed=1, return_sequences=True),
        keras.layers.BatchNormalization(),
        keras.layers.GRU(3),
        keras.layers.Dense(1),
        optimizer="adam",
    )
    model.optimizer.build(model.trainable_variables)
    variables = model.variables + model.optimizer.variables
    variables += model.metrics_variables
    assert len(model.layers[0].metrics_variables) > 0
    before = [np.array(v) for v in variables]
    first = preflight(model, x, y)
    assert_same([np.array(v) for v in variables], before, 0, 0)
    assert preflight(model, x, y).loss == first.loss


def rin():
    return model_of(RIN(3), keras.layers.Dense(1))


# name: (model, words of the error, what its data become)
REFUSED = {
    "not built": (lambda: keras.Sequential([RIN(3)]), "begin it with"),
    "not compiled": (
        lambda: keras.Sequential([keras.Input((None, 2)), RIN(3)]),
        "must be compiled",
    ),
    "no RIN": (lambda: model_of(keras.layers.Dense(1)), "recurrent layer"),
    "NaN in x": (rin, "`x` must .*finite", lambda x, y: (x * np.nan, y)),
    "NaN in y": (rin, "`y` must .*finite", lambda x, y: (x, y * np.nan)),
    "lists": (rin, "must be an array", lambda x, y: (x.tolist(), y)),
    "no targets": (rin, "must be an array", lambda x, y: (x, None)),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_it_cannot_look_at_is_refused(name, data):
    make, message, *change = REFUSED[name]
    for function in change:
        data = function(*data)
    with pytest.raises(ValueError, match=message):
        preflight(make(), *data)
