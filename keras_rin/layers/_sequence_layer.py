"""SequenceLayer: the base class of RIN, MinGRU, NoisyRNN and RateRNN."""

import inspect
from operator import attrgetter
from typing import Any

import keras
from keras import ops

from keras_rin import _arguments
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


class _CellWithResets:
    """A cell that reads, beside its features, whether to reset and to step."""

    def __init__(self, cell, training):
        self.cell, self.training = cell, training
        self.state_size = cell.state_size

    def call(self, inputs, states):
        h, *others = states
        is_reset, is_step = inputs[..., -2:-1] > 0, inputs[..., -1:] > 0
        before = ops.where(is_reset, 0, h), *others
        x = inputs[..., :-2]
        _, after = self.cell(x, list(before), training=self.training)
        states = [
            ops.where(is_step, new, old)
            for new, old in zip(after, before, strict=True)
        ]
        return states[0], states

    __call__ = call


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

    def call(
        self,
        sequences,
        initial_state=None,
        mask=None,
        training=False,
        resets=None,
        sequences_mask=None,
    ):
        # Keras passes an implicit mask by this name beside another tensor.
        mask = sequences_mask if mask is None else mask
        self._check_call(sequences, initial_state, mask)
        if resets is not None:
            shape = ops.shape(resets)
            _arguments.check_shape("resets", shape, sequences.shape[:2])
            mask = mask, ops.cast(resets, "bool")
        return super().call(sequences, initial_state, mask, training)

    def _check_call(self, sequences, initial_state, mask):
        batch, time, _ = sequences.shape
        if mask is not None:
            _arguments.check_shape("mask", ops.shape(mask), (batch, time))
            if self.unroll and self.zero_output_for_mask:
                raise ValueError(
                    f"{self.name} with `zero_output_for_mask=True` takes a "
                    "mask only with `unroll=False`: the unrolled loop of Keras "
                    "sets the outputs of other time steps to zero."
                )
        if initial_state is not None:
            states = keras.tree.flatten(initial_state)
            sizes = keras.tree.flatten(self.state_size)
            if len(states) != len(sizes):
                raise ValueError(
                    f"`initial_state` must be a list of {len(sizes)}, or the "
                    f"only tensor. Received: {len(states)} tensors"
                )
            for state, size in zip(states, sizes, strict=True):
                shape = ops.shape(state)
                _arguments.check_shape("initial_state", shape, (batch, size))

    def inner_loop(self, sequences, initial_state, mask, training=False):
        # With resets, `mask` is a pair of both.
        if not isinstance(mask, tuple):
            return super().inner_loop(sequences, initial_state, mask, training)
        mask, resets = self._mask_and_resets(mask)
        columns = resets, ops.ones_like(resets) if mask is None else mask
        columns = ops.cast(ops.stack(columns, axis=-1), sequences.dtype)
        loop = keras.layers.RNN(
            _CellWithResets(self.cell, training),
            self.return_sequences,
            unroll=self.unroll,
            name=self.name,
        )
        x = self._in_processing_order(sequences)
        x = ops.concatenate([x, columns], axis=-1)
        last, outputs, states = loop.inner_loop(x, initial_state, None)
        outputs = outputs if self.return_sequences else last
        return *self._results(outputs, mask)[:2], states

    def _mask_and_resets(self, mask):
        """Both as Booleans in the order of processing, each may be `None`."""
        mask, resets = mask if isinstance(mask, tuple) else (mask, None)
        if mask is not None:
            mask = self._in_processing_order(ops.cast(mask, "bool"))
        if resets is not None and self.go_backwards:
            # A sequence that is read backwards begins before the next one.
            last = ops.zeros_like(resets[:, :1])
            resets = ops.concatenate([resets[:, 1:], last], axis=1)
            resets = ops.flip(resets, 1)
        return mask, resets

    def _in_processing_order(self, sequences):
        return ops.flip(sequences, 1) if self.go_backwards else sequences

    def _cell_sequences(self, sequences, training):
        """In the order of processing, after dropout."""
        x = self._in_processing_order(sequences)
        dropout_mask = self.cell.get_dropout_mask(x[:, 0])
        if training and dropout_mask is not None:
            x = x * dropout_mask[:, None]
        return x

    def _results(self, states, mask):
        """Those of an inner loop, with the outputs of Keras where masked.

        `states` are all of them, or the last ones `(batch, units)`.
        """
        outputs, is_zero_first = states, keras.backend.backend() != "jax"
        if mask is not None and (self.zero_output_for_mask or is_zero_first):
            if not self.zero_output_for_mask:
                # Keras returns zeros up to the first step that is not masked.
                mask = ops.cumsum(ops.cast(mask, "int32"), axis=1) > 0
            mask = mask if self.return_sequences else mask[:, -1]
            outputs = ops.where(mask[..., None], states, 0)
        if not self.return_sequences:
            return outputs, outputs, [states]
        return outputs[:, -1], outputs, [states[:, -1]]

    def get_config(self):
        config = super().get_config()
        cell_config = config.pop("cell")["config"]
        options = {name: getattr(self, name) for name in self.OPTIONS}
        return {**cell_config, **config, **options}

    @classmethod
    def from_config(cls, config):
        return cls(**config)
