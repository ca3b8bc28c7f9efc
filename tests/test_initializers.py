"""Each initializer is its formula, and a copy of it begins with its values."""

import functools
import inspect
import json

import keras
import numpy as np
import pytest
from references import assert_same
from references import built
from references import to_numpy

from keras_rin.diagnostics import fisher_memory_curve
from keras_rin.initializers import AlignedInput
from keras_rin.initializers import Chain
from keras_rin.initializers import ChainIdentity
from keras_rin.initializers import FeedbackChain
from keras_rin.initializers import Offset
from keras_rin.initializers import OneUnitInput
from keras_rin.initializers import PartialIdentity
from keras_rin.initializers import PerGate
from keras_rin.initializers import Ramp
from keras_rin.initializers import SmallVarianceNormal
from keras_rin.layers import RIN
from keras_rin.layers import DeepTransitionRINCell
from keras_rin.layers import LinearResidual
from keras_rin.layers import MinGRU
from keras_rin.layers import RateRNN

SQUARE = [
    Chain(0.3),
    Chain(0.3, circular=True),
    ChainIdentity(0.3, -0.7),
    ChainIdentity(0.3, -0.7, circular=True),
    FeedbackChain(0.9, 0.1),
    Offset(Chain(0.3)),
    PartialIdentity(0.3),
    Ramp(0.2),
]


def as_numpy(initializer, units, dtype=None):
    return to_numpy(initializer((units, units), dtype))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64", None])
def test_the_dtype_is_the_one_asked_for(dtype):
    inputs = OneUnitInput(), AlignedInput(Chain(0.3))
    for initializer in (*SQUARE, *inputs, SmallVarianceNormal()):
        matrix = initializer((3, 3), dtype=dtype)
        expected = dtype or keras.config.floatx()
        assert keras.backend.standardize_dtype(matrix.dtype) == expected


@pytest.mark.parametrize("units", [1, 5, 100])
def test_each_matrix_is_its_formula(units):
    row = np.arange(units)
    diagonal, above, below = (np.eye(units, k=k) for k in (0, 1, -1))
    shift = np.roll(diagonal, 1, axis=1)
    for initializer, expected in (
        (Chain(1.02), 1.02 * above),
        (Chain(0.7, circular=True), 0.7 * shift),
        (ChainIdentity(0.5, 0.9, True), 0.5 * shift + 0.9 * diagonal),
        (Offset(Chain(circular=True)), shift - diagonal),
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


def test_the_input_enters_at_one_unit():
    kernel = np.zeros((3, 5))
    kernel[:, 2] = -0.5
    assert_same(OneUnitInput(-0.5, 2)((3, 5)), kernel, 0, 0)
    gates = PerGate(OneUnitInput(-0.5, 2), gates=3)((3, 15))
    assert_same(gates, np.hstack([kernel] * 3), 0, 0)


GAUSSIAN = keras.initializers.RandomNormal(stddev=0.1, seed=5)


def test_no_drawn_input_is_remembered_better_than_an_aligned_one(rng):
    """Nor a drawn pair of orthogonal ones better than the first two rows."""
    layer = RIN(
        30,
        kernel_initializer=AlignedInput(Offset(GAUSSIAN), gain=2),
        recurrent_initializer=Offset(GAUSSIAN),
    )
    kernel, offset, _ = built(layer, features=2).get_weights()
    matrix = offset + np.eye(30)

    def memories(inputs):
        curves = [
            fisher_memory_curve(matrix, input_vector=row, lags=2_000)
            for row in inputs
        ]
        return np.sum(curves, axis=1)

    assert_same(kernel @ kernel.T, 4 * np.eye(2))
    first, second = memories(kernel) / 4
    assert first > second > 1.2  # of a normal matrix each would be 1
    for _ in range(50):
        drawn = memories(np.linalg.qr(rng.normal(size=(30, 2)))[0].T)
        assert max(drawn) < first and sum(drawn) < first + second


@pytest.mark.parametrize("gain", [0.5, 1, 1.02])
def test_the_aligned_input_of_a_chain_is_its_first_units(gain):
    for recurrent in (Chain(gain), gain * np.eye(20, k=1)):
        assert_same(AlignedInput(recurrent)((3, 20)), np.eye(3, 20), 0, 1e-6)
    rows = to_numpy(AlignedInput(Chain(circular=True), horizon=40)((2, 20)))
    assert_same(rows @ rows.T, np.eye(2))  # any, of a normal matrix


@pytest.mark.parametrize("is_array", [False, True])
def test_an_aligned_input_survives_its_config(is_array):
    """Also where Keras builds the layer in the trace of a training step."""
    recurrent = Chain(0.9)
    if is_array:
        recurrent = np.random.default_rng(3).normal(scale=0.3, size=(4, 4))
    initializer = AlignedInput(recurrent, gain=0.5, horizon=9)
    copy = json.loads(json.dumps(keras.initializers.serialize(initializer)))
    copy = keras.initializers.deserialize(copy)
    assert_same(copy((2, 4)), initializer((2, 4)), 0, 0)
    layer = keras.layers.SimpleRNN(4, kernel_initializer=copy)
    model = keras.Sequential([layer, keras.layers.Dense(1)])
    model.compile(keras.optimizers.SGD(0.0), "mse")
    model.fit(np.ones((2, 3, 2)), np.ones((2, 1)), verbose=0)
    assert_same(layer.get_weights()[0], initializer((2, 4)), 0, 0)


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


@pytest.mark.parametrize("seed", [None, 7, keras.random.SeedGenerator(7)])
@pytest.mark.parametrize("wrap", [lambda seeded: seeded, Offset])
def test_parts_draw_different_numbers(wrap, seed):
    normal = keras.initializers.RandomNormal(seed=seed)
    kernel = to_numpy(PerGate(wrap(normal))((3, 12)))
    assert len(np.unique(kernel)) == 36
    options = {"recurrent_initializer": wrap(normal)}
    cell = DeepTransitionRINCell(4, bias_initializer=normal, **options)
    _, first, bias, second, bias_2 = built(cell).get_weights()
    assert (first != second).all() and (bias != bias_2).all()


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
        (lambda: OneUnitInput(unit=3)((2, 3)), "more units than `unit`"),
        (lambda: OneUnitInput()((3,)), r"Received: shape=\(3,\)"),
        (lambda: AlignedInput(Chain(0.5))((3, 2)), "at most as many features"),
        (lambda: AlignedInput(np.eye(3))((1, 2)), r"shape \(features, 3\)"),
        (lambda: AlignedInput(np.ones((2, 3))), "must be a square matrix"),
        (lambda: AlignedInput("orthogonal"), "must have a seed.*Received"),
        (lambda: AlignedInput(None), "Received: initializer=None"),
        (lambda: AlignedInput("identity")((1, 2)), "or pass `horizon`"),
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


# Rounding of each entry, in units of the dtype's own spacing at 1.
SPACING = {"bfloat16": 2**-8, "float16": 2**-11}
ORTHOGONAL = keras.initializers.Orthogonal(seed=3)


@pytest.mark.parametrize("dtype", SPACING)
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
    tensor = initializer(shape, dtype)
    assert keras.backend.standardize_dtype(tensor.dtype) == dtype
    rounded = keras.ops.cast(tensor, "float32")
    assert_same(rounded, exact(matrix), SPACING[dtype], 1e-7)


Identity = keras.initializers.Identity
GAIN = Identity(0.9)


class Diagonal(keras.initializers.Initializer):
    """An initializer of a user, with the config of the base class."""

    def __init__(self, gain=1.0, seed=None):
        self.gain = gain

    def __call__(self, shape, dtype=None):
        return keras.ops.eye(*shape, dtype=dtype) * self.gain


class Stored(Diagonal):
    def __init__(self, gain=1.0):
        super().__init__(gain)


class Doubled(Diagonal):
    def __init__(self, gain=1.0):
        super().__init__(2 * gain)


class Described(Doubled):
    def get_config(self):
        return {"gain": self.gain / 2}


def copied(item, module=keras.initializers):
    """What a file brings back."""
    config = json.loads(json.dumps(module.serialize(item)))
    return module.deserialize(config)


def keras_initializers():
    """Those of matrices, their numbers unlike the defaults."""
    classes = {
        item
        for item in vars(keras.initializers).values()
        if inspect.isclass(item) and "STFT" not in item.__name__
    }
    for item in sorted(classes, key=lambda item: item.__name__):
        parameters = inspect.signature(item).parameters.values()
        numbers = {
            p.name: p.default + 0.25
            for p in parameters
            if isinstance(p.default, float)
        }
        if item is not keras.initializers.Initializer:
            has_seed = "seed" in inspect.signature(item).parameters
            yield item(**numbers, **({"seed": 1} if has_seed else {}))


@pytest.mark.one_backend
@pytest.mark.parametrize(
    "initializer",
    [*keras_initializers(), *SQUARE, Stored(2.0), Described(3)],
    ids=lambda initializer: type(initializer).__name__,
)
def test_a_wrapper_brings_back_the_values(initializer):
    classes = {item.__name__: item for item in (Stored, Described)}
    with keras.saving.custom_object_scope(classes):
        for wrapper in (Offset(initializer), PerGate(initializer, gates=1)):
            matrix = to_numpy(copied(wrapper)((3, 3)))
            assert_same(wrapper((3, 3)), matrix, 0, 0)
        gates = PerGate([Identity(2.0), initializer], gates=2)
        assert_same(gates((3, 6)), to_numpy(copied(gates)((3, 6))), 0, 0)


@pytest.mark.one_backend
@pytest.mark.parametrize(
    "initializer, lost", [(Doubled(2.0), "gain"), (Diagonal(2.0), "seed")]
)
def test_what_a_config_would_not_bring_back_is_refused(initializer, lost):
    name = type(initializer).__name__
    for wrap in (Offset, PerGate, lambda item: PerGate([item] * 4)):
        with pytest.raises(ValueError, match=f"of {name} lacks {lost}: a copy"):
            wrap(initializer)


@pytest.mark.one_backend
@pytest.mark.parametrize(
    "layer, name",
    [
        (RIN(3, recurrent_initializer=Offset(GAIN)), "recurrent_kernel"),
        (RIN(3, recurrent_initializer=Identity(0.05)), "recurrent_kernel"),
        (RIN(3, kernel_initializer=GAIN), "kernel"),
        (RateRNN(3, 2.0, recurrent_initializer=GAIN), "recurrent_kernel"),
        (MinGRU(3, kernel_initializer=GAIN), "kernel"),
        (LinearResidual(kernel_initializer=Identity(0.05)), "kernel"),
    ],
)
def test_a_copy_of_a_layer_begins_with_its_values(layer, name):
    weights = []
    for item in (layer, copied(layer, keras.layers)):
        item.build((None, 5, 3))
        (weight,) = (w for w in item.weights if w.name == name)
        weights.append(to_numpy(weight))
    assert abs(weights[0]).max() not in (0, 1)
    assert_same(*weights, 0, 0)
