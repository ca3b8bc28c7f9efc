"""The search for a network that follows the stream of a log."""

import functools
import time

import keras
import numpy as np
from tqdm import tqdm

from keras_rin.initializers import Offset
from keras_rin.layers import RIN
from keras_rin.layers import MinGRU
from keras_rin.recordings import _device
from keras_rin.recordings._training import BATCH
from keras_rin.recordings._training import Trainer
from keras_rin.recordings._verdict import stream_score

UPDATES = 25  # of an epoch
EPOCHS, LONGER = 24, 96  # of a training to choose, and of the best network
RATES = 0.001, 0.003, 0.01, 0.03, 0.1, 0.3
DIVERGED = -1  # the answer of outputs that are not finite
# The layer, units of about 2,000, 1,000 and 350 weights for ten inputs and
# outputs, and the usual learning rate.
LAYERS: dict = {
    "MinGRU": (MinGRU, (95, 47, 16), 0.03),
    "GRU": (keras.layers.GRU, (21, 14, 7), 0.03),
    "RIN": (
        functools.partial(
            RIN, recurrent_initializer=Offset(keras.initializers.Identity(0.95))
        ),
        (38, 24, 12),
        0.01,
    ),
}


class Search:
    """Trainings on joined windows of a log, each kept in `runs`.

    They end at about `end`, but one is validated and one tested in any case.
    """

    def __init__(self, log, window, runs, end, seeds):
        self.log, self.runs, self.end, self.seeds = log, runs, end, seeds
        lengths = np.bincount(log.piece, weights=log.part != "test")
        shortest = np.quantile(lengths[lengths > 0], 0.1)
        self.window = int(min(window, shortest))
        self.joined = max(2, round(2 * window / self.window))
        x, _ = log.rows("train", "validate")
        self.scale = {"mean": x.mean(axis=0), "variance": x.var(axis=0)}
        constant = self.scale["variance"] == 0
        self.scale["variance"][constant] = 1  # a channel that never changes
        self.trainers: dict = {}

    def build(self, layer, units):
        """A new model, which reads rows of the log."""
        return keras.Sequential(
            [
                keras.Input((None, len(self.log.channels))),
                keras.layers.Normalization(**self.scale),
                LAYERS[layer][0](units, return_sequences=True),
                keras.layers.Dense(len(self.log.classes)),
            ]
        )

    def largest(self, flash):
        """The units with which the smallest header of each layer fits."""
        units, least = {}, np.inf
        for layer, (_, sizes, _) in LAYERS.items():
            for number in sizes:
                model = self.build(layer, number)
                _, size = next(_device.sizes(model, self.log))
                least = min(least, size)
                if size <= flash:
                    units[layer] = number
                    break
        if not units:
            raise ValueError(
                f"No network takes at most {flash} bytes of flash; the "
                f"smallest takes {least}: --flash={least}"
            )
        return units

    def run(self, flash):
        """What was tried, the best first, its model, and scores by seed."""
        with tqdm(desc="sizes of headers", unit="run") as self.bar:
            units = self.largest(flash)
            usual = {layer: RATES.index(LAYERS[layer][2]) for layer in units}
            cases = [
                (layer, number, RATES[usual[layer] + n])
                for n in (0, -1, 1)
                for layer, number in units.items()
            ]
            self.bar.reset(len(cases) + len(self.seeds))
            accuracies = self._results(self._validate, cases)
            while case := _next_to_best(accuracies):
                if time.monotonic() > self.end:
                    break
                self.bar.total += 1
                accuracies |= self._results(self._validate, [case])
            tried = sorted(accuracies.items(), key=lambda item: -item[1])
            best = tried[0][0]
            tests = [(*best, seed, "test") for seed in self.seeds]
            scores = self._results(self._test, tests)
        finite = [case for case in scores if "accuracy" in scores[case]]
        if not finite:
            raise ValueError("Every training diverged: try another --seed.")
        model = self.build(*best[:2])
        model.load_weights(self.runs.weights(*finite[0]))
        return tried, model, [*scores.values()]

    def _results(self, function, cases):
        """The results of cases, the first one and as many as there is time."""
        results: dict = {}
        for case in cases:
            is_over = results and time.monotonic() > self.end
            if case in self.runs or not is_over:
                self.bar.set_description("{}({}), rate {}".format(*case))
                results[case] = self.runs.make(function, *case)
            self.bar.update()
        return results

    def _validate(self, layer, units, rate):
        """The accuracy on the validation rows."""
        case = layer, units, rate, self.seeds[0]
        model = self._train(EPOCHS, *case, "train")
        x, y = self.log.rows("validate")
        return float(np.mean(answers(model, x) == y))

    def _test(self, layer, units, rate, seed, _):
        """The scores on the test rows; the weights are kept."""
        case = layer, units, rate, seed
        model = self._train(LONGER, *case, "train", "validate")
        x, y = self.log.rows("test")
        name, of_test = f"{layer}({units}), seed {seed}", answers(model, x)
        if (of_test == DIVERGED).any():
            return {"name": f"{name}, diverged"}
        model.save_weights(self.runs.weights(*case, "test"))
        return {"name": name} | stream_score(of_test, y)

    def _train(self, epochs, layer, units, rate, seed, *parts):
        """The model, after a training on parts of the log."""
        if layer not in self.trainers:
            loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
            model = self.build(layer, units)
            self.trainers[layer] = Trainer(model, loss, UPDATES)
        starts = self.log.starts(parts, self.window)
        sizes = self.window, self.joined, BATCH

        def batch(rng):
            return self.log.windows(starts, *sizes, rng)

        limit = (self.end - time.monotonic()) / (self.bar.total - self.bar.n)
        trainer = self.trainers[layer]
        trainer.fit(batch, rate, seed, epochs, max(1e-9, limit))
        return trainer.model


def _next_to_best(accuracies):
    """The best network with a rate beside its own that was not tried."""
    layer, units, rate = max(accuracies, key=accuracies.get)
    number = RATES.index(rate)
    neighbors = RATES[max(0, number - 1) : number + 2]
    cases = ((layer, units, neighbor) for neighbor in neighbors)
    return next((case for case in cases if case not in accuracies), None)


def answers(model, x):
    """The number of the largest output of each row, or `DIVERGED`."""
    outputs = model.predict(x[None], verbose=0)[0]
    is_finite = np.isfinite(outputs).all(axis=-1)
    return np.where(is_finite, outputs.argmax(axis=-1), DIVERGED)
