import keras
import numpy as np
import pytest
from references import assert_same
from scipy import stats

from keras_rin.initializers import SmallVarianceNormal
from keras_rin.layers import ResidualConv2D
from keras_rin.models import residual_convnet

pytestmark = pytest.mark.one_backend

SMALL = {
    "input_shape": (8, 8, 3),
    "stem_filters": 4,
    "filters": (4, 6),
    "blocks": 2,
}


def blocks_of(model):
    return [
        layer for layer in model.layers if isinstance(layer, ResidualConv2D)
    ]


def test_by_default_it_is_the_network_of_the_paper():
    model = residual_convnet()
    kernels = model.trainable_weights
    assert len(kernels) == 55
    assert {weight.shape[:2] for weight in kernels} == {(3, 3)}
    assert model.count_params() == 13_538_736 + 256 * 10
    assert len(model.non_trainable_weights) == 1
    stages = [(32, 32, 64), (16, 16, 128), (8, 8, 256)]
    shapes = [tuple(block.output.shape[1:]) for block in blocks_of(model)]
    assert shapes == [s for s in stages for _ in range(9)]


def test_its_projection_is_drawn_once_and_not_trained():
    """Normal, and the mean square of its input goes through."""
    model = residual_convnet(
        (4, 4, 1), num_classes=300, stem_filters=1, filters=(200,), blocks=1
    )
    projection = model.get_layer("logits")
    before = projection.get_weights()[0]
    numbers = before.ravel() * np.sqrt(200)
    assert stats.kstest(numbers, "norm").pvalue > 1e-3
    model.compile(keras.optimizers.SGD(0.1, weight_decay=0.5), "mse")
    model.fit(np.ones((2, 4, 4, 1)), np.ones((2, 300)), verbose=0)
    assert_same(projection.get_weights()[0], before, 0, 0)


@pytest.mark.each_backend
def test_height_and_width_can_stay_open():
    model = residual_convnet(**{**SMALL, "input_shape": (None, None, 3)})
    for shape in [(1, 4, 6, 3), (2, 16, 8, 3)]:
        logits = model.predict(np.ones(shape), verbose=0)
        assert logits.shape == (shape[0], 10)


def thirds(shape, dtype=None):
    return keras.ops.full(shape, 1 / 3, dtype)


@pytest.mark.parametrize(
    "initializer",
    [
        None,
        "he_normal",
        keras.initializers.HeNormal(),  # called twice, repeats itself
        SmallVarianceNormal(),
        thirds,
    ],
)
def test_each_block_draws_its_own_kernels(initializer):
    model = residual_convnet(**SMALL, kernel_initializer=initializer)
    first = [w.flat[0] for b in blocks_of(model) for w in b.get_weights()]
    if initializer is thirds:
        assert_same(first, [1 / 3] * 8)
    else:
        assert len(set(first)) == len(first) == 8


def test_biases_and_regularizers_are_on_every_convolution():
    model = residual_convnet(
        **SMALL, use_bias=True, kernel_regularizer=keras.regularizers.L2(0.5)
    )
    weights = model.get_weights()
    biases = [len(weight) for weight in weights if weight.ndim == 1]
    assert biases == [4, 4, 4, 6, 6]
    squares = [np.sum(weight**2) for weight in weights if weight.ndim == 4]
    assert len(squares) == 9
    assert_same(sum(model.losses), 0.5 * sum(squares))


def test_it_works_where_channels_come_first():
    before = keras.config.image_data_format()
    try:
        keras.config.set_image_data_format("channels_first")
        model = residual_convnet(**{**SMALL, "input_shape": (3, 8, 8)})
        if keras.backend.backend() != "tensorflow":  # not on its CPU
            model.predict(np.ones((2, 3, 8, 8)), verbose=0)
    finally:
        keras.config.set_image_data_format(before)
    assert model.layers[1].output.shape == (None, 4, 8, 8)
    assert model.layers[-3].output.shape == (None, 6, 4, 4)


@pytest.mark.parametrize(
    "option, message",
    [
        ({"filters": (4, 0)}, "`filters` must be an integer.*filters=0"),
        ({"filters": (8, 6)}, "stage2_block1 .* at most filters=6 channels"),
        ({"stem_filters": 5}, "stage1_block1 .* at most filters=4 channels"),
        ({"input_shape": (8, 7, 3)}, r"divisible by strides=\(2, 2\).*8, 7, 4"),
    ],
)
def test_what_makes_no_network_is_refused(option, message):
    with pytest.raises(ValueError, match=message):
        residual_convnet(**{**SMALL, **option})
