"""Training that ends with finite weights."""

import keras
import numpy as np

from keras_rin._layer_walk.layers import hidden_states


class RestoreOnNaN(keras.callbacks.Callback):
    """Ends training at a loss not finite, with the last finite weights.

    When the loss of a step is NaN or infinite, the model gets back the last
    finite weights and hidden states, and an error names the step and the first
    weight that is not finite; `keras.callbacks.TerminateOnNaN` leaves the NaN.
    The error is raised within the step, so no callback sees the end of the
    epoch; one that saves within an epoch has to stand after this one.

    After the last step of an epoch, and after each where `fit` does not know
    their number, the weights are checked too: the update may have overflowed,
    and on some processors a ReLU makes 0 of NaN.

    It keeps three copies of the weights and makes one at every execution. The
    variables of the optimizer stay as they are: to train on, compile the model
    again.

    Raises:
        FloatingPointError: If the loss or a checked weight is not finite.

    Example:

    >>> model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)])
    >>> model.compile("sgd", "mse")
    >>> finite = [keras_rin.callbacks.RestoreOnNaN()]
    >>> x, y = np.full((8, 1), 1e30), np.zeros((8, 1))
    >>> model.fit(x, y, callbacks=finite, verbose=0)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    FloatingPointError: Epoch 1, step 1: the loss is inf...
    >>> bool(np.isfinite(model.get_weights()[0]).all())
    True
    """

    def on_epoch_begin(self, epoch, logs=None):
        self._epoch, self._step = f"Epoch {epoch + 1}", 0
        # Of the beginning, and after the last two executions.
        self._copies = [self._copy_variables()]

    def on_train_batch_end(self, batch, logs=None):
        first, total = self._step + 1, self.params.get("steps")
        self._step += self.model.steps_per_execution
        last = min(self._step, total or self._step)
        self._copies.append(self._copy_variables())
        loss = (logs or {}).get("loss")  # a train step may log none
        is_finite = loss is None or np.isfinite(loss)
        if not is_finite or total in (None, last):
            steps = f"s {first} to {last}" if first < last else f" {last}"
            named = "" if loss is None else f": the loss is {loss}"
            self._check(f"{self._epoch}, step{steps}{named}", is_finite)
        del self._copies[1:-2]

    def on_epoch_end(self, epoch, logs=None):
        self._copies.append(self._copy_variables())
        self._check(f"{self._epoch} is over")

    def _copy_variables(self):
        variables = self.model.weights + hidden_states(self.model)
        return [(v, keras.ops.copy(v)) for v in variables]

    def _check(self, when, is_finite=True):
        if is_finite and not _not_finite(self._copies[-1]):
            return
        weights, restored = "All weights are finite", "There are no finite ones"
        for copies in self._copies:
            if paths := _not_finite(copies):
                weights = f"The first weight not finite is {paths[0]}"
                break
            for variable, value in copies:
                variable.assign(value)
            restored = "The model has the last finite weights"
        raise FloatingPointError(f"{when}. {weights}. {restored}.")


def _not_finite(copies):
    """The paths of the variables whose values are not finite."""
    arrays = [(v.path, keras.ops.convert_to_numpy(copy)) for v, copy in copies]
    return [path for path, array in arrays if not np.isfinite(array).all()]
