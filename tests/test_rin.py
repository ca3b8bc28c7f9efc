"""What a RIN has beside the formula, which `test_fused_recurrence` tests."""

import keras
import numpy as np
import pytest
from references import assert_same
from references import to_numpy

from keras_rin.layers import RIN

X = np.random.default_rng(0).normal(size=(4, 6, 3)).astype("float32")


def built_rin(units=5, shape=X.shape, **kwargs):
    normal = keras.initializers.RandomNormal
    rin = RIN(
        units,
        recurrent_initializer=normal(stddev=0.3 / units**0.5),
        bias_initializer=normal(stddev=0.1),
        **kwargs,
    )
    rin.build(shape)
    return rin


@pytest.mark.parametrize("recurrent_dropout", [0.0, 0.5])
def test_a_zero_offset_holds_the_state(recurrent_dropout):
    rin = RIN(
        5, recurrent_initializer="zeros", recurrent_dropout=recurrent_dropout
    )
    h = np.arange(10, dtype="float32").reshape(2, 5)
    last = rin(np.zeros((2, 30, 1)), initial_state=[h], training=True)
    assert_same(last, h, 0, 0)


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
        ({}, (2, 5, 3), two_states(False), "one tensor.*: 2 tensors"),
        ({}, (2, 5, 3), two_states(True), "one tensor.*: 2 tensors"),
        (UNROLLED, (2, 5, 3), ones(2, 5), "mine.*only with `unroll=False`"),
    ],
)
def test_inputs_that_do_not_fit_are_refused(options, shape, arguments, message):
    rin = built_rin(3, (None, None, 3), **options)
    with pytest.raises(ValueError, match=message):
        rin(np.ones(shape), **arguments)


@pytest.mark.parametrize("fused", [False, "auto"])
def test_the_policy_may_change_later(fused):
    rin = built_rin(fused=fused)
    exact = to_numpy(rin(X, training=True))
    rin.dtype_policy = "mixed_bfloat16"
    rounded = keras.ops.cast(rin(X, training=True), "float32")
    assert_same(rounded, exact, rtol=0.05, atol=0.05)
    assert not np.array_equal(to_numpy(rounded), exact)


def test_without_autocast_it_runs_in_mixed_precision():
    rin = RIN(4, autocast=False, dtype="mixed_bfloat16")
    assert rin(X, training=True).shape == (4, 4)
    assert not rin.autocast
