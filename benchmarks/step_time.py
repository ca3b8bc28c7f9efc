"""Time of one step, against other layers and the matmul lower bound.

    python -m benchmarks.step_time           # the sizes of the docs
    python -m benchmarks.step_time --grid    # 72 sizes, RIN and SimpleRNN
    python -m benchmarks.step_time --bfloat16 --output=runs/bfloat16
    KERAS_BACKEND=torch python -m benchmarks.step_time

The layers compared at a size take turns in one process. The times of all steps
go to OUTPUT/results.json, and from there into tables and a picture. A cell
holds the median in milliseconds, the quartiles, and the ratio of the median to
that of the faster SimpleRNN, compiled or not.
"""

import itertools
import pathlib
import statistics

import keras
from absl import app
from absl import flags
from matplotlib.figure import Figure
from tqdm import tqdm

from benchmarks import contenders
from benchmarks import measuring
from experiments import results

FLAGS = flags.FLAGS

# batch, time, features, units
SIZES = [
    (1, 784, 1, 32),
    (32, 64, 1, 32),
    (32, 784, 1, 100),
    (128, 784, 1, 100),
    (128, 200, 64, 256),
    (128, 784, 64, 256),
]
GRID = itertools.product(
    (1, 32, 128), (64, 784, 4096), (1, 64), (32, 100, 256, 512)
)
SIMPLE_RNN = ("SimpleRNN", "SimpleRNN, XLA")
RECURRENT = ("RIN", "RIN, XLA", *SIMPLE_RNN)
WITHOUT_LOOP = ("mean over time, Dense", "mean over time, Dense, XLA")
IN_GRID = (*RECURRENT, *WITHOUT_LOOP)
ON_OTHERS = ("RIN", "RNN(RINCell)", "SimpleRNN", "LSTM")


def gflop(size):
    """Work of the three matrix products of a training step."""
    batch, time, _, units = size
    return 6e-9 * batch * time * units**2


def measured(makers, size, mode):
    """First step and timed steps of each layer, taking turns."""
    steps, first = {}, {}
    for name, make in makers.items():
        steps[name] = make(size, mode == "training")
        first[name] = measuring.milliseconds(steps[name])
    for step in steps.values():
        step()  # the second step may trace once more
    timed = measuring.in_turns(steps, FLAGS.repeats, FLAGS.seconds)
    return [
        {
            "contender": name,
            "size": size,
            "mode": mode,
            "first_ms": first[name],
            "ms": timed[name],
        }
        for name in steps
    ]


def cells(records):
    """{(size, mode): {layer: ms of each step}}, in the order measured."""
    table = {}
    for record in records:
        key = tuple(record["size"]), record["mode"]
        table.setdefault(key, {})[record["contender"]] = record["ms"]
    return table


def ratio(times, name):
    """Median of a layer over that of the faster SimpleRNN."""
    simple = [times[other] for other in SIMPLE_RNN if other in times]
    faster = min(map(statistics.median, simple))
    return statistics.median(times[name]) / faster


def cell(times, name):
    """Median, quartiles, and the ratio to the faster SimpleRNN."""
    low, middle, high = statistics.quantiles(times[name], n=4)
    quartiles = f"{_three(low)} to {_three(high)}"
    return f"{_three(middle)} ({quartiles}) {ratio(times, name):.2f}"


def _three(ms):
    """Three significant digits, without an exponent."""
    return f"{float(f'{ms:.3g}'):,g}"


def tables(record):
    """Sizes and layers, whichever are more as rows."""
    found = {}
    for (size, mode), times in cells(record["records"]).items():
        found.setdefault(mode, {})[contenders.shape(size)] = times
    shown = {f"{mode}.md": _table(groups) for mode, groups in found.items()}
    for mode, groups in found.items():
        if all(set(IN_GRID) <= times.keys() for times in groups.values()):
            shown[f"{mode}_ratios.md"] = _ratios(groups.values())
    if "training" in found:
        shown["first.md"] = _first_steps(record["records"])
    return shown


def _table(groups):
    names = list(next(iter(groups.values())))
    rows = [[contenders.SHAPE, *groups]]
    rows += [
        [name, *(cell(times, name) for times in groups.values())]
        for name in names
    ]
    if len(groups) > len(names):
        rows = list(zip(*rows, strict=True))
    return results.markdown(rows[0], rows[1:])


def _first_steps(records):
    """Seconds of the first training step, which traces and compiles."""
    found = {}
    for one in records:
        if one["mode"] == "training" and one["contender"] in RECURRENT:
            size = contenders.shape(one["size"])
            seconds = f"{one['first_ms'] / 1000:.2f}"
            found.setdefault(size, {})[one["contender"]] = seconds
    names = next(iter(found.values()))
    rows = [[size, *seconds.values()] for size, seconds in found.items()]
    return results.markdown([contenders.SHAPE, *names], rows)


def _ratios(groups):
    """How many times as long one step takes as another, over all sizes."""
    bare, bare_compiled = WITHOUT_LOOP
    found = {}
    for times in groups:
        ms = {name: statistics.median(times[name]) for name in IN_GRID}
        faster = min(map(ms.get, SIMPLE_RNN))
        less = ms["RIN"] - ms[bare] + ms[bare_compiled]
        for name, one, other in (
            ("RIN / SimpleRNN", ms["RIN"], ms["SimpleRNN"]),
            ("RIN / faster SimpleRNN", ms["RIN"], faster),
            ("both with XLA", ms["RIN, XLA"], ms["SimpleRNN, XLA"]),
            ("RIN / RIN, XLA", ms["RIN"], ms["RIN, XLA"]),
            ("without a loop: default / XLA", ms[bare], ms[bare_compiled]),
            (
                "(RIN - overhead) / RIN, XLA",
                less,
                ms["RIN, XLA"],
            ),
        ):
            found.setdefault(name, []).append(one / other)
    rows = [
        [name, f"{statistics.median(ratios):.2f}", f"{max(ratios):.2f}"]
        + [_above(most, ratios) for most in (1, 1.1)]
        for name, ratios in found.items()
    ]
    header = ["ratio of step times", "median", "largest"]
    header += ["above 1", "above 1.1"]
    return results.markdown(header, rows)


def _above(most, ratios):
    return f"{sum(one > most for one in ratios)} of {len(ratios)}"


def draw(records):
    """RIN against SimpleRNN, both with default compilation or with XLA."""
    groups = cells(records)
    figure = Figure(figsize=(7, 1 + 0.3 * len(groups)), layout="constrained")
    axes = figure.subplots()
    labels = [f"{mode}  {size}" for size, mode in groups]
    for way, marker in (("", "o"), (", XLA", "x")):
        if not all(f"RIN{way}" in times for times in groups.values()):
            continue
        ratios = [
            statistics.median(times[f"RIN{way}"])
            / statistics.median(times[f"SimpleRNN{way}"])
            for times in groups.values()
        ]
        label = f"both{way or ', default compilation'}"
        axes.plot(ratios, labels, marker, color="black", label=label)
    axes.axvline(1, color="grey", linewidth=1)
    axes.set_xscale("log")
    axes.set_xlabel("step time of RIN / step time of SimpleRNN")
    axes.set_ylabel("(batch, time, features, units)")
    axes.invert_yaxis()
    axes.legend()
    return figure


def measure():
    makers = contenders.installed()
    if FLAGS.bfloat16:
        makers = contenders.in_low_precision()
    elif keras.backend.backend() != "tensorflow":
        makers = {name: makers[name] for name in ON_OTHERS}
    elif FLAGS.grid or FLAGS.smoke:
        makers = {name: makers[name] for name in IN_GRID}
    sizes = [(2, 5, 1, 3)] if FLAGS.smoke else GRID if FLAGS.grid else SIZES
    sizes = [size for size in sizes if gflop(size) <= FLAGS.most_gflop]
    if not sizes:
        limit = f"--most_gflop={FLAGS.most_gflop}"
        raise app.UsageError(f"No size has so little work. Received: {limit}")
    cases = list(itertools.product(sizes, FLAGS.mode))
    records = [one for case in tqdm(cases) for one in measured(makers, *case)]
    picture = pathlib.Path(FLAGS.output) / "ratios.png"
    results.save_picture(draw(records), picture)
    return {"backend": keras.backend.backend(), "records": records}


if __name__ == "__main__":
    modes = ["training", "forward"]
    flags.DEFINE_integer("repeats", 15, "Timed steps per layer.", lower_bound=1)
    flags.DEFINE_float("seconds", 60, "Time limit per size.")
    flags.DEFINE_bool("grid", False, "Measure 72 sizes, RIN and SimpleRNN.")
    flags.DEFINE_bool("bfloat16", False, "Measure mixed_bfloat16.")
    flags.DEFINE_float("most_gflop", 1e6, "Skip sizes with more work per step.")
    flags.DEFINE_multi_enum("mode", modes, modes, "Kind of step.")
    flags.register_validator(
        "mode", lambda v: len({*v}) == len(v), "Give each value once."
    )
    for name in ("seconds", "most_gflop"):
        flags.register_validator(name, lambda v: v > 0, "It must be above 0.")
    measuring.main(__file__, measure, tables)
