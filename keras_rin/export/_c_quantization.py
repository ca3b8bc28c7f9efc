"""Matrices in C: of float32, or of int8 codes with a scale for each row."""

import numpy as np

LARGEST_CODE = 127

# A type of weights, and what the C functions that read a matrix have for it.
TYPES = {
    "float32": {"WEIGHT": "float", "SCALES": "", "SCALED": ""},
    "int8": {
        "WEIGHT": "signed char",
        "SCALES": " const float scale[],",
        "SCALED": "scale[row] * (float)",
    },
}


def quantized(matrix):
    """The int8 codes of a matrix, and the scales of its rows.

    A scale is 1 / 127 of the largest weight of its row.
    """
    scale = np.abs(matrix).max(axis=1) / np.float32(LARGEST_CODE)
    nonzero = np.where(scale > 0, scale, 1)[:, None]
    codes = np.clip(np.round(matrix / nonzero), -LARGEST_CODE, LARGEST_CODE)
    return codes.astype("int8"), scale
