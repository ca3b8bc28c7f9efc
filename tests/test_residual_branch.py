import functools
import inspect

import keras
import numpy as np
import pytest
from references import to_numpy

from keras_rin.initializers import SmallVarianceNormal
from keras_rin.layers import FixedProjection
from keras_rin.layers import LinearResidual
from keras_rin.layers import ResidualConv2D
from keras_rin.layers import ResidualDense
from keras_rin.layers import ResidualDenseStack

LAYERS = {
    "dense": (ResidualDense, (None, 4)),
    "stack": (functools.partial(ResidualDenseStack, depth=3), (None, 4)),
    "conv": (ResidualConv2D, (None, 4, 4, 4)),
}


@pytest.fixture(params=LAYERS)
def case(request):
    return LAYERS[request.param]


@pytest.mark.one_backend
def test_weights_stand_in_the_order_promised(case):
    layer_class, shape = case
    layer = layer_class(4)
    layer.build(shape)
    names = [weight.name for weight in layer.weights]
    assert names == ["kernel", "output_kernel", "bias"]


@pytest.mark.parametrize("case", ["dense", "conv"], indirect=True)
def test_both_kernels_start_small_and_unlike_each_other(case):
    layer_class, shape = case
    layer = layer_class(4)
    layer.build(shape)
    assert isinstance(layer.kernel_initializer, SmallVarianceNormal)
    assert isinstance(layer.output_initializer, SmallVarianceNormal)
    kernel, output_kernel, bias = layer.get_weights()
    assert not np.array_equal(kernel, output_kernel)
    assert not bias.any()


def test_without_the_second_kernel_the_input_passes_as_it_is(case, rng):
    layer_class, shape = case
    layer = layer_class(4, output_initializer="zeros", dtype="bfloat16")
    x = keras.ops.cast(rng.normal(size=(2, *shape[1:])), "bfloat16")
    np.testing.assert_array_equal(to_numpy(layer(x)), to_numpy(x))


@pytest.mark.one_backend
def test_plain_l2_pulls_towards_the_identity(case, rng):
    layer_class, shape = case
    layer = layer_class(
        4,
        kernel_initializer="glorot_uniform",
        output_initializer="glorot_uniform",
        kernel_regularizer=keras.regularizers.L2(0.1),
        output_regularizer=keras.regularizers.L2(0.1),
    )
    model = keras.Sequential([keras.Input(shape[1:]), layer])
    model.compile(keras.optimizers.SGD(0.5), "mse")
    x = rng.normal(size=(8, *shape[1:])).astype("float32")
    distance = [np.abs(to_numpy(model(x)) - x).max()]
    for _ in range(40):
        # The loss of the data is 0: what remains is the penalty alone.
        model.train_on_batch(x, to_numpy(model(x)))
    distance.append(np.abs(to_numpy(model(x)) - x).max())
    assert distance[1] < 0.01 * distance[0]


def test_the_penalty_is_that_of_both_kernels_and_the_bias(case):
    layer_class, shape = case
    layer = layer_class(
        4,
        bias_initializer="ones",
        kernel_regularizer=keras.regularizers.L2(1.0),
        output_regularizer=keras.regularizers.L2(10.0),
        bias_regularizer=keras.regularizers.L2(100.0),
    )
    layer.build(shape)
    kernel, output_kernel, bias = layer.get_weights()
    squares = [np.square(w).sum() for w in (kernel, output_kernel, bias)]
    expected = np.dot([1, 10, 100], squares)
    np.testing.assert_allclose(
        sum(float(to_numpy(loss)) for loss in layer.losses), expected, rtol=1e-5
    )


def test_the_config_has_each_option_under_its_own_name(case):
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
    config = case[0](4, **options).get_config()
    for name, option in options.items():
        assert config[name]["config"] == option.get_config()


@pytest.mark.parametrize(
    "option", ["activation", "kernel_initializer", "output_regularizer"]
)
def test_names_that_keras_does_not_know_are_refused(case, option):
    with pytest.raises(ValueError, match="no_such_name"):
        case[0](4, **{option: "no_such_name"})


@pytest.mark.one_backend
@pytest.mark.parametrize(
    "ours, of_keras",
    [
        (ResidualDense, keras.layers.Dense),
        (ResidualDenseStack, keras.layers.Dense),
        (ResidualConv2D, keras.layers.Conv2D),
    ],
)
def test_positional_arguments_are_the_first_of_keras(ours, of_keras):
    positional = positional_arguments(ours)
    assert positional == positional_arguments(of_keras)[: len(positional)]


@pytest.mark.one_backend
@pytest.mark.parametrize("ours", [LinearResidual, FixedProjection])
def test_arguments_have_the_order_of_dense(ours):
    positional = positional_arguments(ours)
    order = positional_arguments(keras.layers.Dense)
    assert positional == sorted(positional, key=order.index)


def positional_arguments(layer):
    return [
        parameter.name
        for parameter in inspect.signature(layer).parameters.values()
        if parameter.kind is parameter.POSITIONAL_OR_KEYWORD
    ]


def test_a_config_with_width_is_read_as_units():
    config = ResidualDense(5).get_config()
    config["width"] = config.pop("units")
    assert ResidualDense.from_config(config).units == 5
