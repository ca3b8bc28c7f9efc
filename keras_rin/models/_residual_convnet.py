"""The all-convolutional residual network of Hardt and Ma."""

from collections.abc import Sequence

import keras
from keras.initializers import Initializer
from keras.regularizers import Regularizer

from keras_rin import _arguments
from keras_rin.layers import ResidualConv2D


def residual_convnet(
    input_shape: tuple[int, int, int] = (32, 32, 3),
    num_classes: int = 10,
    stem_filters: int = 16,
    filters: Sequence[int] = (64, 128, 256),
    blocks: int = 9,
    use_bias: bool = False,
    kernel_initializer: str | Initializer | None = None,
    kernel_regularizer: str | Regularizer | None = None,
    name: str = "residual_convnet",
) -> keras.Model:
    """Instantiates the all-convolutional residual network of Hardt and Ma.

    The network has no normalization layers. It consists of a 3 x 3
    convolution with `stem_filters` channels; for each entry of `filters` a
    stage of `blocks` residual blocks (`keras_rin.layers.ResidualConv2D`) with
    that many channels, the first of which has stride 2 after the first stage;
    a global average pooling; and a random projection to the classes that is
    not trained, a `keras.layers.Dense` of weights with variance 1 / channels,
    which preserves the mean square. Setting `model.trainable = True` would
    train the projection as well.

    The defaults are the CIFAR-10 network of the paper: 55 convolutions with
    13,538,736 weights. The paper does not say whether the convolutions have
    biases; by default they have none. `blocks=2, filters=(16, 32, 64)` trains
    on a laptop.

    For weight decay, pass `kernel_regularizer=keras.regularizers.L2(rate / 2)`,
    which subtracts `rate * learning_rate` times the kernel in each step of
    plain SGD.

    Args:
        input_shape: Tuple of height, width and channels, or of channels,
            height and width if `keras.config.image_data_format()` is
            `"channels_first"`. Height and width can be `None`; otherwise they
            must be divisible by 2 for each stage after the first. Defaults to
            `(32, 32, 3)`.
        num_classes: Positive integer, number of classes. Defaults to 10.
        stem_filters: Positive integer, number of channels of the first
            convolution. Defaults to 16.
        filters: Sequence of positive integers, number of channels of each
            stage, at least `stem_filters` and not decreasing. Defaults to
            `(64, 128, 256)`.
        blocks: Positive integer, number of blocks per stage. Defaults to 9.
        use_bias: Boolean, whether the first convolution of the network and
            that of each block use a bias vector. Defaults to `False`.
        kernel_initializer: Initializer of the kernels of the blocks. With an
            integer seed, kernels of one shape have the same initial values.
            Defaults to `None`: `keras_rin.initializers.SmallVarianceNormal`.
            The first convolution uses `"glorot_uniform"`.
        kernel_regularizer: Regularizer of all convolution kernels. Defaults
            to `None`.
        name: String, name of the model. Defaults to `"residual_convnet"`.

    Returns:
        A `keras.Model` that maps images `(batch, *input_shape)` to logits
        `(batch, num_classes)`. There is no softmax: compile it with a loss
        with `from_logits=True`. Images are expected to have mean 0 and
        variance 1.

    Example:

    >>> model = keras_rin.models.residual_convnet(
    ...     (28, 28, 1), stem_filters=8, filters=(8, 16), blocks=1
    ... )
    >>> tuple(model(np.zeros((2, 28, 28, 1))).shape)
    (2, 10)

    Reference:
        Hardt and Ma, 2017, Identity matters in deep learning (arXiv
        1611.04231), table 1.
    """
    _arguments.integer("blocks", blocks)

    def fresh():
        # A shared instance would give all kernels of a shape the same values.
        identifier = keras.initializers.get(kernel_initializer)
        clone = getattr(identifier, "clone", None)  # a function has none
        return clone() if clone else identifier

    images = keras.Input(input_shape, name="images")
    x = keras.layers.Conv2D(
        stem_filters,
        3,
        padding="same",
        use_bias=use_bias,
        kernel_regularizer=kernel_regularizer,
        name="stem",
    )(images)
    for stage, stage_filters in enumerate(filters):
        for block in range(blocks):
            x = ResidualConv2D(
                stage_filters,
                strides=2 if stage > 0 and block == 0 else 1,
                use_bias=use_bias,
                kernel_initializer=fresh(),
                output_initializer=fresh(),
                kernel_regularizer=kernel_regularizer,
                output_regularizer=kernel_regularizer,
                name=f"stage{stage + 1}_block{block + 1}",
            )(x)
    x = keras.layers.GlobalAveragePooling2D(name="mean")(x)
    logits = keras.layers.Dense(
        num_classes,
        use_bias=False,
        # The paper does not say how its projection is drawn.
        kernel_initializer=keras.initializers.VarianceScaling(
            1.0, "fan_in", "untruncated_normal"
        ),
        trainable=False,
        name="logits",
    )(x)
    return keras.Model(images, logits, name=name)
