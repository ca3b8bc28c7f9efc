"""The square matrices that act on the state of a recurrent layer."""

import keras
import numpy as np

from keras_rin._cell_descriptions import inherited_description
from keras_rin.diagnostics._built_cell import built_cell
from keras_rin.diagnostics._built_cell import float64


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
        ValueError: If the layer has no recurrent kernel, several cells, no
            weights yet, or a matrix that depends on the state, as a
            `keras_rin.layers.ResidualRNN`.

    Example:

    >>> layer = keras.layers.SimpleRNN(3, recurrent_initializer="identity")
    >>> layer.build((None, None, 1))
    >>> keras_rin.diagnostics.recurrent_matrices(layer)["recurrent"]
    array([[1., 0., 0.],
           [0., 1., 0.],
           [0., 0., 1.]])
    """
    cell = built_cell(layer)
    row = inherited_description(cell)
    if row and row.gate_size != "units":
        raise ValueError(
            f"{layer.name} has no matrix that acts on the state at every step: "
            "it depends on the inner units that are active. See "
            f"`state_jacobians`. Received: layer={layer}"
        )
    kernel = getattr(cell, "recurrent_kernel", None)
    shape = () if kernel is None else tuple(kernel.shape)
    if len(shape) != 2 or shape[1] % shape[0]:
        raise ValueError(
            f"{layer.name} must have its recurrent matrix, of shape (units, "
            "gates * units), in an attribute `recurrent_kernel`. Received: "
            f"layer={layer}, {f'of shape {shape}' if shape else 'without one'}"
        )
    count = shape[1] // shape[0]
    names = [f"gate_{k}" for k in range(count)] if count > 1 else ["recurrent"]
    if row and len(row.gates) == count:
        names = row.gates
    gates = np.split(_matrix(cell, "recurrent_kernel", row), count, axis=1)
    matrices = dict(zip(names, gates, strict=True))
    for name, weight in (row.matrices if row else {}).items():
        matrices[name] = _matrix(cell, weight, row)
    return matrices


def _matrix(cell, weight, row):
    """The matrix of a weight, of an offset the effective one."""
    kernel = float64(getattr(cell, weight))
    if row and weight in row.offsets:
        # The cell would round U + I to the dtype of the weights.
        kernel += np.tile(np.eye(len(kernel)), kernel.shape[1] // len(kernel))
    return kernel


def has_matrices(layer) -> bool:
    """Whether a layer is built and has `recurrent_matrices`."""
    try:
        return bool(recurrent_matrices(layer))
    except ValueError:
        return False
