"""Training that ends with finite weights."""

import keras
import numpy as np
from keras import ops

from keras_rin._layer_walk.layers import hidden_states


class RestoreOnNaN(keras.callbacks.Callback):
    """Ends training at a loss or weight not finite, with the last finite ones.

    When the loss of a step or a weight after it is NaN or infinite, the model
    gets back the weights and hidden states from before the step, and an error
    names the step and the first weight that is not finite;
    `keras.callbacks.TerminateOnNaN` leaves the NaN. With `steps_per_execution`
    these are all steps of an execution. The error is raised within the step, so
    no callback sees the end of the epoch; one that saves within an epoch has to
    stand after this one.

    It keeps one copy of the weights, and reads them all at every execution. The
    variables of the optimizer stay as they are: to train on, compile the model
    again.

    Raises:
        FloatingPointError: If the loss or a weight is not finite.

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
        self._epoch, self._step, self._finite = f"Epoch {epoch + 1}", 0, []
        self._check(f"{self._epoch} begins")

    def on_train_batch_end(self, batch, logs=None):
        first = self._step + 1
        self._step += self.model.steps_per_execution
        last = min(self._step, self.params.get("steps") or self._step)
        steps = f"steps {first} to {last}" if first < last else f"step {last}"
        self._check(f"{self._epoch}, {steps}", (logs or {}).get("loss"))

    def on_epoch_end(self, epoch, logs=None):
        self._check(f"{self._epoch} is over")  # after other callbacks

    def _check(self, when, loss=None):
        """Copies the weights, or raises the error; a step may log no loss."""
        variables = self.model.weights + hidden_states(self.model)
        are_finite = [ops.all(ops.isfinite(v)) for v in variables]
        all_finite = not variables or ops.all(ops.stack(are_finite))
        if np.isfinite(loss or 0) and all_finite:
            self._finite = [(v, ops.copy(v)) for v in variables]
            return
        named = "" if loss is None else f": the loss is {loss}"
        weights, restored = "All weights are finite", "There are no finite ones"
        for variable, is_finite in zip(variables, are_finite, strict=True):
            if not is_finite:
                weights = f"The first weight not finite is {variable.path}"
                break
        for variable, value in self._finite:
            variable.assign(value)
            restored = "The model has the last finite weights"
        raise FloatingPointError(f"{when}{named}. {weights}. {restored}.")
