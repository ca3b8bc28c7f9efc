"""Training that ends with finite weights."""

import collections

import keras
import numpy as np

from keras_rin._layer_walk.layers import hidden_states


class RestoreOnNaN(keras.callbacks.Callback):
    r"""Ends training at a loss not finite, with the last finite weights.

    When the loss of a step is NaN or infinite, the model gets back the weights
    it had before the first of them was not finite, and an error names the step
    and the first weight that is not finite, in the order of the model: one
    from an earlier step where there is one, else one that this step made.

    `keras.callbacks.TerminateOnNaN` leaves the NaN in the weights, and unless
    it is asked to raise lets callbacks write them over what they had saved. As
    this one raises within the step, no callback sees the end of the epoch.

    After each step the loss alone is looked at, after the last one of an epoch
    the weights too: its update may have overflowed, and on some processors a
    ReLU makes 0 of NaN, so that weights below it can be NaN for an epoch. Then
    the model gets back those with which the epoch began. Where `fit` does not
    know the number of steps, as in the first epoch of a generator, the weights
    are checked in `on_epoch_end`, and this callback has to stand before those
    that save.

    The weights of the last two steps and of the beginning of the epoch are
    kept: that takes three times their memory, and a copy of each at every
    step, which tells where a step is short. They are taken when an epoch
    begins, so this callback may stand before or after
    `keras_rin.callbacks.ResumableTraining`. The variables of the optimizer
    stay as the step left them: to train on, compile the model again, or start
    from a file of `ResumableTraining`.

    Raises:
        FloatingPointError: At a loss that is not finite, or weights that are
            not at the end of an epoch.

    Example:

    >>> inputs, dense = keras.Input((1,)), keras.layers.Dense(1, name="dense")
    >>> model = keras.Sequential([inputs, dense], name="model")
    >>> model.compile("sgd", "mse")
    >>> finite = keras_rin.callbacks.RestoreOnNaN()
    >>> x, y = np.full((8, 1), 1e30), np.zeros((8, 1))
    >>> try:
    ...     model.fit(x, y, verbose=0, callbacks=[finite])
    ... except FloatingPointError as error:
    ...     print(*str(error).split(". "), sep="\n")
    Epoch 1, step 1: the loss is inf
    The first weight not finite is model/dense/kernel
    The model has the last finite weights.
    >>> bool(np.isfinite(model.get_weights()[0]).all())
    True
    """

    def on_train_begin(self, logs=None):
        self._recent_copies: collections.deque = collections.deque(maxlen=2)

    def on_epoch_begin(self, epoch, logs=None):
        self._epoch, self._states = epoch, None
        self._epoch_copies = self._copy_variables()
        self._recent_copies.append(self._epoch_copies)
        self._states = None  # the first step may build the model

    def on_train_batch_end(self, batch, logs=None):
        loss = (logs or {}).get("loss", 0.0)
        when = f"Epoch {self._epoch + 1}, step {batch + 1}: the loss is {loss}"
        if not np.isfinite(loss):
            self._raise_not_finite(when)
        self._recent_copies.append(self._copy_variables())
        if batch + 1 == (self.params or {}).get("steps"):
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
        if self._states is None:
            self._states = hidden_states(self.model)
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
