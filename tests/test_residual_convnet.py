import keras
import numpy as np
import pytest
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


def sizes(weights):
    return sum(int(np.prod(weight.shape)) for weight in weights)


def blocks_of(model):
    return [
        layer for layer in model.layers if isinstance(layer, ResidualConv2D)
    ]


@pytest.fixture(scope="module")
def paper():
    return residual_convnet()


@pytest.mark.one_backend
def test_it_has_the_convolutions_of_the_paper_and_their_weights(paper):
    kernels = paper.trainable_weights
    assert len(kernels) == 55
    assert {weight.shape[:2] for weight in kernels} == {(3, 3)}
    assert sizes(kernels) == 13_538_736
    assert sizes(paper.non_trainable_weights) == 256 * 10


@pytest.mark.one_backend
def test_its_stages_have_the_sizes_of_the_paper(paper):
    shapes = [tuple(block.output.shape[1:]) for block in blocks_of(paper)]
    expected = [(32, 32, 64), (16, 16, 128), (8, 8, 256)]
    assert shapes == [shape for shape in expected for _ in range(9)]
    strides = [block.strides[0] for block in blocks_of(paper)]
    assert strides == [1] * 9 + ([2] + [1] * 8) * 2


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
    np.testing.assert_array_equal(projection.get_weights()[0], before)


@pytest.mark.one_backend
def test_with_biases_there_is_one_for_the_stem_and_for_each_block():
    model = residual_convnet(**SMALL, use_bias=True)
    biases = [w for w in model.trainable_weights if w.path.endswith("bias")]
    assert [bias.shape[0] for bias in biases] == [4, 4, 4, 6, 6]


@pytest.mark.one_backend
def test_depth_filters_classes_and_sizes_are_free():
    model = residual_convnet(
        (12, 20, 1), num_classes=3, stem_filters=2, filters=(3, 3, 5), blocks=1
    )
    assert model.output_shape == (None, 3)
    shapes = [tuple(block.output.shape[1:]) for block in blocks_of(model)]
    assert shapes == [(12, 20, 3), (6, 10, 3), (3, 5, 5)]


@pytest.mark.each_backend
def test_height_and_width_can_stay_open():
    model = residual_convnet(**{**SMALL, "input_shape": (None, None, 3)})
    for shape in [(1, 4, 6, 3), (2, 16, 8, 3)]:
        logits = model.predict(np.ones(shape), verbose=0)
        assert logits.shape == (shape[0], 10)


@pytest.mark.one_backend
def test_no_two_blocks_start_alike():
    he_normal = keras.initializers.HeNormal()  # called twice, repeats itself
    for start in (None, "he_normal", he_normal, SmallVarianceNormal()):
        model = residual_convnet(**SMALL, kernel_initializer=start)
        kernels = [
            weight
            for block in blocks_of(model)
            for weight in block.get_weights()
        ]
        firsts = {kernel.flat[0] for kernel in kernels}
        assert len(firsts) == len(kernels) == 8


def test_the_regularizer_is_on_every_convolution_and_nothing_else():
    model = residual_convnet(
        **SMALL, use_bias=True, kernel_regularizer=keras.regularizers.L2(0.5)
    )
    squares = [
        np.square(weight).sum()
        for weight, variable in zip(
            model.get_weights(), model.weights, strict=True
        )
        if len(variable.shape) == 4
    ]
    assert len(squares) == 9
    penalty = sum(keras.ops.convert_to_numpy(loss) for loss in model.losses)
    np.testing.assert_allclose(penalty, 0.5 * sum(squares), rtol=1e-5)


def test_it_works_where_channels_come_first():
    before = keras.config.image_data_format()
    try:
        keras.config.set_image_data_format("channels_first")
        model = residual_convnet(**{**SMALL, "input_shape": (3, 8, 8)})
        if keras.backend.backend() != "tensorflow":  # not on its CPU
            model.predict(np.ones((2, 3, 8, 8)), verbose=0)
        with pytest.raises(ValueError, match="`input_shape` must"):
            residual_convnet(**{**SMALL, "input_shape": (3, 7, 8)})
    finally:
        keras.config.set_image_data_format(before)
    assert model.layers[1].output.shape == (None, 4, 8, 8)
    assert model.layers[-3].output.shape == (None, 6, 4, 4)


@pytest.mark.parametrize(
    "option, message",
    [
        ({"num_classes": 0}, "expected a positive integer.*units=0"),
        ({"stem_filters": 0}, "`stem_filters` must.*stem_filters=0"),
        ({"blocks": 0}, "`blocks` must.*blocks=0"),
        ({"filters": ()}, "`filters` must not be empty"),
        ({"filters": (4, 0)}, "`filters` must be an integer.*filters=0"),
        ({"filters": (8, 6)}, r"must not decrease.*filters=\(8, 6\)"),
        (
            {"stem_filters": 5},
            r"must not decrease.*stem_filters=5, filters=\(4, 6\)",
        ),
        ({"input_shape": (8, 7, 3)}, r"divisible by 2.*\(8, 7, 3\)"),
        ({"input_shape": (8, 8)}, r"three entries.*\(8, 8\)"),
        ({"kernel_initializer": "no_such_name"}, "no_such_name"),
    ],
)
def test_what_makes_no_network_is_refused(option, message):
    with pytest.raises(ValueError, match=message):
        residual_convnet(**{**SMALL, **option})


def test_an_initializer_may_be_a_function():
    def thirds(shape, dtype=None):
        return keras.ops.full(shape, 1 / 3, dtype)

    model = residual_convnet(**SMALL, kernel_initializer=thirds)
    for block in blocks_of(model):
        np.testing.assert_allclose(block.get_weights()[0], 1 / 3, rtol=1e-6)
