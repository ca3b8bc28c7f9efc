"""What `preflight` measures and says of models before they are trained."""

import keras
import numpy as np
import pytest
from references import Averaging
from scipy import optimize
from scipy import special

import keras_rin
from keras_rin.diagnostics import preflight
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
    gradients = (
        x.sum(axis=1).T @ d_h,
        states[:, :-1].sum(axis=1).T @ d_h,
        h.T @ (2 / 8 * error),
    )
    (layer,) = report.layers
    norms = np.sqrt((states**2).sum(axis=2).mean(axis=0))
    for actual, expected in [
        (report.loss, (error**2).mean()),
        (report.baseline_loss, y.var()),
        (
            [*report.weight_gradient_norms.values()],
            [np.linalg.norm(gradient) for gradient in gradients],
        ),
        (layer.gradient_norms, np.ones(6)),
        (layer.state_norms[1:], norms),
        (layer.input_mean, x.mean((0, 1))),
        (layer.input_std, x.std((0, 1))),
    ]:
        np.testing.assert_allclose(actual, expected, rtol=1e-4)


losses = keras.losses
N, T = 12, 4
CLASSES = np.arange(N) % 4 // 2 + (np.arange(N) % 5 == 0)  # of 0, 1, 2
NUMBERS = np.random.default_rng(3).gamma(1.0, size=(N, T)).astype("float32")


class Squares(losses.MeanSquaredError):
    """A loss of a user's own."""

    def call(self, y_true, y_pred):
        return keras.ops.mean((y_true**2 - y_pred) ** 2, axis=-1)


class Doubled(keras.Sequential):
    def compute_loss(self, x=None, y=None, y_pred=None, **kwargs):
        return keras.ops.mean((y_pred - 2 * y) ** 2)


# name: (loss, targets, units, outputs are those of each time step)
BASELINES = {
    "mean of several": (losses.MeanSquaredError("sum"), NUMBERS, T, False),
    "no last axis": ("mse", NUMBERS, 1, True),
    "median": (["mae"], NUMBERS[:, 0], 1, False),
    "probability": ("binary_crossentropy", CLASSES[:, None] > 0, 1, False),
    "smoothed logit": (
        losses.BinaryCrossentropy(from_logits=True, label_smoothing=0.2),
        np.float32(CLASSES[:, None] > 0),
        *(1, False),
    ),
    "smoothed classes": (
        losses.CategoricalCrossentropy(from_logits=True, label_smoothing=0.3),
        np.eye(3, dtype="float32")[CLASSES],
        *(3, False),
    ),
    "class numbers": ("sparse_categorical_crossentropy", CLASSES, 3, False),
    "an ignored class": (
        losses.SparseCategoricalCrossentropy(True, ignore_class=-1),
        np.where(CLASSES == 0, -1, CLASSES),
        *(3, False),
    ),
}


@pytest.mark.parametrize("name", BASELINES)
def test_the_baseline_is_the_lowest_loss_of_a_constant(name):
    loss, y, units, in_time = BASELINES[name]
    read_out = keras.layers.Dense(units, name="out")
    rin = RIN(2, return_sequences=in_time)
    model = model_of(rin, read_out, loss=loss, features=1)
    function = losses.get(*loss) if isinstance(loss, list) else losses.get(loss)
    is_given = "from_logits" in getattr(function, "get_config", dict)()
    shape = (N, T, units) if in_time else (N, units)
    to_probability = special.softmax if units > 1 else special.expit

    def loss_of(constant):
        if "crossentropy" in str(loss) and not is_given:
            constant = to_probability(constant)
        y_pred = np.broadcast_to(np.float32(constant), shape)
        y_true = y.reshape(shape) if y.size == np.prod(shape) else y
        return float(np.mean(function(np.float32(y_true), y_pred)))

    start = np.full(units, 0.1)
    best = optimize.minimize(loss_of, start, method="Nelder-Mead")
    report = preflight(model, NUMBERS[..., None], y)
    assert report.baseline_loss == pytest.approx(best.fun, rel=1e-3)


def test_there_is_no_baseline_of_a_loss_that_is_not_known():
    x, y = NUMBERS[..., None], NUMBERS[:, :1]
    for loss in ("huber", Squares(), lambda y, y_pred: (y - y_pred) ** 2):
        model = model_of(RIN(2), keras.layers.Dense(1), loss=loss, features=1)
        assert preflight(model, x, y).baseline_loss is None
    model = Doubled([keras.Input((None, 1)), RIN(2), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    assert preflight(model, x, y).baseline_loss is None


@pytest.mark.each_backend
def test_the_baseline_leaves_masked_time_steps_out():
    """Half of the targets are padding, and the model is a constant."""
    x = np.random.default_rng(0).integers(1, 5, (8, 6))
    x[:, 3:] = 0
    read_out = keras.layers.Dense(3, kernel_initializer="zeros")
    embedding = keras.layers.Embedding(5, 2, mask_zero=True)
    model = keras.Sequential(
        [keras.Input((6,)), embedding, RIN(2, return_sequences=True), read_out]
    )
    read_out.bias.assign([-40.0, 0, 0])
    loss = losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile("sgd", loss, loss_weights=0.5)
    y = np.where(x > 0, np.tile([1, 2], (8, 3))[:, :6], 0)
    y[::2, :3], y[1::2, :3] = 1, 2
    report = preflight(model, x, y)
    assert report.baseline_loss == pytest.approx(0.5 * np.log(2), rel=1e-5)
    assert report.loss == pytest.approx(report.baseline_loss, rel=1e-5)


def clipped(*layers, clipnorm=1.0, **kwargs):
    adam = keras.optimizers.Adam(global_clipnorm=clipnorm)
    return model_of(*layers, keras.layers.Dense(1), optimizer=adam, **kwargs)


def simple_rnn(factor, activation="relu"):
    identity = keras.initializers.Identity(factor)
    return keras.layers.SimpleRNN(
        16, activation, recurrent_initializer=identity, name="rnn"
    )


def two_of_one_name():
    """The gradient of both vanishes; that of the first is behind gates."""
    lstm = keras.layers.LSTM(16, return_sequences=True, name="rnn")
    return clipped(
        keras.Sequential([keras.Input((None, 2)), lstm]),
        keras.Sequential([keras.Input((None, 16)), simple_rnn(0.5)]),
    )


def of_tokens(tokens, is_adapted=False):
    positive = keras.initializers.RandomUniform(0, 1)
    read = keras.layers.Embedding(10, 8, positive)(inputs := keras.Input([40]))
    model = keras.Model(inputs, keras.layers.Dense(1)(RIN(16)(read)))
    model.compile(keras.optimizers.Adam(global_clipnorm=1.0), "mse")
    if is_adapted:
        keras_rin.adapt(model, tokens)
    return model


TOKENS = np.minimum(np.random.default_rng(0).zipf(1.5, (64, 40)), 9)
DRIFT, ADAPT = "accumulates", "keras_rin.adapt(model, x)"
# name: (the model and its inputs, words of each problem and its remedy)
FINDINGS = {
    "the recipe": (lambda x: (clipped(normalization(x), RIN(16)), x), []),
    "no clipping": (
        lambda x: (clipped(RIN(50), clipnorm=None), 30 * x),
        [(DRIFT, ADAPT), ("1,000 updates", "Adam(..., global_clipnorm=1.0)")],
    ),
    "a mean of 0 in inputs that stay": (
        lambda x: (clipped(RIN(8)), 0 * x + x[:, :1] - x[:, :1].mean(0)),
        [],
    ),
    "a state that overflows": (
        lambda x: (clipped(simple_rnn(9.0)), x),
        [("leaves the range of float32", ""), ("the loss is ", "")],
    ),
    # 3^60 is within float32, its square is not.
    "a loss that overflows": (
        lambda x: (clipped(simple_rnn(3.0, "linear")), x),
        [("grows like T^1", ""), ("the loss is inf", "")],
    ),
    "a loss of NaN": (
        lambda x: (
            clipped(RIN(4), loss=lambda y, p: p * np.nan),
            x - x.mean((0, 1)),
        ),
        [("the loss is nan", "")],
    ),
    "no gate": (lambda x: (two_of_one_name(), x), [("vanishes", "")]),
    "tokens": (lambda x: (of_tokens(TOKENS), TOKENS), [(DRIFT, ADAPT)]),
    "adapted": (lambda x: (of_tokens(TOKENS, True), TOKENS), []),
    "no bias": (lambda x: (clipped(RIN(16, use_bias=False)), x), [(DRIFT, "")]),
    "the mean of a ReLU": (
        lambda x: (
            clipped(normalization(x), RIN(16, return_sequences=True), RIN(16)),
            x,
        ),
        [(DRIFT, "")],
    ),
    "no input at first": (
        lambda x: (
            clipped(RIN(8, kernel_initializer="ones", use_bias=False)),
            np.where(np.arange(LENGTH)[:, None] < 20, 0, x),
        ),
        [(DRIFT, "")],
    ),
}


@pytest.mark.parametrize("name", FINDINGS)
def test_each_problem_has_a_line_that_was_seen_to_help(name, data):
    make, expected = FINDINGS[name]
    keras.utils.set_random_seed(0)
    report = preflight(*make(data[0]), data[1])
    for (problem, remedy), words in zip(report.findings, expected, strict=True):
        assert words[0] in problem and problem in str(report)
        assert words[1] in remedy and bool(words[1]) == bool(remedy)
    assert bool(expected) != ("one\nbatch does not show" in str(report))


def test_an_optimizer_within_another_clips_and_remembers(data):
    for norm in (None, 1.0):
        adam = keras.optimizers.Adam(beta_2=0.99, global_clipnorm=norm)
        scaled = keras.optimizers.LossScaleOptimizer(adam)
        model = model_of(RIN(8), keras.layers.Dense(1))
        model.compile(scaled, keras.losses.MeanSquaredError("sum"))
        report = preflight(model, *data)
        assert report.remembered_updates == pytest.approx(100)
        remedies = [finding.remedy for finding in report.findings]
        clipping = "keras.optimizers.Adam(..., global_clipnorm=1.0)"
        assert (clipping in remedies) == (norm is None)


@pytest.mark.each_backend
def test_inputs_come_in_a_dict_as_for_fit(data):
    x, y = data
    inputs = {name: keras.Input((None, 1), name=name) for name in "zam"}
    merged = keras.layers.Concatenate()(list(inputs.values())[:2])
    outputs = keras.layers.Dense(1)(RIN(3)(merged) + RIN(3)(inputs["m"]))
    model = keras.Model(inputs, outputs)
    model.compile("sgd", "mse")
    arrays = {"m": x[..., :1], "a": x[..., 1:], "z": x[..., :1]}
    report = preflight(model, arrays, y, batch_size=len(x))
    loss = model.evaluate(arrays, y, verbose=0)
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


def test_masked_steps_are_left_out(data):
    x, y = data
    padded = np.concatenate([x, np.full_like(x[:, :20], -7)], axis=1)
    plain = model_of(RIN(8), keras.layers.Dense(1))
    masked = model_of(keras.layers.Masking(-7), RIN(8), keras.layers.Dense(1))
    masked.set_weights(plain.get_weights())
    values = [
        np.hstack([r.loss, r.gradient_norm, layer[1], layer.state_norms[-1]])
        for r in (preflight(plain, x, y), preflight(masked, padded, y))
        for layer in r.layers
    ]
    np.testing.assert_allclose(*values, rtol=1e-4)


def two_outputs():
    inputs = keras.Input((None, 2))
    states = RIN(3)(inputs)
    model = keras.Model(inputs, [states, keras.layers.Dense(1)(states)])
    model.compile("sgd", "mse")
    return model


def read_out():
    return model_of(RIN(3), keras.layers.Dense(1))


REFUSED = {
    "not built": (
        lambda x, y: (keras.Sequential([RIN(3)]), x, y),
        "built and compiled",
    ),
    "no recurrent layer": (
        lambda x, y: (model_of(keras.layers.Dense(1)), x, y),
        "recurrent layer",
    ),
    "two outputs": (lambda x, y: (two_outputs(), x, y), "one output"),
    "NaN in x": (lambda x, y: (read_out(), x * np.nan, y), "`x` must .*finite"),
    "NaN in y": (lambda x, y: (read_out(), x, y * np.nan), "`y` must .*finite"),
    "samples": (lambda x, y: (read_out(), x, y[:-1]), "as many samples"),
    "two inputs": (lambda x, y: (read_out(), [x, x], y), "each of 1 inputs"),
    "lists": (lambda x, y: (read_out(), x.tolist(), y), "must be an array"),
    "no targets": (lambda x, y: (read_out(), x, None), "must be an array"),
    "targets": (
        lambda x, y: (read_out(), x, np.tile(y, (1, 2))),
        "shape of the outputs",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_it_cannot_look_at_is_refused(name, data):
    make, message = REFUSED[name]
    with pytest.raises(ValueError, match=message):
        preflight(*make(*data))
