"""Training that ends with finite weights."""

import collections

import keras
import numpy as np

from keras_rin._layer_walk.layers import hidden_states


class RestoreOnNaN(keras.callbacks.Callback):
    """Ends training at a loss not finite, with the last finite weights.

    When the loss of a step is NaN or infinite, the model gets back the last
    finite weights and hidden states, and an error names the step and the first
    weight that is not finite. `keras.callbacks.TerminateOnNaN` leaves the NaN
    in the weights. As this callback raises within the step, no callback sees
    the end of the epoch; one that saves within an epoch has to stand after it.

    After the last step of an epoch the weights are checked too: that update
    may have overflowed, and on some processors a ReLU makes 0 of NaN, so that
    weights below it can be NaN for an epoch. Where `fit` does not know the
    number of steps, as of a generator, they are checked after each.

    It keeps three copies of the weights and makes one at every step, or every
    execution of `steps_per_execution`. The variables of the optimizer stay as
    they are: to train on, compile the model again.

    Raises:
        FloatingPointError: If the loss or a checked weight is not finite.

    Example:

    >>> inputs, dense = keras.Input((1,)), keras.layers.Dense(1, name="dense")
    >>> model = keras.Sequential([inputs, dense], name="model")
    >>> model.compile("sgd", "mse")
    >>> finite = keras_rin.callbacks.RestoreOnNaN()
    >>> x, y = np.full((8, 1), 1e30), np.zeros((8, 1))
    >>> try:
    ...     model.fit(x, y, verbose=0, callbacks=[finite])
    ... except FloatingPointError as error:
    ...     print(*str(error).split(". "), sep="\\n")
    Epoch 1, step 1: the loss is inf
    The first weight not finite is model/dense/kernel
    The model has the last finite weights.
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
        if not np.isfinite(loss):
            self._raise_not_finite(when)
        self._recent_copies.append(self._copy_variables())
        if total in (None, last):
            self._check_finite(self._recent_copies[-1], when)

    def on_epoch_end(self, epoch, logs=None):
        self._check_finite(self._copy_variables(), f"Epoch {epoch + 1} is over")

    def _check_finite(self, copies, when):
        if not _all_finite(copies):
            self._raise_not_finite(when)

    def _raise_not_finite(self, when):
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
