"""Warnings about options that are meant for an effective matrix V = U + I."""

import keras

from keras_rin import _arguments
from keras_rin.constraints import Orthogonal
from keras_rin.initializers import ChainIdentity
from keras_rin.initializers import PerGate
from keras_rin.initializers import _effective
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
    replacements = {}
    if _is_effective(initializer, weight):
        name = type(initializer).__name__
        replacements["initializer"] = f"Offset({name}(...))"
    if isinstance(regularizer, IdentityOffsetL2):
        replacements["regularizer"] = f"keras.regularizers.L2({regularizer.l2})"
    if isinstance(constraint, Orthogonal) and not constraint.offset:
        replacements["constraint"] = "Orthogonal(offset=True)"
    kind = "RIN" if type(layer).__name__ == "RINCell" else type(layer).__name__
    for option, replacement in replacements.items():
        _arguments.warn(
            f"{kind} stores the offset U of its matrix U + I, but its "
            f"`{weight}_{option}` is meant for the matrix. Pass "
            f"`{weight}_{option}={replacement}`."
        )


def _is_effective(initializer, weight):
    """Whether an initializer describes V and not an offset."""
    if isinstance(initializer, PerGate) and initializer.gates == 1:
        (initializer,) = keras.tree.flatten(initializer.initializer)
    if isinstance(initializer, ChainIdentity):
        return initializer.identity_gain >= 0
    if isinstance(initializer, keras.initializers.Identity):
        return initializer.gain > SMALL
    if isinstance(initializer, keras.initializers.Orthogonal):
        return abs(initializer.gain) > SMALL
    if isinstance(initializer, keras.initializers.VarianceScaling):
        # The spectral radius is about the root of the scale.
        return weight == "recurrent" and initializer.scale > SMALL**2
    return isinstance(initializer, _effective.EffectiveInitializer)
