"""Networks that follow a stream, on windows of a log."""

import functools

import keras
import numpy as np

from keras_rin.initializers import Offset
from keras_rin.layers import RIN
from keras_rin.layers import MinGRU
from keras_rin.layers import StreamFeatures
from keras_rin.recordings import _training

LAYERS: dict = {
    "MinGRU": MinGRU,
    "GRU": keras.layers.GRU,
    "RIN": functools.partial(
        RIN, recurrent_initializer=Offset(keras.initializers.Identity(0.95))
    ),
}
# A layer, whether it reads `StreamFeatures`, units of about 2,000, 1,000 and
# 350 weights for ten channels or six with features, and learning rates, the
# usual first.
NETWORKS = (
    ("MinGRU", True, (44, 21, 7), (0.03, 0.01, 0.1)),
    ("MinGRU", False, (95, 47, 16), (0.03, 0.01, 0.1)),
    ("RIN", True, (33, 21, 9), (0.01, 0.003, 0.03)),
)
# Those of a layer that is asked for.
OTHERS = (
    ("RIN", False, (38, 24, 12), (0.01, 0.003, 0.03)),
    ("GRU", False, (21, 14, 7), (0.03, 0.01, 0.1)),
)


def networks(layer=None):
    """Which are tried, of this layer alone or of any."""
    if layer is None:
        return NETWORKS
    return [network for network in NETWORKS + OTHERS if network[0] == layer]


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

    @functools.cached_property
    def features(self):
        """Those of all rows, scaled, and the layers that make them of x.

        Each part is one stream, as it is for a device.
        """
        layer, parts = StreamFeatures(), np.split(self.x, self.ends[:-1])
        rows = np.concatenate(
            [keras.ops.convert_to_numpy(layer(x[None]))[0] for x in parts]
        )
        learned = rows[: self.ends[1]]
        normalization, scaler = _training.normalization([learned])
        return scaler.transform(rows), [layer, normalization]

    def draw(self, rows_of_all, end, rng):
        """x `(batch, joined * steps, channels)` and y before a row."""
        count = np.searchsorted(self.starts, end - self.steps, "right")
        starts = self.starts[
            rng.integers(count, size=(_training.BATCH, self.joined))
        ]
        rows = starts[..., None] + np.arange(self.steps)
        rows = rows.reshape(_training.BATCH, -1)
        return rows_of_all[rows], self.y[rows]


class Network(_training.Network):
    """A layer whose output at each row names a class, without end."""

    def __init__(self, layer, has_features, units, windows, classes):
        self.windows, self.x, before = windows, windows.x, []
        if has_features:
            self.x, before = windows.features
        make, channels = LAYERS[layer], self.x.shape[1]

        recurrent = make(units, return_sequences=True)
        read_out = keras.layers.Dense(classes)
        self.model = keras.Sequential(
            [keras.Input((None, channels)), recurrent, read_out]
        )
        # What `model` reads is made of scaled rows, and these of raw ones.
        self.layers = [*before, *self.model.layers]
        raw = keras.Input(
            (None, windows.x.shape[1]), dtype=_training.precise_dtype()
        )
        self.raw_model = keras.Sequential(
            [raw, windows.normalization, *self.layers]
        )
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
        end = self.windows.ends[int(is_final)]
        return self.windows.draw(self.x, end, rng)

    def outputs(self, is_final):
        """Those `(rows, classes)` for validation or test."""
        rows = self.x[slice(*self.windows.ends[int(is_final) :][:2])]
        self.chunk.set_weights(self.model.get_weights())
        padded = np.pad(rows, ((0, -len(rows) % CHUNK), (0, 0)))
        state, outputs = np.zeros((1, self.units), "float32"), []
        for x in padded.reshape(-1, 1, CHUNK, rows.shape[1]):
            y, state = map(np.asarray, self.chunk.predict_on_batch([x, state]))
            outputs.append(y[0])
        return np.concatenate(outputs)[: len(rows)]
