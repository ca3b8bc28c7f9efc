"""Optimizers with per-weight learning rates."""

from collections.abc import Callable
from typing import Any

import keras

from keras_rin import _arguments


@keras.saving.register_keras_serializable(package="keras_rin")
class AdamWithMultipliers(keras.optimizers.Adam):
    """Adam optimizer with learning rate multipliers for selected weights.

    w <- w - c_w r m_w / (sqrt(v_w) + epsilon)

    r is the learning rate, m_w and v_w are the bias-corrected moments of the
    gradient of w, and c_w is the multiplier of w, 1 by default. As in Keras's
    Adam, epsilon is added before the bias correction, so that it is divided
    by sqrt(1 - beta_2^t) in update t. Scaling the loss or the gradient has no
    such effect, because Adam divides by the magnitude of the gradient.

    An update with learning rate r changes the recurrent matrix of n units by
    up to r n in spectral norm, and the change acts at each of T time steps.
    On long sequences, a RIN therefore needs a smaller learning rate for its
    recurrent kernel than for its other weights.

    A multiplier of 0 stops the updates, but not `weight_decay`, which it does
    not multiply: exclude such a weight with `exclude_from_weight_decay`.

    Args:
        learning_rate: Number, or a schedule from
            `keras.optimizers.schedules`: r. Defaults to 0.001.
        multipliers: Dict that maps names of weights to finite numbers, at
            least 0. A name is the end of a path, such as `"recurrent_kernel"`
            for that of every layer or `"rin/rin_cell/recurrent_kernel"` for
            that of one layer. If several names match a weight, the longest
            one is used. Defaults to `None`: no multipliers.
        **kwargs: Further arguments of `keras.optimizers.Adam`.

    Raises:
        ValueError: If `multipliers` is not a dict, or if a multiplier is
            negative or not finite; at the beginning of training, if a name
            matches no trainable weight.

    Example:

    >>> optimizer = keras_rin.optimizers.AdamWithMultipliers(
    ...     0.003, {"recurrent_kernel": 0.1}, clipnorm=1.0
    ... )
    >>> model = keras.Sequential([keras_rin.layers.RIN(8)])
    >>> model.compile(optimizer, "mse")
    """

    def __init__(
        self,
        learning_rate: float | Callable = 0.001,
        multipliers: dict[str, float] | None = None,
        **kwargs: Any,
    ):
        super().__init__(learning_rate, **kwargs)
        if not isinstance(multipliers, (dict, type(None))):
            raise ValueError(
                "`multipliers` must be a dict from names to numbers. "
                f"Received: multipliers={multipliers!r}"
            )
        self.multipliers = {
            name: _arguments.finite_number(f"multipliers[{name!r}]", c, 0)
            for name, c in (multipliers or {}).items()
        }

    def build(self, variables):
        super().build(variables)
        unused = set(self.multipliers)
        self._multiplier = {}
        for variable in variables:
            names = [
                name
                for name in self.multipliers
                if f"/{variable.path}".endswith(f"/{name}")
            ]
            unused -= set(names)
            if names:
                factor = self.multipliers[max(names, key=len)]
                for alias in _aliases(variable):
                    self._multiplier[id(alias)] = factor
        if unused:
            raise ValueError(
                "`multipliers` has names that match no trainable weight: "
                f"{sorted(unused)}. "
                f"Received: weights {[v.path for v in variables]}"
            )

    def update_step(self, gradient, variable, learning_rate):
        factor = self._multiplier.get(id(variable), 1.0)
        super().update_step(gradient, variable, factor * learning_rate)

    def get_config(self):
        return {**super().get_config(), "multipliers": self.multipliers}


def _aliases(variable):
    """The objects that `update_step` may receive in place of a variable.

    TensorFlow passes the wrapped variable and, under a strategy, the copy of
    each device.
    """
    if keras.backend.backend() != "tensorflow":
        return [variable]
    return [variable, variable.value, *getattr(variable.value, "values", ())]
