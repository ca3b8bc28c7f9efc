"""The square matrices that act on the state of a recurrent layer."""

import keras
import numpy as np

from keras_rin.diagnostics import _cells

GATES = {
    keras.layers.LSTMCell: ("input", "forget", "cell", "output"),
    keras.layers.GRUCell: ("update", "reset", "candidate"),
}


def recurrent_matrices(layer: keras.Layer) -> dict[str, np.ndarray]:
    """The square matrices that act on the state of a recurrent layer.

    Rows send and columns receive: h_{t-1} V. The matrix of a layer that stores
    its offset, such as `keras_rin.layers.RIN`, is the effective one, U + I.

    Args:
        layer: A built recurrent layer or cell of Keras, of shape
            `(units, gates * units)` in its `recurrent_kernel`: SimpleRNN,
            RIN, LSTM, GRU, their cells, and a cell of your own with a weight
            or a property of this name.

    Returns:
        A dict of float64 arrays `(units, units)`: `"input"`, `"forget"`,
        `"cell"`, `"output"` for an LSTM; `"update"`, `"reset"`,
        `"candidate"` for a GRU; `"recurrent"` where there is one matrix, and
        `"transition"`, which acts after it, for a
        `keras_rin.layers.DeepTransitionRINCell`; else `"gate_0"` and so on.

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
    cell = _cells.built_cell(layer)
    kernel = getattr(cell, "recurrent_kernel", None)
    shape = () if kernel is None else tuple(kernel.shape)
    if len(shape) != 2 or shape[1] % shape[0]:
        raise ValueError(
            f"{layer.name} must have its recurrent matrix, of shape (units, "
            "gates * units), in an attribute `recurrent_kernel`. Received: "
            f"layer={layer}, {f'of shape {shape}' if shape else 'without one'}"
        )
    # The cell rounds its own U + I to the dtype of the weights.
    identity = np.eye(shape[0])
    offset = identity * hasattr(cell, "effective_recurrent_kernel")
    parts = np.split(_cells.float64(kernel), shape[1] // shape[0], axis=1)
    parts = [part + offset for part in parts]
    matrices = dict(zip(_gate_names(cell, len(parts)), parts, strict=True))
    if hasattr(cell, "effective_transition_kernel"):
        matrices["transition"] = (
            _cells.float64(cell.transition_kernel) + identity
        )
    return matrices


def has_matrices(layer) -> bool:
    """Whether a layer is built and has `recurrent_matrices`."""
    try:
        return bool(recurrent_matrices(layer))
    except ValueError:
        return False


def _gate_names(cell, count):
    for cell_class, names in GATES.items():
        if isinstance(cell, cell_class):
            return names
    return [f"gate_{k}" for k in range(count)] if count > 1 else ["recurrent"]
