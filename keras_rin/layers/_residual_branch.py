"""ResidualBranch: the weights of a nonlinear residual layer."""

from collections.abc import Callable
from typing import Any

import keras
from keras.constraints import Constraint
from keras.initializers import Initializer
from keras.regularizers import Regularizer

from keras_rin.initializers import SmallVarianceNormal
from keras_rin.initializers import _half_precision


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
        kernel_initializer: str | Initializer | None = None,
        bias_initializer: str | Initializer = "zeros",
        kernel_regularizer: str | Regularizer | None = None,
        bias_regularizer: str | Regularizer | None = None,
        activity_regularizer: str | Regularizer | None = None,
        kernel_constraint: str | Constraint | None = None,
        bias_constraint: str | Constraint | None = None,
        output_initializer: str | Initializer | None = None,
        output_regularizer: str | Regularizer | None = None,
        output_constraint: str | Constraint | None = None,
        **kwargs: Any,
    ):
        super().__init__(activity_regularizer=activity_regularizer, **kwargs)
        self.activation = keras.activations.get(activation)
        self.use_bias = use_bias
        self.kernel_initializer = _initializer(kernel_initializer)
        self.bias_initializer = keras.initializers.get(bias_initializer)
        self.kernel_regularizer = keras.regularizers.get(kernel_regularizer)
        self.bias_regularizer = keras.regularizers.get(bias_regularizer)
        self.kernel_constraint = keras.constraints.get(kernel_constraint)
        self.bias_constraint = keras.constraints.get(bias_constraint)
        self.output_initializer = _initializer(output_initializer)
        self.output_regularizer = keras.regularizers.get(output_regularizer)
        self.output_constraint = keras.constraints.get(output_constraint)

    def add_branch(self, kernel_shape, output_shape, bias_shape):
        self.kernel = self.add_weight(
            name="kernel",
            shape=kernel_shape,
            initializer=_half_precision.in_float32_if_orthogonal(
                self.kernel_initializer
            ),
            regularizer=self.kernel_regularizer,
            constraint=self.kernel_constraint,
        )
        self.output_kernel = self.add_weight(
            name="output_kernel",
            shape=output_shape,
            initializer=_half_precision.in_float32_if_orthogonal(
                self.output_initializer
            ),
            regularizer=self.output_regularizer,
            constraint=self.output_constraint,
        )
        if self.use_bias:
            self.bias = self.add_weight(
                name="bias",
                shape=bias_shape,
                initializer=self.bias_initializer,
                regularizer=self.bias_regularizer,
                constraint=self.bias_constraint,
            )

    def get_config(self):
        initializer = keras.initializers.serialize
        regularizer = keras.regularizers.serialize
        constraint = keras.constraints.serialize
        return {
            **super().get_config(),
            "activation": keras.activations.serialize(self.activation),
            "use_bias": self.use_bias,
            "kernel_initializer": initializer(self.kernel_initializer),
            "bias_initializer": initializer(self.bias_initializer),
            "kernel_regularizer": regularizer(self.kernel_regularizer),
            "bias_regularizer": regularizer(self.bias_regularizer),
            "kernel_constraint": constraint(self.kernel_constraint),
            "bias_constraint": constraint(self.bias_constraint),
            "output_initializer": initializer(self.output_initializer),
            "output_regularizer": regularizer(self.output_regularizer),
            "output_constraint": constraint(self.output_constraint),
        }


def _initializer(identifier):
    return keras.initializers.get(identifier or SmallVarianceNormal())
