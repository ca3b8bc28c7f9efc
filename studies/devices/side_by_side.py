"""Which classifier of a watch is how accurate in how many bytes and cycles?

All follow people whom training has not seen, each for an hour, as the compiled
C that a device would run; [inputs](#inputs) has the streams, the folds by
person, and the training of networks, of 600 updates. Networks read x, change
and deviation by `StreamFeatures`, and have about 350 or 950 weights of 8 bits,
states of 16 bits and sums of 32. RIN and minGRU are those of that study, with
three seeds and a rate for each size. GRU, FastGRNN (Kusupati et al., 2018,
arXiv 1901.02358), Comfi-FastGRNN (arXiv 2601.14925: gamma h_t + (1 - gamma)
lambda, of the h_t of a FastGRNN) and eGRU (arXiv 1902.05026: a GRU with one
gate, and softsign in place of sigmoid and tanh) have one seed, and the larger
network has the rates of the smaller one. The last three are cells of
`peers.py`, each described by a row. Low rank, sparsity and weights that are
powers of two, which their papers add, are left out.

The state of a FastGRNN may grow without a limit while z_t is near 1, by nu c_t
a step, in floats as in integers, and that of a Comfi-FastGRNN where training
takes gamma to 1.

The regression and the forests, as `emlearn` writes them, read mean, deviation
and mean change of a window of 32 steps, which one function of C computes for
both. A forest has at most 160 or 1,000 leaves in all, in the number of trees,
of three, that is the most accurate on the people of whom a learning rate is.

`Header.cost` measures all in the same way: flash and RAM as compiled with
`-Os`, instructions in QEMU, cycles in simavr. Costs are those of the first
person's program.
"""

import functools
import pathlib
import tempfile

import numpy as np
from devices import inputs
from devices import integers
from devices import watch
from devices import windows
from sklearn.ensemble import RandomForestClassifier

from engine import pictures
from engine import record
from engine.measurement import Variant
from engine.partial_runs import PartialRuns
from engine.verdicts import mean_of
from keras_rin.export import Header
from keras_rin.recordings import _headers  # noqa: PLC2701, of the command

WINDOW, SEEDS = 32, 1
READ = "x, change, deviation"
NETWORKS = (  # about 350 weights, and about 950
    (READ, "GRU", 4),
    (READ, "FastGRNN cell", 9),
    (READ, "Comfi-FastGRNN cell", 9),
    (READ, "eGRU cell", 6),
    (READ, "GRU", 10),
    (READ, "FastGRNN cell", 20),
    (READ, "Comfi-FastGRNN cell", 20),
    (READ, "eGRU cell", 13),
)
SMALLER = {layer: units for _, layer, units in NETWORKS[:4]}
REGRESSION = "regression on a window"
FORESTS = {  # numbers of trees and of their leaves
    "forest, 160 leaves": ((5, 32), (10, 16), (20, 8)),
    "forest, 1,000 leaves": ((10, 100), (20, 50), (40, 25)),
}
FOREST = """
    int16_t features[18];
    for (int i = 0; i < 18; i++)
        features[i] = (int16_t)(read[i] >> 5);
    const int32_t answer = forest_predict(features, 18);
    for (int k = 0; k < 7; k++)
        y[k] = k == answer;
}
#endif
"""


def measure(
    networks=NETWORKS,
    people=tuple(watch.PEOPLE),
    seeds=SEEDS,
    updates=inputs.UPDATES,
    test=inputs.TEST,
    hour=60,
    partial=None,
):
    runs = PartialRuns(partial, inputs.FIELDS)
    other = functools.partial(windowed, people, test, hour)
    keys = [("window", name, 0, "header") for name in (REGRESSION, *FORESTS)]
    completed = runs.complete(keys, other)
    make = functools.partial(network, runs, people, seeds, updates, test, hour)
    keys = [(*net, part) for net in networks for part in inputs.PARTS]
    completed += runs.complete(keys, make)
    return {"runs": [run | {"trained": None} for run in completed]}


def network(runs, people, seeds, updates, test, hour, *key):
    """A run of `inputs`, but that the larger network has given rates."""
    told, layer, units, part = key
    smaller = told, layer, SMALLER[layer], part
    if part == "rates" and units > SMALLER[layer]:
        return {name: runs[smaller][name] for name in ("rates", "folds")}
    return inputs.run(runs, people, seeds, updates, test, hour, *key)


def windowed(people, test, hour, inputs_, name, units, part):
    """The hours of a classifier of windows, and its cost."""
    results = {"people": len(people), "minutes": [], "sizes": []}
    for number, person in enumerate(people):
        x, y = inputs.hour_of(person, hour)
        classifier, write = chosen(name, person, test)
        with tempfile.TemporaryDirectory() as folder:
            write(classifier, folder)
            header = Header(pathlib.Path(folder, "rin.h"))
            right = integers.answers_of(header, x) == y
            if number == 0:
                results["costs"] = integers.costs_of(header)
        right = right.reshape(hour, inputs.MINUTE)
        results["minutes"].append(right.mean(axis=1).round(5).tolist())
        results["sizes"].append(windows.size_of(classifier))
    return results | {"weights": results["sizes"][0]}


def chosen(name, person, test):
    """The classifier for a person, and what writes it."""
    others = watch.others((person,))
    if name == REGRESSION:
        classifier = windows.CLASSIFIERS["logistic regression"]()
        return fitted(classifier, others), write_regression
    left_out = inputs.validation_of(person)
    trained = watch.others((person, *left_out))
    x, y = watch.streams(left_out, 2, test[1])
    features = np.concatenate(
        [counted(windows.features(stream, WINDOW)) for stream in x]
    )
    accuracies = [
        np.mean(fitted(forest(*shape), trained).predict(features) == y.ravel())
        for shape in FORESTS[name]
    ]
    shape = FORESTS[name][int(np.argmax(accuracies))]
    return fitted(forest(*shape), others), write_forest


def forest(trees, leaves):
    return RandomForestClassifier(trees, max_leaf_nodes=leaves, random_state=0)


def counted(features):
    """As a device has them."""
    return np.floor(features / integers.COUNT)


def fitted(classifier, people):
    x, y = windows.examples(WINDOW, people)
    return classifier.fit(counted(x), y)


def write_regression(classifier, folder):
    _headers.write_regression(classifier, WINDOW, folder)


def write_forest(classifier, folder):
    """The header of a regression, with a forest in its place."""
    import emlearn

    path = pathlib.Path(folder, "rin.h")
    code = emlearn.convert(classifier, method="inline").save(
        name="forest", format="c"
    )
    begin, _, rest = header_of_regression().partition("/* By output")
    rest = rest[rest.index("static inline void rin_reset") :]
    rest = rest[: rest.index("    const int32_t *weight")]
    path.write_text(f"{begin}{code}\n{rest}{FOREST}")


@functools.cache
def header_of_regression():
    regression = windows.CLASSIFIERS["logistic regression"]()
    with tempfile.TemporaryDirectory() as folder:
        write_regression(fitted(regression, watch.PEOPLE), folder)
        return pathlib.Path(folder, "rin.h").read_text()


def all_rows(results):
    """The headers of this study and those of `inputs`, the smallest first."""
    path = record.STUDIES / "devices" / "results_inputs.json"
    every = inputs.rows(results, "header")
    stored = inputs.rows(record.read(path), "header")
    every += [
        run
        for run in stored
        if run["inputs"] == READ and run["people"] == every[0]["people"]
    ]
    return sorted(every, key=inputs.flash)


def name_of(run):
    name = run["layer"].removesuffix(" cell").removesuffix(", 0.95 I")
    return name.removesuffix(", bias -3")


def accuracies(run):
    """By person."""
    return inputs.of_people(run).mean(axis=1)


def table_rows(results):
    runs = all_rows(results)
    (regression,) = (run for run in runs if run["layer"] == REGRESSION)
    for run in runs:
        m0, avr = (
            run["costs"]["processors"].get(name, {})
            for name in ("Cortex-M0+", "ATmega328P")
        )
        numbers = [m0.get(name) for name in integers.NUMBERS]
        numbers += [avr.get("flash"), avr.get("per_step")]
        values, reference = accuracies(run), accuracies(regression)
        ahead = mean_of(values - reference, "+.3f", "+.3f")
        yield [
            name_of(run),
            f"{run['weights']:,}",
            *(f"{number:,}" if number else "—" for number in numbers),
            f"{inputs.of_people(run)[:, 0].mean():.3f}",
            f"{values.mean():.3f}",
            f"{values.min():.3f}",
            "" if run is regression else ahead,
        ]


def tables(results):
    header = ["classifier", "weights or nodes", "flash, M0+", "RAM, M0+"]
    header += ["instructions, M0+", "flash, AVR", "cycles, AVR"]
    header += ["first minute", "accuracy", "worst person"]
    header += ["minus the regression"]
    return {
        "Compiled C over an hour of each person (means over the people, and "
        "a paired 95 % t interval over them)": record.markdown(
            header, table_rows(results), words=2
        )
    }


def draw(results):
    """Accuracy of compiled C on people whom training has not seen, over flash
    of a Cortex-M0+ and over cycles of an Arduino Uno; a line joins the two
    sizes of a network or of a forest.
    """
    figure, axes = pictures.subplots(9, 3.4, 1, 2, sharey=True)
    costs = (
        ("Cortex-M0+", "flash", (1_000, 2_000, 5_000, 10_000)),
        ("ATmega328P", "per_step", (30_000, 60_000, 120_000)),
    )
    lines = {}
    for run in all_rows(results):
        lines.setdefault(name_of(run).partition(",")[0], []).append(run)
    for panel, (processor, number, ticks) in zip(axes, costs, strict=True):
        for name, runs in lines.items():
            x = [
                run["costs"]["processors"].get(processor, {}).get(number)
                or np.nan
                for run in runs
            ]
            y = [accuracies(run).mean() for run in runs]
            panel.plot(x, y, "o-", label=name)
        panel.set_xscale("log")
        panel.minorticks_off()
        panel.set_xticks(ticks, [f"{tick:,}" for tick in ticks])
        panel.grid(linewidth=0.3)
    axes[0].set(xlabel="bytes of flash, Cortex-M0+", ylabel="accuracy")
    axes[1].set_xlabel("cycles a step, Arduino Uno")
    handles = axes[0].get_legend_handles_labels()
    figure.legend(*handles, loc="outside right center", fontsize=8)
    return figure


PICTURES = {"side_by_side.svg": draw}
VARIANTS = {"": Variant(backend="jax")}
SMALLEST = {
    "networks": NETWORKS[:2],
    "people": (1, 2),
    "updates": 2,
    "test": (1, 1_000),
    "hour": 2,
}
