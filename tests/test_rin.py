"""What RIN, its cell, and the cell with two transitions have beside formulas.

The formulas are in `test_recurrent_formulas.py` and `test_fused_recurrence.py`.
"""

import functools

import keras
import numpy as np
import pytest
import references
from references import assert_same
from references import to_numpy

from keras_rin.layers import RIN
from keras_rin.layers import DeepTransitionRINCell
from keras_rin.layers import RINCell

CELLS = pytest.mark.parametrize("make", [RINCell, DeepTransitionRINCell])
NORMAL = keras.initializers.RandomNormal
built = functools.partial(references.built, features=3)
OFFSETS = slice(1, None, 2)  # of the weights
NAMES = ["kernel", "recurrent_kernel", "bias"]
NAMES += ["transition_kernel", "transition_bias"]


def random_cell(make, units=5, **options):
    return built(
        make(
            units,
            recurrent_initializer=NORMAL(stddev=0.3),
            bias_initializer=NORMAL(stddev=0.5),
            **options,
        )
    )


@CELLS
def test_the_default_offsets_are_small_and_differ(make):
    offsets = [
        offset
        for cell in (make(200), make(200))
        for offset in built(cell).get_weights()[OFFSETS]
    ]
    for offset in offsets:
        assert abs(offset.std() - 0.001) < 0.0001
        assert abs(offset.mean()) < 0.0001
    assert len({offset[0, 0] for offset in offsets}) == len(offsets)


@CELLS
def test_effective_matrices_are_offsets_plus_the_identity(make):
    cell = random_cell(make)
    for name in NAMES[OFFSETS][: len(cell.weights) // 2]:
        expected = to_numpy(getattr(cell, name)) + np.eye(5, dtype="float32")
        assert_same(getattr(cell, f"effective_{name}"), expected, 0, 0)
    with pytest.raises(ValueError, match="has no weights yet"):
        make(4).effective_recurrent_kernel  # noqa: B018


@CELLS
def test_options_act_on_each_offset_and_bias(make):
    penalty = keras.regularizers.L2(0.1)
    cell = random_cell(
        make,
        recurrent_regularizer=penalty,
        bias_regularizer=penalty,
        recurrent_constraint="non_neg",
        bias_constraint="non_neg",
    )
    squares = [np.sum(weight**2) for weight in cell.get_weights()[1:]]
    assert_same(sum(cell.losses), 0.1 * sum(squares))
    for weight in cell.weights[1:]:
        constrained = weight.constraint(-np.ones(weight.shape, "float32"))
        assert_same(constrained, np.zeros(weight.shape))


@CELLS
def test_small_offsets_survive_bfloat16(make):
    cell = built(make(2, None, dtype="mixed_bfloat16"))
    weights = [0 * weight for weight in cell.get_weights()]
    weights[OFFSETS][-1][:] = 2.0**-8
    cell.set_weights(weights)
    h, _ = cell(np.zeros((1, 3)), [np.ones((1, 2))])
    # 1 + 2^-8 is 1 in bfloat16: a rounded U + I would give 1 here.
    np.testing.assert_array_equal(to_numpy(h).astype("float32"), 1 + 2.0**-7)


@CELLS
def test_recurrent_dropout_acts_on_the_first_offset_alone(rng, make):
    cell = random_cell(make, recurrent_dropout=0.5)
    x, h = rng.normal(size=(4, 3)), rng.random((4, 5)).astype("float32")
    kernel, first, *others = cell.get_weights()
    for offset in (first, 0 * first):
        cell.set_weights([kernel, offset, *others])
        dropped, whole = (
            cell(x, h, training=flag)[0] for flag in (True, False)
        )
        is_same = np.allclose(to_numpy(dropped), to_numpy(whole), atol=1e-5)
        assert is_same != offset.any()


def state(*shape):
    return {"initial_state": np.ones(shape, "float32")}


def two_states(training):
    two = [np.ones((2, 3), "float32")] * 2
    return {"initial_state": two, "training": training}


def ones(*shape):
    return {"mask": np.ones(shape, bool)}


UNROLLED = {"unroll": True, "zero_output_for_mask": True, "name": "mine"}


@pytest.mark.one_backend
@pytest.mark.parametrize(
    "options, shape, arguments, message",
    [
        ({}, (4, 6), {}, "expected ndim=3, found ndim=2"),
        ({}, (4, 6, 4), {}, "axis -1 of input shape to have value 3"),
        *[
            ({}, (2, 5, 3), ones(*shape), r"`mask` must have .* \(2, 5\)")
            for shape in [(2,), (2, 4), (3, 5), (2, 5, 1)]
        ],
        *[
            ({}, (2, 5, 3), state(*shape), "`initial_state` must have the")
            for shape in [(3,), (2, 4), (1, 3)]
        ],
        ({}, (2, 5, 3), two_states(False), "list of 1,.*: 2 tensors"),
        ({}, (2, 5, 3), two_states(True), "list of 1,.*: 2 tensors"),
        (UNROLLED, (2, 5, 3), ones(2, 5), "mine.*only with `unroll=False`"),
    ],
)
def test_inputs_that_do_not_fit_are_refused(options, shape, arguments, message):
    rin = built(RIN(3, **options))
    with pytest.raises(ValueError, match=message):
        rin(np.ones(shape), **arguments)


@pytest.mark.parametrize("fused", [False, "auto"])
def test_the_policy_may_change_later(rng, fused):
    rin = built(RIN(5, recurrent_initializer=NORMAL(stddev=0.1), fused=fused))
    x = rng.normal(size=(4, 6, 3)).astype("float32")
    exact = to_numpy(rin(x, training=True))
    rin.dtype_policy = "mixed_bfloat16"
    rounded = keras.ops.cast(rin(x, training=True), "float32")
    assert_same(rounded, exact, rtol=0.05, atol=0.05)
    assert not np.array_equal(to_numpy(rounded), exact)


def test_without_autocast_it_runs_in_mixed_precision():
    rin = RIN(4, autocast=False, dtype="mixed_bfloat16")
    assert rin(np.ones((4, 6, 3), "float32"), training=True).shape == (4, 4)
    assert not rin.autocast
