"""Orthogonal matrices are drawn for weights of every floating dtype."""

import keras
import numpy as np
import pytest
from references import to_numpy

from keras_rin.initializers import Chain
from keras_rin.initializers import ChainIdentity
from keras_rin.initializers import Offset
from keras_rin.initializers import PerGate
from keras_rin.layers import RIN
from keras_rin.layers import DeepTransitionRINCell
from keras_rin.layers import FixedProjection
from keras_rin.layers import LinearResidual
from keras_rin.layers import ResidualConv2D
from keras_rin.layers import ResidualDense
from keras_rin.layers import ResidualDenseStack

HALF = pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
# Rounding of each entry, in units of the dtype's own spacing at 1.
SPACING = {"bfloat16": 2**-8, "float16": 2**-11}


def orthogonal():
    return keras.initializers.Orthogonal(seed=3)


def as_float64(tensor):
    return to_numpy(keras.ops.cast(tensor, "float32")).astype("float64")


def assert_rounded(tensor, exact, dtype):
    assert keras.backend.standardize_dtype(tensor.dtype) == dtype
    np.testing.assert_allclose(
        as_float64(tensor), exact, rtol=SPACING[dtype], atol=1e-7
    )


@HALF
@pytest.mark.parametrize(
    ("initializer", "shape", "exact"),
    [
        (Offset(orthogonal()), (5, 5), lambda v: v - np.eye(5)),
        (PerGate([orthogonal()], gates=1), (5, 5), lambda v: v),
        (PerGate([orthogonal()] * 4), (5, 20), lambda v: np.tile(v, 4)),
        (PerGate([Offset(orthogonal())], 1), (5, 5), lambda v: v - np.eye(5)),
    ],
    ids=["Offset", "PerGate", "four gates", "PerGate of Offset"],
)
def test_an_orthogonal_matrix_is_that_of_float32(
    initializer, shape, exact, dtype
):
    matrix = to_numpy(orthogonal()((5, 5), "float32")).astype("float64")
    np.testing.assert_allclose(matrix @ matrix.T, np.eye(5), atol=1e-6)
    assert_rounded(initializer(shape, dtype), exact(matrix), dtype)


@HALF
def test_an_offset_keeps_digits_that_the_effective_matrix_loses(dtype):
    offset = Offset(ChainIdentity(0.5, 0.999))((3, 3), dtype)
    exact = 0.5 * np.eye(3, k=1) - 0.001 * np.eye(3)
    np.testing.assert_allclose(as_float64(offset), exact, rtol=5e-3)


@pytest.mark.parametrize(
    "initializer",
    [
        Offset(Chain(1e5)),
        PerGate([Chain(1e5)], gates=1),
        Offset(PerGate([Chain(1e5)], gates=1)),
    ],
    ids=["Offset", "PerGate", "both"],
)
def test_a_weight_beyond_float16_is_still_refused(initializer):
    with pytest.raises(ValueError, match="`gain` of Chain .*dtype=float16"):
        initializer((3, 3), "float16")
    assert np.isfinite(as_float64(initializer((3, 3), "bfloat16"))).all()


def deep_transition(initializer, dtype):
    cell = DeepTransitionRINCell(
        4, recurrent_initializer=Offset(initializer), dtype=dtype
    )
    return keras.layers.RNN(cell)


# name: (how to make it, its input shape, the weights that are orthogonal)
LAYERS = {
    "RIN": (
        lambda initializer, dtype: RIN(
            4,
            kernel_initializer=initializer,
            recurrent_initializer=Offset(initializer),
            dtype=dtype,
        ),
        (5, 4),
        ["kernel", "recurrent_kernel"],
    ),
    "DeepTransitionRINCell": (deep_transition, (5, 4), ["recurrent_kernel"]),
    "FixedProjection": (
        lambda initializer, dtype: FixedProjection(4, initializer, dtype=dtype),
        (4,),
        ["kernel"],
    ),
    "LinearResidual": (
        lambda initializer, dtype: LinearResidual(
            type(initializer)(0.1, initializer.seed), dtype=dtype
        ),
        (4,),
        ["kernel"],
    ),
    "ResidualDense": (
        lambda initializer, dtype: ResidualDense(
            4,
            kernel_initializer=initializer,
            output_initializer=initializer,
            dtype=dtype,
        ),
        (4,),
        ["kernel", "output_kernel"],
    ),
    "ResidualDenseStack": (
        lambda initializer, dtype: ResidualDenseStack(
            4, depth=2, kernel_initializer=initializer, dtype=dtype
        ),
        (4,),
        ["kernel"],
    ),
    "ResidualConv2D": (
        lambda initializer, dtype: ResidualConv2D(
            4,
            kernel_initializer=initializer,
            output_initializer=initializer,
            dtype=dtype,
        ),
        (4, 4, 4),
        ["kernel", "output_kernel"],
    ),
}


@HALF
@pytest.mark.parametrize(
    ("make", "shape", "names"), LAYERS.values(), ids=LAYERS
)
def test_a_layer_has_the_orthogonal_weights_of_float32(
    make, shape, names, dtype
):
    weights = {}
    for wanted in (dtype, "float32"):
        layer = make(orthogonal(), wanted)
        layer.build((None, *shape))
        weights[wanted] = {weight.name: weight for weight in layer.weights}
    for name in names:
        exact = as_float64(weights["float32"][name].value)
        assert_rounded(weights[dtype][name].value, exact, dtype)
