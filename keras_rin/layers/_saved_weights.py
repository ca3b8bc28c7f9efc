"""A mark beside saved weights: they are of an offset U, not of V = U + I.

A layer that stores the offset and the layer of Keras that stores the effective
matrix have weights of the same shapes, which Keras numbers: within a wrapper it
would load either as the other. The mark is one entry more than the layer of
Keras expects, which therefore refuses such a file.
"""

from typing import Any

import numpy as np

MARK = "is_offset"


class MarkedOffset:
    """A layer whose weights in a file are marked as those of an offset."""

    CONVERSION = ""  # what to do with a file of effective matrices

    def save_own_variables(self: Any, store):
        super().save_own_variables(store)  # type: ignore[misc]
        store[MARK] = np.ones(1, "int32")

    def load_own_variables(self: Any, store):
        weights = {key: store[key] for key in store.keys()}
        if MARK not in weights:
            raise ValueError(
                f"{self.name}, a {type(self).__name__}, stores an offset from "
                "the identity, and the file has no weights for it that are "
                f"marked as an offset. {self.CONVERSION}"
            )
        del weights[MARK]
        super().load_own_variables(weights)  # type: ignore[misc]
