"""Does it help a small network to be told how much a signal moves?

A regression on a window reads the mean, the deviation and the mean change; the
networks of `streams` read x alone. Here some also read what `StreamFeatures`
makes of it: for each channel the change |x_t - x_(t-1)| and the deviation
|x_t - m_t| from a running mean, m_t = m_(t-1) + (x_t - m_(t-1)) / 16, which
begin with the first x. All inputs are normalized by mean and deviation over
streams of the people to train on.

Each of the ten people is tested alone, by networks trained on the nine others,
with three seeds; the rest is that of `streams`. The rate of each person, of
three or more, is that of the highest accuracy on three of the nine, in a
training without them. The question, the inputs and the sizes were fixed before
the first test: the inputs are worth a layer if both networks of about 350
weights gain, with an interval over the ten people above 0. The RIN of 10 units,
the largest whose header takes at most 1,000 bytes, was added later.

*Balanced* is the mean recall of the seven exercises, *worst class* the lowest,
each a mean over people and seeds. A network has settled at the first of a
second of right answers; half of the changes are followed sooner.

Other sampling rates, and about 2,000 weights, have one seed, and learning rates
of the same network at 25 Hz or of that with about 950 weights. At 12.5 and 50
Hz crops, windows and streams have as many seconds: windows of 8 and 32 steps,
crops of 64 and 256.

Each network also becomes a header in integers, with the features in it, as in
[integers](#integers). The header reads an hour of its person without a reset,
whose last minute is the first one again: what differs there is the state. The
regression reads windows of 32 steps ([windows](#windows)) of the same people.
"""

import functools
import itertools

import keras
import numpy as np
from devices import integers
from devices import streams
from devices import watch
from devices import windows

from engine import record
from engine.measurement import Variant
from engine.partial_runs import PartialRuns
from engine.verdicts import mean_of
from keras_rin.layers import StreamFeatures

WINDOW = 16  # steps, of the running mean
SEEDS, UPDATES, TEST = 3, 600, (4, 10_000)
MINUTE = 60 * watch.RATE  # steps
RATES = {"RIN, 0.95 I": (3e-3, 0.01, 0.03)}
OTHER_RATES = 0.01, 0.03, 0.1
NETWORKS = (  # about 350 weights, and about 950
    ("x", "minGRU, bias -3", 16),
    ("x, change, deviation", "minGRU, bias -3", 7),
    ("x", "RIN, 0.95 I", 13),
    ("x, change, deviation", "RIN, 0.95 I", 9),
    ("x, change, deviation", "RIN, 0.95 I", 10),
    ("x", "minGRU, bias -3", 47),
    ("x, change, deviation", "minGRU, bias -3", 21),
    ("x", "RIN, 0.95 I", 25),
    ("x, change, deviation", "RIN, 0.95 I", 19),
)
FIELDS = "inputs", "layer", "units", "part"


INPUTS = "x", "x, change, deviation"
PARTS = "rates", "test", "header"


def features_of(inputs, hz=watch.RATE):
    if inputs == INPUTS[0]:
        return None
    return StreamFeatures(round(WINDOW * hz / watch.RATE))


def measure(
    networks=NETWORKS,
    people=tuple(watch.PEOPLE),
    seeds=SEEDS,
    updates=UPDATES,
    test=TEST,
    hour=60,
    hz=watch.RATE,
    parts=PARTS,
    partial=None,
):
    runs = PartialRuns(partial, FIELDS)
    test = test[0], round(test[1] * hz / watch.RATE)
    make = functools.partial(
        run, runs, people, seeds, updates, test, hour, hz=hz
    )
    keys = [(*network, part) for network in networks for part in parts]
    completed = runs.complete(keys, make)
    results = {"runs": [run | {"trained": None} for run in completed]}
    if "header" in parts:
        results["regression"] = regression(people, test)
    return results | {"hz": hz}


def run(
    runs,
    people,
    seeds,
    updates,
    test,
    hour,
    inputs,
    layer,
    units,
    part,
    hz=watch.RATE,
):
    network = inputs, layer, units
    if part == "header":
        tested = runs[*network, "test"]
        return hour_of_headers(tested, *network, people, seeds, hour)
    if part == "rates":
        rates = RATES.get(layer, OTHER_RATES)
        rows = validated(*network, rates, people, updates, test, hz)
        while rates[-1] in streams.best_rates(rates, rows):
            if rates[-1] not in streams.HIGHER:
                break
            rates = *rates, streams.HIGHER[rates[-1]]
            rows += validated(*network, rates[-1:], people, updates, test, hz)
        return {"rates": rates, "folds": rows}
    if (*network, "rates") in runs:
        of_rates = runs[*network, "rates"]
        best = streams.best_rates(of_rates["rates"], of_rates["folds"])
        chosen = {"best": best, "highest": of_rates["rates"][-1]}
    else:
        chosen = stored(*network)
    cases = [
        (rate, watch.others((person,)), (person,), seed)
        for rate, person in zip(chosen["best"], people, strict=True)
        for seed in range(seeds)
    ]
    return chosen | train(*network, cases, updates, test, hz)


def hour_of_headers(tested, inputs, layer, units, people, seeds, hour):
    """The share of right answers of each run by minute, and the cost of one."""
    results = {"weights": tested["weights"], "people": len(people)}
    results["minutes"] = []
    for number, trained in enumerate(tested["trained"]):
        person = people[number // seeds]
        others = watch.others((person,))
        seen, _ = watch.streams(others)
        x, y = hour_of(person, hour)
        model = integers.trained_model(
            layer, units, trained, others, features_of(inputs)
        )
        with integers.header_of(model, "integer", seen) as header:
            answers = integers.answers_of(header, x)
            if number == 0:
                results["costs"] = integers.costs_of(header)
        right = np.reshape(answers == y, (hour, MINUTE))
        results["minutes"].append(right.mean(axis=1).round(5).tolist())
    return results


def hour_of(person, hour):
    """Minutes of a person, of which the last is the first one again."""
    x, y = watch.streams((person,), 1, hour * MINUTE)
    x[:, -MINUTE:], y[:, -MINUTE:] = x[:, :MINUTE], y[:, :MINUTE]
    return x, y


def regression(people, test):
    """The accuracy of a regression on windows, for each person."""
    of_people = {
        person: windows.scores(
            "logistic regression", 32, watch.others((person,)), (person,), test
        )
        for person in people
    }
    return {
        person: scores["accuracies"] for person, scores in of_people.items()
    }


def validated(inputs, layer, units, rates, people, updates, test, hz):
    """Accuracies of each rate, by person."""
    cases = []
    for rate, person in itertools.product(rates, people):
        left_out = validation_of(person)
        trained = watch.others((person, *left_out))
        cases.append((rate, trained, left_out, 0))
    results = train(inputs, layer, units, cases, updates, (2, test[1]), hz)
    return np.reshape(results["accuracies"], (len(rates), -1)).tolist()


def validation_of(person):
    """Three of the nine others."""
    return watch.others((person,))[person % 3 :: 3]


def train(inputs, layer, units, cases, updates, test, hz=watch.RATE):
    """What is measured of models, each a case of (rate, people, test, seed)."""
    make = functools.partial(build, inputs, layer, units)
    return streams.train(
        make, cases, updates, test, features_of(inputs, hz), hz
    )


def build(inputs, layer, units):
    """The model of inputs, normalized."""
    recurrent = streams.recurrent(layer, units)
    channels = watch.FEATURES * (1 if inputs == INPUTS[0] else 3)
    sequences = keras.Input((None, channels))
    return keras.Sequential(
        [sequences, recurrent, keras.layers.Dense(watch.CLASSES)]
    )


def stored(inputs, layer, units):
    """The learning rates chosen by person: of as many units, or of the most."""
    results = record.read(record.STUDIES / "devices" / "results_inputs.json")
    same = [run for run in rows(results) if run["layer"] == layer]
    same = [run for run in same if run["inputs"] == inputs]
    same = [run for run in same if run["units"] == units] or same
    return {name: same[-1][name] for name in ("best", "highest")}


def rows(results, part="test"):
    return [run for run in results["runs"] if run["part"] == part]


def by_person(run):
    """The accuracy on each of the people, a mean over the seeds."""
    values = np.where(run["diverged"], np.nan, run["accuracies"])
    return np.nanmean(np.reshape(values, (len(run["best"]), -1)), axis=1)


def recalls(run):
    """The share of right answers by class, a mean over people and seeds."""
    return np.mean(streams.finished(run, "recalls"), axis=0)


def difference_rows(results):
    for pair in itertools.pairwise(rows(results)):
        without, told = pair
        if (without["inputs"], told["inputs"]) == INPUTS:
            values = by_person(told) - by_person(without)
            names = [
                f"{run['layer']}; {run['weights']:,}" for run in (told, without)
            ]
            yield [
                *names,
                mean_of(values, "+.3f", "+.3f"),
                f"{np.sum(values > 0)} of {len(values)}",
            ]


def of_people(run):
    """Accuracy of headers by person and minute, a mean over the seeds."""
    minutes = np.array(run["minutes"])
    by_seed = minutes.reshape(run["people"], -1, minutes.shape[1])
    return by_seed.mean(axis=1)


def header_rows(results):
    """Of the smallest header first; then the regression."""
    of_regression = np.array(list(results["regression"].values()))
    for run in sorted(rows(results, "header"), key=flash):
        by_minute = of_people(run)
        m0, avr = (
            run["costs"]["processors"].get(name, {})
            for name in ("Cortex-M0+", "ATmega328P")
        )
        drift = by_minute[:, -1] - by_minute[:, 0]
        ahead = by_minute.mean(axis=1) - of_regression
        yield [
            run["inputs"],
            f"{run['layer']}; {run['weights']:,}",
            *(f"{m0.get(name, 0):,}" for name in ("flash", "ram", "per_step")),
            f"{avr.get('per_step', 0):,}",
            f"{by_minute.mean():.3f}",
            mean_of(drift, "+.4f", "+.4f"),
            mean_of(ahead, "+.3f", "+.3f"),
        ]
    yield ["window", "regression", *[""] * 4, f"{of_regression.mean():.3f}"]


def flash(run):
    return run["costs"]["processors"].get("Cortex-M0+", {}).get("flash", 0)


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
    "balanced": lambda run: f"{np.mean(recalls(run)):.3f}",
    "worst class": lambda run: f"{np.min(recalls(run)):.3f}",
    "s to settle": lambda run: (
        f"{np.median(streams.finished(run, 'settle')) / run['hz']:.2f}"
    ),
    "changes an hour": lambda run: (
        f"{np.mean(streams.finished(run, 'changes')):,.0f}"
    ),
}


def tables(results):
    header = ["inputs", "network; weights", "flash, M0+", "RAM, M0+"]
    header += ["instructions, M0+", "cycles, AVR", "accuracy"]
    header += ["last minute minus first", "minus the regression"]
    tested = [run | {"hz": results["hz"]} for run in rows(results)]
    by_caption = {
        "Streams of each person, whom training has not seen (means over "
        "people and seeds, medians of the delay)": record.table(
            ACCURACY, tested, words=2
        ),
        "Accuracy with change and deviation minus that without (mean and "
        "paired 95 % t interval over the people), and how many people gain": (
            record.markdown(
                ["with", "without", "difference", "people"],
                difference_rows(results),
                words=2,
            )
        ),
    }
    if rows(results, "header"):
        by_caption[
            "Headers in integers, over an hour of each person (mean and 95 % t "
            "interval over the people), and the regression on their streams"
        ] = record.markdown(header, header_rows(results), words=2)
    return by_caption


TESTED = {"parts": ("test",), "seeds": 1}
AT_350 = {"networks": NETWORKS[:4]} | TESTED
AT_2000 = (
    ("x", "minGRU, bias -3", 95),
    ("x, change, deviation", "minGRU, bias -3", 44),
    ("x", "RIN, 0.95 I", 38),
    ("x, change, deviation", "RIN, 0.95 I", 33),
)
VARIANTS = {
    "": Variant(backend="jax"),
    "slower": Variant("At 12.5 Hz", AT_350 | {"hz": 12.5}, "jax"),
    "faster": Variant("At 50 Hz", AT_350 | {"hz": 50}, "jax"),
    "larger": Variant(
        "About 2,000 weights",
        {"networks": AT_2000} | TESTED,
        "jax",
    ),
}
SMALLEST = {
    "networks": NETWORKS[2:4],
    "people": (1, 2),
    "seeds": 1,
    "updates": 2,
    "test": (1, 1_000),
    "hour": 2,
}
