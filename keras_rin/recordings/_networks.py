"""The networks that are tried, each compiled once for all its trainings."""

import functools
import itertools
import warnings

import keras
import numpy as np

from keras_rin.initializers import Offset
from keras_rin.layers import RIN
from keras_rin.layers import MinGRU
from keras_rin.recordings._own_scale import OwnScale
from keras_rin.recordings._search import Candidate
from keras_rin.recordings._training import BATCH
from keras_rin.recordings._training import Trainer

# The class, the number of recurrent matrices, and learning rates to choose
# from, the usual first.
LAYERS: dict = {
    "RIN": (RIN, 1, (0.001, 0.0003, 0.003)),
    "GRU": (keras.layers.GRU, 3, (0.003, 0.001, 0.01)),
    "LSTM": (keras.layers.LSTM, 4, (0.003, 0.001, 0.01)),
    "no recurrent layer": (None, 1, (0.003, 0.001, 0.01)),
}
# The layer, units of about 2,000, 1,000 and 350 weights for ten inputs and
# outputs, and learning rates.
STREAM_LAYERS: dict = {
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
EPOCH = 25  # updates, at most, of one call of the compiled program
FILTERS, STRIDE = 32, 8
LONG = 64  # steps, from which a convolution with strides is tried
ANSWERS, CHUNK = 256, 4096  # recordings and rows that are answered at a time


def precise_dtype():
    """Float64, where the backend has it: on JAX with `JAX_ENABLE_X64=1`."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        number = keras.ops.ones((), "float64")
    return keras.backend.standardize_dtype(number.dtype)


def _normalization(mean, deviation):
    """The layer that scales raw values, and the scale of NumPy."""
    deviation = np.where(deviation > 0, deviation, 1)  # a constant channel
    moments = {"mean": mean, "variance": deviation**2}
    layer = keras.layers.Normalization(dtype=precise_dtype(), **moments)
    return layer, lambda x: (x - mean) / deviation


class Network:
    """A model of scaled inputs; `raw_model`, of the same layers, of raw ones."""

    def compile(self, loss, updates, **options):
        self.trainer = Trainer(self.model, loss, updates, **options)

    def seconds(self):
        """Seconds of an update, after the compilation."""
        return self.trainer.seconds(functools.partial(self.batch, False))

    def train(self, is_final, *arguments):
        """The number of updates, of which the validation is not a part."""
        batch = functools.partial(self.batch, is_final)
        return self.trainer.fit(batch, *arguments)


class Scale:
    """Recordings scaled in float64, and the layers that scale raw ones."""

    def __init__(self, parts, kind):
        x, self.layers = [x for part in parts for x in part.x], []
        learned = sum(len(part.x) for part in parts[:2])
        for is_own in (False, True)[: 1 + (kind == "own")]:
            if is_own:
                x = [_own_scale(values) for values in x]
                self.layers.append(OwnScale(dtype=precise_dtype()))
            rows = np.concatenate(x[:learned])
            layer, scale = _normalization(rows.mean(axis=0), rows.std(axis=0))
            self.layers.append(layer)
            x = [scale(values) for values in x]
        self.y = np.concatenate([part.y for part in parts])
        self.ends = np.cumsum([len(part.x) for part in parts])
        self.lengths = np.array([*map(len, x)])
        self.x = np.zeros((len(x), max(self.lengths), x[0].shape[1]), "float32")
        for row, values in zip(self.x, x, strict=True):
            row[: len(values)] = values


def _own_scale(x):
    deviation = x.std(axis=0) + 1e-6
    logarithm = np.broadcast_to(np.log(deviation), x.shape)
    return np.hstack([(x - x.mean(axis=0)) / deviation, logarithm])


def _hidden_layers(name, features, front, units):
    """The layers between the scale and the read-out.

    A causal convolution has the same windows whatever comes behind.
    """
    layers = keras.layers
    has_front = front == "convolution"
    features = FILTERS if has_front else features
    layer, matrices, _ = LAYERS[name]
    # A matrix of n units has n * (n + features) weights but for the bias.
    weights = units * (units + features) / matrices
    number = round(np.sqrt(features**2 / 4 + weights) - features / 2)
    hidden = []
    if has_front:
        options = {"strides": STRIDE, "padding": "causal", "activation": "relu"}
        convolution = layers.Conv1D(FILTERS, 2 * STRIDE, **options)
        hidden += [convolution, layers.LayerNormalization()]
    if layer is not None:
        hidden.append(layer(max(1, number), return_sequences=has_front))
    elif not has_front:
        hidden.append(layers.Dense(units, activation="relu"))
    if has_front or layer is None:
        hidden += [layers.GlobalAveragePooling1D(), layers.Dropout(0.3)]
    return hidden


def _connect(layers, x, mask=None):
    for layer in layers:
        reads_mask = keras.layers.RNN, keras.layers.GlobalAveragePooling1D
        is_masked = mask is not None and isinstance(layer, reads_mask)
        x = layer(x, mask=mask) if is_masked else layer(x)
    return x


class RecordingNetwork(Network):
    """A layer behind a scale and a front, which answers whole recordings."""

    def __init__(self, name, data, scale, front, units):
        self.scale, stride = scale, STRIDE if front == "convolution" else 1
        steps = np.arange(0, scale.x.shape[1], stride)
        self.mask = steps < scale.lengths[:, None]
        layers = _hidden_layers(name, scale.x.shape[2], front, units)
        loss, weight = "sparse_categorical_crossentropy", 1.0
        if data.classes:
            layers += [keras.layers.Dense(len(data.classes), "softmax")]
        else:
            y = scale.y[: scale.ends[1]]
            layers += [keras.layers.Dense(1)]
            layers += [keras.layers.Rescaling(y.std(), y.mean())]
            loss, weight = "mse", y.std() ** -2
        inputs = keras.Input((None, scale.x.shape[2]))
        mask = keras.Input((None,), dtype="bool")
        self.model = keras.Model([inputs, mask], _connect(layers, inputs, mask))
        raw = keras.Input((None, len(data.channels)), dtype=precise_dtype())
        self.raw_model = keras.Model(raw, _connect(scale.layers + layers, raw))
        updates = int(np.clip(12_000 // scale.x.shape[1], 1, EPOCH))
        self.compile(loss, updates, loss_weights=weight)

    def batch(self, is_final, rng):
        drawn = rng.choice(self.scale.ends[int(is_final)], BATCH)
        return (self.scale.x[drawn], self.mask[drawn]), self.scale.y[drawn]

    def outputs(self, is_final):
        """The outputs of validation or test, in batches of one size."""
        rows = np.arange(*self.scale.ends[int(is_final) :][:2])
        size = min(ANSWERS, len(self.scale.y))
        padded = np.resize(rows, -(-len(rows) // size) * size)
        parts = [
            self.model.predict_on_batch((self.scale.x[part], self.mask[part]))
            for part in padded.reshape(-1, size)
        ]
        return np.concatenate(parts)[: len(rows)]


def recording_candidates(parts, units):
    """Each layer behind each scale and front, the plain ones first."""
    data = parts[0]
    steps = [len(x) for part in parts for x in part.x]
    fronts = ("convolution", "none")[0 if np.median(steps) >= LONG else 1 :]
    scaled = functools.cache(lambda kind: Scale(parts, kind))

    def build(name, kind, front):
        return RecordingNetwork(name, data, scaled(kind), front, units)

    return [
        Candidate(
            name,
            f"{name}, scale {kind}, front {front}",
            functools.partial(build, name, kind, front),
            LAYERS[name][2],
        )
        for kind, front in itertools.product(("set", "own"), fronts)
        for name in LAYERS
    ]


class Windows:
    """Rows of a log, scaled, and the windows of its stretches to train on."""

    def __init__(self, parts, window):
        rows = [part.rows() for part in parts]
        learned = np.concatenate([x for x, _ in rows[:2]])
        moments = learned.mean(axis=0), learned.std(axis=0)
        self.normalization, scale = _normalization(*moments)
        self.x = np.concatenate([scale(x).astype("float32") for x, _ in rows])
        self.y = np.concatenate([y for _, y in rows])
        self.ends = np.cumsum([len(y) for _, y in rows])
        lengths = [len(x) for part in parts for x in part.x]
        piece = np.repeat(np.arange(len(lengths)), lengths)
        trained = lengths[: len(parts[0].x)]
        self.steps = int(min(window, np.quantile(trained, 0.1)))
        if self.steps < 2:
            raise ValueError(f"{parts[0].source}: stretches have one row each.")
        self.joined = max(2, round(2 * window / self.steps))
        inside = piece[: len(piece) - self.steps + 1] == piece[self.steps - 1 :]
        self.starts = np.flatnonzero(inside)

    def draw(self, end, rng):
        """x `(batch, joined * steps, channels)` and y, of rows before an end."""
        count = np.searchsorted(self.starts, end - self.steps, "right")
        starts = self.starts[rng.integers(count, size=(BATCH, self.joined))]
        rows = starts[..., None] + np.arange(self.steps)
        rows = rows.reshape(BATCH, -1)
        return self.x[rows], self.y[rows]


class StreamNetwork(Network):
    """A layer whose output at each row names a class, without end."""

    def __init__(self, layer, units, windows, classes):
        make, channels = STREAM_LAYERS[layer][0], windows.x.shape[1]
        self.windows = windows

        def build(*before, steps=None):
            recurrent = make(units, return_sequences=True)
            read_out = keras.layers.Dense(classes)
            inputs = keras.Input((steps, channels))
            return keras.Sequential([inputs, *before, recurrent, read_out])

        self.model = build()
        raw = keras.Input((None, channels), dtype=precise_dtype())
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
        self.compile(loss, EPOCH)

    def batch(self, is_final, rng):
        return self.windows.draw(self.windows.ends[int(is_final)], rng)

    def outputs(self, is_final):
        """The number of the answer in each row of validation or test, or NaN."""
        first, end = self.windows.ends[int(is_final) :][:2]
        self.chunk.set_weights(self.model.get_weights())
        state, answers = np.zeros((1, self.units), "float32"), []
        for row in range(first, end, CHUNK):
            x = self.windows.x[row : min(row + CHUNK, end)]
            padded = np.zeros((1, CHUNK, x.shape[1]), "float32")
            padded[0, : len(x)] = x
            y, state = map(
                np.asarray, self.chunk.predict_on_batch([padded, state])
            )
            is_finite = np.isfinite(y[0, : len(x)]).all(axis=-1)
            largest = y[0, : len(x)].argmax(axis=-1)
            answers.append(np.where(is_finite, largest, np.nan))
        return np.concatenate(answers)
