"""Why does a rare long sequence diverge, and what do longer sequences change?

RIN(50) learns the adding problem by the recipe of the [ladder](#ladder). After
each length it reads 100 sequences of 30,000 steps, and every 250 steps the
units that are active, h > 0, are noted. As long as they stay the same, the
recurrence is linear: the hidden state is multiplied by the block of V of these
units. A spectral radius r of this block above 1 lets the state grow by the
factor r at each step; at r = 1.0002 that is a factor of 400 over 30,000 steps.
A sequence counts as diverging if its loss is above that of a constant
prediction.
"""

import keras
import numpy as np
from short_then_longer.ladder import LADDER
from short_then_longer.ladder import climb

from engine import record
from engine.partial_runs import PartialRuns
from keras_rin.layers import RIN
from keras_rin.tasks import adding

SEEDS, LENGTH, SAMPLES, AT_ONCE, EVERY = 3, 30_000, 100, 20, 250


def measure(
    ladder=LADDER, seeds=SEEDS, length=LENGTH, samples=SAMPLES, partial=None
):
    runs = PartialRuns(partial, ("seed",)).complete(
        [(seed,) for seed in range(seeds)],
        lambda seed: train(seed, ladder, length, samples),
    )
    return {"runs": runs}


def train(seed, ladder, length, samples):
    return {
        "rungs": [
            {"length": trained_on, "sequences": read(model, length, samples)}
            for model, trained_on, _ in climb("RIN", seed, ladder)
        ]
    }


def read(model, length, samples):
    """Of each sequence its loss, and what its hidden state does."""
    normalization, rin, read_out = model.layers
    states = keras.Sequential(
        [
            keras.Input((None, 2)),
            normalization,
            RIN(rin.units, return_sequences=True),
        ]
    )
    states.layers[-1].set_weights(rin.get_weights())
    states.compile(jit_compile=True)
    effective = np.eye(rin.units) + rin.get_weights()[1]
    kernel, bias = read_out.get_weights()
    x, y = adding.generate(np.random.default_rng(length), samples, length)
    known, sequences = {}, []
    for first in range(0, samples, AT_ONCE):
        batch = slice(first, first + AT_ONCE)
        h = states.predict(x[batch], batch_size=AT_ONCE, verbose=0)
        losses = np.square(h[:, -1] @ kernel + bias - y[batch])[:, 0]
        losses = losses / adding.baseline_loss()
        for loss, of_sequence in zip(losses, h, strict=True):
            active = of_sequence[length // 2 :: EVERY] > 0
            radii = [radius(effective, units, known) for units in active]
            count = float(np.median(active.sum(axis=1)))
            sequence = {"loss": float(loss), "radius": float(np.median(radii))}
            sequences.append({**sequence, "active": count})
    return sequences


def radius(effective, active, known):
    """Spectral radius of the block of the active units; `known` keeps it."""
    key = active.tobytes()
    if key not in known:
        units = np.flatnonzero(active)
        block = effective[np.ix_(units, units)]
        moduli = np.abs(np.linalg.eigvals(block))
        known[key] = float(moduli.max(initial=0))
    return known[key]


def tables(results):
    rungs = {}
    for run in results["runs"]:
        for rung in run["rungs"]:
            rungs.setdefault(rung["length"], []).extend(rung["sequences"])
    columns = {
        "trained up to": lambda rung: f"{rung[0]:,}",
        "diverging": lambda rung: (
            f"{sum(s['loss'] > 1 for s in rung[1])} of {len(rung[1])}"
        ),
        "radius - 1": lambda rung: f"{middle(rung[1], 'radius') - 1:.2g}",
        "active units": lambda rung: f"{middle(rung[1], 'active'):g}",
    }
    caption = (
        "Sequences of 30,000 steps after each length: how many diverge, and of "
        "all the distance of the spectral radius from 1 and the number of "
        "active units, both over the second half (medians over sequences and "
        "seeds)"
    )
    return {caption: record.table(columns, rungs.items())}


def middle(sequences, name):
    return np.median([sequence[name] for sequence in sequences])


SMALLEST = {
    "ladder": ((5, 2, 1e-3), (10, 2, 1e-4)),
    "seeds": 1,
    "length": 500,
    "samples": 20,
}
