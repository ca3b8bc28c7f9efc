"""A recurrent layer behind a scale and a front, trained many times."""

import itertools
import warnings

import keras
import numpy as np
from sklearn.preprocessing import StandardScaler

from keras_rin.layers import RIN
from keras_rin.recordings._own_scale import OwnScale
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
UPDATES = 25  # at most, of an epoch
FEWEST, PASSES = 300, 40  # updates of a run, and passes over the recordings
FILTERS, STRIDE = 32, 8
LONG = 64  # steps, from which a convolution with strides is tried
ANSWERS = 256  # recordings that are answered at a time


def precise_dtype():
    """Float64, where the backend has it: on JAX with `JAX_ENABLE_X64=1`."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        number = keras.ops.ones((), "float64")
    return keras.backend.standardize_dtype(number.dtype)


class Scale:
    """Recordings scaled in float64, and the layers that scale raw ones."""

    def __init__(self, x, rows, kind):
        self.layers = []
        for is_own in (False, True)[: 2 if kind == "own" else 1]:
            if is_own:
                x = [_own_scale(of) for of in x]
                self.layers.append(OwnScale(dtype=precise_dtype()))
            scaler = StandardScaler().fit(np.concatenate([x[n] for n in rows]))
            x = [scaler.transform(of) for of in x]
            moments = {"mean": scaler.mean_, "variance": scaler.scale_**2}
            layer = keras.layers.Normalization(dtype=precise_dtype(), **moments)
            self.layers.append(layer)
        self.lengths = np.array([*map(len, x)])
        self.x = np.zeros((len(x), max(self.lengths), x[0].shape[1]), "float32")
        for row, of in zip(self.x, x, strict=True):
            row[: len(of)] = of

    def masks(self, stride):
        """Which states are of a recording, and not of the padding behind it."""
        steps = np.arange(0, self.x.shape[1], stride)
        return steps < self.lengths[:, None]


def _own_scale(x):
    deviation = x.std(axis=0) + 1e-6
    logarithm = np.broadcast_to(np.log(deviation), x.shape)
    return np.hstack([(x - x.mean(axis=0)) / deviation, logarithm])


def preparations(lengths):
    """Scales and fronts to choose from, the plain ones first."""
    fronts = ("none", "convolution")[: 2 if np.median(lengths) >= LONG else 1]
    return list(itertools.product(("set", "own"), fronts))


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


class Network:
    """A layer behind a scale and a front, compiled once for all its runs.

    `model` reads scaled recordings and a mask, `raw_model`, of the same
    layers, recordings of one length as they are.
    """

    def __init__(self, name, data, rows, preparation, units):
        kind, front = self.preparation = preparation
        self.name, self.y, self.rate = name, data.y, LAYERS[name][2][0]
        self.runs: list = []  # scores and seconds of each seed
        self.scored: dict = {}  # outputs of the first seed that is finite
        scale = Scale(data.x, rows, kind)
        self.x = scale.x
        self.mask = scale.masks(STRIDE if front == "convolution" else 1)
        layers = _hidden_layers(name, self.x.shape[2], front, units)
        if data.classes:
            layers += [keras.layers.Dense(len(data.classes), "softmax")]
            loss, weight = "sparse_categorical_crossentropy", 1.0
        else:
            mean, deviation = data.y[rows].mean(), data.y[rows].std()
            layers += [keras.layers.Dense(1)]
            layers += [keras.layers.Rescaling(deviation, mean)]
            loss, weight = "mse", deviation**-2
        inputs = keras.Input((None, self.x.shape[2]))
        mask = keras.Input((None,), dtype="bool")
        outputs = _connect(layers, inputs, mask)
        self.model = keras.Model([inputs, mask], outputs)
        raw = keras.Input((None, len(data.channels)), dtype=precise_dtype())
        self.raw_model = keras.Model(raw, _connect(scale.layers + layers, raw))
        updates = int(np.clip(12_000 // self.x.shape[1], 1, UPDATES))
        self.trainer = Trainer(self.model, loss, updates, loss_weights=weight)

    def train(self, rows, rate, seed, limit):
        """Seconds of a training, at most `limit`."""
        updates = max(FEWEST, PASSES * len(rows) // BATCH)

        def batch(rng):
            drawn = rng.choice(rows, BATCH)
            return (self.x[drawn], self.mask[drawn]), self.y[drawn]

        epochs = updates // self.trainer.updates
        return self.trainer.fit(batch, rate, seed, epochs, limit)

    def outputs(self, rows):
        """The outputs `(rows, ...)`, computed in batches of one size."""
        size = min(ANSWERS, len(self.y))
        padded = np.resize(rows, -(-len(rows) // size) * size)
        parts = [
            self.model.predict_on_batch((self.x[part], self.mask[part]))
            for part in padded.reshape(-1, size)
        ]
        return np.concatenate(parts)[: len(rows)]
