import functools

import keras
import numpy as np
import pytest
from references import assert_same
from references import built
from references import to_numpy

from keras_rin.initializers import Chain
from keras_rin.initializers import ChainIdentity
from keras_rin.initializers import FeedbackChain
from keras_rin.initializers import Offset
from keras_rin.initializers import PartialIdentity
from keras_rin.initializers import PerGate
from keras_rin.initializers import Ramp
from keras_rin.initializers import SmallVarianceNormal
from keras_rin.layers import DeepTransitionRINCell

SQUARE = [
    Chain(0.3),
    ChainIdentity(0.3, -0.7),
    FeedbackChain(0.9, 0.1),
    Offset(Chain(0.3)),
    PartialIdentity(0.3),
    Ramp(0.2),
]


def as_numpy(initializer, units, dtype=None):
    return to_numpy(initializer((units, units), dtype))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64", None])
def test_the_dtype_is_the_one_asked_for(dtype):
    for initializer in (*SQUARE, SmallVarianceNormal()):
        matrix = initializer((3, 3), dtype=dtype)
        expected = dtype or keras.config.floatx()
        assert keras.backend.standardize_dtype(matrix.dtype) == expected


@pytest.mark.parametrize(
    "initializer",
    [*SQUARE, PerGate(Chain(0.3), gates=1), PerGate([Chain(0.5)], gates=1)],
)
def test_the_config_makes_the_same_matrix(initializer):
    config = keras.initializers.serialize(initializer)
    again = keras.initializers.deserialize(config)
    np.testing.assert_array_equal(as_numpy(initializer, 4), as_numpy(again, 4))


@pytest.mark.parametrize("units", [1, 5, 100])
def test_each_matrix_is_its_formula(units):
    row = np.arange(units)
    diagonal, above, below = (np.eye(units, k=k) for k in (0, 1, -1))
    for initializer, expected in (
        (Chain(1.02), 1.02 * above),
        (ChainIdentity(0.5, 0.9), 0.5 * above + 0.9 * diagonal),
        (FeedbackChain(0.9, 0.1), 0.9 * above + 0.1 * below),
        (Ramp(0.01), 0.01 * (row - row[:, None]) / max(units - 1, 1)),
        *(
            (PartialIdentity(ones / units), np.diag(row >= units - ones))
            for ones in range(units + 1)
        ),
        (Offset(Chain(0.9)), 0.9 * above - diagonal),
        (PerGate(Chain(0.9), gates=1), 0.9 * above),
    ):
        matrix = as_numpy(initializer, units, "float64")
        np.testing.assert_allclose(matrix, expected, rtol=1e-14)


MIXED = [Ramp(), Ramp(), Chain(1.02), Ramp()]


@pytest.mark.parametrize(
    "initializer, gates",
    [
        *[(gate, [gate] * 4) for gate in (Chain(0.7), keras.ops.ones)],
        (MIXED, MIXED),
    ],
)
def test_each_gate_of_an_lstm_has_its_matrix(initializer, gates):
    lstm = keras.layers.LSTM(6, recurrent_initializer=PerGate(initializer))
    expected = np.hstack([as_numpy(gate, 6) for gate in gates])
    assert_same(built(lstm).cell.recurrent_kernel, expected)


@pytest.mark.parametrize("seed", [None, keras.random.SeedGenerator(7)])
def test_gates_draw_different_numbers(seed):
    normal = keras.initializers.RandomNormal(seed=seed)
    kernel = to_numpy(PerGate(normal)((3, 12)))
    assert len(np.unique(kernel)) == 36


@pytest.mark.parametrize("wrap", [lambda seeded: seeded, Offset])
def test_no_two_parts_of_ten_seeds_are_equal(wrap):
    matrices = []
    for seed in range(10):
        seeded = wrap(keras.initializers.Orthogonal(0.1, seed))
        gates = np.split(to_numpy(PerGate(seeded)((3, 12))), 4, axis=1)
        matrices += [gate.tobytes() for gate in gates]
        assert_same(PerGate([seeded] * 4)((3, 12)), np.hstack(gates), 0, 0)
        for initializer in (seeded, PerGate(seeded, 1), PerGate([seeded], 1)):
            cell = DeepTransitionRINCell(3, recurrent_initializer=initializer)
            offsets = built(cell).get_weights()[1::2][:2]
            assert_same(offsets, gates[:2], 0, 0)
    assert len(set(matrices)) == 10 * 4


@pytest.mark.one_backend
@pytest.mark.parametrize(
    "refused, message",
    [
        (lambda: Offset(None), "Received: initializer=None"),
        (lambda: PerGate(None), "Received: initializer=None"),
        (lambda: PerGate([Chain()] * 3), "gates=4.*Received: 3 initializers"),
        *[
            (functools.partial(initializer, shape), "square matrices only")
            for initializer in SQUARE
            for shape in ((3, 4), (3,), (0, 0))
        ],
        (lambda: PerGate()((3, 13)), "last axis.*4 gates, a GRU 3.*Received"),
        (lambda: PerGate()(()), "last axis.*Received: shape="),
        (lambda: SmallVarianceNormal()((3,)), "kernels of.*Received: shape="),
        (
            lambda: built(keras.layers.GRU(5, recurrent_initializer=Chain())),
            r"a GRU pass PerGate\(Chain\(...\), gates=4\) or gates=3",
        ),
    ],
)
def test_what_cannot_be_initialized_is_refused(refused, message):
    with pytest.raises(ValueError, match=message):
        refused()


@pytest.mark.one_backend
@pytest.mark.parametrize(
    "shape, sigma",
    [
        ((3, 3, 64, 128), 1 / (9 * 128)),
        ((1, 1, 200, 64), 1 / 64),
        ((3, 5, 40, 32), 1 / (15 * 32)),
        ((7, 50, 64), 1 / (7 * 64)),
        ((300, 100), 1 / 100),
    ],
)
def test_small_variance_normal_has_the_sigma_of_the_paper(shape, sigma):
    kernel = to_numpy(SmallVarianceNormal(seed=0)(shape))
    np.testing.assert_allclose(kernel.std(), sigma, rtol=0.03)
    assert abs(kernel.mean()) < 0.03 * sigma
    assert np.abs(kernel).max() > 3 * sigma  # a normal one, not cut off


@pytest.mark.parametrize(
    "make", [SmallVarianceNormal, keras.initializers.Orthogonal]
)
def test_a_seed_draws_the_same_again(make):
    shape = (4, 8)
    free, seeded, again = (
        PerGate(make(seed=seed), gates=2) for seed in (None, 7, 7)
    )
    assert not np.array_equal(to_numpy(free(shape)), to_numpy(free(shape)))
    assert_same(seeded(shape), again(shape))
    config = keras.initializers.serialize(seeded)
    assert_same(keras.initializers.deserialize(config)(shape), seeded(shape))


HALF = pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
# Rounding of each entry, in units of the dtype's own spacing at 1.
SPACING = {"bfloat16": 2**-8, "float16": 2**-11}
ORTHOGONAL = keras.initializers.Orthogonal(seed=3)


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
        (Offset(ORTHOGONAL), (5, 5), lambda v: v - np.eye(5)),
        (PerGate([ORTHOGONAL], gates=1), (5, 5), lambda v: v),
        (
            PerGate([ORTHOGONAL, *[Chain(0)] * 3]),
            (5, 20),
            lambda v: np.pad(v, ((0, 0), (0, 15))),
        ),
        (PerGate([Offset(ORTHOGONAL)], 1), (5, 5), lambda v: v - np.eye(5)),
    ],
    ids=["Offset", "PerGate", "four gates", "PerGate of Offset"],
)
def test_an_orthogonal_matrix_is_that_of_float32(
    initializer, shape, exact, dtype
):
    matrix = to_numpy(ORTHOGONAL((5, 5), "float32")).astype("float64")
    np.testing.assert_allclose(matrix @ matrix.T, np.eye(5), atol=1e-6)
    assert_rounded(initializer(shape, dtype), exact(matrix), dtype)
