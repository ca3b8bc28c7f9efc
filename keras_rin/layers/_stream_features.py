"""StreamFeatures: how much each channel of a stream moves."""

from typing import Any

import keras
import numpy as np
from keras import ops

from keras_rin import _arguments
from keras_rin.layers._sequence_layer import CellLayer

SMALLEST = 1e-17  # share of a mean, below the rounding of float64


class StreamFeaturesCell(keras.layers.Layer):
    """One time step of `StreamFeatures`, which begins with the first input."""

    def __init__(self, window: float = 16, **options: Any):
        super().__init__(**options)
        self.window = _arguments.finite_number("window", window, 1)
        self.channels = None

    def build(self, input_shape):
        self.channels = input_shape[-1]

    @property
    def state_size(self):
        """Of whether the stream has begun, the last input, and its mean."""
        return [1, self.channels, self.channels]

    def call(self, inputs, states):
        has_begun, last, mean = states
        last = ops.where(has_begun > 0, last, inputs)
        mean = ops.where(has_begun > 0, mean, inputs)
        mean = mean + (inputs - mean) * (1 / self.window)
        y = movement(inputs, last, mean)
        return y, [ops.ones_like(has_begun), inputs, mean]


def movement(x, last, mean):
    sizes = ops.abs(x - last), ops.abs(x - mean)
    return ops.concatenate([x, *sizes], axis=-1)


def running_means(x, mean, window):
    """All m_t of a sequence, as sums of 1, 2, 4 ... terms."""
    decay, span = 1 - 1 / window, 1
    sums = ops.concatenate([mean[:, None], x / window], axis=1)
    while decay**span > SMALLEST and span <= (x.shape[1] or np.inf):
        earlier = ops.pad(sums, [(0, 0), (span, 0), (0, 0)])[:, :-span]
        sums = sums + decay**span * earlier
        span *= 2
    return sums[:, 1:]


@keras.saving.register_keras_serializable(package="keras_rin")
class StreamFeatures(CellLayer):
    """The inputs, and how much each channel moves, in fast and slow.

    m_t = m_{t-1} + (x_t - m_{t-1}) / window
    y_t = [x_t, |x_t - x_{t-1}|, |x_t - m_t|]

    with x_0 = m_0 = x_1: a stream begins at rest, at its first input. The
    layer has no weights. A recurrent layer behind it reads the size of a
    motion, which no sum of x over time has; put `keras.layers.Normalization`
    between the two, because a change is smaller than its channel.

    Args:
        window: Number of at least 1, time steps of the running mean m. In
            C with integers a power of two, up to 2^14. Defaults to 16.
        return_sequences: Boolean, whether to return the full sequence of
            outputs or the last output. Defaults to `True`.
        return_state: Boolean, whether to return the states in addition to the
            output. Defaults to `False`.
        go_backwards: Boolean, whether to process the sequence in reverse
            order and return the reversed sequence. Defaults to `False`.
        stateful: Boolean, whether the stream of sample i goes on with sample i
            of the next batch. Defaults to `False`.
        unroll: Boolean, whether to unroll the loop, which runs where there is
            a mask alone. Defaults to `False`.
        zero_output_for_mask: Boolean, whether the outputs of masked time
            steps are zeros rather than the previous output. Defaults to
            `False`.
        **options: `name`, `dtype`, `trainable`, `activity_regularizer`.

    Call arguments:
        sequences: Tensor of shape `(batch, time, channels)`.
        initial_state: List of the states: 1 where the stream has begun, else
            0, `(batch, 1)`, and the last x and m `(batch, channels)`. Defaults
            to `None`: zeros, or the states after the previous batch if
            `stateful`.
        mask: Boolean tensor of shape `(batch, time)`. Time steps where it is
            `False` leave the states unchanged. Defaults to `None`.

    Returns:
        All outputs `(batch, time, 3 channels)`, or without `return_sequences`
        the last one `(batch, 3 channels)`; with `return_state` also the three
        states.

    Raises:
        ValueError: If `window` is less than 1, or if there are `resets`.

    Example:

    >>> layer = keras_rin.layers.StreamFeatures(window=2)
    >>> y = layer(np.array([[[1.0], [5.0], [5.0]]]))
    >>> keras.ops.convert_to_numpy(y)[0]
    array([[1., 0., 0.],
           [5., 4., 2.],
           [5., 0., 1.]], dtype=float32)

    Reference:
        The features of activity recognition, as one exponential moving average
        and one difference a channel, were chosen for this package.
    """

    CELL = StreamFeaturesCell

    def __init__(
        self,
        window: float = 16,
        *,
        return_sequences: bool = True,
        return_state: bool = False,
        go_backwards: bool = False,
        stateful: bool = False,
        unroll: bool = False,
        zero_output_for_mask: bool = False,
        **options: Any,
    ):
        super().__init__("stream_features_cell", locals(), options)

    def build(self, sequences_shape, initial_state_shape=None):
        self.cell.build(sequences_shape[::2])
        self.state_size = self.cell.state_size
        super().build(sequences_shape, initial_state_shape)

    def compute_output_shape(self, sequences_shape, initial_state_shape=None):
        batch, time, channels = sequences_shape
        steps = (time,) if self.return_sequences else ()
        y = (batch, *steps, 3 * channels)
        states = [(batch, size) for size in (1, channels, channels)]
        return (y, *states) if self.return_state else y

    def inner_loop(self, sequences, initial_state, mask, training=False):
        if isinstance(mask, tuple):
            raise ValueError(
                f"{self.name} takes no `resets`: call it on each sequence, "
                "before they are joined."
            )
        # All steps at once; with a mask the loop of Keras.
        if mask is not None:
            return super().inner_loop(sequences, initial_state, mask, training)
        x = ops.flip(sequences, 1) if self.go_backwards else sequences
        has_begun, last, mean = initial_state
        last = ops.where(has_begun > 0, last, x[:, 0])
        mean = ops.where(has_begun > 0, mean, x[:, 0])
        means = running_means(x, mean, self.window)
        before = ops.concatenate([last[:, None], x[:, :-1]], axis=1)
        y = movement(x, before, means)
        states = [ops.ones_like(has_begun), x[:, -1], means[:, -1]]
        return y[:, -1], y, states
