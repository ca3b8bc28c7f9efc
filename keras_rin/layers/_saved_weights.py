"""A mark beside saved weights: they are of an offset U, not of V = U + I.

A layer that stores the offset and the layer of Keras that stores the effective
matrix have weights of the same shapes, which Keras numbers: within a wrapper it
would load either as the other. The mark is one entry more than the layer of
Keras expects, which therefore refuses such a file. Version 0.1.0 had no mark:
only its user knows that weights without one are an offset, and says so.
"""

from typing import Any

import numpy as np

MARK = "is_offset"


class MarkedOffset:
    """A layer whose weights in a file are marked as those of an offset."""

    CONVERSION = ""  # what to do with a file of effective matrices
    unmarked_is_offset = False  # True to load files of version 0.1.0

    def save_own_variables(self: Any, store):
        super().save_own_variables(store)  # type: ignore[misc]
        store[MARK] = np.ones(1, "int32")

    def load_own_variables(self: Any, store):
        weights = {key: store[key] for key in store.keys()}
        if MARK not in weights and not self.unmarked_is_offset:
            kind = type(self).__name__
            raise ValueError(
                f"{self.name}, a {kind}, stores an offset from the identity, "
                "and the file has no weights for it that are marked as an "
                f"offset. {self.CONVERSION} If the file is of keras_rin 0.1.0, "
                f"which had no marks, write `{kind}.unmarked_is_offset = True` "
                f"before loading it, and save it again."
            )
        weights.pop(MARK, None)
        super().load_own_variables(weights)  # type: ignore[misc]
