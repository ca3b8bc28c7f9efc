"""How long does a step of RIN take, next to other layers?

The layers of a size take turns in one process. A training step is a forward
pass, a backward pass and an SGD update of one layer that returns its last
output; a forward step is the forward pass alone. A cell has the median in
milliseconds, and the first and third quartile in brackets. Below it are the
ratios of the medians to that of the faster SimpleRNN, compiled or not.

| row | meaning |
|---|---|
| a layer's name | the default of `model.fit` |
| XLA | `jit_compile=True` |
| not fused | `fused=False`: the loop of `keras.layers.RNN` |
| recompute | `recompute=True` |
| matmul lower bound | the matrix products of a step without anything else; some compiled layers measure below it at batch 1 |
| parallel | `parallel=True`: the scan of MinGRU in place of its loop |
| mean over time, Dense | a model without a loop: what any training step takes |
| JAX lax.scan | the recurrence of RIN in JAX alone, without Keras |

The rows *matmul lower bound* and *JAX lax.scan* are measured no more. Scan and
loop of MinGRU took turns beside other work: compare them with each other. A
processor without AVX-512 had the same order with more noise, and its results
were removed.
"""  # noqa: E501

import itertools
import math
import statistics

import pandas
from tqdm import tqdm

from engine import pictures
from engine import record
from engine import steps
from engine import timing
from engine.measurement import Variant
from engine.measurement import groups

# batch, time, features, units
SIZES = [
    (1, 784, 1, 32),
    (32, 64, 1, 32),
    (32, 784, 1, 100),
    (128, 784, 1, 100),
    (128, 200, 64, 256),
    (128, 784, 64, 256),
]
VALUES = (1, 32, 128), (64, 784, 4096), (1, 64), (32, 100, 256, 512)
GRID = [
    (batch, time, features, units)
    for batch, time, features, units in itertools.product(*VALUES)
    if batch * time * units**2 <= 1e10  # some minutes a layer
]
SIMPLE_RNN = ("SimpleRNN", "SimpleRNN, XLA")
WITHOUT_LOOP = ("mean over time, Dense", "mean over time, Dense, XLA")
WIDE = [(128, 200, 64, 128), (128, 200, 64, 256), (128, 200, 64, 512)]
WIDE += [(32, 200, 64, 256), (16, 20_000, 1, 64)]
IN_WIDE = ("RIN", "RIN, XLA", "RIN, recompute", "RIN, not fused", *SIMPLE_RNN)
SCANS = [(1, 1_000, 4, 64), (32, 1_000, 4, 64), (32, 1_000, 64, 256)]
IN_SCANS = (*SIMPLE_RNN, "GRU", "GRU, XLA", "MinGRU", "MinGRU, XLA")
IN_SCANS += ("MinGRU, parallel", "MinGRU, parallel, XLA")
IN_GRID = ("RIN", "RIN, XLA", *SIMPLE_RNN, *WITHOUT_LOOP)
RATIOS = {
    "RIN / SimpleRNN": ("RIN", "SimpleRNN"),
    "RIN / faster SimpleRNN": ("RIN", "faster SimpleRNN"),
    "both with XLA": ("RIN, XLA", "SimpleRNN, XLA"),
    "RIN / RIN, XLA": ("RIN", "RIN, XLA"),
    "without a loop: default / XLA": WITHOUT_LOOP,
}


def measure(
    sizes=SIZES,
    modes=("training", "forward"),
    names=None,
    repeats=15,
    seconds=60,
):
    makers = steps.makers()
    makers = {name: makers[name] for name in names or makers}
    cases = list(itertools.product(sizes, modes))
    records = [
        run
        for size, mode in tqdm(cases)
        for run in timed(makers, size, mode, repeats, seconds)
    ]
    return {"records": records}


def timed(makers, size, mode, repeats, seconds=math.inf):
    """Steps of each layer, taking turns."""
    functions = {
        name: make(size, mode == "training") for name, make in makers.items()
    }
    for function in functions.values():
        function()
        function()  # the second step may trace once more
    times = timing.in_turns(functions, repeats, seconds)
    case = {"size": size, "mode": mode}
    return [{"contender": name, **case, "ms": times[name]} for name in times]


def by_mode(results):
    """{mode: ms of the steps, a row for each size, a column for each layer}"""
    return {
        mode: steps.by_size(runs, "ms")
        for mode, runs in groups(results["records"], "mode").items()
    }


def tables(results):
    captions = {}
    for mode, times in by_mode(results).items():
        step, medians = (
            f"{mode.capitalize()} step",
            times.map(statistics.median),
        )
        captions[f"{step}, ms"] = step_table(times.map(cell))
        simple_rnn = medians.reindex(columns=SIMPLE_RNN).min(axis=1)
        ratios = medians.div(simple_rnn, axis=0).map("{:.2f}".format)
        caption = f"{step}, over that of the faster SimpleRNN"
        captions[caption] = step_table(ratios)
        if set(IN_GRID) <= {*medians}:
            medians["faster SimpleRNN"] = simple_rnn
            caption = f"Ratios over all sizes, {mode} step"
            captions[caption] = ratio_table(medians)
    return captions


def step_table(cells):
    """Cells of sizes and layers, whichever are more as rows."""
    if len(cells) <= len(cells.columns):
        cells = cells.T
    return record.markdown([steps.SIZE, *cells], cells.itertuples())


def cell(times):
    """Median and quartiles."""
    quartiles = statistics.quantiles(times, n=4)
    # Three significant digits, without an exponent.
    low, middle, high = (f"{float(f'{ms:.3g}'):,g}" for ms in quartiles)
    return f"{middle} ({low} to {high})"


def ratio_table(medians):
    """How many times as long one step takes as another, over all sizes."""
    rows = []
    for name, (first, second) in RATIOS.items():
        ratios = medians[first] / medians[second]
        row = [name, f"{ratios.median():.2f}", f"{ratios.max():.2f}"]
        rows.append([*row, f"{(ratios > 1).sum()} of {len(ratios)}"])
    header = ["ratio of step times", "median", "largest", "above 1"]
    return record.markdown(header, rows)


def draw(results):
    """Step time of RIN over that of SimpleRNN, size by size."""
    records = results["records"]
    modes = {run["mode"] for run in records}
    names = {run["contender"] for run in records}
    if modes != {"training", "forward"} or "RIN" not in names:
        return None  # one of the variants
    runs = pandas.DataFrame(records)
    sizes = runs["size"].map(lambda size: f"  {tuple(size)}")
    runs["case"] = runs["mode"] + sizes
    medians = runs.set_index(["case", "contender"])["ms"].unstack(sort=False)
    medians = medians.map(statistics.median)
    labels = list(medians.index)
    figure, axes = pictures.subplots(7, 1 + 0.3 * len(labels))
    for suffix, marker in (("", "o"), (", XLA", "x")):
        ratios = medians[f"RIN{suffix}"] / medians[f"SimpleRNN{suffix}"]
        label = f"both{suffix or ', default compilation'}"
        axes.plot(ratios, labels, marker, color="black", label=label)
    axes.axvline(1, color="grey", linewidth=1)
    axes.set_title("RIN is faster left of 1", loc="left")
    axes.set(xscale="log", ylabel="(batch, time, features, units)")
    axes.set_xlabel("step time of RIN / step time of SimpleRNN")
    axes.invert_yaxis()
    axes.legend()
    return figure


VARIANTS = {
    "": Variant("Six sizes"),
    "grid": Variant(
        "64 sizes",
        {"modes": ["training"], "seconds": 2}
        | {"names": IN_GRID, "sizes": GRID},
    ),
    "wide": Variant(
        "Wide layers, and recomputation of a long sequence",
        {"modes": ["training"], "names": IN_WIDE, "sizes": WIDE},
    ),
    "scan": Variant(
        "MinGRU: scan and loop over 1,000 steps",
        {"names": IN_SCANS, "sizes": SCANS, "seconds": 20},
    ),
}
PICTURES = {"ratios.svg": draw}
SMALLEST = {"sizes": [(2, 5, 1, 3)], "names": IN_GRID}
