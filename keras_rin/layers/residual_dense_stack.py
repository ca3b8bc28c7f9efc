"""ResidualDenseStack: many equal residual units as one layer."""

import keras
from keras import ops

from keras_rin import arguments


@keras.saving.register_keras_serializable(package="keras_rin")
class ResidualDenseStack(keras.layers.Layer):
    """Many equal residual units, one after the other, as a single layer.

    h_0 = x,  h_{i+1} = h_i + activation(h_i U_i + s_i) V_i,  y = h_depth

    Each weight holds that of every unit along a leading axis, and one loop
    runs over it: a thousand units build, save and compile as one layer does.
    In Keras h is a row; in the paper it is a column, h + V relu(U h + s).

    The weights are `inner_kernel` U `(depth, features, units)`, `bias` s
    `(depth, units)` and `outer_kernel` V `(depth, units, features)`. With
    the default start, V = 0, the layer changes nothing.

    Args:
        depth: Positive integer, the number of residual units.
        units: Positive integer, the neurons of each unit.
        activation: Activation function. Defaults to `"relu"`.
        inner_initializer: Initializer of U, all units at once. Defaults to
            `"he_normal"`, whose variance Keras then divides by `depth`.
        outer_initializer: Initializer of V. Defaults to `"zeros"`.
        **kwargs: `name`, `dtype`, `trainable`, `activity_regularizer`.

    Call arguments:
        x: Tensor of shape `(..., features)`.

    Returns:
        A tensor of the shape of `x`.

    Raises:
        ValueError: If `depth` or `units` is not a positive integer, or if
            the number of features is not known, or another one than before.

    Example:

    >>> layer = keras_rin.layers.ResidualDenseStack(depth=100, units=8)
    >>> tuple(layer(np.ones((32, 4))).shape)
    (32, 4)

    Reference:
        Hardt and Ma, 2017, Identity matters in deep learning (arXiv
        1611.04231), section 3.
    """

    def __init__(
        self,
        depth,
        units,
        activation="relu",
        inner_initializer="he_normal",
        outer_initializer="zeros",
        **kwargs,
    ):
        super().__init__(**kwargs)
        # XLA on TensorFlow has no gradient of the scan of `keras.ops`, and
        # the compiler of Torch unrolls it: `jit_compile="auto"` stays off.
        self.supports_jit = keras.backend.backend() == "jax"
        self.depth = arguments.integer("depth", depth)
        self.units = arguments.integer("units", units)
        self.activation = keras.activations.get(activation)
        self.inner_initializer = keras.initializers.get(inner_initializer)
        self.outer_initializer = keras.initializers.get(outer_initializer)

    def build(self, input_shape):
        features = input_shape[-1]
        if features is None:
            raise ValueError(
                f"{self.name} needs to know the number of features, the last "
                f"axis of its input. Received: shape={tuple(input_shape)}"
            )
        self.inner_kernel = self.add_weight(
            name="inner_kernel",
            shape=(self.depth, features, self.units),
            initializer=self.inner_initializer,
        )
        self.bias = self.add_weight(
            name="bias", shape=(self.depth, self.units), initializer="zeros"
        )
        self.outer_kernel = self.add_weight(
            name="outer_kernel",
            shape=(self.depth, self.units, features),
            initializer=self.outer_initializer,
        )
        self.input_spec = keras.InputSpec(min_ndim=2, axes={-1: features})

    def call(self, x):
        def unit(h, weights):
            inner, bias, outer = weights
            active = self.activation(ops.matmul(h, inner) + bias)
            return h + ops.matmul(active, outer), None

        weights = (self.inner_kernel, self.bias, self.outer_kernel)
        weights = tuple(ops.convert_to_tensor(weight) for weight in weights)
        return ops.scan(unit, x, weights)[0]

    def compute_output_shape(self, input_shape):
        return input_shape

    def get_config(self):
        return {
            **super().get_config(),
            "depth": self.depth,
            "units": self.units,
            "activation": keras.activations.serialize(self.activation),
            "inner_initializer": keras.initializers.serialize(
                self.inner_initializer
            ),
            "outer_initializer": keras.initializers.serialize(
                self.outer_initializer
            ),
        }
