"""What `preflight` measures and says of models before they are trained."""

import keras
import numpy as np
import pytest
from references import Averaging

from keras_rin.diagnostics import preflight
from keras_rin.diagnostics._baseline_loss import baseline_loss
from keras_rin.initializers import Offset
from keras_rin.initializers import PartialIdentity
from keras_rin.layers import RIN
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


def model_of_recipe(x, layer):
    adam = keras.optimizers.Adam(1e-3, global_clipnorm=1.0)
    return model_of(
        normalization(x), layer, keras.layers.Dense(1), optimizer=adam
    )


@pytest.mark.each_backend
def test_loss_and_gradients_are_those_of_a_linear_network():
    """h = sum of x_t W, y = h v: written out in NumPy."""
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(8, 5, 2)), rng.normal(size=(8, 1))
    rin = RIN(3, "linear", use_bias=False, recurrent_initializer="zeros")
    model = model_of(rin, keras.layers.Dense(1, use_bias=False))
    report = preflight(model, x, y)
    kernel, _, read_out = map(np.asarray, model.get_weights())
    h = x.sum(axis=1) @ kernel
    error = h @ read_out - y
    d_h = 2 / 8 * error @ read_out.T
    states = np.cumsum(x, axis=1) @ kernel
    gradients = {
        "/kernel": x.sum(axis=1).T @ d_h,
        "recurrent_kernel": states[:, :-1].sum(axis=1).T @ d_h,
        "dense": h.T @ (2 / 8 * error),
    }
    assert report.loss == pytest.approx((error**2).mean(), rel=1e-4)
    assert report.baseline_loss == pytest.approx(y.var(), rel=1e-4)
    norms = report.weight_gradient_norms
    for name, gradient in gradients.items():
        (norm,) = [
            norm
            for path, norm in norms.items()
            if name in path and ("dense" in path) == (name == "dense")
        ]
        assert norm == pytest.approx(np.linalg.norm(gradient), rel=1e-4)
    (layer,) = report.layers
    np.testing.assert_allclose(layer.gradient_norms, 1, rtol=1e-4)
    np.testing.assert_allclose(
        layer.state_norms[1:],
        np.sqrt((states**2).sum(axis=2).mean(axis=0)),
        rtol=1e-4,
    )
    np.testing.assert_allclose(layer.input_mean, x.mean((0, 1)), atol=1e-6)
    np.testing.assert_allclose(layer.input_std, x.std((0, 1)), rtol=1e-5)


def test_the_baseline_is_the_loss_of_keras_at_the_best_constant():
    labels = np.array([0, 2, 2, 1, 2, 0])
    binary = np.array([[0.0], [1], [1], [1], [0], [1]])
    shares = np.tile([2 / 6, 1 / 6, 3 / 6], (6, 1))
    for loss, y, constant in (
        ("mse", binary, np.full((6, 1), 4 / 6)),
        (keras.losses.MeanAbsoluteError(), binary, np.ones((6, 1))),
        ("binary_crossentropy", binary, np.full((6, 1), 4 / 6)),
        ("sparse_categorical_crossentropy", labels, shares),
        (keras.losses.CategoricalCrossentropy(), np.eye(3)[labels], shares),
    ):
        expected = float(np.mean(keras.losses.get(loss)(y, constant)))
        assert baseline_loss(loss, y) == pytest.approx(expected, rel=1e-5)
    assert baseline_loss("log_cosh", binary) is None  # no closed form


def test_nothing_speaks_against_the_recipe(data):
    rin = RIN(16, recurrent_initializer=Offset(PartialIdentity()))
    report = preflight(model_of_recipe(data[0], rin), *data)
    assert report.findings == ()
    assert "Nothing speaks against training." in str(report)


def test_raw_inputs_without_clipping_lack_two_lines():
    x, y = adding.generate(np.random.default_rng(0), 32, 200)
    keras.utils.set_random_seed(0)
    model = model_of(RIN(50), keras.layers.Dense(1), optimizer="adam")
    first, second = preflight(model, x, y).findings
    assert "Normalization" in first.remedy
    assert "global_clipnorm=1.0" in second.remedy
    assert "1,000 updates" in second.problem


def test_slow_inputs_of_mean_0_need_no_normalization(data):
    """The state grows like T with inputs that stay as they are, too."""
    x, y = data
    slow = np.repeat(x[:, :1] - x[:, :1].mean(0), x.shape[1], axis=1)
    model = model_of(RIN(8), keras.layers.Dense(1))
    report = preflight(model, slow, y)
    _, first, *_, last = report.layers[0].state_norms
    assert last > LENGTH**0.9 * first
    remedies = [finding.remedy for finding in report.findings]
    assert not any("Normalization" in remedy for remedy in remedies)


@pytest.mark.filterwarnings("ignore:RIN stores the offset:UserWarning")
def test_a_forgotten_offset_is_named():
    x, y = adding.generate(np.random.default_rng(0), 32, 200)
    rin = RIN(16, recurrent_initializer=PartialIdentity())
    report = preflight(model_of_recipe(x, rin), x, y)
    assert "Offset" in report.findings[0].remedy


def test_a_state_whose_loss_overflows_expands(data):
    """3^60 is within float32, its square is not."""
    triple = keras.initializers.Identity(3.0)
    rnn = keras.layers.SimpleRNN(4, "linear", recurrent_initializer=triple)
    report = preflight(model_of(rnn, keras.layers.Dense(1)), *data)
    assert np.isfinite(report.layers[0].state_norms).all()
    assert not np.isfinite(report.loss)
    assert "orthogonal" in report.findings[0].remedy


def test_a_vanishing_gradient_is_named_where_no_gate_can_open(data):
    """Of two layers with one name, whose findings are their own."""
    lstm = keras.layers.LSTM(16, return_sequences=True, name="rnn")
    half = keras.initializers.Identity(0.5)
    simple_rnn = keras.layers.SimpleRNN(
        16, recurrent_initializer=half, name="rnn"
    )
    inner_models = [
        keras.Sequential([keras.Input((None, features)), layer])
        for features, layer in ((2, lstm), (16, simple_rnn))
    ]
    report = preflight(model_of(*inner_models, keras.layers.Dense(1)), *data)
    assert all(layer.gradient_norms[0] < 1e-4 for layer in report.layers)
    (finding,) = report.findings
    assert "RIN(16)" in finding.remedy
    lines = [line for line in str(report).splitlines() if "step 0" in line]
    assert len(lines) == 2
    assert all(float(line.split()[-1]) < 1e-4 for line in lines)


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
    variables = [
        *model.variables,
        *model.optimizer.variables,
        *model.metrics_variables,
    ]
    assert len(model.layers[0].metrics_variables) > 0
    before = [np.array(v) for v in variables]
    first = preflight(model, x, y)
    for variable, value in zip(variables, before, strict=True):
        np.testing.assert_array_equal(np.array(variable), value)
    assert preflight(model, x, y).loss == first.loss
    assert [layer.name for layer in first.layers] == [
        layer.name
        for layer in model.layers
        if isinstance(layer, keras.layers.RNN)
    ]


def test_masked_steps_are_left_out(data):
    x, y = data
    padded = np.concatenate([x, np.full_like(x[:, :20], -7)], axis=1)
    plain = model_of(RIN(8), keras.layers.Dense(1))
    masked = model_of(keras.layers.Masking(-7), RIN(8), keras.layers.Dense(1))
    masked.set_weights(plain.get_weights())
    expected, report = preflight(plain, x, y), preflight(masked, padded, y)
    (expected_layer,), (layer,) = expected.layers, report.layers
    for actual, reference in [
        (report.loss, expected.loss),
        (report.gradient_norm, expected.gradient_norm),
        (layer.input_mean, expected_layer.input_mean),
        (layer.state_norms[-1], expected_layer.state_norms[-1]),
    ]:
        np.testing.assert_allclose(actual, reference, rtol=1e-4)


def not_compiled():
    return keras.Sequential([keras.Input((None, 2)), RIN(3)])


def not_built():
    model = keras.Sequential([RIN(3)])
    model.compile("sgd", "mse")
    return model


def two_outputs():
    inputs = keras.Input((None, 2))
    states = RIN(3)(inputs)
    model = keras.Model(
        inputs, [keras.layers.Dense(1)(states), keras.layers.Dense(1)(states)]
    )
    model.compile("sgd", "mse")
    return model


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (not_built, "must be a built Keras model"),
        (not_compiled, "must be compiled"),
        (lambda: model_of(keras.layers.Dense(1)), "recurrent layer"),
        (two_outputs, "2 outputs"),
    ],
)
def test_models_that_cannot_be_seen(make, message, data):
    with pytest.raises(ValueError, match=message):
        preflight(make(), *data)


def with_nan(array):
    array = np.array(array)
    array[0, ...] = np.nan
    return array


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda x, y: (with_nan(x), y), "`x` must be finite"),
        (lambda x, y: (x, with_nan(y)), "`y` must be finite"),
        (lambda x, y: (x, y[:-1]), "as many samples"),
        (lambda x, y: (x, np.tile(y, (1, 2))), "the shape of the outputs"),
    ],
)
def test_data_that_do_not_fit(change, message, data):
    model = model_of(RIN(3), keras.layers.Dense(1))
    with pytest.raises(ValueError, match=message):
        preflight(model, *change(*data))


def test_a_class_beyond_the_outputs(data):
    loss, dense = "sparse_categorical_crossentropy", keras.layers.Dense(3)
    model = model_of(RIN(3), dense, loss=loss)
    with pytest.raises(ValueError, match="class numbers from 0 to 2"):
        preflight(model, data[0], np.full(len(data[0]), 3))


@pytest.mark.parametrize("batch_size", [0, 2.5, True])
def test_a_batch_size_that_is_none(batch_size, data):
    model = model_of(RIN(3), keras.layers.Dense(1))
    with pytest.raises(ValueError, match="batch_size"):
        preflight(model, *data, batch_size=batch_size)
