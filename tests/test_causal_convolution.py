"""A causal convolution in a stream: a step takes as many samples as strides."""

import importlib.util

import keras
import pytest
from keras import layers
from references import outputs_of_steps
from step_files import assert_near
from step_files import round_weights
from step_files import write_and_run

from keras_rin.export import check_header
from keras_rin.export import export_streaming
from keras_rin.export import streaming_step
from keras_rin.layers import RIN


def convolution(filters, size, **options):
    options = {"bias_initializer": "ones", **options}
    return layers.Conv1D(filters, size, padding="causal", **options)


def stack(*above, features=2):
    return keras.Sequential([keras.Input((None, features)), *above])


def strided():
    return stack(
        layers.Normalization(mean=[1.0, -2.0], variance=[4.0, 0.25]),
        convolution(4, 5, strides=3, activation="relu"),
        layers.LayerNormalization(),
        RIN(5, return_sequences=True),
        layers.Dense(2),
    )


def dilated():
    return stack(convolution(4, 3, dilation_rate=2), layers.GRU(3))


def two():
    """One of them in a model, and one after the recurrent layer."""
    inner = stack(
        layers.Dense(3),
        convolution(5, 4, strides=3, use_bias=False),
        features=4,
    )
    rin = RIN(3, return_sequences=True)
    first = convolution(4, 2, strides=2, activation=layers.ELU())
    return stack(first, inner, rin, convolution(2, 3))


def side_by_side():
    x = keras.Input((None, 2))
    branches = [convolution(3, size, strides=2)(x) for size in (2, 5)]
    return keras.Model(x, RIN(3)(layers.Concatenate()(branches)))


MODELS = [strided, dilated, two, side_by_side]
ON_TENSORFLOW = keras.backend.backend() == "tensorflow"
SAVES = importlib.util.find_spec("tensorflow") and (
    keras.backend.backend() != "torch"
)
FORMATS = {"tf_saved_model": SAVES, "litert": ON_TENSORFLOW}
FORMATS |= {"c": True, "onnx": ON_TENSORFLOW}


def blocks_of(model, x):
    """The samples of each step."""
    shape = streaming_step(model).input["x"].shape[1:]
    return x.reshape(len(x), -1, *shape)


@pytest.fixture
def x(rng):
    return rng.normal(size=(2, 30, 2)).astype("float32")


@pytest.mark.each_backend
@pytest.mark.parametrize("make", MODELS)
def test_a_block_of_samples_gives_an_output(make, x):
    model = make()
    y = outputs_of_steps(streaming_step(model), blocks_of(model, x))
    assert_near(y, model, x)


@pytest.mark.one_backend
@pytest.mark.parametrize(
    ("format", "make"),
    [
        pytest.param(
            format,
            make,
            marks=[
                pytest.mark.skipif(not runs, reason="not here"),
                *([] if format == "c" else [pytest.mark.exhaustive]),
            ],
        )
        for format, runs in FORMATS.items()
        for make in MODELS[: 3 if format == "c" else None]
    ],
)
def test_it_is_a_file(format, make, x, tmp_path):
    model = make()
    y = write_and_run(model, format, tmp_path, blocks_of(model, x))
    assert_near(y, model, x, 2e-5)
    if format == "c":
        assert check_header(model, tmp_path / "rin.h", x)[0] < 1e-5


@pytest.mark.one_backend
def test_weights_of_8_bits(x, tmp_path):
    model = strided()
    blocks = blocks_of(model, x)
    y = write_and_run(model, "c", tmp_path, blocks, weights="int8")
    round_weights(model)
    assert_near(y, model, x, 2e-4)


@pytest.mark.one_backend
def test_a_recurrent_layer_before_strides_is_refused(tmp_path):
    rin = RIN(3, return_sequences=True, name="early")
    with pytest.raises(ValueError, match="'early'.*all strides"):
        streaming_step(stack(rin, convolution(3, 4, strides=2), RIN(2)))
    inside = layers.TimeDistributed(convolution(3, 2), name="inside")
    model = keras.Sequential(
        [
            keras.Input((None, 4, 2)),
            inside,
            layers.TimeDistributed(layers.Flatten()),
            RIN(2),
        ]
    )
    streaming_step(model)
    with pytest.raises(ValueError, match="inside"):
        export_streaming(model, tmp_path / "rin.h", "c")
