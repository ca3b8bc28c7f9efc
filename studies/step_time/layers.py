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
| mean over time, Dense | a model without a loop: what any training step takes |
| JAX lax.scan | the recurrence of RIN in JAX alone, without Keras |

The rows *matmul lower bound* and *JAX lax.scan* are measured no more. A
processor without AVX-512 had the same order with more noise, and its results
were removed.
"""  # noqa: E501

import itertools
import statistics

from tqdm import tqdm

from engine import pictures
from engine import record
from engine import steps
from engine import timing
from engine.measurement import Variant

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


def timed(makers, size, mode, repeats, seconds):
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


def times_by_case(records):
    """{(size, mode): {layer: ms of each step}}, in the order measured."""
    cases = {}
    for run in records:
        times = cases.setdefault((tuple(run["size"]), run["mode"]), {})
        times[run["contender"]] = run["ms"]
    return cases


def tables(results):
    by_mode = {}
    for (size, mode), times in times_by_case(results["records"]).items():
        by_mode.setdefault(mode, {})[steps.size_cell(size)] = times
    captions = {}
    for mode, by_size in by_mode.items():
        step = f"{mode.capitalize()} step"
        captions[f"{step}, ms"] = step_table(by_size, cell)
        caption = f"{step}, over that of the faster SimpleRNN"
        captions[caption] = step_table(by_size, ratio_cell)
        if all(set(IN_GRID) <= times.keys() for times in by_size.values()):
            caption = f"Ratios over all sizes, {mode} step"
            captions[caption] = ratio_table(by_size.values())
    return captions


def step_table(by_size, cell):
    """Cells of sizes and layers, whichever are more as rows."""
    names = list(next(iter(by_size.values())))
    rows = [[steps.SIZE, *names]]
    for size, times in by_size.items():
        rows.append([size, *(cell(times, name) for name in names)])
    if len(by_size) <= len(names):
        rows = list(zip(*rows, strict=True))
    return record.markdown(rows[0], rows[1:])


def cell(times, name):
    """Median and quartiles."""
    quartiles = statistics.quantiles(times[name], n=4)
    # Three significant digits, without an exponent.
    low, middle, high = (f"{float(f'{ms:.3g}'):,g}" for ms in quartiles)
    return f"{middle} ({low} to {high})"


def ratio_cell(times, name):
    simple = [times[layer] for layer in SIMPLE_RNN if layer in times]
    faster = min(map(statistics.median, simple))
    return f"{statistics.median(times[name]) / faster:.2f}"


def ratio_table(times_of_sizes):
    """How many times as long one step takes as another, over all sizes."""
    ratios = {name: [] for name in RATIOS}
    for times in times_of_sizes:
        ms = {name: statistics.median(times[name]) for name in IN_GRID}
        ms["faster SimpleRNN"] = min(map(ms.get, SIMPLE_RNN))
        for name, (one, other) in RATIOS.items():
            ratios[name].append(ms[one] / ms[other])
    rows = [
        [name, f"{statistics.median(values):.2f}", f"{max(values):.2f}"]
        + [f"{sum(value > 1 for value in values)} of {len(values)}"]
        for name, values in ratios.items()
    ]
    header = ["ratio of step times", "median", "largest", "above 1"]
    return record.markdown(header, rows)


def draw(results):
    """Step time of RIN over that of SimpleRNN, size by size."""
    cases = times_by_case(results["records"])
    modes = {mode for _, mode in cases}
    if modes != {"training", "forward"}:  # one of the variants
        return None
    figure, axes = pictures.subplots(7, 1 + 0.3 * len(cases))
    labels = [f"{mode}  {size}" for size, mode in cases]
    for suffix, marker in (("", "o"), (", XLA", "x")):
        ratios = [
            statistics.median(times[f"RIN{suffix}"])
            / statistics.median(times[f"SimpleRNN{suffix}"])
            for times in cases.values()
        ]
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
}
PICTURES = {"ratios.svg": draw}
SMALLEST = {"sizes": [(2, 5, 1, 3)], "names": IN_GRID}
