"""Draws the pictures of the guides that show an idea, not a comparison.

    python docs/pictures.py             # all of them
    python docs/pictures.py tasks pulse

Everything random has seed 0. Writes SVG files to docs/pictures.
"""

import contextlib
import io
import json
import pathlib
import re
import sys
import tempfile

import keras
import matplotlib
import numpy as np
from keras.layers import Dense
from matplotlib.figure import Figure
from sklearn.datasets import load_digits
from sktime.datasets import load_basic_motions

from keras_rin import diagnostics
from keras_rin import plots
from keras_rin import tasks
from keras_rin.layers import RIN

ROOT = pathlib.Path(__file__).resolve().parents[1]
FOLDER = ROOT / "docs" / "pictures"
POSITIVE, NEGATIVE, GREY = "#0072b2", "#d55e00", "#7f7f7f"


def subplots(width, height, *shape, **options):
    """A figure of a size in inches, and its axes."""
    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.subplots(*shape, **options)


def draw_tasks():
    """Inputs of five tasks over time."""
    figure, panels = subplots(7, 9.5, 5, height_ratios=[2, 2, 3, 2, 3])
    rng = np.random.default_rng(0)
    functions = _adding, _copying, _flip_flop, _pixels, _motion
    for axes, draw_task in zip(panels, functions, strict=True):
        axes.set_title(draw_task(axes, rng), loc="left")
        axes.spines[["top", "right"]].set_visible(False)
        axes.set_xlabel("time step")
    return figure


def _adding(axes, rng):
    x, y = tasks.adding.generate(rng, 1, 40)
    numbers, marks = x[0].T
    (marked,) = np.nonzero(marks)
    axes.vlines(range(40), 0, numbers, color=GREY, linewidth=3)
    axes.vlines(marked, 0, numbers[marked], color=POSITIVE, linewidth=5)
    axes.set_ylabel("number")
    first, second = numbers[marked]
    answer = f"{first:.2f} + {second:.2f} = {y[0, 0]:.2f}"
    return f"adding: the sum of the marked numbers, {answer}"


def _copying(axes, rng):
    x, y = tasks.copying.generate(rng, 1, 40, copied=5, symbols=4)
    style = {"ha": "center", "va": "center", "color": POSITIVE}
    for row, symbols in ((1, x[0].argmax(axis=1)), (0, y[0])):
        axes.plot(range(40), [row] * 40, ".", color=GREY, markersize=2)
        for step in np.flatnonzero(symbols):
            axes.text(step, row, "ABCD?"[symbols[step] - 1], **style)
    axes.set(yticks=[0, 1], yticklabels=["answer", "input"], ylim=(-0.6, 1.6))
    return "copying: say the symbols again after the cue"


def _flip_flop(axes, rng):
    x, y = tasks.flip_flop.generate(rng, 1, 60, 3, pulse_probability=0.08)
    for bit in range(3):
        middle = 3 * (2 - bit)
        axes.step(range(60), middle + y[0, :, bit], where="mid", color=POSITIVE)
        pulses = np.flatnonzero(x[0, :, bit])
        heights = middle + x[0, pulses, bit]
        axes.vlines(pulses, middle, heights, color=GREY, linewidth=3)
    axes.set(yticks=[6, 3, 0], yticklabels=["bit 1", "bit 2", "bit 3"])
    return "flip-flop: the sign of the latest pulse of a bit"


def _pixels(axes, rng):
    image = load_digits().images[2]
    strip = tasks.sequential_pixels.generate(image[None])[0].T
    axes.imshow(strip, cmap="Greys", aspect="auto", extent=(0, 64, 0, 1))
    small = axes.inset_axes([0.86, 1.05, 0.14, 0.9])
    small.imshow(image, cmap="Greys")
    small.set(xticks=[], yticks=[])
    axes.set(yticks=[])
    return "pixels: which digit, read one pixel a step"


def _motion(axes, rng):
    x, labels = load_basic_motions("train", return_type="numpy3d")
    channels = x[list(labels).index("running")][:3]
    colors = POSITIVE, NEGATIVE, GREY
    for channel, color in zip(channels, colors, strict=True):
        axes.plot(channel, color=color, linewidth=1)
    axes.set_ylabel("acceleration")
    return "activity: standing, walking, running, badminton?"


def recurrent_matrices(units):
    normal = np.random.default_rng(0).normal(size=(units, units))
    return {
        "identity": np.eye(units),
        "chain": np.eye(units, k=1),
        "orthogonal": np.linalg.qr(normal).Q,
    }


def draw_matrices():
    """Three recurrent matrices, each also as a graph of its units."""
    figure, panels = subplots(7, 5, 2, 3)
    titles = {
        "identity": "identity:\neach unit keeps its value",
        "chain": "chain:\neach unit feeds the next",
        "orthogonal": "orthogonal:\nall units mix, no value is lost",
    }
    columns = zip(panels.T, recurrent_matrices(8).items(), strict=True)
    for (above, below), (name, matrix) in columns:
        _show(above, matrix, titles[name])
        above.set_xlabel("to unit")
        _graph(below, matrix)
    panels[0, 0].set_ylabel("from unit")
    return figure


def _show(axes, matrix, title):
    axes.imshow(matrix, cmap="RdBu", vmin=-1, vmax=1)
    axes.set(xticks=[], yticks=[])
    axes.set_title(title, fontsize="medium")


def _graph(axes, matrix):
    angles = np.pi / 2 - 2 * np.pi * np.arange(len(matrix)) / len(matrix)
    places = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    for sender, receiver in np.argwhere(np.abs(matrix) > 0.02):
        weight = matrix[sender, receiver]
        style = {"color": POSITIVE if weight > 0 else NEGATIVE}
        style["alpha"] = min(1, abs(weight))
        if sender == receiver:
            style |= {"markersize": 13, "markerfacecolor": "none"}
            axes.plot(*1.25 * places[sender], "o", **style)
        else:
            style |= {"linewidth": 1.5, "arrowstyle": "->"}
            style |= {"shrinkA": 6, "shrinkB": 6}
            ends = places[receiver], places[sender]
            axes.annotate("", *ends, arrowprops=style)
    axes.plot(*places.T, "o", color=GREY, markersize=8)
    axes.set(xlim=(-1.6, 1.6), ylim=(-1.6, 1.6), aspect="equal")
    axes.axis("off")


def draw_regularizer():
    """The effective matrix V under L2 on U and under L2 on V."""
    units, shrink = 8, 0.98
    normal = np.random.default_rng(0).normal(size=(units, units))
    offset = 0.5 * normal / np.sqrt(units)
    figure, panels = subplots(7, 4.6, 2, 4)
    for column, updates in enumerate((0, 25, 50, 200)):
        factor = shrink**updates
        on_u = np.eye(units) + factor * offset
        on_v = factor * (np.eye(units) + offset)
        for axes, matrix in zip(panels[:, column], (on_u, on_v), strict=True):
            _show(axes, matrix, f"after {updates} updates")
    panels[0, 0].set_ylabel("L2 on U")
    panels[1, 0].set_ylabel("L2 on V")
    figure.suptitle("L2 on U leads V to the identity, L2 on V to zero")
    return figure


PULSE = """\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 460 {height}" \
width="460" height="{height}">
<rect width="100%" height="100%" fill="#fff"/>
<style>text{{font:15px sans-serif;fill:#444}}.note{{font-size:13px;fill:#666}}\
.unit{{fill:none;stroke:#888}}@media (prefers-reduced-motion:no-preference)\
{{{rules}}}</style>
{rows}
</svg>
"""
NOTES = {
    "identity": "The identity keeps it.",
    "chain": "A chain passes it on, to the last unit.",
    "orthogonal": "An orthogonal matrix spreads it.",
}


def draw_pulse(units=12, still=4):
    """A pulse in three linear recurrences, moved by CSS.

    Where motion is unwelcome the picture is that of the step `still`.
    """
    rules, rows = [], []
    for number, (name, matrix) in enumerate(recurrent_matrices(units).items()):
        powers = (np.linalg.matrix_power(matrix, n) for n in range(units + 2))
        states = np.array([power[0] for power in powers])
        y = 24 + 66 * number
        rows.append(f'<text x="4" y="{y + 5}">{name}</text>')
        note = f'<text class="note" x="92" y="{y + 30}">{NOTES[name]}</text>'
        rows.append(note)
        for unit, values in enumerate(states.T):
            circle = f'<circle cx="{105 + 30 * unit}" cy="{y}" r="12" class='
            rows.append(f'{circle}"unit"/>')
            if np.abs(values).max() > 1e-9:
                fill, opacity = _look(values[still])
                look = f'fill="{fill}" fill-opacity="{opacity}"'
                rows.append(f'{circle}"{name[0]}{unit}" {look}/>')
            if np.ptp(values) > 1e-9:
                rules.append(_keyframes(f"{name[0]}{unit}", values))
    rules, rows = "".join(rules), "\n".join(rows)
    return PULSE.format(height=66 * len(NOTES) + 4, rules=rules, rows=rows)


def _look(value):
    return (POSITIVE if value >= 0 else NEGATIVE), round(min(1, abs(value)), 2)


def _keyframes(key, values, seconds=0.7):
    """A rule that holds the value of each step for most of its time."""
    frames, steps = [], len(values)
    for step, value in enumerate(values):
        fill, opacity = _look(value)
        look = f"{{fill:{fill};fill-opacity:{opacity}}}"
        begin, end = (100 * (step + part) / steps for part in (0.0, 0.7))
        frames.append(f"{begin:.1f}%,{end:.1f}%{look}")
    return (
        f".{key}{{animation:{key} {seconds * steps:.1f}s infinite}}"
        f"@keyframes {key}{{{''.join(frames)}}}"
    )


def draw_cube(updates=1_000):
    """Fixed points of a RIN that remembers three bits, at its outputs."""
    keras.utils.set_random_seed(0)
    rng = np.random.default_rng(0)
    layer, read_out = RIN(24, "tanh", return_sequences=True), Dense(3)
    model = keras.Sequential([keras.Input((40, 3)), layer, read_out])
    rate = keras.optimizers.schedules.CosineDecay(0.005, updates, 0.01)
    optimizer = keras.optimizers.Adam(rate, global_clipnorm=1.0)
    model.compile(optimizer, "mse", jit_compile=True)
    x, y = tasks.flip_flop.generate(rng, updates * 64, 40)
    model.fit(x, y, batch_size=64, verbose=0)
    rng = np.random.default_rng([0, 1])
    x, _ = tasks.flip_flop.generate(rng, 50, 40)
    trajectories = diagnostics.state_trajectories(layer, x)[:, 1:]
    near = rng.permutation(np.concatenate(trajectories))[:400]
    near = near + 0.3 * rng.normal(size=near.shape)
    points = diagnostics.fixed_points(layer, near, x=np.zeros(3))
    options = {"project": read_out, "components": 3}
    figure = plots.plot_fixed_points(points, trajectories[:20], **options)
    (axes,) = figure.axes
    axes.set(xlabel="output 1", ylabel="output 2", zlabel="output 3")
    axes.view_init(elev=22, azim=-58)
    return figure


def draw_sizes():
    """Accuracy over the size of the LiteRT files of the study `exports`."""
    results = ROOT / "studies" / "exports" / "results_formats.json"
    figure, axes = subplots(6.5, 3.8)
    for run in json.loads(results.read_text())["records"]:
        if "LiteRT" not in run["format"]:
            continue
        name = run["format"].removeprefix("LiteRT, ")
        name = name.replace("LiteRT", "float32")
        point = run["bytes"] / 1e3, run["accuracy"]
        axes.plot(*point, "o", color=POSITIVE)
        is_above = "weights" in name or name == "float32"
        shift, angle = ((0, 8), 20) if is_above else ((0, -16), 0)
        style = {"textcoords": "offset points", "rotation": angle}
        axes.annotate(name, point, shift, **style)
    axes.set(xlabel="size of the file (kB)", xlim=(15, 60))
    axes.set(ylabel="accuracy", ylim=(0.55, 1.08))
    title = "int8 weights halve the file, int8 states lose accuracy"
    axes.set_title(title, loc="left")
    return figure


def of_page(page):
    """The function that draws the figure which the code of a page leaves."""
    return lambda: run(page)[1]["figure"]


def run(page):
    """What the code of a page prints, and all its names."""
    text = (ROOT / page).read_text()
    blocks = re.findall(r"```python\n(.*?)```", text, re.S)
    names, printed = {}, io.StringIO()
    with (
        tempfile.TemporaryDirectory() as folder,
        contextlib.chdir(folder),
        contextlib.redirect_stdout(printed),
    ):
        exec("\n".join(blocks), names)  # noqa: S102
    return printed.getvalue(), names


def draw_tutorial():
    """Three pictures of the tutorial; prints what the tutorial prints."""
    printed, names = run("docs/tutorial.md")
    print(printed)
    figure, axes = subplots(6, 4)
    accuracies = names["accuracies"]
    axes.plot(range(1, len(accuracies) + 1), accuracies)
    axes.axhline(0.25, color="grey", linewidth=0.8)
    axes.set(xlabel="time step", ylabel="accuracy", ylim=(0, 1.02))
    axes.set_title("The answer is useful early", loc="left")
    return {
        "gradient_norms": names["norms_figure"],
        "eigenvalues": names["eigenvalues_figure"],
        "accuracy": figure,
    }


def draw_dynamics():
    """The picture of a rate network, which the page about dynamics draws."""
    _, names = run("docs/dynamics.md")
    return {"rates": names["rates"]}


def draw_recurrent_identity():
    """Two pictures of gradients before training."""
    _, names = run("docs/recurrent_identity.md")
    return {"gradients": names["gradients"], "reach": names["reach"]}


PICTURES = {
    "dynamics": draw_dynamics,
    "tasks": draw_tasks,
    "matrices": draw_matrices,
    "regularizer": draw_regularizer,
    "pulse": draw_pulse,
    "sizes": draw_sizes,
    "cube": draw_cube,
    "reach": draw_recurrent_identity,
    "directions": of_page("docs/identity_in_depth.md"),
    "tutorial": draw_tutorial,
}


def write(path, figure):
    """Writes a figure, or the text of an SVG, the same bytes in every run."""
    if not isinstance(figure, str):
        # Text stays text; coordinates have two decimals instead of six.
        options = {"svg.fonttype": "none", "svg.hashsalt": "keras_rin"}
        text = io.StringIO()
        with matplotlib.rc_context(options):
            figure.savefig(text, format="svg", dpi=120, metadata={"Date": None})
        figure = re.sub(r"(\.\d\d)\d+", r"\1", text.getvalue())
    path.write_text(figure)


def main(names):
    for name in names or PICTURES:
        drawn = PICTURES[name]()
        drawn = drawn if isinstance(drawn, dict) else {name: drawn}
        for file, figure in drawn.items():
            write(FOLDER / f"{file}.svg", figure)


if __name__ == "__main__":
    main(sys.argv[1:])
