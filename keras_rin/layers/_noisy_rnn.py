"""NoisyRNN: a recurrent layer with noise in its hidden state."""

from typing import Any

import keras
from keras import ops

from keras_rin import _arguments
from keras_rin.layers._sequence_layer import SequenceLayer


@keras.saving.register_keras_serializable(package="keras_rin")
class NoisyRNN(SequenceLayer):
    """RNN layer that adds Gaussian noise to the hidden state at each time step.

    h_t <- h_t + z_t, z_t drawn from N(0, stddev^2) for each unit and step

    The noise is part of the recurrence: noise added at one time step is
    propagated to all later ones, as in the theory of Fisher memory. For an
    LSTM cell it is added to h and not to c. Call arguments and outputs are
    those of `keras.layers.RNN`.

    On a CPU, XLA generates random numbers slowly: compile a model with this
    layer with `jit_compile=False` there.

    Args:
        cell: A recurrent cell of Keras whose output is its first state, such
            as `keras.layers.SimpleRNNCell`, `keras.layers.GRUCell` or
            `keras_rin.layers.RINCell`.
        stddev: Finite number, at least 0: standard deviation of the noise.
            Defaults to 0.1.
        seed: Integer, random seed of the noise. With a seed, both directions
            of a `keras.layers.Bidirectional` have the same noise. Defaults to
            `None`.
        inference_noise: Boolean, whether there is noise in inference too.
            Defaults to `True`.
        **kwargs: `name`, `dtype`, `trainable`, and the options of a sequence,
            which are those of `RIN`: `return_sequences`, `return_state`,
            `go_backwards`, `stateful`, `unroll`, `zero_output_for_mask`.

    Raises:
        ValueError: If `cell` is a stack of cells.
        ValueError: If the batch size of a stateful layer changes.

    Example:

    >>> cell = keras_rin.layers.RINCell(8)
    >>> layer = keras_rin.layers.NoisyRNN(cell, stddev=0.05)
    >>> tuple(layer(np.ones((32, 10, 4))).shape)
    (32, 8)

    Reference:
        Ganguli, Huh and Sompolinsky, 2008, Memory traces in dynamical
        systems, for noise at every time step.
    """

    def __init__(
        self,
        cell: keras.Layer,
        stddev: float = 0.1,
        seed: int | None = None,
        inference_noise: bool = True,
        **kwargs: Any,
    ):
        self.stddev = _arguments.finite_number("stddev", stddev, at_least=0)
        stacked = isinstance(cell, keras.layers.StackedRNNCells)
        if stacked or not isinstance(cell, keras.layers.Layer):
            raise ValueError(
                "`cell` must be a single cell: stack NoisyRNN layers instead. "
                f"Received: cell={cell}"
            )
        super().__init__(_NoisyCell(cell), **kwargs)
        self.seed, self.inference_noise = seed, bool(inference_noise)
        self.seed_generator = keras.random.SeedGenerator(seed)

    def _cell_inputs(self, sequences, training):
        stddev = self.stddev if training or self.inference_noise else 0.0
        return beside_noise(self, sequences, stddev)

    def inner_loop(self, sequences, initial_state, mask, training=False):
        # Keras draws and resets the dropout masks of the cells it knows.
        cell = self.cell.cell
        options = initial_state, mask, training
        if not hasattr(cell, "get_dropout_mask"):
            return super().inner_loop(sequences, *options)
        features = sequences.shape[-1] - self.cell.output_size
        first, *_ = keras.tree.flatten(initial_state)
        try:
            cell.get_dropout_mask(sequences[:, 0, :features])
            cell.get_recurrent_dropout_mask(first)
            return super().inner_loop(sequences, *options)
        finally:
            cell.reset_dropout_mask()
            cell.reset_recurrent_dropout_mask()

    def get_config(self):
        config = super().get_config()
        config["cell"] = config["cell"]["config"]["cell"]
        options = {"stddev": self.stddev, "seed": self.seed}
        return {**config, **options, "inference_noise": self.inference_noise}


def beside_noise(layer, sequences, stddev):
    """The sequences and, beside their features, noise for each unit."""
    shape = *ops.shape(sequences)[:2], layer.cell.output_size
    if not stddev:
        noise = ops.zeros(shape, layer.compute_dtype)
    else:
        noise = stddev * keras.random.normal(
            shape, dtype=layer.compute_dtype, seed=layer.seed_generator
        )
    return ops.concatenate([sequences, noise], axis=-1)


class _NoisyCell(keras.layers.Layer):
    # The noise is concatenated to the input, because JAX cannot draw random
    # numbers from a Keras seed generator inside a loop.
    def __init__(self, cell):
        super().__init__(dtype=cell.dtype_policy)
        self.cell = cell
        self.state_size = cell.state_size
        self.output_size = getattr(
            cell, "output_size", keras.tree.flatten(cell.state_size)[0]
        )
        if hasattr(cell, "get_initial_state"):  # zeros without it
            self.get_initial_state = cell.get_initial_state

    def build(self, input_shape):
        if not self.cell.built:  # a loaded cell is already built
            self.cell.build(input_shape)
        self.built = True

    def call(self, inputs, states, training=False):
        features = inputs.shape[-1] - self.output_size
        x, noise = inputs[..., :features], inputs[..., features:]
        _, states = self.cell(x, states, training=training)
        if not isinstance(states, (list, tuple)):
            states = [states]
        h, *further_states = states
        return h + noise, [h + noise, *further_states]

    def get_config(self):
        return {"cell": keras.saving.serialize_keras_object(self.cell)}
