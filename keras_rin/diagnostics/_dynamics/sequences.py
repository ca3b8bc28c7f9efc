"""Sequences and masks in the order in which a recurrent layer reads them."""

import numpy as np
from keras import ops

from keras_rin import _arguments
from keras_rin._layer_walk.layers import feature_count
from keras_rin.diagnostics._built_cell import built_cell
from keras_rin.diagnostics._built_cell import check_weights
from keras_rin.diagnostics._built_cell import float64
from keras_rin.diagnostics._dynamics import autodiff
from keras_rin.diagnostics._dynamics import state_map

DTYPES = ("float32", "float64")


def cell_and_sequences(layer, x, mask, initial_states=None, dtype="float64"):
    """The checked cell of a layer, its sequences, and the unmasked steps.

    The sequences are in the order in which the layer reads them. After these
    come their initial states, in float64.
    """
    if dtype not in DTYPES:
        raise ValueError(
            f"`dtype` must be one of {DTYPES}. Received: dtype={dtype!r}"
        )
    cell = built_cell(layer)
    check_weights(cell)
    x = _checked_sequences(x, cell)
    unmasked = _unmasked_steps(mask, x)
    initial_states = _checked_initial_states(cell, initial_states, len(x))
    order = -1 if getattr(layer, "go_backwards", False) else 1
    x, unmasked = x[:, ::order].astype(dtype), unmasked[:, ::order]
    return cell, x, unmasked, initial_states


def _checked_initial_states(cell, states, rows):
    if states is None:
        with autodiff.float64_allowed():
            return float64(state_map.flat_initial_state(cell, rows))
    states = finite_states(states)
    shape = rows, sum(state_map.sizes(cell))
    _arguments.check_shape("initial_states", states.shape, shape)
    return states


def finite_states(states):
    """The array `initial_states`, or a list of its parts side by side."""
    if isinstance(states, list | tuple):
        parts = [_arguments.real_array("initial_states", s) for s in states]
        if all(part.ndim == 2 for part in parts):
            states = np.hstack(parts)
    return _arguments.finite_array("initial_states", states)


def _checked_sequences(x, cell):
    x = _arguments.real_array("x", x)
    features = feature_count(cell) or "features"
    has_shape = x.ndim == 3 and features in ("features", x.shape[-1])
    if not has_shape or not x.size or not _is_finite(cell.compute_dtype, x):
        raise ValueError(
            f"`x` must be finite in {cell.compute_dtype} and of shape (batch, "
            f"time, {features}). Received: x of shape {x.shape}, its largest "
            f"number {np.abs(x).max(initial=0):.3g}"
        )
    return x


def _is_finite(dtype, x):
    with np.errstate(over="ignore"):
        largest = ops.cast(np.abs(x).max(keepdims=True), dtype)
    return bool(np.isfinite(float64(largest)).all())


def _unmasked_steps(mask, x):
    if mask is None:
        return np.ones(x.shape[:2], bool)
    mask = np.asarray(ops.convert_to_numpy(mask), bool)
    _arguments.check_shape("mask", mask.shape, x.shape[:2])
    if not mask.any():
        raise ValueError("`mask` must be True at one time step or more.")
    return mask


def sorted_steps(sequences, key) -> np.ndarray:
    """The time steps of each sequence by a key; equal ones as they were."""
    order = np.argsort(key, axis=1, kind="stable")
    return np.take_along_axis(sequences, order[..., None], axis=1)
