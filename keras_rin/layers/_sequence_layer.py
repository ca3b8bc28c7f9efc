"""SequenceLayer: the base class of RIN, MinGRU, NoisyRNN and RateRNN."""

import inspect
from operator import attrgetter
from typing import Any

import keras
from keras import ops

from keras_rin._layer_walk.layers import hidden_states
from keras_rin._recurrence.backends import require_batch_size
from keras_rin._recurrence.backends import with_known_features


def _names(keras_class) -> set[str]:
    return set(inspect.signature(keras_class.__init__).parameters) - {"self"}


LAYER_OPTIONS = _names(keras.layers.RNN) | _names(keras.Layer) | {"input_shape"}
LAYER_OPTIONS -= {"cell", "kwargs"}


class SequenceLayer(keras.layers.RNN):
    """Knows the number of features, and carries states on every backend."""

    def __init__(self, cell, **options):
        super().__init__(cell, **options)
        self.input_spec = keras.InputSpec(ndim=3)

    def build(self, sequences_shape, initial_state_shape=None):
        super().build(sequences_shape, initial_state_shape)
        features = sequences_shape[-1]
        self.input_spec = keras.InputSpec(ndim=3, axes={-1: features})

    def call(self, sequences, initial_state=None, mask=None, training=False):
        sequences = with_known_features(self, sequences)
        if self.stateful:
            sequences = require_batch_size(self, sequences)
        # Dropout draws its mask in the dtype of the inputs, which must not be
        # an integer type.
        sequences = ops.cast(sequences, self.compute_dtype)
        sequences = self._cell_inputs(sequences, training)
        return super().call(sequences, initial_state, mask, training)

    def _cell_inputs(self, sequences, training):
        """What the cell reads, by default the sequences alone."""
        return sequences

    @property
    def variables(self) -> list[Any]:
        """All variables, on JAX with the states of a stateful layer.

        `fit`, `predict` and `evaluate` carry nothing else from batch to batch
        on JAX. The states are no `weights`, and are not saved.
        """
        variables = super().variables
        if keras.backend.backend() != "jax":
            return variables
        return [*variables, *hidden_states(self)]


class CellLayer(SequenceLayer):
    """Makes its cell, whose options are its attributes and in its config."""

    CELL: Any
    OPTIONS: tuple[str, ...] = ()  # of the layer itself
    _cell_options: set[str]

    def __init_subclass__(cls, **options):
        """Each option of the cell is a property, such as `rin.units`."""
        super().__init_subclass__(**options)
        if not hasattr(cls, "CELL"):  # a base class
            return
        cell, base, *_ = (c for c in cls.CELL.__mro__ if "__init__" in vars(c))
        names = _names(cell)
        if "options" in names:  # which it passes on
            names |= _names(base)
        cls._cell_options = names - {"options", "kwargs"} - LAYER_OPTIONS
        for name in cls._cell_options:
            setattr(cls, name, property(attrgetter(f"cell.{name}")))

    def __init__(self, cell_name, arguments, others):
        """Of the arguments of a subclass, by name, and its `**others`."""
        arguments = {**arguments, **others}
        of_cell = self._cell_options | others.keys() - LAYER_OPTIONS
        shared = {"dtype", "trainable"}
        cell = self.CELL(
            name=cell_name,
            **{k: v for k, v in arguments.items() if k in of_cell | shared},
        )
        of_layer = LAYER_OPTIONS & arguments.keys()
        super().__init__(cell, **{name: arguments[name] for name in of_layer})

    def get_config(self):
        config = super().get_config()
        cell_config = config.pop("cell")["config"]
        options = {name: getattr(self, name) for name in self.OPTIONS}
        return {**cell_config, **config, **options}

    @classmethod
    def from_config(cls, config):
        return cls(**config)
