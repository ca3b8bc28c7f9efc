"""What Keras does not say about a recurrent cell: one row for each."""

import dataclasses
from collections.abc import Callable
from collections.abc import Mapping
from typing import Any

import keras
import numpy as np


@dataclasses.dataclass(frozen=True)
class CellDescription:
    """What Keras does not say about the class of a recurrent cell.

    A step is a function of a writer and the cell, which calls operations of the
    writer. `export_c` passes one that writes C. Operands are names of gates, of
    scratch and of states:

    - `project(apart=None)`: gates = x W + b. Where b has a row for x and one
      for h, `apart=(gate, to)`: to = that of this gate
    - `add_product(source, weight="recurrent_kernel", gates=None, to=None)`:
      to += source V, V the effective matrix of these gates. Defaults to all
      gates, and to the first
    - `set_bias(to, attribute)`: to = a bias, or zeros if there is none
    - `activate(to, attribute="activation")`: to = an activation of to
    - `call("copy", source, to)`: to = source
    - `call("add", terms, to)`: to += terms
    - `call("subtract", terms, to)`: to -= terms
    - `call("multiply", factors, to)`: to *= factors
    - `call("interpolate", gate, candidate, to)`:
      to = gate to + (1 - gate) candidate, with a gate from 0 to 1

    Args:
        step: Function of a writer and the cell, as above.
        gates: Tuple of strings, the names of the parts of `kernel` and of
            `recurrent_kernel`. Defaults to `("recurrent",)`.
        gate_size: String, the attribute that has the number of values of a
            gate. Defaults to `"units"`.
        states: Tuple of strings, the names of the states. The first one is the
            output. Defaults to `("h",)`.
        scratch: Tuple of strings, the names of other values of a step, as many
            as in a gate. Defaults to `()`.
        matrices: Dict, the weights of further recurrent matrices by name.
            Empty by default.
        offsets: Tuple of strings, the weights that are stored as offsets from
            the identity. Defaults to `()`.
        is_centered: Boolean, whether x W + b is a drive that `adapt` can
            center. Defaults to `False`.
        layer: String, the registered name of a layer that calls the cell once
            a step and does nothing else, beside `keras.layers.RNN`. Defaults
            to `None`.

    Example:

    >>> def step(writer, cell):
    ...     writer.project()
    ...     writer.add_product("h")
    ...     writer.activate("recurrent")
    ...     writer.call("add", "recurrent", "h")
    >>> keras_rin.cells.CellDescription(step).states
    ('h',)
    """

    step: Callable[[Any, Any], None]
    gates: tuple[str, ...] = ("recurrent",)
    gate_size: str = "units"
    states: tuple[str, ...] = ("h",)
    scratch: tuple[str, ...] = ()
    matrices: Mapping[str, str] = dataclasses.field(default_factory=dict)
    offsets: tuple[str, ...] = ()
    is_centered: bool = False
    layer: str | None = None


def description_of(cell):
    """The row of the class of a cell, `None` if it has none."""
    return _row(type(cell))


def inherited_description(cell):
    """The row of the class of a cell, or of the nearest class it extends."""
    rows = map(_row, type(cell).__mro__)
    return next((row for row in rows if row), None)


def _row(cell_class):
    name = keras.saving.get_registered_name(cell_class)
    # A class that is not registered has its own name, as those of Keras.
    is_registered = ">" in name
    is_of_keras = getattr(keras.layers, name, None) is cell_class
    return DESCRIPTIONS.get(name) if is_registered or is_of_keras else None


def biases_of(bias, row, apart):
    """The bias of the gates, and that for h of a gate that is kept apart."""
    if bias is None or bias.ndim == 1:
        return bias, None
    for_x, for_h = bias.reshape(2, len(row.gates), -1)
    is_apart = np.array([gate in (apart or ()) for gate in row.gates])
    return np.ravel(for_x + ~is_apart[:, None] * for_h), for_h[is_apart].ravel()


def columns_of(matrix, row, gates):
    """Those of some gates, or all."""
    parts = np.split(matrix, len(row.gates), axis=1) if gates else [matrix]
    indices = map(row.gates.index, gates) if gates else [0]
    return np.concatenate([parts[n] for n in indices], axis=1)


def transition(writer: Any, cell: Any) -> None:
    """The step h = activation(x W + h V + b), for a `CellDescription`.

    Args:
        writer: What the operations are called of.
        cell: The cell, of which it reads nothing.

    Example:

    >>> row = keras_rin.cells.CellDescription(keras_rin.cells.transition)
    >>> row.gates
    ('recurrent',)
    """
    writer.project()
    writer.add_product("h")
    writer.activate("recurrent")
    writer.call("copy", "recurrent", "h")


def two_transitions(writer, cell):
    transition(writer, cell)
    writer.set_bias("recurrent", "transition_bias")
    writer.add_product("h", "transition_kernel")
    writer.activate("recurrent")
    writer.call("copy", "recurrent", "h")


def rate_step(writer, cell):
    writer.project()
    writer.call("copy", "h", "rate")
    writer.activate("rate")
    writer.add_product("rate")
    writer.set_bias("decay", "decay")
    writer.call("interpolate", "decay", "recurrent", "h")


def gru(writer, cell):
    resets_after, candidate = cell.reset_after, ("candidate",)
    writer.project(apart=("candidate", "product") if resets_after else None)
    writer.add_product("h", gates=("update", "reset"))
    for gate in ("update", "reset"):
        writer.activate(gate, "recurrent_activation")
    if resets_after:
        writer.add_product("h", gates=candidate, to="product")
        writer.call("multiply", "reset", "product")
        writer.call("add", "product", "candidate")
    else:
        writer.call("multiply", "h", "reset")
        writer.add_product("reset", gates=candidate)
    writer.activate("candidate")
    writer.call("interpolate", "update", "candidate", "h")


def lstm(writer, cell):
    writer.project()
    writer.add_product("h")
    for gate in ("input", "forget", "output"):
        writer.activate(gate, "recurrent_activation")
    writer.activate("cell")
    writer.call("multiply", "forget", "c")
    writer.call("multiply", "cell", "input")
    writer.call("add", "input", "c")
    writer.call("copy", "c", "h")
    writer.activate("h")
    writer.call("multiply", "output", "h")


def min_gru(writer, cell):
    writer.project()
    writer.activate("gate", "recurrent_activation")
    writer.activate("candidate")
    writer.call("subtract", "h", "candidate")
    writer.call("multiply", "gate", "candidate")
    writer.call("add", "candidate", "h")


def residual_step(writer, cell):
    """h += activation(x W + h U + b) V."""
    writer.project()
    writer.add_product("h")
    writer.activate("inner")
    writer.add_product("inner", "output_kernel", to="h")


# By the registered name of the class. `cells.describe` adds one of a user.
DESCRIPTIONS = {
    "SimpleRNNCell": CellDescription(transition, is_centered=True),
    "GRUCell": CellDescription(
        gru, gates=("update", "reset", "candidate"), scratch=("product",)
    ),
    "LSTMCell": CellDescription(
        lstm,
        gates=("input", "forget", "cell", "output"),
        states=("h", "c"),
    ),
    "keras_rin>RINCell": CellDescription(
        transition,
        offsets=("recurrent_kernel",),
        is_centered=True,
        layer="keras_rin>RIN",
    ),
    "keras_rin>MinGRUCell": CellDescription(
        min_gru, gates=("gate", "candidate"), layer="keras_rin>MinGRU"
    ),
    "keras_rin>RateRNNCell": CellDescription(
        rate_step, scratch=("rate", "decay"), layer="keras_rin>RateRNN"
    ),
    "keras_rin>ResidualRNNCell": CellDescription(
        residual_step,
        gates=("inner",),
        gate_size="inner_units",
        layer="keras_rin>ResidualRNN",
    ),
    "keras_rin>DeepTransitionRINCell": CellDescription(
        two_transitions,
        matrices={"transition": "transition_kernel"},
        offsets=("recurrent_kernel", "transition_kernel"),
        is_centered=True,
    ),
}
