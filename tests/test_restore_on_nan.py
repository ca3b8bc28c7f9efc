import keras
import numpy as np
import pytest
from cases import first_of
from references import assert_same
from references import to_numpy

from keras_rin.callbacks import RestoreOnNaN
from keras_rin.callbacks import ResumableTraining

# Without a graph TensorFlow is sooner done with so few steps.
EAGER = keras.backend.backend() == "tensorflow"


def make(loss="mse", run_eagerly=EAGER, **kwargs):
    keras.utils.set_random_seed(1)
    model = keras.Sequential(
        [
            keras.Input((2,)),
            keras.layers.Dense(3, "relu", name="first"),
            keras.layers.Dense(1, name="second"),
        ],
        name="model",
    )
    optimizer = keras.optimizers.Adam(0.01)
    model.compile(optimizer, loss, run_eagerly=run_eagerly, **kwargs)
    return model


def data(bad_step=None, bad=np.nan):
    x = np.random.default_rng(0).normal(size=(24, 2)).astype("float32")
    y = x[:, :1] + 1
    if bad_step is not None:
        y[4 * bad_step] = bad
    return x, y


def fit(model, x, y, *callbacks, **kwargs):
    return model.fit(
        x,
        y,
        batch_size=4,
        shuffle=False,
        verbose=0,
        callbacks=list(callbacks),
        **kwargs,
    )


@pytest.mark.parametrize(
    "step, bad, jit_compile",
    first_of([(0, np.inf, False), (3, np.nan, False), (3, np.inf, True)], 2),
)
def test_the_weights_are_those_before_the_step(step, bad, jit_compile):
    if jit_compile and keras.backend.backend() == "torch":
        pytest.skip("Torch's compiler is not there on every machine.")
    x, y = data()
    reference = make(run_eagerly=False)
    if step:
        fit(reference, x[: 4 * step], y[: 4 * step])
    model = make(run_eagerly=False, jit_compile=jit_compile)
    with pytest.raises(
        FloatingPointError,
        match=rf"Epoch 1, step {step + 1}: the loss is {bad}. The first weight "
        r"not finite is model/\w+/kernel\.",
    ):
        fit(model, *data(step, bad), RestoreOnNaN())
    assert_same(model.get_weights(), reference.get_weights(), 1e-6, 0)


class BreaksAfter(keras.callbacks.Callback):
    """Makes a weight not finite after a step, its loss still finite."""

    def __init__(self, epoch, step, layer="first", weight="kernel"):
        super().__init__()
        self.place, self.layer, self.weight = (epoch, step), layer, weight

    def on_epoch_begin(self, epoch, logs=None):
        self.epoch = epoch
        self.at_begin = self.model.get_weights()

    def on_train_batch_end(self, batch, logs=None):
        if (self.epoch, batch + 1) == self.place:
            self.before = self.model.get_weights()
        if (self.epoch, batch) == self.place:
            weight = getattr(self.model.get_layer(self.layer), self.weight)
            weight.assign(np.full(weight.shape, np.nan))


def test_a_weight_lost_at_the_step_before_is_named():
    model, breaks = make(), BreaksAfter(0, 2, "second", "bias")
    with pytest.raises(
        FloatingPointError, match="step 4: .* not finite is model/second/bias"
    ):
        fit(model, *data(), breaks, RestoreOnNaN())
    for weight in model.get_weights():
        assert np.isfinite(weight).all()


def test_without_finite_weights_it_says_so():
    model = make()
    model.get_layer("second").kernel.assign(np.full((3, 1), np.nan))
    with pytest.raises(FloatingPointError, match="no finite weights"):
        fit(model, *data(), RestoreOnNaN())


def test_a_loss_that_reaches_no_weight_leaves_them_finite():
    model = make(loss=lambda y, answer: keras.ops.mean(0 * answer + y))
    with pytest.raises(FloatingPointError, match="All weights are finite"):
        fit(model, *data(1, np.inf), RestoreOnNaN())


def test_the_file_of_a_training_keeps_the_last_good_epoch(tmp_path):
    path = tmp_path / "state.npz"
    x, y = data()

    model = make()
    fit(model, x, y, RestoreOnNaN(), ResumableTraining(path), epochs=2)
    good = [to_numpy(v) for v in model.variables]
    with pytest.raises(FloatingPointError, match="Epoch 3, step 4"):
        fit(
            make(),
            *data(3),
            RestoreOnNaN(),
            ResumableTraining(path),
            initial_epoch=2,
            epochs=3,
        )
    model = make()
    resumable = ResumableTraining(path)
    fit(model, x, y, resumable, initial_epoch=2, epochs=2)
    assert resumable.epoch == 2
    assert_same(model.variables, good, 0, 0)


@pytest.mark.parametrize("restore_first", [True, False])
def test_after_a_resume_it_restores_what_was_resumed(tmp_path, restore_first):
    path = tmp_path / "state.npz"
    first = make()
    fit(first, *data(), ResumableTraining(path), epochs=2)

    def both():
        two = [RestoreOnNaN(), ResumableTraining(path)]
        return two if restore_first else two[::-1]

    resumed = make()
    with pytest.raises(FloatingPointError, match="Epoch 3, step 1: the loss"):
        fit(resumed, *data(0), *both(), initial_epoch=2, epochs=3)
    assert_same(resumed.get_weights(), first.get_weights(), 0, 0)


def loss_that_sees_no_nan(y, answer):
    """As below a ReLU on some processors."""
    seen = keras.ops.where(keras.ops.isnan(answer), 0, answer)
    return keras.ops.mean((seen - y) ** 2)


class StepsUnknown(keras.callbacks.Callback):
    """What `fit` tells of a generator in its first epoch."""

    def on_train_begin(self, logs=None):
        self.params["steps"] = None


@pytest.mark.parametrize("steps", ["known", "unknown"])
@pytest.mark.parametrize("step", [0, 5])
def test_weights_are_looked_at_when_an_epoch_ends(tmp_path, step, steps):
    model, breaks = make(loss_that_sees_no_nan), BreaksAfter(1, step)
    saves = ResumableTraining(tmp_path / "state.npz")
    callbacks = [saves, breaks, RestoreOnNaN()]
    if steps == "unknown":
        callbacks = [StepsUnknown(), breaks, RestoreOnNaN(), saves]
    with pytest.raises(
        FloatingPointError, match="Epoch 2.*not finite is model/first/kernel"
    ):
        fit(model, *data(), *callbacks, epochs=2)
    expected = breaks.at_begin if step == 0 else breaks.before
    assert_same(model.get_weights(), expected, 0, 0)
    assert ResumableTraining(saves.path).epoch == 1


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


def test_training_goes_on_as_without_it():
    model, without = make(), make()
    fit(model, *data(), RestoreOnNaN(), epochs=2)
    fit(without, *data(), epochs=2)
    assert_same(model.get_weights(), without.get_weights(), 0, 0)
