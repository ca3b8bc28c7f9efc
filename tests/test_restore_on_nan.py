"""Training ends with finite weights, and no callback saves others."""

import keras
import numpy as np
import pytest
from cases import diagonal
from cases import first_of
from references import assert_same
from references import to_numpy

from keras_rin.callbacks import RestoreOnNaN

# Without a graph TensorFlow is sooner done with so few steps.
EAGER = keras.backend.backend() == "tensorflow"


def make(steps_at_once=1, loss="mse", rate=0.01):
    if steps_at_once > 1 and keras.backend.backend() == "torch":
        pytest.skip("Keras runs one step at a time on Torch")
    keras.utils.set_random_seed(1)
    first = keras.layers.Dense(3, "relu", name="first")
    second = keras.layers.Dense(1, name="second")
    model = keras.Sequential([keras.Input((2,)), first, second], name="model")
    model.compile(
        keras.optimizers.SGD(rate),
        loss,
        run_eagerly=EAGER and steps_at_once == 1,
        steps_per_execution=steps_at_once,
    )
    return model


def data(bad_step=None, bad=np.nan):
    """Eight steps of four rows."""
    x = np.random.default_rng(0).normal(size=(32, 2)).astype("float32")
    y = x[:, :1] + 1
    if bad_step is not None:
        y[4 * bad_step - 4] = bad
    return x, y


def fit(model, x, y, *callbacks, epochs=1):
    options = {"batch_size": 4, "shuffle": False, "verbose": 0}
    model.fit(x, y, callbacks=list(callbacks), epochs=epochs, **options)


@pytest.mark.parametrize(
    "bad_step, bad, steps_at_once, named",
    first_of(
        [
            (1, np.inf, 1, "step 1"),
            (4, np.nan, 1, "step 4"),
            (8, np.inf, 3, "steps 7 to 8"),
            (5, np.nan, 3, "steps 4 to 6"),
            (3, np.nan, 16, "steps 1 to 8"),
            (8, np.nan, 7, "step 8"),
        ],
        3,
    ),
)
def test_the_weights_are_those_before_the_steps_that_are_named(
    bad_step, bad, steps_at_once, named
):
    reference, model = make(), make(steps_at_once)
    steps_before = (bad_step - 1) // steps_at_once * steps_at_once
    if steps_before:
        fit(reference, *(array[: 4 * steps_before] for array in data()))
    with pytest.raises(
        FloatingPointError,
        match=rf"Epoch 1, {named}: the loss is {bad}. The first weight not "
        r"finite is model/\w+/kernel\. The model has the last finite weights",
    ):
        fit(model, *data(bad_step, bad), RestoreOnNaN())
    assert_same(model.get_weights(), reference.get_weights(), 1e-6, 0)


class SetsNaN(keras.callbacks.Callback):
    """Makes a weight NaN after a step of the second epoch."""

    def __init__(self, step):
        super().__init__()
        self.step = step

    def on_epoch_begin(self, epoch, logs=None):
        self.epoch = epoch

    def on_train_batch_begin(self, batch, logs=None):
        if (self.epoch + 1, batch + 1) == (2, self.step):
            self.before = self.model.get_weights()

    def on_train_batch_end(self, batch, logs=None):
        if (self.epoch + 1, batch + 1) == (2, self.step):
            self.model.get_layer("second").bias.assign([np.nan])


def test_the_error_says_what_is_finite_and_what_is_not():
    model = make()
    model.get_layer("second").kernel.assign(np.full((3, 1), np.nan))
    with pytest.raises(FloatingPointError, match="no finite ones"):
        fit(model, *data(), RestoreOnNaN())
    model = make(loss=lambda y, answer: keras.ops.mean(0 * answer + y))
    with pytest.raises(FloatingPointError, match="All weights are finite"):
        fit(model, *data(1, np.inf), RestoreOnNaN())


@pytest.mark.filterwarnings("ignore:.*does not have any trainable weights")
@pytest.mark.skipif(
    keras.backend.backend() == "torch", reason="Keras needs a gradient there"
)
def test_a_model_may_have_no_weights():
    model = keras.Sequential([keras.Input((2,)), keras.layers.Rescaling(2.0)])
    model.compile("sgd", "mse", run_eagerly=EAGER)
    x, _ = data()
    fit(model, x, x, RestoreOnNaN())


def loss_that_sees_no_nan(y, answer):
    """As below a ReLU on some processors."""
    seen = keras.ops.where(keras.ops.isnan(answer), 0, answer)
    return keras.ops.mean((seen - y) ** 2)


class Silent(keras.Sequential):
    """A model whose logs have no loss."""

    def train_step(self, *arguments):
        logs = super().train_step(*arguments)
        if keras.backend.backend() == "jax":
            return {"other": logs[0]["loss"] * 0}, logs[1]
        return {"other": logs["loss"] * 0}


def test_no_loss_is_named_where_there_is_none():
    model = Silent([keras.Input((2,)), keras.layers.Dense(1)])
    model.compile(keras.optimizers.SGD(1e38), "mse", run_eagerly=EAGER)
    x, y = data()
    with pytest.raises(FloatingPointError, match=r"^Epoch 1, step 1\. The fir"):
        fit(model, x, 1e3 * y, RestoreOnNaN())


class Saver(keras.callbacks.Callback):
    """Keeps what a callback would save at the end of an epoch."""

    def on_train_begin(self, logs=None):
        self.saved = self.model.get_weights()

    def on_epoch_end(self, epoch, logs=None):
        self.saved = self.model.get_weights()


class StepsUnknown(keras.callbacks.Callback):
    """What `fit` tells of a generator."""

    def on_train_begin(self, logs=None):
        self.params["steps"] = None


@pytest.mark.parametrize(
    "steps_at_once, others",
    first_of(diagonal([1, 3, 8, 16], [(), (StepsUnknown(),)]), 2),
)
def test_no_callback_saves_weights_that_are_not_finite(steps_at_once, others):
    """The last update overflows; the loss of its step is finite."""
    model, saver = make(steps_at_once, rate=1e38), Saver()
    x, y = data()
    x, y = np.zeros_like(x), np.zeros_like(y)
    y[-4:] = 1e3
    initial = model.get_weights()
    with pytest.raises(FloatingPointError, match="Epoch 1, .*second/bias"):
        fit(model, x, y, saver, *others, RestoreOnNaN())
    assert_same(saver.saved, initial, 0, 0)
    assert_same(model.get_weights(), initial, 0, 0)


@pytest.mark.parametrize(
    "loss, step, when",
    [
        ("mse", 3, "Epoch 2, step 3"),
        (loss_that_sees_no_nan, 6, "step 6"),
        (loss_that_sees_no_nan, 8, "step 8"),
        (loss_that_sees_no_nan, 8, "2 is over"),
    ],
)
def test_weights_lost_after_a_step_are_named_even_if_the_loss_hides_them(
    loss, step, when
):
    """The model gets back the latest finite ones."""
    model, saver = make(loss=loss), Saver()
    sets, finite = SetsNaN(step), RestoreOnNaN()
    others = [finite, sets] if "over" in when else [sets, finite]
    with pytest.raises(FloatingPointError, match=f"{when}.*second/bias"):
        fit(model, *data(), saver, *others, epochs=2)
    if sets is others[0]:
        assert_same(model.get_weights(), sets.before, 0, 0)


def test_the_states_of_a_stateful_layer_are_finite_too():
    rnn = keras.layers.SimpleRNN(3, stateful=True)
    inputs = keras.Input(batch_shape=(4, 2, 2))
    model = keras.Sequential([inputs, rnn, keras.layers.Dense(1)])
    model.compile("sgd", "mse", run_eagerly=EAGER)
    x = np.ones((12, 2, 2), "float32")
    x[8:] = np.nan
    with pytest.raises(FloatingPointError, match="the loss is nan"):
        fit(model, x, np.ones((12, 1)), RestoreOnNaN())
    assert np.isfinite(to_numpy(rnn.states[0])).all()
