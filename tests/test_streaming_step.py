"""One step after another is the whole sequence, where each layer allows it."""

import itertools

import keras
import numpy as np
import pytest
from cases import needs_keras
from keras import layers
from keras import ops
from models import FEATURES
from models import MARKS
from models import MODELS
from models import WITHOUT_STEPS
from models import rin
from models import some_input
from models import stack
from references import assert_same
from references import outputs_of_steps
from references import to_numpy

from keras_rin.export import streaming_step
from keras_rin.layers import RIN
from keras_rin.layers import LinearResidual
from keras_rin.layers import ResidualDense

pytestmark = pytest.mark.one_backend


def assert_steps_are_the_sequence(
    model, x, tolerance=1e-4, stepwise=(), stepped=None
):
    step = streaming_step(stepped or model, stepwise)
    blocks = x.reshape(len(x), -1, *step.input["x"].shape[1:])
    steps, whole = outputs_of_steps(step, blocks), to_numpy(model(x))
    steps = steps if steps.ndim == whole.ndim else steps[:, -1]
    assert_same(steps, whole, tolerance, tolerance)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=MARKS.get(name, ())) for name in MODELS]
)
def test_steps_give_what_the_sequence_gives(rng, name):
    model = MODELS[name]()
    x = some_input(rng, model, batch=2, time=model.inputs[0].shape[1] or 12)
    assert_steps_are_the_sequence(model, x)


def test_a_loaded_model_may_have_any_names(rng, tmp_path):
    """Names count up in each process: one that loads begins anew."""
    x = keras.Input((None, FEATURES), name="input_layer")
    inner = keras.Model(x, layers.Dense(4)(x), name="functional")
    h = rin(4, return_sequences=True, name="rin")(inner(x))
    h = ops.add(h, ops.expand_dims(h[:, :, 0], 2) + h[..., :1])
    model = keras.Model(x, rin(4, name="rin_1")(h), name="functional_1")
    model.save(tmp_path / "model.keras")
    keras.backend.clear_session()
    loaded = keras.models.load_model(tmp_path / "model.keras")
    x = some_input(rng, model, 2, 5)
    assert_steps_are_the_sequence(model, x, stepped=loaded)


@pytest.mark.each_backend
def test_the_weights_are_those_of_the_model():
    model = MODELS["in a model"]()
    step = streaming_step(model)
    assert {id(w) for w in step.weights} == {id(w) for w in model.weights}


def test_states_in_half_precision(rng):
    model = stack(rin(4, dtype="mixed_float16", name="rin"), layers.Dense(2))
    step = streaming_step(model)
    assert (step.input["x"].dtype, step.input["rin"].dtype) == (
        "float32",
        "float16",
    )
    x = some_input(rng, model, 2, 5)
    assert_steps_are_the_sequence(model, x, 1e-2)


@pytest.mark.parametrize("reason", WITHOUT_STEPS)
def test_what_cannot_run_step_by_step_is_refused(reason):
    with pytest.raises(ValueError, match=reason):
        streaming_step(WITHOUT_STEPS[reason]())


@pytest.mark.each_backend
def test_a_model_can_be_trained_after_its_step_is_made():
    model = MODELS["with dropout"]()
    streaming_step(model)
    x = np.ones((2, 5, FEATURES), "float32")
    dropped = [to_numpy(model(x, training=True)) for _ in range(2)]
    assert np.isfinite(dropped).all() and (dropped[0] != dropped[1]).any()


# What may stand in a model that takes one time step at a time.

# RMSNormalization came with Keras 3.9.
RMSNormalization = getattr(
    layers, "RMSNormalization", layers.LayerNormalization
)
STEPS = 4
FRAMES = (3, 2, 4)  # rows, columns, channels of a step that is an image


PAIRS = (
    layers.Add,
    layers.Average,
    layers.Concatenate,
    layers.Maximum,
    layers.Minimum,
    layers.Multiply,
    layers.Subtract,
)
IN_TRAINING = """
    ActivityRegularization AlphaDropout Dropout GaussianDropout GaussianNoise
    SpatialDropout1D
""".split()
# A layer, and the shape of one step of what it takes.
ACCEPTED = [
    *((layer(), (3,)) for layer in PAIRS),
    *((getattr(layers, name)(0.5), (3,)) for name in IN_TRAINING),
    (layers.Activation("softmax"), (3,)),
    (layers.Activation(keras.activations.gelu), (3,)),
    (layers.BatchNormalization(), (3,)),
    (layers.BatchNormalization(axis=2), FRAMES),
    (layers.Concatenate(axis=2), FRAMES),
    (layers.Conv1D(4, 1, activation="relu"), (3,)),
    (layers.Conv2D(4, (1, 2), strides=(1, 2), padding="same"), (6, 2)),
    (layers.Conv3D(4, (1, 2, 2)), FRAMES),
    (layers.Dense(4, activation=layers.LeakyReLU()), (3,)),
    (layers.Dense(4, activation="log_softmax"), FRAMES),
    (layers.ELU(), (3,)),
    (layers.Embedding(2, 4), ()),
    (layers.Identity(), ()),
    (layers.LayerNormalization(), (3,)),
    (layers.LayerNormalization(axis=[-3, -1]), FRAMES),
    (layers.LeakyReLU(), (3,)),
    (layers.Masking(), (3,)),
    (layers.Normalization(mean=[1.0, 2, 3], variance=[1.0, 2, 3]), (3,)),
    (layers.PReLU("ones", shared_axes=[1]), (3,)),
    (RMSNormalization(), (3,)),
    (layers.ReLU(max_value=1.0), ()),
    (layers.Rescaling(2.0, 1.0), (3,)),
    (layers.Softmax(axis=[2, 3]), FRAMES),
    (layers.SpatialDropout2D(0.5), (3, 2)),
    (layers.SpatialDropout3D(0.5), FRAMES),
    (layers.TimeDistributed(layers.Flatten()), FRAMES),
    (layers.TimeDistributed(layers.Lambda(lambda x: ops.flip(x, 1))), (3,)),
    (layers.TimeDistributed(layers.Bidirectional(RIN(4))), (3, 2)),
    (layers.UnitNormalization(), (3,)),
    (LinearResidual("he_normal"), (3,)),
    (ResidualDense(4), FRAMES),
]


@pytest.mark.filterwarnings("ignore:Layer 'masking:UserWarning")
@pytest.mark.parametrize(
    ("layer", "shape"), ACCEPTED, ids=lambda value: getattr(value, "name", None)
)
def test_a_layer_that_is_accepted_sees_one_step_at_a_time(rng, layer, shape):
    dtype = "int32" if isinstance(layer, layers.Embedding) else "float32"
    inputs = keras.Input((STEPS, *shape), dtype=dtype)
    other = layers.Rescaling(1.0, 1.0, name="other")(inputs)
    h = layer([inputs, other] if isinstance(layer, PAIRS) else inputs)
    h = ops.expand_dims(h, 2) if h.ndim == 2 else h
    h = layers.TimeDistributed(layers.Flatten())(h) if h.ndim > 3 else h
    model = keras.Model(inputs, RIN(2, return_sequences=True)(h))
    x = rng.normal(size=(2, STEPS, *shape))
    x = (x > 0).astype(dtype) if dtype == "int32" else x.astype(dtype)
    assert_steps_are_the_sequence(model, x)


def every_operation(x):
    """Of positive numbers, what `stepwise` accepts, along the features."""
    less = x / 2 < x - 1
    yield from (abs(x), x + 1, x // 2, x % 2, x * x, -x, x**2, x - x, x / 3)
    yield from (ops.divide(x, 3.0), ops.maximum(x, 2.0), ops.minimum(x, 2.0))
    same = [x > 1, x >= 1, x < 1, x <= 1, ops.equal(x, x), ops.not_equal(x, x)]
    same += [ops.isnan(x), ops.isfinite(x), ops.logical_and(less, x > 1)]
    same += [ops.logical_or(less, x > 2), ops.logical_not(less)]
    yield from (ops.cast(truth, "float32") for truth in same)
    for name in """celu cos elu erf exp expm1 floor gelu hard_sigmoid hard_silu
        hard_tanh leaky_relu log log1p log_sigmoid ones_like reciprocal relu
        relu6 rsqrt selu sigmoid sign silu sin softplus softsign sqrt square
        tanh zeros_like log_softmax softmax stop_gradient""".split():
        if hasattr(ops, name):  # celu and hard_tanh came with Keras 3.7
            yield getattr(ops, name)(x)
    yield ops.where(less, x, 0.5)
    yield x * np.array([1.0, 2.0, 3.0], "float32")
    yield x * np.array([[[1.0, 2.0, 3.0]]], "float32")
    for name in "all any argmax argmin max mean min prod std sum var".split():
        along = getattr(ops, name)(x, axis=-1, keepdims=True)
        yield ops.cast(along, "float32")
    yield ops.logsumexp(x, axis=2, keepdims=True)
    yield ops.expand_dims(ops.squeeze(x[:, :, :1], 2), 2)
    yield ops.expand_dims(x[..., 1], -1)
    yield ops.one_hot(ops.cast(x[..., 0], "int32"), 4)
    yield ops.concatenate([x, x[:, :, 1:]], axis=-1)


@needs_keras("3.15", "this Keras has no logsumexp over one axis")
def test_operations_that_are_accepted_see_one_step_at_a_time(rng):
    x = keras.Input((None, 3))
    h = ops.concatenate(list(every_operation(x)), axis=2)
    model = keras.Model(x, RIN(4, return_sequences=True)(h))
    x = rng.uniform(0.5, 3.0, size=(2, STEPS, 3)).astype("float32")
    assert_steps_are_the_sequence(model, x, 1e-3)


class Mine(layers.Layer):
    def call(self, x):
        return x * x


class Reversed(layers.Dense):
    def call(self, x):
        return super().call(ops.flip(x, 1))


def over_time(x):
    return ops.softmax(x, axis=1)


def normalization_of_each_step():
    layer = layers.Normalization(axis=1)
    layer.adapt(np.arange(36.0).reshape(2, 6, 3))
    return layer


# Each takes (batch, 6, 3).
REFUSED = [
    layers.Conv1D(3, 2, groups=3, padding="causal"),
    layers.Conv1D(3, 3, dilation_rate=4, padding="same"),
    layers.Conv1D(3, 1, strides=2),
    layers.MaxPooling1D(2),
    layers.LayerNormalization(axis=1),
    layers.LayerNormalization(axis=[-2, -1]),
    layers.BatchNormalization(axis=1),
    normalization_of_each_step(),
    layers.Softmax(axis=1),
    layers.PReLU(),  # a slope of each step
    layers.Rescaling(np.arange(6.0)[:, None]),
    layers.Reshape((6, 3)),
    Mine(),
    Reversed(3),
    layers.Activation(over_time),
    layers.Dense(3, activation=over_time),
    layers.Dense(3, activation=layers.Softmax(axis=1)),
    layers.Bidirectional(RIN(2, return_sequences=True)),
]


def model_of(function, shape=(6, 3), **kwargs):
    x = keras.Input(shape, **kwargs)
    return keras.Model(x, RIN(2)(function(x)))


class Add(keras.Operation):
    """No operation of Keras's, by its name or not."""

    def call(self, x):
        return ops.flip(x, 1)

    def compute_output_spec(self, x):
        return keras.KerasTensor(x.shape, x.dtype)


def of_numbers_in_a_row(layer):
    """Whose last axis is that of time."""
    return lambda x: ops.expand_dims(layer(x[..., 0]), 2)


SEVERAL = {
    "Add": Add(),
    "dense": of_numbers_in_a_row(layers.Dense(3)),
    "softmax": of_numbers_in_a_row(layers.Softmax()),
    "unit_norm": of_numbers_in_a_row(layers.UnitNormalization()),
    "average_pooling": lambda x: layers.RepeatVector(6)(
        layers.GlobalAveragePooling1D()(x)
    ),
    "attention": lambda x: layers.Attention()([x, x]),
    "concatenate": lambda x: layers.Concatenate(axis=1)([x, x]),
    "rin.*no longer a sequence": lambda x: layers.RepeatVector(3)(RIN(3)(x)),
    "add.*known only after the last step": lambda x: layers.Add()(
        [x, RIN(3)(x)]
    ),
    "add": lambda x: layers.Add()([x, np.ones((1, 6, 3), "float32")]),
    "get_item": lambda x: x[:, ::-1],
    "get_item_": lambda x: ops.expand_dims(x[..., 0, :], 1),
    "flip": lambda x: ops.flip(x, 1),
    "mean": lambda x: x - ops.mean(x, axis=1, keepdims=True),
    "max": lambda x: x - ops.max(x),
    "concatenate_": lambda x: ops.concatenate([x, x], axis=1),
    "add_": lambda x: x + np.arange(6.0, dtype="float32")[:, None],
}


@pytest.mark.parametrize(
    ("name", "function"),
    [*((layer.name, layer) for layer in REFUSED), *SEVERAL.items()],
)
def test_what_sees_other_steps_is_refused_by_name(name, function):
    with pytest.raises(ValueError, match=f"layer '.*{name.rstrip('_')}"):
        streaming_step(model_of(function))


def test_all_other_layers_of_keras_are_refused():
    """Whatever Keras has, and may come to have, is refused if not listed."""
    listed = {type(layer) for layer, _ in ACCEPTED}
    refused = set()
    for item, arguments in itertools.product(
        vars(layers).values(), ((), (3,), (3, 2))
    ):
        try:
            model = model_of(item(*arguments))
        except Exception:  # no layer, or one of other arguments or inputs
            continue
        if item in listed or not isinstance(model.layers[1], item):
            continue
        with pytest.raises(ValueError, match="layer .* cannot run step"):
            streaming_step(model)
        refused.add(item)
    assert len(refused) > 20


@pytest.mark.parametrize(
    ("layer", "stepwise"),
    [
        (Mine(), (Mine,)),
        (Mine(), Mine),
        (layers.Lambda(ops.square), [layers.Lambda]),
        (layers.Dense(3, activation=ops.square), (layers.Dense,)),
    ],
    ids=str,
)
def test_the_user_says_which_other_layers_are_stepwise(rng, layer, stepwise):
    x = rng.normal(size=(2, 5, 3)).astype("float32")
    model = model_of(layer, (None, 3))
    assert_steps_are_the_sequence(model, x, stepwise=stepwise)


def test_an_ellipsis_takes_all_axes_between():
    x = keras.Input((None,))
    model = keras.Model(x, RIN(3, return_sequences=True)(x[..., None]))
    assert_steps_are_the_sequence(model, np.ones((2, 1), "float32"))


@pytest.mark.parametrize("wrappers", [1, 2])
def test_a_state_in_a_layer_of_each_step_is_refused(wrappers):
    layer = layers.SimpleRNN(2, stateful=True)
    for _ in range(wrappers):
        layer = layers.TimeDistributed(layer)
    flat = layers.TimeDistributed(layers.Flatten())
    inputs = keras.Input(batch_shape=(1, 3, *[2] * wrappers, 1))
    model = keras.Sequential([inputs, layer, flat, RIN(3)])
    with pytest.raises(ValueError, match="cannot run step by step"):
        streaming_step(model)
