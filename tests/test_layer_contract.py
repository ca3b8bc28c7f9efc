"""The questions every layer is asked. A new layer is one more row."""

import inspect
import json
from functools import partial

import keras
import numpy as np
import pytest
from cases import first_of
from references import assert_same
from references import to_numpy
from step_files import NEEDS_ONNX
from step_files import ON_TENSORFLOW
from step_files import assert_exported_serves

from keras_rin.initializers import ChainIdentity
from keras_rin.layers import RIN
from keras_rin.layers import DeepTransitionRINCell
from keras_rin.layers import LinearResidual
from keras_rin.layers import MinGRU
from keras_rin.layers import MinGRUCell
from keras_rin.layers import NoisyRNN
from keras_rin.layers import RateRNN
from keras_rin.layers import RateRNNCell
from keras_rin.layers import ResidualConv2D
from keras_rin.layers import ResidualDense
from keras_rin.layers import ResidualRNN
from keras_rin.layers import ResidualRNNCell
from keras_rin.layers import RINCell
from keras_rin.layers import StreamFeatures

EVERYTHING = {  # that a residual layer takes
    "activation": "elu",
    "kernel_initializer": "he_normal",
    "output_initializer": keras.initializers.RandomNormal(stddev=0.1),
    "bias_initializer": "ones",
    "kernel_regularizer": "l1",
    "output_regularizer": keras.regularizers.L2(0.1),
    "bias_regularizer": "l2",
    "activity_regularizer": "l2",
    "kernel_constraint": "max_norm",
    "output_constraint": "unit_norm",
    "bias_constraint": "non_neg",
}

# Options of a cell, none at its default.
OF_A_CELL = {
    "activation": "elu",
    "use_bias": False,
    "kernel_initializer": "he_normal",
    "recurrent_initializer": ChainIdentity(0.9, -1),
    "kernel_regularizer": "l1",
    "recurrent_regularizer": keras.regularizers.L2(0.1),
    "kernel_constraint": "max_norm",
    "recurrent_constraint": "unit_norm",
    "dropout": 0.1,
    "recurrent_dropout": 0.2,
    "seed": 3,
}
OF_A_CELL_WITHOUT_DROPOUT = {
    **{k: v for k, v in OF_A_CELL.items() if "dropout" not in k},
    "recurrent_initializer": "glorot_normal",  # of vectors, not of a matrix
}


OF_A_SEQUENCE = {
    "return_sequences": True,
    "activity_regularizer": "l2",
    "go_backwards": True,
    "zero_output_for_mask": True,
}


def around(cell, layer=keras.layers.RNN, **options):
    """How to make a layer of a cell, and both with more options."""
    return lambda **more: layer(cell(**more), **options, **more)


def two_cells(**options):
    cells = [RINCell(4, **options), RINCell(2, **options)]
    return keras.layers.StackedRNNCells(cells, **options)


# Of five steps of three features, a layer of four units returns one of these.
LAST, EVERY = ((5, 3), (4,)), ((5, 3), (5, 4))
# name: (how to make it, input shape, output shape, number of trained weights)
LAYERS = {
    "RIN": (partial(RIN, 4, recompute=True), *LAST, 3),
    "RIN with everything": (
        partial(RIN, 4, **OF_A_CELL, unroll=True, **OF_A_SEQUENCE),
        *EVERY,
        2,
    ),
    "RNN(RINCell)": (around(partial(RINCell, 4)), *LAST, 3),
    "RNN(DeepTransitionRINCell) with everything": (
        around(partial(DeepTransitionRINCell, 4, **OF_A_CELL), unroll=True),
        *LAST,
        3,
    ),
    "MinGRU": (partial(MinGRU, 4), *LAST, 2),
    "MinGRU with everything": (
        partial(
            MinGRU,
            4,
            recurrent_activation="hard_sigmoid",
            use_bias=False,
            gate_bias=-1,
            dropout=0.1,
            seed=3,
            unroll=True,
            **{
                **{k: v for k, v in EVERYTHING.items() if "output" not in k},
                **OF_A_SEQUENCE,
            },
        ),
        *EVERY,
        1,
    ),
    "MinGRU in parallel, with everything": (
        partial(
            MinGRU,
            *(4, "tanh"),
            dropout=0.1,
            parallel=True,
            **OF_A_SEQUENCE,
        ),
        *EVERY,
        2,
    ),
    "RNN(MinGRUCell)": (around(partial(MinGRUCell, 4)), *LAST, 2),
    "ResidualRNN": (partial(ResidualRNN, 4, 6), *LAST, 4),
    "ResidualRNN with everything": (
        partial(
            ResidualRNN,
            *(4, 6),
            **OF_A_CELL_WITHOUT_DROPOUT,
            output_initializer="he_normal",
            output_regularizer="l2",
            output_constraint="max_norm",
            penalty=0.1,
            margin=0.2,
            dropout=0.1,
            recurrent_dropout=0.2,
            **OF_A_SEQUENCE,
        ),
        *EVERY,
        3,
    ),
    "RNN(ResidualRNNCell)": (around(partial(ResidualRNNCell, 4, 6)), *LAST, 4),
    "StreamFeatures": (partial(StreamFeatures, 4), (5, 3), (5, 9), 0),
    "NoisyRNN": (around(partial(RINCell, 4), NoisyRNN, stddev=0), *LAST, 3),
    "RateRNN": (partial(RateRNN, 4, 5.0, noise=0.1), *LAST, 3),
    "RateRNN with everything": (
        partial(
            RateRNN,
            4,
            5.0,
            0.5,
            rank=2,
            inference_noise=True,
            **OF_A_CELL_WITHOUT_DROPOUT,
            **OF_A_SEQUENCE,
        ),
        *EVERY,
        3,
    ),
    "RNN(RateRNNCell)": (around(partial(RateRNNCell, 4, 5.0)), *LAST, 3),
    "RNN of two cells": (around(two_cells), (5, 3), (2,), 6),
    "Bidirectional": (
        around(partial(RIN, 4), keras.layers.Bidirectional),
        *((5, 3), (8,), 6),
    ),
    "TimeDistributed": (
        around(partial(RIN, 4), keras.layers.TimeDistributed),
        *((2, 5, 3), (2, 4), 3),
    ),
    "LinearResidual": (partial(LinearResidual, "he_normal"), (3,), (3,), 1),
    "LinearResidual with everything": (
        partial(
            LinearResidual,
            "he_normal",
            scale=0.5,
            kernel_regularizer="l2",
            kernel_constraint="max_norm",
            # "l1" fails in mixed precision before Keras 3.13.
            activity_regularizer="l2",
        ),
        *((5, 3), (5, 3), 1),
    ),
    "ResidualDense": (partial(ResidualDense, 4), (3,), (3,), 3),
    "ResidualDense with everything": (
        partial(ResidualDense, 4, **EVERYTHING),
        *((5, 3), (5, 3), 3),
    ),
    "ResidualDense with a trained scale": (
        partial(ResidualDense, 4, scale="rezero", **EVERYTHING),
        *((5, 3), (5, 3), 4),
    ),
    "ResidualConv2D": (partial(ResidualConv2D, 3), (6, 4, 3), (6, 4, 3), 3),
    "ResidualConv2D with everything": (
        partial(
            ResidualConv2D,
            *(8, (3, 2), 2),
            data_format="channels_first",
            **EVERYTHING,
        ),
        *((3, 6, 4), (8, 3, 2), 3),
    ),
}


@pytest.fixture(
    params=[
        # On other backends the rows with everything answer for the others.
        pytest.param(
            name,
            marks=() if "everything" in name else pytest.mark.one_backend,
        )
        for name in LAYERS
    ],
    scope="module",
)
def row(request):
    return LAYERS[request.param]


@pytest.fixture(scope="module")
def trained(row):
    """A model, an input, and its weights before a step of training."""
    make, input_shape, output_shape, _ = row
    keras.utils.set_random_seed(0)
    # A layer before, so that training has something to train in any case.
    before = keras.layers.Dense(
        input_shape[-1], kernel_initializer="orthogonal"
    )
    model = keras.Sequential([keras.Input(input_shape), before, make()])
    # Without a graph TensorFlow is sooner done with one step.
    eagerly = keras.backend.backend() == "tensorflow"
    model.compile("sgd", "mse", run_eagerly=eagerly)
    x = np.random.default_rng(0).normal(size=(6, *input_shape))
    weights = model.get_weights()
    model.train_on_batch(x, np.ones((6, *output_shape)))
    return model, x, weights


@pytest.mark.one_backend
def test_the_config_survives_json(row):
    layer = row[0](name="mine")
    config = json.loads(json.dumps(layer.get_config()))
    # Keras writes an `activity_regularizer` only where there is one.
    missing = {*inspect.signature(type(layer)).parameters} - {*config}
    assert missing <= {"activity_regularizer", "options", "weights", "kwargs"}
    again = type(layer).from_config(config)
    assert again.get_config() == layer.get_config()
    assert again.name == "mine"


def test_shapes_and_weights_are_those_promised(row, trained):
    make, input_shape, output_shape, trained_weights = row
    symbolic = make()(keras.Input(input_shape, batch_size=6))
    model, x, _ = trained
    assert tuple(symbolic.shape) == tuple(model(x).shape) == (6, *output_shape)
    assert len(model.layers[-1].trainable_weights) == trained_weights


def test_a_step_of_training_moves_what_is_trained_and_nothing_else(trained):
    model, _, before = trained
    for variable, weight in zip(model.weights, before, strict=True):
        after = to_numpy(variable)
        assert np.isfinite(after).all()
        assert np.array_equal(after, weight) != variable.trainable


def test_a_saved_model_answers_the_same(trained, tmp_path):
    model, x, _ = trained
    model.save(tmp_path / "model.keras")
    again = keras.models.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(to_numpy(model(x)), to_numpy(again(x)))


@pytest.mark.parametrize(
    "policy", first_of([("mixed_bfloat16",), ("mixed_float16",)])
)
def test_it_computes_in_the_policy_asked_for(row, policy):
    make, input_shape, _, _ = row
    layer = make(dtype=policy)
    output = layer(np.ones((2, *input_shape)))
    compute = policy.removeprefix("mixed_")
    assert keras.backend.standardize_dtype(output.dtype) == compute
    assert all(weight.dtype == "float32" for weight in layer.weights)


ON_FEATURES = [LinearResidual("he_normal"), ResidualDense(2)]


@pytest.mark.one_backend
@pytest.mark.parametrize("layer", ON_FEATURES, ids=type)
def test_a_mask_goes_through_what_works_on_the_features(layer):
    """What is padded answers as if it were not."""
    model = keras.Sequential(
        [
            keras.Input((None,), dtype="int32"),
            keras.layers.Embedding(5, 3, mask_zero=True),
            layer,
            RIN(4),
        ]
    )
    x = np.array([[3, 1, 4, 2]])
    padded = np.pad(x, [(0, 0), (0, 3)])
    assert_same(model(padded), model(x))


@pytest.mark.parametrize(
    "layer",
    [
        *ON_FEATURES,
        *(RIN(4), RIN(4, dropout=0.5), MinGRU(4), MinGRU(4, dropout=0.5)),
        *(ResidualRNN(4, 6), ResidualRNN(4, 6, dropout=0.5)),
        ResidualConv2D(4),
    ],
    ids=type,
)
def test_it_takes_integers_and_float64_as_dense_does(layer):
    x = np.arange(24).reshape(2, 4, 3) % 5
    x = x[..., None] if isinstance(layer, ResidualConv2D) else x
    expected = layer(x.astype("float32"))
    for outputs in (layer(x), layer(x.astype("float64"))):
        assert keras.backend.standardize_dtype(outputs.dtype) == "float32"
        assert_same(outputs, expected)


@pytest.mark.one_backend
@pytest.mark.parametrize("name", ["LinearResidual", "ResidualDense"])
def test_the_number_of_features_must_be_known_and_stay(name):
    make, (features,), *_ = LAYERS[name]
    with pytest.raises(ValueError, match="None"):
        make()(keras.Input((None,)))
    layer = make()
    layer.build((None, features))
    with pytest.raises(ValueError, match="expected axis -1"):
        layer(np.ones((2, features + 1)))


@pytest.mark.one_backend
@pytest.mark.parametrize(
    "package_class, keras_class",
    [
        (RIN, keras.layers.SimpleRNN),
        (RINCell, keras.layers.SimpleRNNCell),
        (DeepTransitionRINCell, keras.layers.SimpleRNNCell),
        (MinGRU, keras.layers.GRU),
        (MinGRUCell, keras.layers.GRUCell),
        (ResidualDense, keras.layers.Dense),
    ],
)
def test_positional_arguments_are_the_first_of_keras(
    package_class, keras_class
):
    names, expected = (
        [
            parameter.name
            for parameter in inspect.signature(kind).parameters.values()
            if parameter.kind is parameter.POSITIONAL_OR_KEYWORD
        ]
        for kind in (package_class, keras_class)
    )
    assert names == expected[: len(names)] and len(names) > 2


IN_ONNX = [
    "RIN with everything",
    "RNN(DeepTransitionRINCell) with everything",
    "RNN of two cells",
    "LinearResidual",
    "LinearResidual with everything",
    "ResidualDense with everything",
    "ResidualDense with a trained scale",
    "ResidualConv2D with everything",
]


@NEEDS_ONNX
@ON_TENSORFLOW
@pytest.mark.exhaustive
@pytest.mark.filterwarnings("ignore:.*np.object:FutureWarning")
@pytest.mark.parametrize("name", IN_ONNX)
def test_it_serves_in_onnx(name, tmp_path):
    make, shape, _, _ = LAYERS[name]
    model = keras.Sequential([keras.Input(shape), make()])
    assert_exported_serves(model, (3, *shape), format="onnx", folder=tmp_path)
