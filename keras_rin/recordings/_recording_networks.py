"""Networks that answer whole recordings, behind a scale and a front."""

import functools
import itertools

import keras
import numpy as np

from keras_rin.layers import RIN
from keras_rin.recordings import _training
from keras_rin.recordings._own_scale import OwnScale
from keras_rin.recordings._search import Candidate

# The class, the number of recurrent matrices, and learning rates to choose
# from, the usual first.
LAYERS: dict = {
    "RIN": (RIN, 1, (0.001, 0.0003, 0.003)),
    "GRU": (keras.layers.GRU, 3, (0.003, 0.001, 0.01)),
    "LSTM": (keras.layers.LSTM, 4, (0.003, 0.001, 0.01)),
    "no recurrent layer": (None, 1, (0.003, 0.001, 0.01)),
}
FILTERS, STRIDE = 32, 8
LONG = 64  # steps, from which a convolution with strides is tried
ANSWERS = 256  # recordings that are answered at a time


class Scale:
    """Recordings scaled in float64, and the layers that scale raw ones."""

    def __init__(self, parts, kind):
        x, self.layers = [x for part in parts for x in part.x], []
        learned = sum(len(part.x) for part in parts[:2])
        for is_own in (False, True)[: 1 + (kind == "own")]:
            if is_own:
                x = [_own_scale(values) for values in x]
                self.layers.append(OwnScale(dtype=_training.precise_dtype()))
            layer, scaler = _training.normalization(x[:learned])
            self.layers.append(layer)
            x = [scaler.transform(values) for values in x]
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


class Network(_training.Network):
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
        raw = keras.Input(
            (None, len(data.channels)), dtype=_training.precise_dtype()
        )
        self.raw_model = keras.Model(raw, _connect(scale.layers + layers, raw))
        updates = int(np.clip(12_000 // scale.x.shape[1], 1, _training.EPOCH))
        self.compile(loss, updates, loss_weights=weight)

    def batch(self, is_final, rng):
        drawn = rng.choice(self.scale.ends[int(is_final)], _training.BATCH)
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


def candidates(parts, units):
    """Each layer behind each scale and front, the plain ones first."""
    data = parts[0]
    steps = [len(x) for part in parts for x in part.x]
    fronts = ("convolution", "none")[0 if np.median(steps) >= LONG else 1 :]
    scaled = functools.cache(lambda kind: Scale(parts, kind))

    def build(name, kind, front):
        return Network(name, data, scaled(kind), front, units)

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
