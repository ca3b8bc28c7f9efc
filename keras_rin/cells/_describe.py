"""describe: makes a cell of one's own known to all that reads descriptions."""

import keras
import numpy as np
from keras import ops

from keras_rin._cell_descriptions import DESCRIPTIONS
from keras_rin._cell_descriptions import CellDescription
from keras_rin.cells._numpy_step import NumpyStep

BUILT_IN = frozenset(DESCRIPTIONS)
BATCH, FEATURES, STEPS = 4, 3, 3
TOLERANCE = 1e-4  # of float32, with states of the order of 1


def describe(cell: keras.Layer, row: CellDescription) -> None:
    """Makes known what a step of a cell computes, and checks it.

    The row is compared with the `call` of the cell over three steps, with
    drawn weights, inputs and states. From then on `export_c` writes the cell,
    in floats and, with relu, tanh, sigmoid and softsign, in integers,
    `recurrent_matrices` and `hidden_chain` know its matrices, and `adapt`
    centers its drive. A cell whose step is `transition` has also, with ReLU,
    complete fixed points.

    Args:
        cell: A cell of the class that is described, with all of its weights
            where it is built for 3 features. It stays as it is: a copy from
            its config is compared. Its class is registered with
            `keras.saving.register_keras_serializable`.
        row: A `CellDescription`. It takes the place of an earlier one.

    Raises:
        ValueError: If the class is not registered, or is one of Keras or of
            this package; if the row names what the cell or the operations do
            not have; or if it computes other states than the cell.

    Example:

    >>> @keras.saving.register_keras_serializable(package="mine")
    ... class ShiftedCell(keras.layers.SimpleRNNCell):
    ...     def call(self, x, states, training=False):
    ...         y, states = super().call(x, states)
    ...         return y + 1, [states[0] + 1]
    >>> row = keras_rin.cells.CellDescription(keras_rin.cells.transition)
    >>> keras_rin.cells.describe(ShiftedCell(4), row)
    Traceback (most recent call last):
    ...
    ValueError: The row of ShiftedCell computes another h than its `call`: \
after a step with drawn weights they differ by 1.
    """
    if not isinstance(row, CellDescription):
        raise ValueError(f"`row` must be a CellDescription. Received: {row!r}")
    kind, name = type(cell), keras.saving.get_registered_name(type(cell))
    if ">" not in name or name in BUILT_IN:
        raise ValueError(
            f"{kind.__name__} must be a class of your own that is registered, "
            "by this line above it: "
            '@keras.saving.register_keras_serializable(package="mine")'
        )
    rng = np.random.default_rng(0)
    copy = kind.from_config(cell.get_config())
    copy.build((None, FEATURES))
    copy.set_weights(
        [rng.normal(scale=0.5, size=w.shape) for w in copy.get_weights()]
    )
    sizes = keras.tree.flatten(copy.state_size)
    if len(sizes) != len(row.states):
        raise ValueError(
            f"{kind.__name__} has {len(sizes)} states. Received: a row with "
            f"states={row.states}"
        )
    states = [rng.normal(size=(BATCH, size)) for size in sizes]
    for _ in range(STEPS):
        x = rng.normal(size=(BATCH, FEATURES)).astype("float32")
        expected = _call(copy, x, states)
        states = _described(copy, row, x, states)
        for state, actual, values in zip(
            row.states, states, expected, strict=True
        ):
            difference = np.abs(actual - values).max()
            if not difference < TOLERANCE:
                raise ValueError(
                    f"The row of {kind.__name__} computes another {state} than "
                    "its `call`: after a step with drawn weights they differ "
                    f"by {difference:.3g}."
                )
    DESCRIPTIONS[name] = row


def _call(cell, x, states):
    tensors = [ops.cast(state, "float32") for state in states]
    nested = keras.tree.pack_sequence_as(cell.state_size, tensors)
    y, states = cell(x, nested if isinstance(nested, list | tuple) else tensors)
    y, *states = map(ops.convert_to_numpy, [y, *keras.tree.flatten(states)])
    if not np.array_equal(y, states[0]):
        raise ValueError(
            f"The output of {type(cell).__name__} must be its first state."
        )
    return states


def _described(cell, row, x, states):
    try:
        step = NumpyStep(cell, row, x, [state.copy() for state in states])
        row.step(step, cell)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ValueError(
            f"The row of {type(cell).__name__} names what the cell or the "
            f"operations do not have: {type(error).__name__}: {error}"
        ) from error
    return step.states()
