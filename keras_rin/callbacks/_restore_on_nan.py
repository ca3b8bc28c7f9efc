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
        self._epoch, self._step = epoch, 0
        # Of the beginning, and after the last two executions.
        self._copies = [self._copy_variables()]

    def on_train_batch_end(self, batch, logs=None):
        first, total = self._step + 1, (self.params or {}).get("steps")
        self._step += self.model.steps_per_execution
        last = min(self._step, total or self._step)
        steps = f"step {first}" if first == last else f"steps {first} to {last}"
        when = f"Epoch {self._epoch + 1}, {steps}"
        loss = (logs or {}).get("loss")  # a train step may log none
        when += "" if loss is None else f": the loss is {loss}"
        if not np.isfinite(loss or 0.0):
            self._restore(when)
        self._copies[1:] = [*self._copies[1:][-1:], self._copy_variables()]
        if total in (None, last) and _not_finite(self._copies[-1]):
            self._restore(when)

    def on_epoch_end(self, epoch, logs=None):
        if _not_finite(self._copy_variables()):
            self._restore(f"Epoch {epoch + 1} is over")

    def _copy_variables(self):
        variables = self.model.weights + hidden_states(self.model)
        return [(v, keras.ops.copy(v)) for v in variables]

    def _restore(self, when):
        weights = "All weights are finite."
        if paths := _not_finite(self._copies[-1] + self._copy_variables()):
            weights = f"The first weight not finite is {paths[0]}."
        for copies in reversed(self._copies):
            if not _not_finite(copies):
                for variable, value in copies:
                    variable.assign(value)
                restored = "The model has the last finite weights."
                break
        else:
            restored = "There are no finite weights to restore."
        raise FloatingPointError(f"{when}. {weights} {restored}")


def _not_finite(copies):
    """The paths of the variables whose values are not finite."""
    arrays = (
        (v.path, keras.ops.convert_to_numpy(value)) for v, value in copies
    )
    return [path for path, array in arrays if not np.isfinite(array).all()]
