"""Does it help a small network to be told how much a signal moves?

A regression on a window reads the mean, the deviation and the mean change; the
networks of `streams` read x alone. Here some also read, for each channel, the
change |x_t - x_(t-1)| and the deviation |x_t - m_t| from a running mean, m_t =
m_(t-1) + (x_t - m_(t-1)) / 16, which begin with the first x. All inputs are
normalized by mean and deviation over streams of the people to train on.

Each of the ten people is tested alone, by networks trained on the nine others,
with three seeds; the rest is that of `streams`. The rate of each person, of
three or more, is that of the highest accuracy on three of the nine, in a
training without them. The question, the inputs and the sizes were fixed before
the first test: the inputs are worth a layer if both networks of about 350
weights gain, with an interval over the ten people above 0.
"""

import functools
import itertools

import keras
import numpy as np
from devices import streams
from devices import watch

from engine import record
from engine.measurement import Variant
from engine.partial_runs import PartialRuns
from engine.verdicts import mean_of

WINDOW = 16  # steps, of the running mean
SEEDS, UPDATES, TEST = 3, 600, (4, 10_000)
RATES = {
    "minGRU, bias -3": (0.01, 0.03, 0.1),
    "RIN, 0.95 I": (3e-3, 0.01, 0.03),
}
NETWORKS = (  # about 350 weights, and about 950
    ("x", "minGRU, bias -3", 16),
    ("x, change, deviation", "minGRU, bias -3", 7),
    ("x", "RIN, 0.95 I", 13),
    ("x, change, deviation", "RIN, 0.95 I", 9),
    ("x", "minGRU, bias -3", 47),
    ("x, change, deviation", "minGRU, bias -3", 21),
    ("x", "RIN, 0.95 I", 25),
    ("x, change, deviation", "RIN, 0.95 I", 19),
)
FIELDS = "inputs", "layer", "units", "part"


def change_and_deviation(x):
    """x `(..., steps, channels)` and two more inputs for each channel."""
    import jax
    from jax import numpy as jnp

    def step(mean, x):
        mean = mean + (x - mean) / WINDOW
        return mean, mean

    steps = jnp.moveaxis(x, -2, 0)
    means = jnp.moveaxis(jax.lax.scan(step, steps[0], steps)[1], 0, -2)
    change = jnp.abs(jnp.diff(x, axis=-2, prepend=x[..., :1, :]))
    return jnp.concatenate([x, change, jnp.abs(x - means)], axis=-1)


INPUTS = {
    "x": (1, None),
    "x, change, deviation": (3, change_and_deviation),
}


def measure(
    networks=NETWORKS,
    people=tuple(watch.PEOPLE),
    seeds=SEEDS,
    updates=UPDATES,
    test=TEST,
    partial=None,
):
    runs = PartialRuns(partial, FIELDS)
    make = functools.partial(run, runs, people, seeds, updates, test)
    keys = [(*network, part) for network in networks for part in PARTS]
    return {"runs": runs.complete(keys, make)}


PARTS = "rates", "test"


def run(runs, people, seeds, updates, test, inputs, layer, units, part):
    network = inputs, layer, units
    if part == "rates":
        rates = RATES[layer]
        rows = validated(*network, rates, people, updates, test)
        while rates[-1] in streams.best_rates(rates, rows):
            if rates[-1] not in streams.HIGHER:
                break
            rates = *rates, streams.HIGHER[rates[-1]]
            rows += validated(*network, rates[-1:], people, updates, test)
        return {"rates": rates, "folds": rows}
    chosen = runs[*network, "rates"]
    rates = streams.best_rates(chosen["rates"], chosen["folds"])
    cases = [
        (rate, watch.others((person,)), (person,), seed)
        for rate, person in zip(rates, people, strict=True)
        for seed in range(seeds)
    ]
    results = train(*network, cases, updates, test)
    return {"best": rates, "highest": chosen["rates"][-1]} | results


def validated(inputs, layer, units, rates, people, updates, test):
    """Accuracies of each rate, by person."""
    cases = []
    for rate, person in itertools.product(rates, people):
        left_out = watch.others((person,))[person % 3 :: 3]
        trained = watch.others((person, *left_out))
        cases.append((rate, trained, left_out, 0))
    results = train(inputs, layer, units, cases, updates, (2, test[1]))
    return np.reshape(results["accuracies"], (len(rates), -1)).tolist()


def train(inputs, layer, units, cases, updates, test):
    """What is measured of models, each a case of (rate, people, test, seed)."""
    factor, transform = INPUTS[inputs]

    def make():
        recurrent = streams.LAYERS[layer](units, return_sequences=True)
        read = keras.Input((None, factor * watch.FEATURES))
        return keras.Sequential(
            [read, recurrent, keras.layers.Dense(watch.CLASSES)]
        )

    results = streams.train(make, cases, updates, test, transform)
    return results | {"trained": None}


def rows(results):
    return [run for run in results["runs"] if run["part"] == "test"]


def by_person(run):
    """The accuracy on each of the people, a mean over the seeds."""
    values = np.where(run["diverged"], np.nan, run["accuracies"])
    return np.nanmean(np.reshape(values, (len(run["best"]), -1)), axis=1)


def difference_rows(results):
    for pair in itertools.pairwise(rows(results)):
        without, told = pair
        if (without["inputs"], told["inputs"]) == tuple(INPUTS):
            values = by_person(told) - by_person(without)
            names = [
                f"{run['layer']}; {run['weights']:,}" for run in (told, without)
            ]
            yield [
                *names,
                mean_of(values, "+.3f", "+.3f"),
                f"{np.sum(values > 0)} of {len(values)}",
            ]


ACCURACY = {
    "inputs": "{inputs}",
    "layer": "{layer}",
    "weights": "{weights:,}",
    "units": "{units}",
    "rates": lambda run: ", ".join(f"{r:g}" for r in sorted(set(run["best"]))),
    "highest rate tried": "{highest:g}",
    "diverged": lambda run: str(sum(run["diverged"])),
    "accuracy": lambda run: f"{np.mean(by_person(run)):.3f}",
    "worst person": lambda run: f"{np.min(by_person(run)):.3f}",
    "steps to settle": lambda run: streams.steps(
        np.median(streams.finished(run, "settle"))
    ),
}


def tables(results):
    return {
        "Streams of each person, whom training has not seen (means over "
        "people and seeds)": record.table(ACCURACY, rows(results), words=2),
        "Accuracy with change and deviation minus that without (mean and "
        "paired 95 % t interval over the people), and how many people gain": (
            record.markdown(
                ["with", "without", "difference", "people"],
                difference_rows(results),
                words=2,
            )
        ),
    }


VARIANTS = {"": Variant(backend="jax")}
SMALLEST = {
    "networks": NETWORKS[2:4],
    "people": (1, 2),
    "seeds": 1,
    "updates": 2,
    "test": (1, 1_000),
}
