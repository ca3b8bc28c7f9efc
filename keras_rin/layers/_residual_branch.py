"""The weights and options that residual layers have in common."""

from collections.abc import Callable
from typing import Any

import keras

from keras_rin import _arguments
from keras_rin.initializers import SmallVarianceNormal
from keras_rin.initializers._serialization import with_initializers

KINDS = {
    "initializer": keras.initializers,
    "regularizer": keras.regularizers,
    "constraint": keras.constraints,
}


def add_weight_of(layer, weight, name, shape, **options):
    """Adds a weight to a layer, with the options that are named after it."""
    of_layer = {kind: getattr(layer, f"{weight}_{kind}") for kind in KINDS}
    return layer.add_weight(name=name, shape=shape, **of_layer | options)


class ResidualLayer(keras.layers.Layer):
    """Base class of residual layers: the options of their `WEIGHTS`.

    If `a` is one of them, these are `a_initializer`, `a_regularizer` and
    `a_constraint`. `SIZES` are further arguments that the config has. The
    last weight is zero where the branch is.
    """

    WEIGHTS: tuple[str, ...] = ()
    SIZES: tuple[str, ...] = ()

    def __init__(self, *, scale: float | str = 1.0, **options: Any):
        chosen = {
            (weight, kind): options.pop(f"{weight}_{kind}", None)
            for weight in self.WEIGHTS
            for kind in KINDS
        }
        super().__init__(**options)
        self.supports_masking = True
        for (weight, kind), option in chosen.items():
            setattr(self, f"{weight}_{kind}", KINDS[kind].get(option))
        output = f"{self.WEIGHTS[-1]}_initializer"
        if scale != "rezero":
            scale = _arguments.finite_number("scale", scale)
        elif isinstance(getattr(self, output), keras.initializers.Zeros):
            raise ValueError(
                '`scale="rezero"` begins at 0, and no weight has a gradient if '
                f'the branch is zero too: pass {output}="glorot_uniform" or '
                f'another. Received: {output}="zeros"'
            )
        self.scale = scale

    def add_weight_of(self, weight, name, shape):
        return add_weight_of(self, weight, name, shape)

    def add_scale(self):
        # After the other weights, whose order is that of files without it.
        if self.scale == "rezero":
            self.branch_scale = self.add_weight(
                name="scale", initializer="zeros"
            )

    def scaled(self, branch):
        if self.scale == "rezero":
            return branch * self.branch_scale
        return branch if self.scale == 1 else branch * self.scale

    def fixed_features(self, input_shape):
        self.input_spec = keras.InputSpec(
            min_ndim=2, axes={-1: input_shape[-1]}
        )
        return input_shape[-1]

    def compute_output_shape(self, input_shape):
        return input_shape

    def get_config(self):
        options = {
            f"{weight}_{kind}": KINDS[kind].serialize(
                getattr(self, f"{weight}_{kind}")
            )
            for weight in self.WEIGHTS
            for kind in KINDS
        }
        options = with_initializers(self, options)
        options |= {
            name: getattr(self, name) for name in (*self.SIZES, "scale")
        }
        return {**super().get_config(), **options}


class ResidualBranch(ResidualLayer):
    """Base class of residual layers with two kernels, as `ResidualDense`."""

    WEIGHTS = ("kernel", "bias", "output")

    def __init__(
        self,
        *,
        activation: str | Callable | None = "relu",
        use_bias: bool = True,
        **options: Any,
    ):
        options.setdefault("bias_initializer", "zeros")
        for name in ("kernel_initializer", "output_initializer"):
            options[name] = options.get(name) or SmallVarianceNormal()
        super().__init__(**options)
        self.activation = keras.activations.get(activation)
        self.use_bias = use_bias

    def add_branch(self, kernel_shape, output_shape, bias_shape):
        add = self.add_weight_of
        self.kernel = add("kernel", "kernel", kernel_shape)
        self.output_kernel = add("output", "output_kernel", output_shape)
        if self.use_bias:
            self.bias = add("bias", "bias", bias_shape)
        self.add_scale()

    def get_config(self):
        return {
            **super().get_config(),
            "activation": keras.activations.serialize(self.activation),
            "use_bias": self.use_bias,
        }
