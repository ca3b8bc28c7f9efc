"""Training that ends with finite weights."""

import collections

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

    It keeps three copies of the weights and makes one at every execution of
    `steps_per_execution`. The variables of the optimizer stay as they are: to
    train on, compile the model again.

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

    def on_train_begin(self, logs=None):
        self._recent_copies: collections.deque = collections.deque(maxlen=2)

    def on_epoch_begin(self, epoch, logs=None):
        self._epoch, self._step = epoch, 0
        self._states = hidden_states(self.model)
        self._epoch_copies = self._copy_variables()
        self._recent_copies.append(self._epoch_copies)

    def on_train_batch_end(self, batch, logs=None):
        first, total = self._step + 1, (self.params or {}).get("steps")
        if first == 1:  # which may have built the model
            self._states = hidden_states(self.model)
        self._step += self.model.steps_per_execution
        last = min(self._step, total or self._step)
        steps = f"step {first}" if first == last else f"steps {first} to {last}"
        loss = (logs or {}).get("loss", 0.0)
        when = f"Epoch {self._epoch + 1}, {steps}: the loss is {loss}"
        self._check_finite([], when, loss)
        self._recent_copies.append(self._copy_variables())
        if total in (None, last):
            self._check_finite(self._recent_copies[-1], when)

    def on_epoch_end(self, epoch, logs=None):
        self._check_finite(self._copy_variables(), f"Epoch {epoch + 1} is over")

    def _check_finite(self, copies, when, loss=0.0):
        if not (np.isfinite(loss) and _all_finite(copies)):
            raise FloatingPointError(
                f"{when}. {self._first_not_finite()} {self._restore()}"
            )

    def _copy_variables(self):
        variables = self.model.weights + self._states
        return [(v, keras.ops.copy(v)) for v in variables]

    def _first_not_finite(self):
        for variable, value in self._recent_copies[-1] + self._copy_variables():
            if not _is_finite(value):
                return f"The first weight not finite is {variable.path}."
        return "All weights are finite."

    def _restore(self):
        for copies in (*reversed(self._recent_copies), self._epoch_copies):
            if copies and _all_finite(copies):
                for variable, value in copies:
                    variable.assign(value)
                return "The model has the last finite weights."
        return "There are no finite weights to restore."


def _all_finite(copies):
    return all(_is_finite(value) for _, value in copies)


def _is_finite(value):
    return np.isfinite(keras.ops.convert_to_numpy(value)).all()
