"""ResidualConv2D: x + C2(activation(C1 x))."""

import keras
from keras import ops

from keras_rin import arguments
from keras_rin.layers.residual_branch import ResidualBranch


@keras.saving.register_keras_serializable(package="keras_rin")
class ResidualConv2D(ResidualBranch):
    """Two convolutions that add to their input: an all-convolutional block.

    y = shortcut(x) + C2(activation(C1(x) + b))

    C1 has `strides`, C2 has none, both pad to "same". There is one activation
    and no normalisation. The trained weights, in this order, are `kernel`
    `(height, width, channels, filters)` of C1, `output_kernel`
    `(height, width, filters, filters)` of C2 and `bias` b `(filters,)`. They
    store the offset from the identity: weight decay or
    `keras.regularizers.L2` pulls towards the shortcut alone.

    The shortcut has no weights. Where the shape stays, it is x. Where
    `strides` is above 1, it averages windows of that size. Where `filters` is
    above the number of channels, it adds channels of zeros, half of them
    before and half behind; of an odd number the one left over goes behind.

    Args:
        filters: Positive integer, the channels of the output, at least those
            of the input.
        kernel_size: Positive integer or a pair of them, height and width of
            both kernels. Defaults to 3.
        strides: Positive integer or a pair of them, the steps of C1. They
            have to divide height and width. Defaults to 1.
        data_format: `"channels_last"` or `"channels_first"`. Defaults to
            `None`: `keras.config.image_data_format()`.
        activation: Activation function between the convolutions. Defaults to
            `"relu"`; `None` for a linear layer.
        use_bias: Boolean, whether C1 has a bias. Defaults to `True`.
        kernel_initializer: Initializer of the kernel of C1. Defaults to
            `None`: `SmallVarianceNormal`.
        output_initializer: Initializer of the kernel of C2. Defaults to
            `None`: `SmallVarianceNormal`. `"zeros"` starts at the shortcut
            exactly.
        bias_initializer: Initializer of b. Defaults to `"zeros"`.
        kernel_regularizer: Regularizer of the kernel of C1. Defaults to
            `None`.
        output_regularizer: Regularizer of the kernel of C2. Defaults to
            `None`.
        bias_regularizer: Regularizer of b. Defaults to `None`.
        activity_regularizer: Regularizer of the output. Defaults to `None`.
        kernel_constraint: Constraint on the kernel of C1. Defaults to `None`.
        output_constraint: Constraint on the kernel of C2. Defaults to `None`.
        bias_constraint: Constraint on b. Defaults to `None`.
        **kwargs: `name`, `dtype`, `trainable`.

    Call arguments:
        x: Tensor of shape `(batch, height, width, channels)`, or
            `(batch, channels, height, width)` with `"channels_first"`.

    Returns:
        Tensor of shape `(batch, height / strides, width / strides, filters)`,
        or with the channels first.

    Raises:
        ValueError: If `filters`, `kernel_size` or `strides` is not made of
            positive integers, if `data_format` is neither of the two, if
            Keras does not know the activation, an initializer, a regularizer
            or a constraint, if the input has more channels than `filters`, or
            a height or width that `strides` does not divide. Where TensorFlow
            learns such a size only as it runs, the error is its own.

    Example:

    >>> layer = keras_rin.layers.ResidualConv2D(16, strides=2)
    >>> tuple(layer(np.ones((2, 8, 8, 4))).shape)
    (2, 4, 4, 16)

    Reference:
        Hardt and Ma, 2017, Identity matters in deep learning (arXiv
        1611.04231), section 4.
    """

    def __init__(
        self,
        filters,
        kernel_size=3,
        strides=1,
        data_format=None,
        activation="relu",
        use_bias=True,
        **kwargs,
    ):
        super().__init__(activation, use_bias, **kwargs)
        self.filters = arguments.integer("filters", filters)
        self.kernel_size = _pair("kernel_size", kernel_size)
        self.strides = _pair("strides", strides)
        self.data_format = data_format or keras.config.image_data_format()
        if self.data_format not in ("channels_last", "channels_first"):
            raise ValueError(
                '`data_format` must be "channels_last" or "channels_first". '
                f"Received: data_format={data_format!r}"
            )
        self._axis = 1 if self.data_format == "channels_first" else 3
        self.input_spec = keras.InputSpec(ndim=4)

    def build(self, input_shape):
        self.compute_output_shape(input_shape)
        channels = input_shape[self._axis]
        self.input_spec = keras.InputSpec(ndim=4, axes={self._axis: channels})
        self.add_branch(
            (*self.kernel_size, channels, self.filters),
            (*self.kernel_size, self.filters, self.filters),
        )

    def call(self, x):
        self.compute_output_shape(x.shape)
        # TensorFlow has no convolution with the channels first on a CPU.
        x = ops.moveaxis(x, self._axis, 3)
        hidden = _conv(x, self.kernel, self.strides)
        if self.use_bias:
            hidden = hidden + self.bias
        branch = _conv(self.activation(hidden), self.output_kernel)
        return ops.moveaxis(self._shortcut(x) + branch, 3, self._axis)

    def _shortcut(self, x):
        if self.strides != (1, 1):
            x = _average(x, self.strides)
        missing = self.filters - x.shape[3]
        if missing:
            half = missing // 2
            x = ops.pad(x, [(0, 0)] * 3 + [(half, missing - half)])
        return x

    def compute_output_shape(self, input_shape):
        batch, *sizes = input_shape
        channels = sizes.pop(self._axis - 1)
        self._refuse(input_shape, sizes, channels)
        sizes = [
            size and size // stride
            for size, stride in zip(sizes, self.strides, strict=True)
        ]
        sizes.insert(self._axis - 1, self.filters)
        return (batch, *sizes)

    def _refuse(self, shape, sizes, channels):
        received = f"Received: shape={tuple(shape)}"
        if channels is None or channels > self.filters:
            raise ValueError(
                f"{self.name} needs an input of at most filters="
                f"{self.filters} channels: a shortcut can add channels, not "
                f"take them away. {received}"
            )
        for size, stride in zip(sizes, self.strides, strict=True):
            if size is not None and size % stride:
                raise ValueError(
                    f"{self.name} needs height and width that strides="
                    f"{self.strides} divides. {received}"
                )

    def get_config(self):
        return {
            **super().get_config(),
            "filters": self.filters,
            "kernel_size": self.kernel_size,
            "strides": self.strides,
            "data_format": self.data_format,
        }


def _average(x, strides):
    if None not in x.shape[1:3]:
        return ops.average_pool(x, strides, strides, "valid", "channels_last")
    # Of a size that shows only now: the reshape fails where a stride does not
    # divide it. A pool would leave a row out, and the sum be broadcast.
    for axis, stride in zip((1, 2), strides, strict=True):
        shape = ops.shape(x)
        shape = (*shape[:axis], -1, stride, *shape[axis + 1 :])
        x = ops.mean(ops.reshape(x, shape), axis=axis + 1)
    return x


def _conv(x, kernel, strides=1):
    return ops.conv(x, kernel, strides, "same", "channels_last")


def _pair(name, value):
    if not isinstance(value, (list, tuple)):
        value = (value, value)
    if len(value) != 2:
        raise ValueError(
            f"`{name}` must be one integer or two. Received: {name}={value!r}"
        )
    return tuple(arguments.integer(name, size) for size in value)
