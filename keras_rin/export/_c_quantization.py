"""Matrices of int8 codes with a scale for each row."""

import numpy as np

LARGEST_CODE = 127


def quantized(matrix):
    """The int8 codes of a matrix, and the scales of its rows.

    A scale is 1 / 127 of the largest weight of its row.
    """
    scale = np.abs(matrix).max(axis=1) / np.float32(LARGEST_CODE)
    nonzero = np.where(scale > 0, scale, 1)[:, None]
    codes = np.clip(np.round(matrix / nonzero), -LARGEST_CODE, LARGEST_CODE)
    return codes.astype("int8"), scale
