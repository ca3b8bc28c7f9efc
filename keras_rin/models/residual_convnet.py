"""The all-convolutional residual network of Hardt and Ma."""

import keras

from keras_rin import arguments
from keras_rin.layers import FixedProjection
from keras_rin.layers import ResidualConv2D


def residual_convnet(
    input_shape=(32, 32, 3),
    num_classes=10,
    stem=16,
    widths=(64, 128, 256),
    blocks=9,
    use_bias=False,
    kernel_initializer=None,
    kernel_regularizer=None,
    name="residual_convnet",
):
    """An all-convolutional residual network without any normalisation.

    A 3 x 3 convolution to `stem` channels; for each of `widths` a stage of
    `blocks` blocks x + C2(relu(C1 x)) of that many channels
    (`keras_rin.layers.ResidualConv2D`), where the first block of every stage
    after the first halves height and width; the mean over all places; a
    random projection to the classes that is not trained
    (`keras_rin.layers.FixedProjection`). All that is trained stands in the
    convolutions.

    The defaults are the network of the paper for CIFAR-10: 55 convolutions
    with 13,538,736 weights. The paper does not say whether it has biases; here
    it has none unless asked for. `blocks=2, widths=(16, 32, 64)` trains on
    a laptop.

    For weight decay pass `kernel_regularizer=keras.regularizers.L2(rate / 2)`,
    which takes `rate * learning_rate` of every kernel at a step of plain SGD.

    Args:
        input_shape: Triple of height, width and channels, or channels, height
            and width where `keras.config.image_data_format()` says so. Height
            and width can be `None`, or have to be divided by 2 as often as
            there are stages after the first. Defaults to `(32, 32, 3)`.
        num_classes: Positive integer, the size of the output. Defaults to 10.
        stem: Positive integer, the channels of the first convolution.
            Defaults to 16.
        widths: Positive integers, the channels of each stage; none smaller
            than the one before it or, the first, than `stem`. Defaults to
            `(64, 128, 256)`.
        blocks: Positive integer, the blocks of each stage. Defaults to 9.
        use_bias: Boolean, whether the first convolution and the first one of
            each block have a bias. Defaults to `False`.
        kernel_initializer: Initializer of the kernels of the blocks; an
            integer seed in it makes those of one shape alike. Defaults to
            `None`: `keras_rin.initializers.SmallVarianceNormal`. The first
            convolution starts as in Keras, at `"glorot_uniform"`.
        kernel_regularizer: Regularizer of all kernels of convolutions.
            Defaults to `None`.
        name: String, the name of the model. Defaults to
            `"residual_convnet"`.

    Returns:
        A `keras.Model` from images `(batch, *input_shape)` to logits
        `(batch, num_classes)`: no softmax, so compile it with
        `from_logits=True`. It expects images of mean 0 and variance 1.

    Raises:
        ValueError: If `num_classes`, `stem`, `widths` or `blocks` is not made
            of positive integers, if `widths` is empty or shrinks, if
            `input_shape` is not a triple, or if the strides do not divide it.

    Example:

    >>> model = keras_rin.models.residual_convnet(
    ...     (28, 28, 1), stem=8, widths=(8, 16), blocks=1
    ... )
    >>> tuple(model(np.zeros((2, 28, 28, 1))).shape)
    (2, 10)

    Reference:
        Hardt and Ma, 2017, Identity matters in deep learning (arXiv
        1611.04231), table 1.
    """
    arguments.integer("num_classes", num_classes)
    arguments.integer("blocks", blocks)
    _check_widths(stem, widths)
    _check_input_shape(input_shape, len(widths))

    def fresh():
        # One initializer with no seed would give kernels of a shape alike.
        identifier = keras.initializers.get(kernel_initializer)
        return identifier and identifier.clone()

    images = keras.Input(input_shape, name="images")
    x = keras.layers.Conv2D(
        stem,
        3,
        padding="same",
        use_bias=use_bias,
        kernel_regularizer=kernel_regularizer,
        name="stem",
    )(images)
    for stage, width in enumerate(widths):
        for block in range(blocks):
            x = ResidualConv2D(
                width,
                strides=2 if stage > 0 and block == 0 else 1,
                use_bias=use_bias,
                kernel_initializer=fresh(),
                output_initializer=fresh(),
                kernel_regularizer=kernel_regularizer,
                output_regularizer=kernel_regularizer,
                name=f"stage{stage + 1}_block{block + 1}",
            )(x)
    x = keras.layers.GlobalAveragePooling2D(name="mean")(x)
    logits = FixedProjection(num_classes, name="logits")(x)
    return keras.Model(images, logits, name=name)


def _check_widths(stem, widths):
    sizes = [arguments.integer("stem", stem)]
    sizes += [arguments.integer("widths", width) for width in widths]
    if len(sizes) == 1 or sizes != sorted(sizes):
        raise ValueError(
            "`widths` must not be empty, nor shrink from `stem` onwards. "
            f"Received: stem={stem}, widths={widths}"
        )


def _check_input_shape(input_shape, stages):
    channels_first = keras.config.image_data_format() == "channels_first"
    factor = 2 ** (stages - 1)
    sizes = input_shape[1:] if channels_first else input_shape[:2]
    fits = all(size is None or size % factor == 0 for size in sizes)
    if len(input_shape) != 3 or not fits:
        raise ValueError(
            "`input_shape` must have three entries, height and width divided "
            f"by {factor}. Received: input_shape={input_shape}"
        )
