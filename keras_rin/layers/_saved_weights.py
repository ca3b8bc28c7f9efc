"""A mark beside saved weights: they are of an offset U, not of V = U + I.

A layer that stores the offset and the layer of Keras that stores the effective
matrix have weights of the same shapes, which Keras numbers: within a wrapper it
would load either as the other. The mark is one entry more than the layer of
Keras expects, which therefore refuses such a file.
"""

import numpy as np

MARK = "is_offset"


def mark(store):
    """Marks the weights that a layer saves as those of an offset."""
    store[MARK] = np.ones(1, "int32")


def without_mark(layer, store, conversion):
    """The weights in a file; ValueError if they are not marked."""
    weights = {key: store[key] for key in store.keys()}
    if MARK not in weights:
        raise ValueError(
            f"{layer.name}, a {type(layer).__name__}, stores an offset from "
            "the identity, and the file has no weights for it that are marked "
            f"as an offset. {conversion}"
        )
    del weights[MARK]
    return weights
