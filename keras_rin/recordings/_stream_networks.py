"""Networks that follow a stream, on windows of a log."""

import functools

import keras
import numpy as np

from keras_rin.initializers import Offset
from keras_rin.layers import RIN
from keras_rin.layers import MinGRU
from keras_rin.recordings import _training

# The layer, units of about 2,000, 1,000 and 350 weights for ten inputs and
# outputs, and learning rates, the usual first.
LAYERS: dict = {
    "MinGRU": (MinGRU, (95, 47, 16), (0.03, 0.01, 0.1)),
    "GRU": (keras.layers.GRU, (21, 14, 7), (0.03, 0.01, 0.1)),
    "RIN": (
        functools.partial(
            RIN, recurrent_initializer=Offset(keras.initializers.Identity(0.95))
        ),
        (38, 24, 12),
        (0.01, 0.003, 0.03),
    ),
}
CHUNK = 4096  # rows that are answered at a time


class Windows:
    """Rows of a log, scaled, and the windows of its stretches to train on."""

    def __init__(self, parts, window):
        learned = [*parts[0].x, *parts[1].x]
        self.normalization, scaler = _training.normalization(learned)
        stretches = [*learned, *parts[2].x]
        lengths = [len(x) for x in stretches]
        self.x = np.empty((sum(lengths), learned[0].shape[1]), "float32")
        places = np.split(self.x, np.cumsum(lengths)[:-1])
        for place, x in zip(places, stretches, strict=True):
            place[:] = scaler.transform(x)
        self.y = np.concatenate([y for part in parts for y in part.y])
        self.ends = np.cumsum([sum(map(len, part.x)) for part in parts])
        piece = np.repeat(np.arange(len(lengths), dtype="int32"), lengths)
        trained = lengths[: len(parts[0].x)]
        self.steps = int(min(window, np.quantile(trained, 0.1)))
        if self.steps < 2:
            raise ValueError(f"{parts[0].source}: stretches have one row each.")
        self.joined = max(2, round(2 * window / self.steps))
        inside = piece[: len(piece) - self.steps + 1] == piece[self.steps - 1 :]
        self.starts = np.flatnonzero(inside)

    def draw(self, end, rng):
        """x `(batch, joined * steps, channels)` and y before a row."""
        count = np.searchsorted(self.starts, end - self.steps, "right")
        starts = self.starts[
            rng.integers(count, size=(_training.BATCH, self.joined))
        ]
        rows = starts[..., None] + np.arange(self.steps)
        rows = rows.reshape(_training.BATCH, -1)
        return self.x[rows], self.y[rows]


class Network(_training.Network):
    """A layer whose output at each row names a class, without end."""

    def __init__(self, layer, units, windows, classes):
        make, channels = LAYERS[layer][0], windows.x.shape[1]
        self.windows = windows

        def build(*before, steps=None):
            recurrent = make(units, return_sequences=True)
            read_out = keras.layers.Dense(classes)
            inputs = keras.Input((steps, channels))
            return keras.Sequential([inputs, *before, recurrent, read_out])

        self.model = build()
        raw = keras.Input((None, channels), dtype=_training.precise_dtype())
        layers = [raw, windows.normalization, *self.model.layers]
        self.raw_model = keras.Sequential(layers)
        x, h = keras.Input((CHUNK, channels)), keras.Input((units,))
        recurrent = make(units, return_sequences=True, return_state=True)
        states, last = recurrent(x, initial_state=h)
        y = keras.layers.Dense(classes)(states)
        self.chunk = keras.Model([x, h], [y, last])
        self.chunk.compile(jit_compile=keras.backend.backend() != "torch")
        self.units = units
        loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        self.compile(loss, _training.EPOCH)

    def batch(self, is_final, rng):
        return self.windows.draw(self.windows.ends[int(is_final)], rng)

    def outputs(self, is_final):
        """The number of the class in each row of validation or test, or NaN."""
        rows = self.windows.x[slice(*self.windows.ends[int(is_final) :][:2])]
        self.chunk.set_weights(self.model.get_weights())
        padded = np.pad(rows, ((0, -len(rows) % CHUNK), (0, 0)))
        state, outputs = np.zeros((1, self.units), "float32"), []
        for x in padded.reshape(-1, 1, CHUNK, rows.shape[1]):
            y, state = map(np.asarray, self.chunk.predict_on_batch([x, state]))
            outputs.append(y[0])
        y = np.concatenate(outputs)[: len(rows)]
        return np.where(np.isfinite(y).all(axis=1), y.argmax(axis=1), np.nan)
