"""Cells, weights, sequences and masks of recurrent layers, checked."""

import contextlib

import keras
import numpy as np
from keras import ops

from keras_rin import _arguments
from keras_rin._layer_walk import hidden_states
from keras_rin._layer_walk import restore_after

GATES = {
    keras.layers.LSTMCell: ("input", "forget", "cell", "output"),
    keras.layers.GRUCell: ("update", "reset", "candidate"),
}


def recurrent_matrices(layer: keras.Layer) -> dict[str, np.ndarray]:
    """The square matrices that act on the state of a recurrent layer.

    Rows send and columns receive: h_{t-1} V. For a layer that stores its
    offset from the identity, such as `keras_rin.layers.RIN`, the matrix is
    the effective one, U + I.

    Args:
        layer: A built recurrent layer or cell of Keras, of shape
            `(units, gates * units)` in its `recurrent_kernel`: SimpleRNN,
            RIN, LSTM, GRU, and their cells.

    Returns:
        A dict of float64 arrays `(units, units)`: `"input"`, `"forget"`,
        `"cell"`, `"output"` for an LSTM; `"update"`, `"reset"`,
        `"candidate"` for a GRU; `"recurrent"` where there is one matrix;
        `"recurrent"` and `"transition"`, which act one after the other, for
        a `keras_rin.layers.DeepTransitionRINCell`; else `"gate_0"` and so
        on.

    Raises:
        ValueError: If the layer has no recurrent kernel, several cells, or
            no weights yet.

    Example:

    >>> layer = keras.layers.SimpleRNN(3, recurrent_initializer="identity")
    >>> layer.build((None, None, 1))
    >>> keras_rin.diagnostics.recurrent_matrices(layer)["recurrent"]
    array([[1., 0., 0.],
           [0., 1., 0.],
           [0., 0., 1.]])
    """
    cell = built_cell(layer)
    kernel = getattr(cell, "recurrent_kernel", None)
    shape = () if kernel is None else tuple(kernel.shape)
    if len(shape) != 2 or shape[1] % shape[0]:
        raise ValueError(
            f"{layer.name} has no recurrent kernel of shape (units, gates * "
            f"units). Received: layer={layer}, recurrent_kernel shape={shape}"
        )
    # The cell rounds its own U + I to the dtype of the weights.
    identity = np.eye(shape[0])
    offset = identity * hasattr(cell, "effective_recurrent_kernel")
    parts = np.split(float64(kernel), shape[1] // shape[0], axis=1)
    parts = [part + offset for part in parts]
    matrices = dict(zip(_gate_names(cell, len(parts)), parts, strict=True))
    if hasattr(cell, "effective_transition_kernel"):
        matrices["transition"] = float64(cell.transition_kernel) + identity
    return matrices


def has_matrices(layer) -> bool:
    """Whether a layer is built and has `recurrent_matrices`."""
    try:
        return bool(recurrent_matrices(layer))
    except ValueError:
        return False


def sequences(x, layer) -> np.ndarray:
    """The sequences in the order in which a layer reads them, in float64."""
    cell = built_cell(layer)
    expected = features(cell)
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


def features(cell):
    """The number of features that a cell reads, `None` if it is unknown."""
    return getattr(getattr(cell, "kernel", None), "shape", [None])[0]


def finite_in(dtype, x):
    with np.errstate(over="ignore"):
        largest = ops.cast(np.abs(x).max(keepdims=True), dtype)
    return bool(np.isfinite(float64(largest)).all())


def check_weights(cell):
    """Raises an error if a weight is NaN or infinite."""
    for weight in cell.weights:
        values = float64(weight.value)
        if not np.isfinite(values).all():
            raise ValueError(
                f"The weights of {cell.name} must be finite. Received: "
                f"{weight.path} with {(~np.isfinite(values)).sum()} of "
                f"{values.size} NaN or infinite"
            )


def float64(tensor):
    return np.asarray(ops.convert_to_numpy(tensor), "float64")


def _gate_names(cell, count):
    for cell_class, names in GATES.items():
        if isinstance(cell, cell_class):
            return names
    return [f"gate_{k}" for k in range(count)] if count > 1 else ["recurrent"]


def built_cell(layer):
    """The one cell of a recurrent layer, which has its weights."""
    if not isinstance(layer, keras.layers.Layer):
        raise ValueError(
            "`layer` must be a recurrent layer or cell of Keras. "
            f"Received: layer={layer!r}"
        )
    cell = layer
    while isinstance(getattr(cell, "cell", None), keras.layers.Layer):
        cell = cell.cell
    if isinstance(cell, keras.layers.StackedRNNCells) or not hasattr(
        cell, "state_size"
    ):
        raise ValueError(
            "`layer` must have one recurrent cell: pass a layer of a stack, "
            "or one direction of a Bidirectional, by itself. "
            f"Received: layer={layer}"
        )
    if not cell.built:
        raise ValueError(
            f"{layer.name} has no weights yet: build it, or call it on data. "
            f"Received: layer={layer}"
        )
    return cell


@contextlib.contextmanager
def undisturbed(cell):
    """Leaves random and hidden states, metrics and masks as they were."""
    variables = [v for v in cell.variables if not v.trainable]
    variables += [*cell.metrics_variables, *hidden_states(cell)]
    try:
        with restore_after(variables), _forked_torch_generator():
            yield
    finally:
        for name in ("reset_dropout_mask", "reset_recurrent_dropout_mask"):
            getattr(cell, name, lambda: None)()


def _forked_torch_generator():
    """Restores Torch's generator, of which Keras draws dropout without seed."""
    if keras.backend.backend() != "torch":
        return contextlib.nullcontext()
    import torch

    return torch.random.fork_rng()
