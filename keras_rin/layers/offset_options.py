"""Warnings about options that are meant for an effective matrix V = U + I."""

import warnings

import keras

from keras_rin.constraints import Orthogonal
from keras_rin.regularizers import IdentityOffsetL2


def warn_of_effective(layer, initializer, regularizer, constraint):
    """Warns where an option of the recurrent kernel expects V, not U."""
    if _of_gain_one(initializer, keras.initializers.Identity):
        _warn(
            layer,
            "recurrent_initializer",
            "the identity makes the effective matrix U + I equal to 2 I",
            '="zeros"` for an identity recurrence',
        )
    elif _of_gain_one(initializer, keras.initializers.Orthogonal):
        _warn(
            layer,
            "recurrent_initializer",
            "an orthogonal U gives U + I a spectral radius of about 2",
            '=Offset("orthogonal")` for an orthogonal recurrence',
        )
    if isinstance(regularizer, IdentityOffsetL2):
        _warn(
            layer,
            "recurrent_regularizer",
            "IdentityOffsetL2 pulls U + I towards 2 I",
            f"=keras.regularizers.L2({regularizer.l2})` to penalize the "
            "distance from the identity",
        )
    if isinstance(constraint, Orthogonal) and not constraint.offset:
        _warn(
            layer,
            "recurrent_constraint",
            "Orthogonal() makes U orthogonal, not U + I",
            "=Orthogonal(offset=True)` for an orthogonal recurrence",
        )


def _of_gain_one(initializer, kind):
    return isinstance(initializer, kind) and initializer.gain == 1


def _warn(layer, option, effect, remedy):
    kind = "RIN" if type(layer).__name__ == "RINCell" else type(layer).__name__
    warnings.warn(
        f"{kind} stores the offset U of its recurrent matrix U + I: {effect}. "
        f"Pass `{option}{remedy}.",
        stacklevel=4,
    )
