"""LinearResidual, and the residual layers of a branch with two kernels."""

import keras
import numpy as np
import pytest
import references
from cases import first_of
from references import assert_same
from references import to_numpy

from keras_rin import layers
from keras_rin.constructions._residual_blocks import ResidualDenseStack
from keras_rin.initializers import SmallVarianceNormal

LAYERS = {
    "dense": (layers.ResidualDense, (None, 4)),
    "conv": (layers.ResidualConv2D, (None, 4, 4, 4)),
}
NORMAL = keras.initializers.RandomNormal


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


@pytest.mark.parametrize("case", ["dense", "conv"], indirect=True)
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
    layer = layers.ResidualDense(
        3,
        activation,
        use_bias,
        kernel_initializer=NORMAL(stddev=0.5),
        output_initializer=NORMAL(stddev=0.2),
        bias_initializer=NORMAL(stddev=0.5),
    )
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
