"""Warnings about options that are meant for an effective matrix V = U + I."""

import inspect
import warnings

import keras

from keras_rin import _callers
from keras_rin.constraints import Orthogonal
from keras_rin.initializers import Chain
from keras_rin.initializers import ChainIdentity
from keras_rin.initializers import FeedbackChain
from keras_rin.initializers import PartialIdentity
from keras_rin.initializers import PerGate
from keras_rin.initializers import Ramp
from keras_rin.regularizers import IdentityOffsetL2

# An offset of Keras's initializers with at most this spectral radius can be
# what the user means: the hidden state grows by a factor of up to 1.1 a step.
SMALL = 0.1


def warn_about_effective_options(layer, weight):
    """Warns where an option of `weight` expects V, and the layer stores U."""
    initializer, regularizer, constraint = (
        getattr(layer, f"{weight}_{option}")
        for option in ("initializer", "regularizer", "constraint")
    )
    advice = {
        "initializer": _initializer_advice(initializer, weight),
        "regularizer": _regularizer_advice(regularizer),
        "constraint": _constraint_advice(constraint),
    }
    kind = "RIN" if type(layer).__name__ == "RINCell" else type(layer).__name__
    for option, (effect, remedy) in advice.items():
        if remedy:
            warnings.warn(
                f"{kind} stores the offset U of its matrix U + I: {effect}. "
                f"Pass `{weight}_{option}={remedy}.",
                stacklevel=_callers.stacklevel(),
            )


def _initializer_advice(initializer, weight):
    """The effect of the initializer on U, and the option to pass instead."""
    if isinstance(initializer, PerGate) and initializer.gates == 1:
        (initializer,) = keras.tree.flatten(initializer.initializer)
    if _has_unit_gain(initializer, keras.initializers.Identity):
        return (
            "the identity makes the effective matrix U + I equal to 2 I",
            '"zeros"` for the identity',
        )
    if _has_unit_gain(initializer, keras.initializers.Orthogonal):
        return (
            "an orthogonal U gives U + I a spectral radius of about 2",
            'Offset("orthogonal")` for an orthogonal matrix',
        )
    if _is_effective(initializer, weight):
        code = _code(initializer)
        return (
            f"{code} without Offset adds the identity to its matrix",
            f"Offset({code})` to make U + I that matrix",
        )
    return None, None


def _regularizer_advice(regularizer):
    if not isinstance(regularizer, IdentityOffsetL2):
        return None, None
    return (
        "IdentityOffsetL2 pulls U + I towards 2 I",
        f"keras.regularizers.L2({regularizer.l2})` to penalize the distance "
        "from the identity",
    )


def _constraint_advice(constraint):
    if not isinstance(constraint, Orthogonal) or constraint.offset:
        return None, None
    return (
        "Orthogonal() makes U orthogonal, not U + I",
        "Orthogonal(offset=True)` for an orthogonal matrix",
    )


def _has_unit_gain(initializer, kind):
    return isinstance(initializer, kind) and initializer.gain == 1


def _is_effective(initializer, weight):
    """Whether an initializer describes V and not an offset."""
    if isinstance(initializer, ChainIdentity):
        return initializer.identity_gain >= 0
    if isinstance(initializer, keras.initializers.Identity):
        return initializer.gain > SMALL
    if isinstance(initializer, keras.initializers.Orthogonal):
        return abs(initializer.gain) > SMALL
    if isinstance(initializer, keras.initializers.VarianceScaling):
        # The spectral radius is about the root of the scale.
        return weight == "recurrent" and initializer.scale > SMALL**2
    kinds = Chain, FeedbackChain, PartialIdentity, Ramp
    return isinstance(initializer, kinds)


def _code(initializer):
    """The initializer as a user would write it, without its seed."""
    kind = type(initializer)
    values = {
        name: getattr(initializer, name, None)
        for name in inspect.signature(kind).parameters
        if name != "seed"
    }
    options = ", ".join(
        f"{name}={value!r}"
        for name, value in values.items()
        if value is not None
    )
    name = kind.__name__
    if kind.__module__.partition(".")[0] == "keras":
        # Older versions have `IdentityInitializer` under both names.
        name = f"keras.initializers.{name.removesuffix('Initializer')}"
    return f"{name}({options})"
