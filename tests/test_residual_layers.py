"""LinearResidual, and the residual layers of a branch with two kernels."""

import keras
import numpy as np
import pytest
import references
from cases import diagonal
from cases import first_of
from cases import one_backend_after
from references import assert_same
from references import to_numpy

from keras_rin import layers
from keras_rin.constructions._residual_blocks import ResidualDenseStack
from keras_rin.initializers import SmallVarianceNormal

LAYERS = {
    "dense": (layers.ResidualDense, (None, 4)),
    "conv": (layers.ResidualConv2D, (None, 4, 4, 4)),
}
DRAWN = {
    f"{name}_initializer": keras.initializers.RandomNormal(stddev=stddev)
    for name, stddev in {"kernel": 0.5, "output": 0.2, "bias": 0.5}.items()
}


@pytest.fixture(params=LAYERS)
def case(request):
    return LAYERS[request.param]


def built(case, **options):
    layer_class, shape = case
    layer = layer_class(4, **options)
    layer.build(shape)
    return layer


@pytest.mark.one_backend
def test_each_weight_has_its_place_and_its_options(case):
    options = {
        f"{weight}_{kind}": make(0.1 * number)
        for kind, make in {
            "initializer": keras.initializers.Constant,
            "regularizer": keras.regularizers.L2,
            "constraint": keras.constraints.MaxNorm,
        }.items()
        for number, weight in enumerate(["kernel", "output", "bias"], 1)
    }
    options["activity_regularizer"] = keras.regularizers.L2(0.5)
    layer = built(case, **options)
    config = layer.get_config()
    for name, option in options.items():
        assert config[name]["config"] == option.get_config()
    names = [weight.name for weight in layer.weights]
    assert names == ["kernel", "output_kernel", "bias"]
    for weight in layer.weights:
        name = weight.name.removesuffix("_kernel")
        assert weight.regularizer is options[f"{name}_regularizer"]
        assert weight.constraint is options[f"{name}_constraint"]
        value = options[f"{name}_initializer"].value
        assert_same(weight, np.full(weight.shape, value))
    assert [w.name for w in built(case, use_bias=False).weights] == names[:2]


def test_both_kernels_start_small_and_unlike_each_other(case):
    layer = built(case)
    assert isinstance(layer.kernel_initializer, SmallVarianceNormal)
    assert isinstance(layer.output_initializer, SmallVarianceNormal)
    kernel, output_kernel, bias = layer.get_weights()
    assert not np.array_equal(kernel, output_kernel)
    assert not bias.any()


def test_without_the_second_kernel_the_input_passes_as_it_is(case, rng):
    layer = built(case, output_initializer="zeros", dtype="bfloat16")
    x = keras.ops.cast(rng.normal(size=(2, *case[1][1:])), "bfloat16")
    np.testing.assert_array_equal(to_numpy(layer(x)), to_numpy(x))


def linear(units, scale=1.0, *, kernel_initializer, **unused):
    return layers.LinearResidual(kernel_initializer, scale=scale)


@pytest.mark.parametrize("scale", [0.25, "rezero"])
@pytest.mark.parametrize("name", [*LAYERS, "linear"])
def test_the_branch_has_a_scale(rng, name, scale):
    """As a number, or as the last weight, which begins at 0."""
    make, shape = {**LAYERS, "linear": (linear, (None, 4))}[name]
    plain, scaled = make(4, **DRAWN), make(4, scale=scale, **DRAWN)
    x = rng.normal(size=(2, *shape[1:])).astype("float32")
    branch = to_numpy(plain(x)) - x
    scaled.build(shape)
    weights = plain.get_weights()
    if scale == "rezero":
        assert scaled.weights[-1].name == "scale"
        assert_same(scaled(x), x, atol=0)
        scaled.set_weights([*weights, np.array(0.25)])
    else:
        scaled.set_weights(weights)
    assert_same(scaled(x), x + 0.25 * branch)


@pytest.mark.one_backend
def test_nothing_would_train_from_two_zeros():
    for make, output in [
        (lambda **options: layers.LinearResidual(**options), "kernel"),
        (lambda **options: layers.ResidualDense(4, **options), "output"),
    ]:
        options = {f"{output}_initializer": "zeros"}
        make(**options)
        with pytest.raises(ValueError, match=f"pass {output}_initializer="):
            make(**options, scale="rezero")
    config = layers.ResidualDense(4).get_config()
    del config["scale"]  # as in a file of version 0.1.0
    assert layers.ResidualDense.from_config(config).scale == 1


@pytest.mark.parametrize("shape", [(4, 3), (2, 5, 3), (2, 4, 5, 1)])
def test_linear_is_a_dense_layer_with_the_kernel_identity_plus_offset(
    rng, shape
):
    x = rng.normal(size=shape).astype("float32")
    layer = layers.LinearResidual(kernel_initializer="he_normal")
    y = layer(x)
    dense = keras.layers.Dense(shape[-1], use_bias=False)
    dense.build(shape)
    dense.set_weights([np.eye(shape[-1]) + layer.get_weights()[0]])
    assert_same(y, dense(x))


def test_a_small_linear_offset_survives_bfloat16():
    layer = layers.LinearResidual("zeros", dtype="bfloat16")
    layer.build((None, 2))
    layer.set_weights([np.full((2, 2), 0.003)])
    y = keras.ops.cast(layer(np.ones((1, 2))), "float32")
    # 1.006 is nearer to 1 + 1/128 than to 1, and 1.003 is not.
    assert_same(y, [[1 + 1 / 128] * 2], rtol=0, atol=0)


@pytest.mark.parametrize(
    "activation, use_bias, shape",
    first_of(
        [
            ("relu", True, (2, 3, 5)),
            ("tanh", False, (4, 5)),
            *((name, True, (4, 5)) for name in references.ACTIVATIONS),
        ],
        *(2, pytest.mark.one_backend),
    ),
)
def test_a_dense_layer_is_the_formula(rng, activation, use_bias, shape):
    layer = layers.ResidualDense(3, activation, use_bias, **DRAWN)
    x = rng.normal(size=shape).astype("float32")
    y = layer(x)
    assert layer.compute_output_shape(shape) == shape
    u, v, *b = layer.get_weights()
    hidden = references.ACTIVATIONS[activation](x @ u + (b[0] if b else 0))
    assert_same(y, x + hidden @ v)


@pytest.mark.one_backend
def test_a_stack_of_another_form_in_an_old_file_is_refused():
    config = ResidualDenseStack(2, depth=3).get_config()
    assert ResidualDenseStack.from_config(config).depth == 3
    for option in ({"activation": "tanh"}, {"kernel_regularizer": "l2"}):
        with pytest.raises(ValueError, match="of `perfect_fit`.*version 0.1.0"):
            ResidualDenseStack.from_config({**config, **option})


# filters, kernel_size, strides; the input has 5 channels, 12 x 8 pixels
SIZES = [(5, 3, 1), (5, 3, 2), (10, 3, 2), (8, (1, 5), (3, 1)), (6, 2, (4, 8))]
X_SHAPE = (2, 12, 8, 5)


def convolution(sizes, **options):
    return layers.ResidualConv2D(*sizes, **DRAWN, **options)


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
    "sizes, data_format",
    first_of(
        diagonal(SIZES, ["channels_last", "channels_first"]),
        *(2, pytest.mark.one_backend),
    ),
)
def test_a_convolution_is_the_formula(rng, sizes, data_format):
    layer = convolution(sizes, data_format=data_format)
    x = rng.normal(size=X_SHAPE)
    if data_format == "channels_first":
        y = layer(np.moveaxis(x, 3, 1).astype("float32"))
        y = np.moveaxis(to_numpy(y), 1, 3)
    else:
        y = layer(x.astype("float32"))
        assert layer.compute_output_shape(x.shape) == tuple(y.shape)
    first, second, bias = (w.astype("float64") for w in layer.get_weights())
    hidden = np.maximum(numpy_conv(x, first, sizes[2]) + bias, 0)
    branch = numpy_conv(hidden, second, 1)
    assert_same(y, numpy_shortcut(x, sizes[0], sizes[2]) + branch, atol=1e-4)


@pytest.mark.parametrize("height", one_backend_after([1, 3, 5]))
def test_an_open_size_that_a_stride_does_not_divide_is_an_error(height):
    images = keras.Input((None, 8, 5))
    model = keras.Model(images, layers.ResidualConv2D(6, strides=2)(images))
    model.predict(np.ones((1, 4, 8, 5)), verbose=0)
    with pytest.raises(Exception, match="reshape|strides|shape"):
        model.predict(np.ones((1, height, 8, 5)), verbose=0)


@pytest.mark.one_backend
@pytest.mark.parametrize("sizes", SIZES[2:], ids=str)
def test_open_sizes_have_the_same_shortcut(rng, sizes):
    images = keras.Input((None, None, X_SHAPE[3]))
    layer = convolution(sizes)
    model = keras.Model(images, layer(images))
    assert model.output_shape == (None, None, None, sizes[0])
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
            call(layers.ResidualConv2D(**{"filters": 5, **options}))


@pytest.mark.one_backend
@pytest.mark.parametrize(
    "shape, message", [((1, 4, 4, None), "channels"), ((4, 4, 3), "ndim=4")]
)
def test_images_have_four_axes_and_known_channels(shape, message):
    with pytest.raises(ValueError, match=message):
        layers.ResidualConv2D(4)(keras.Input(batch_shape=shape))
