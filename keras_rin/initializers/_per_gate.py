"""PerGate: an initializer of the gates of an LSTM or a GRU."""

import keras
import numpy as np
from keras import ops
from keras.initializers import Initializer

from keras_rin import _arguments
from keras_rin.initializers import _effective
from keras_rin.initializers._offset import Offset
from keras_rin.initializers._offset import checked_initializer
from keras_rin.initializers._serialization import complete_config
from keras_rin.initializers._serialization import serialize


@keras.saving.register_keras_serializable(package="keras_rin")
class PerGate(keras.initializers.Initializer):
    """Applies an initializer to each gate of an LSTM or a GRU separately.

    W = [W_1, ..., W_gates], side by side

    Keras stores the matrices of all gates in one kernel, of shape
    `(units, gates * units)`, in the order input, forget, cell, output for an
    LSTM (`gates=4`) and update, reset, candidate for a GRU (`gates=3`). An
    initializer of square matrices, such as `Chain`, does not support that
    shape; `PerGate` applies it to each square block. The mixed initialization
    of the paper for an LSTM, with a chain in the cell gate only, is
    `PerGate([Ramp(), Ramp(), Chain(1.02), Ramp()])`.

    Args:
        initializer: Initializer of every gate, or a list with one initializer
            per gate: Keras initializers, their names or configs. A random
            initializer draws different values for each gate, even if it has a
            seed: the first gate uses this seed, each other one a seed derived
            from it and from the gate's position. Defaults to `"orthogonal"`.
        gates: Positive integer, number of gates in the kernel. Defaults to 4.

    Raises:
        ValueError: If an initializer does not support the shape of a gate, or
            its config would not bring back its arguments.

    Example:

    >>> chain = keras_rin.initializers.Chain(1.02)
    >>> layer = keras.layers.LSTM(
    ...     8, recurrent_initializer=keras_rin.initializers.PerGate(chain)
    ... )
    >>> tuple(layer(np.ones((32, 10, 4))).shape)
    (32, 8)

    Reference:
        Orhan and Pitkow, 2020 (arXiv 1905.13715), table 3.
    """

    def __init__(
        self,
        initializer: str | Initializer | list = "orthogonal",
        gates: int = 4,
    ):
        self.gates = _arguments.integer("gates", gates)
        if isinstance(initializer, (list, tuple)):
            self.initializer = [
                checked_initializer(gate) for gate in initializer
            ]
            if len(self.initializer) != self.gates:
                raise ValueError(
                    "`initializer` must be a list of one initializer per "
                    f"gate, gates={self.gates}. "
                    f"Received: {len(self.initializer)} initializers"
                )
        else:
            self.initializer = checked_initializer(initializer)

    def __call__(self, shape, dtype=None):
        if not shape or shape[-1] % self.gates:
            raise ValueError(
                f"PerGate(gates={self.gates}) needs a kernel whose last axis "
                f"is divisible by {self.gates}: an LSTM has 4 gates, a GRU 3. "
                f"Received: shape={tuple(shape)}"
            )
        gate_shape = (*shape[:-1], shape[-1] // self.gates)
        gates = self.initializer
        if not isinstance(gates, list):
            gates = [gates] * self.gates
        kernels = [
            _effective.draw(reseeded(gate, k), gate_shape, dtype)
            for k, gate in enumerate(gates)
        ]
        return ops.concatenate(kernels, axis=-1)

    def get_config(self):
        config = keras.tree.map_structure(serialize, self.initializer)
        return {"initializer": config, "gates": self.gates}


def reseeded(initializer, part):
    """An initializer that draws other values for each part of a layer.

    Part 0 is as without parts. The seeds of others are far from each other and
    from those that a user counts up.
    """
    if isinstance(initializer, Offset):
        return Offset(reseeded(initializer.initializer, part))
    if isinstance(initializer, PerGate):
        gates = keras.tree.map_structure(
            lambda gate: reseeded(gate, part), initializer.initializer
        )
        return PerGate(gates, initializer.gates)
    config = complete_config(initializer) or {}
    if "seed" not in config or isinstance(config["seed"], dict):
        return initializer  # not random, or its seed generator advances
    if part and isinstance(config["seed"], int):
        entropy = config["seed"] % 2**64, part  # not negative
        (word,) = np.random.SeedSequence(entropy).generate_state(1)
        config["seed"] = int(word >> 1)  # every backend takes 31 bits
    # Without a seed a new instance draws one: an initializer of Keras returns
    # the same values at every call.
    return type(initializer).from_config(config)
