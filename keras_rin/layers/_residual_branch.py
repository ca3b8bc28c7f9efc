"""ResidualBranch: the weights of a nonlinear residual layer."""

from collections.abc import Callable
from typing import Any

import keras

from keras_rin.initializers import SmallVarianceNormal
from keras_rin.initializers import _half_precision

KINDS = {
    "initializer": keras.initializers,
    "regularizer": keras.regularizers,
    "constraint": keras.constraints,
}
OPTIONS = [
    f"{weight}_{kind}"
    for weight in ("kernel", "bias", "output")
    for kind in KINDS
]


class ResidualBranch(keras.layers.Layer):
    """Base class of residual layers with two kernels: weights and options.

    The residual branch consists of a first kernel, a bias, an activation and
    a second kernel, the output kernel. `ResidualDense` documents the options,
    its shapes and formula; `ResidualDenseStack` and `ResidualConv2D` have
    theirs.
    """

    def __init__(
        self,
        *,
        activation: str | Callable | None = "relu",
        use_bias: bool = True,
        **options: Any,
    ):
        options.setdefault("bias_initializer", "zeros")
        of_weights = {name: options.pop(name, None) for name in OPTIONS}
        super().__init__(**options)
        self.activation = keras.activations.get(activation)
        self.use_bias = use_bias
        for name in ("kernel_initializer", "output_initializer"):
            of_weights[name] = of_weights[name] or SmallVarianceNormal()
        for name, option in of_weights.items():
            setattr(self, name, KINDS[name.split("_")[1]].get(option))

    def add_branch(self, kernel_shape, output_shape, bias_shape):
        self.kernel = self._add("kernel", kernel_shape, "kernel")
        self.output_kernel = self._add("output_kernel", output_shape, "output")
        if self.use_bias:
            self.bias = self._add("bias", bias_shape, "bias")

    def _add(self, name, shape, weight):
        options = {kind: getattr(self, f"{weight}_{kind}") for kind in KINDS}
        options["initializer"] = _half_precision.in_float32_if_orthogonal(
            options["initializer"]
        )
        return self.add_weight(name=name, shape=shape, **options)

    def get_config(self):
        config = {
            **super().get_config(),
            "activation": keras.activations.serialize(self.activation),
            "use_bias": self.use_bias,
        }
        for name in OPTIONS:
            serialize = KINDS[name.split("_")[1]].serialize
            config[name] = serialize(getattr(self, name))
        return config
