"""Optimizers with learning rates of their own for some weights."""

import keras

from keras_rin import arguments


@keras.saving.register_keras_serializable(package="keras_rin")
class AdamWithMultipliers(keras.optimizers.Adam):
    """Adam whose learning rate is multiplied for some weights.

    w <- w - c_w r m_w / (sqrt(v_w) + epsilon)

    r is the learning rate, m_w and v_w Adam's corrected moments of the
    gradient of w, and c_w the multiplier of w: 1 where none is given. Adam
    divides by the size of the gradient, so scaling the loss or the gradient has
    no such effect.

    One update at the rate r moves the recurrent matrix of n units by up to
    r n in spectral norm, and over T time steps that acts T times. On long
    sequences a RIN therefore wants a smaller rate for its recurrent kernel
    than for its other weights.

    Args:
        learning_rate: Number, or a schedule of
            `keras.optimizers.schedules`, r. Defaults to 0.001.
        multipliers: Dict of names of weights to finite numbers, at least 0.
            A name is the end of a path, such as `"recurrent_kernel"` for
            those of all layers or `"rin/rin_cell/recurrent_kernel"` for that
            of one; where several fit, the longest counts. Defaults to
            `None`: Adam as it is.
        **kwargs: The other arguments of `keras.optimizers.Adam`.

    Raises:
        ValueError: If `multipliers` is no dict, or a multiplier is negative
            or not finite; when training begins, if a name fits no trained
            weight.

    Example:

    >>> optimizer = keras_rin.optimizers.AdamWithMultipliers(
    ...     0.003, {"recurrent_kernel": 0.1}, clipnorm=1.0
    ... )
    >>> model = keras.Sequential([keras_rin.layers.RIN(8)])
    >>> model.compile(optimizer, "mse")
    """

    def __init__(self, learning_rate=0.001, multipliers=None, **kwargs):
        super().__init__(learning_rate, **kwargs)
        if not isinstance(multipliers, (dict, type(None))):
            raise ValueError(
                "`multipliers` must be a dict of names and numbers. "
                f"Received: multipliers={multipliers!r}"
            )
        self.multipliers = {
            name: arguments.finite_number(f"multipliers[{name!r}]", c, 0)
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
                # TensorFlow hands `update_step` what a variable wraps.
                for one in (variable, variable.value):
                    self._multiplier[id(one)] = factor
        if unused:
            raise ValueError(
                f"`multipliers` names no trained weight by {sorted(unused)}. "
                f"Received: weights {[v.path for v in variables]}"
            )

    def update_step(self, gradient, variable, learning_rate):
        factor = self._multiplier.get(id(variable), 1.0)
        super().update_step(gradient, variable, factor * learning_rate)

    def get_config(self):
        return {**super().get_config(), "multipliers": self.multipliers}
