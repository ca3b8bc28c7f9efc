"""Sequences and masks in the order in which a recurrent layer reads them."""

import numpy as np
from keras import ops

from keras_rin import _arguments
from keras_rin._layer_walk.layers import feature_count
from keras_rin.diagnostics import _cells


def cell_and_sequences(layer, x, mask):
    """The checked cell of a layer, its sequences, and the unmasked steps."""
    cell = _cells.built_cell(layer)
    _cells.check_weights(cell)
    x = sequences(x, layer)
    return cell, x, unmasked_steps(mask, x, layer)


def sequences(x, layer) -> np.ndarray:
    """The sequences in the order in which a layer reads them, in float64."""
    cell = _cells.built_cell(layer)
    expected = feature_count(cell)
    x = _arguments.real_array("x", x)
    has_valid_shape = x.ndim == 3 and expected in (None, x.shape[-1])
    if (
        not has_valid_shape
        or not x.size
        or not finite_in(cell.compute_dtype, x)
    ):
        raise ValueError(
            "`x` must be finite and of shape (batch, time, "
            f"{expected or 'features'}). Received: x of shape {x.shape}, its "
            f"largest number {np.abs(x).max(initial=0):.3g}, for a layer that "
            f"computes in {cell.compute_dtype}"
        )
    return x[:, ::-1].copy() if getattr(layer, "go_backwards", False) else x


def unmasked_steps(mask, x, layer) -> np.ndarray:
    """Which time steps of sequences `x` are not masked, as a layer reads."""
    if mask is None:
        return np.ones(x.shape[:2], bool)
    mask = np.asarray(ops.convert_to_numpy(mask), bool)
    _arguments.check_shape("mask", mask.shape, x.shape[:2])
    if not mask.any():
        raise ValueError("`mask` must be True at one time step or more.")
    return mask[:, ::-1] if getattr(layer, "go_backwards", False) else mask


def sorted_steps(sequences, key) -> np.ndarray:
    """The time steps of each sequence by a key; equal ones as they were."""
    order = np.argsort(key, axis=1, kind="stable")
    return np.take_along_axis(sequences, order[..., None], axis=1)


def finite_in(dtype, x):
    with np.errstate(over="ignore"):
        largest = ops.cast(np.abs(x).max(keepdims=True), dtype)
    return bool(np.isfinite(_cells.float64(largest)).all())
