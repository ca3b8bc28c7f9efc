import keras
import numpy as np
import pytest
from cases import diagonal
from cases import first_of
from cases import one_backend_after
from references import assert_same
from references import to_numpy

from keras_rin.layers import ResidualConv2D

# filters, kernel_size, strides; the input has 5 channels, 12 x 8 pixels
CASES = [(5, 3, 1), (5, 3, 2), (10, 3, 2), (8, (1, 5), (3, 1)), (6, 2, (4, 8))]
X_SHAPE = (2, 12, 8, 5)


def layer_of(case, **kwargs):
    normal = keras.initializers.RandomNormal
    return ResidualConv2D(
        *case,
        kernel_initializer=normal(stddev=0.2),
        output_initializer=normal(stddev=0.2),
        bias_initializer=normal(stddev=0.2),
        **kwargs,
    )


def numpy_shortcut(x, filters, strides):
    """Means of windows, then zeros: half before, half behind, one left."""
    down, right = np.broadcast_to(strides, 2)
    batch, height, width, channels = x.shape
    windows = (batch, height // down, down, width // right, right, channels)
    x = x.reshape(windows).mean((2, 4))
    missing = filters - channels
    half = missing // 2
    return np.pad(x, [(0, 0)] * 3 + [(half, missing - half)])


def numpy_conv(x, kernel, strides):
    """A convolution with "same" padding, one place of the kernel at a time."""
    strides = np.broadcast_to(strides, 2)
    sizes = np.array(x.shape[1:3])
    outputs = -(-sizes // strides)
    window = np.array(kernel.shape[:2])
    padding = np.maximum((outputs - 1) * strides + window - sizes, 0)
    before = padding // 2
    around = list(zip(before, padding - before, strict=True))
    x = np.pad(x, [(0, 0), *around, (0, 0)])
    result = np.zeros((len(x), *outputs, kernel.shape[-1]))
    for i, j in np.ndindex(*window):
        rows = i + strides[0] * np.arange(outputs[0])
        columns = j + strides[1] * np.arange(outputs[1])
        result += x[:, rows][:, :, columns] @ kernel[i, j]
    return result


@pytest.mark.parametrize(
    "case, data_format",
    first_of(
        diagonal(CASES, ["channels_last", "channels_first"]),
        *(2, pytest.mark.one_backend),
    ),
)
def test_it_is_the_formula(rng, case, data_format):
    layer = layer_of(case, data_format=data_format)
    x = rng.normal(size=X_SHAPE)
    if data_format == "channels_first":
        y = layer(np.moveaxis(x, 3, 1).astype("float32"))
        y = np.moveaxis(to_numpy(y), 1, 3)
    else:
        y = layer(x.astype("float32"))
        assert layer.compute_output_shape(x.shape) == tuple(y.shape)
    first, second, bias = (w.astype("float64") for w in layer.get_weights())
    hidden = np.maximum(numpy_conv(x, first, case[2]) + bias, 0)
    branch = numpy_conv(hidden, second, 1)
    assert_same(y, numpy_shortcut(x, case[0], case[2]) + branch, atol=1e-4)


@pytest.mark.parametrize("height", one_backend_after([1, 3, 5]))
def test_an_open_size_that_a_stride_does_not_divide_is_an_error(height):
    images = keras.Input((None, 8, 5))
    model = keras.Model(images, ResidualConv2D(6, strides=2)(images))
    model.predict(np.ones((1, 4, 8, 5)), verbose=0)
    with pytest.raises(Exception, match="reshape|strides|shape"):
        model.predict(np.ones((1, height, 8, 5)), verbose=0)


@pytest.mark.one_backend
@pytest.mark.parametrize("case", CASES[2:], ids=str)
def test_open_sizes_have_the_same_shortcut(rng, case):
    images = keras.Input((None, None, X_SHAPE[3]))
    layer = layer_of(case)
    model = keras.Model(images, layer(images))
    assert model.output_shape == (None, None, None, case[0])
    x = rng.normal(size=X_SHAPE).astype("float32")
    for pixels in (x, np.concatenate([x, x], axis=2)):
        assert_same(model.predict(pixels, verbose=0), layer(pixels), 1e-5)


@pytest.mark.one_backend
@pytest.mark.parametrize(
    "options, message",
    [
        ({"data_format": "NHWC"}, "`data_format` must.*Received"),
        ({"filters": 4}, r"at most filters=4 chan.*shape=\(2, 12, 8, 5\)"),
        ({"strides": 5}, r"by strides=\(5, 5\).*shape=\(2, 12, 8, 5\)"),
        ({"strides": (4, 3)}, r"by strides=\(4, 3\).*shape=\(2, 12, 8, 5\)"),
    ],
)
def test_what_a_block_cannot_compute_is_refused(options, message):
    for call in (
        lambda layer: layer(np.ones(X_SHAPE)),
        lambda layer: layer(keras.Input(batch_shape=X_SHAPE)),
        lambda layer: layer.build(X_SHAPE),
    ):
        with pytest.raises(ValueError, match=message):
            call(ResidualConv2D(**{"filters": 5, **options}))


@pytest.mark.one_backend
@pytest.mark.parametrize(
    "shape, message", [((1, 4, 4, None), "channels"), ((4, 4, 3), "ndim=4")]
)
def test_images_have_four_axes_and_known_channels(shape, message):
    with pytest.raises(ValueError, match=message):
        ResidualConv2D(4)(keras.Input(batch_shape=shape))
