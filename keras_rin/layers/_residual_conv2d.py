"""ResidualConv2D: x + C2(activation(C1 x))."""

from typing import Any

import keras
from keras import ops

from keras_rin import _arguments
from keras_rin._recurrence.backends import with_known_features
from keras_rin.layers._residual_branch import ResidualBranch


@keras.saving.register_keras_serializable(package="keras_rin")
class ResidualConv2D(ResidualBranch):
    """Residual block of two convolutions, without normalization.

    y = shortcut(x) + scale C2(activation(C1(x) + b))

    The convolution C1 uses `strides`, C2 has stride 1, and both use "same"
    padding. There is one activation. The trainable weights are, in this
    order, `kernel` `(height, width, channels, filters)` of C1,
    `output_kernel` `(height, width, filters, filters)` of C2 and `bias` b
    `(filters,)`. They parametrize the offset from the identity, so weight
    decay or `keras.regularizers.L2` pulls the block towards its shortcut.

    The shortcut has no weights. If the block preserves the shape, the
    shortcut is x. With `strides` above 1, it is an average pooling with
    windows of that size. With more `filters` than channels, the missing
    channels are filled with zeros, half of them before the channels of x and
    half after; an odd one is added after.

    Args:
        filters: Positive integer, number of output channels, at least the
            number of input channels. All arguments that are not listed are
            those of `ResidualDense`, for the kernels of C1 (`kernel`) and C2
            (`output`): `output_initializer="zeros"` makes the block equal to
            its shortcut.
        kernel_size: Positive integer or a pair of them, height and width of
            both kernels. Defaults to 3.
        strides: Positive integer or a pair of them, strides of C1. Height and
            width must be divisible by them. Defaults to 1.
        data_format: `"channels_last"` or `"channels_first"`. Defaults to
            `None`: `keras.config.image_data_format()`.
        **options: Arguments of `ResidualDense`, by name.

    Call arguments:
        x: Tensor of shape `(batch, height, width, channels)`, or
            `(batch, channels, height, width)` with `"channels_first"`.

    Returns:
        Tensor of shape `(batch, height / strides, width / strides, filters)`,
        or `(batch, filters, height / strides, width / strides)` with
        `"channels_first"`.

    Raises:
        ValueError: If the input has more channels than `filters`, or a height
            or width that `strides` do not divide. If a size is undefined until
            TensorFlow runs the graph, TensorFlow raises its own error.

    Example:

    >>> layer = keras_rin.layers.ResidualConv2D(16, strides=2)
    >>> tuple(layer(np.ones((2, 8, 8, 4))).shape)
    (2, 4, 4, 16)

    Reference:
        Hardt and Ma, 2017, Identity matters in deep learning (arXiv
        1611.04231), section 4.
    """

    SIZES = "filters", "kernel_size", "strides", "data_format"

    def __init__(
        self,
        filters: int,
        kernel_size: int | tuple[int, int] = 3,
        strides: int | tuple[int, int] = 1,
        *,
        data_format: str | None = None,
        **options: Any,
    ):
        super().__init__(**options)
        self.supports_masking = False
        self.filters = _arguments.integer("filters", filters)
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
            (self.filters,),
        )

    def call(self, x):
        x = with_known_features(self, x)
        self.compute_output_shape(x.shape)
        x = ops.cast(x, self.compute_dtype)  # integers too
        # TensorFlow has no channels-first convolution on a CPU.
        x = ops.moveaxis(x, self._axis, 3)
        hidden = _conv(x, self.kernel, self.strides)
        if self.use_bias:
            hidden = hidden + self.bias
        branch = _conv(self.activation(hidden), self.output_kernel)
        branch = self.scaled(branch)
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
        strided = list(zip(sizes, self.strides, strict=True))
        fits = not any((size or 0) % stride for size, stride in strided)
        if channels is None or channels > self.filters or not fits:
            raise ValueError(
                f"{self.name} needs an input of at most filters="
                f"{self.filters} channels, because the shortcut cannot remove "
                f"any, with a height and width divisible by strides="
                f"{self.strides}. Received: shape={tuple(input_shape)}"
            )
        sizes = [size and size // stride for size, stride in strided]
        sizes.insert(self._axis - 1, self.filters)
        return (batch, *sizes)


def _average(x, strides):
    if None not in x.shape[1:3]:
        return ops.average_pool(x, strides, strides, "valid", "channels_last")
    # If a size is undefined until run time, the reshape fails where the size is
    # not divisible by the stride. Pooling would drop the remainder, and the sum
    # with the branch would broadcast.
    for axis, stride in zip((1, 2), strides, strict=True):
        shape = ops.shape(x)
        shape = (*shape[:axis], -1, stride, *shape[axis + 1 :])
        x = ops.mean(ops.reshape(x, shape), axis=axis + 1)
    return x


def _conv(x, kernel, strides=1):
    return ops.conv(x, kernel, strides, "same", "channels_last")


def _pair(name, value):
    pair = value if isinstance(value, (list, tuple)) else (value, value)
    if len(pair) != 2:
        raise ValueError(
            f"`{name}` must be an integer or a pair. Received: {name}={value!r}"
        )
    return tuple(_arguments.integer(name, size) for size in pair)
