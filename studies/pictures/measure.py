"""What do tasks, recurrent matrices and fixed points look like?

The pictures of the guides that show an idea, not a comparison. Tasks are drawn
from a generator with seed 0. Matrices have 8 units, the pulse travels through
12. The fixed points are those of a RIN with tanh that is trained on the
flip-flop task ([fixed points](../fixed_points/README.md)), here with seed 0, at
the outputs that the read-out gives for them. Sizes and accuracies are those of
[exports](../exports/README.md).
"""

import itertools

import keras
import numpy as np
from fixed_points import measure as fixed_points
from matplotlib.figure import Figure
from pictures import pulse
from sklearn.datasets import load_digits
from sktime.datasets import load_basic_motions

from engine import pictures
from engine import record
from engine.pictures import NEGATIVE
from engine.pictures import POSITIVE
from keras_rin import tasks

GREY = "#7f7f7f"


def measure(updates=1_000):
    points, outputs = flip_flop_points(updates)
    counts = {
        "stable": int(points.stable.sum()),
        "saddles on edges": int((points.expanding == 1).sum()),
        "saddles on faces": int((points.expanding == 2).sum()),
        "other": int((points.expanding > 2).sum()),
    }
    cube = draw_cube(points, outputs)
    return {"points": counts, "figures": {"cube.svg": cube}}


def tables(results):
    rows = results["points"].items()
    return {"Fixed points": record.markdown(["points", "number"], rows)}


def recurrent_matrices(units):
    rng = np.random.default_rng(0)
    return {
        "identity": np.eye(units),
        "chain": np.eye(units, k=1),
        "orthogonal": np.linalg.qr(rng.normal(size=(units, units))).Q,
    }


def draw_tasks(results):
    """Inputs of five tasks over time."""
    figure, panels = pictures.subplots(7, 9.5, 5, height_ratios=[2, 2, 3, 2, 3])
    rng = np.random.default_rng(0)
    draw = [_draw_adding, _draw_copying, _draw_flip_flop]
    draw += [_draw_pixels, _draw_motion]
    for axes, draw_task in zip(panels, draw, strict=True):
        axes.set_title(draw_task(axes, rng), loc="left")
        axes.spines[["top", "right"]].set_visible(False)
        axes.set_xlabel("time step")
    return figure


def _draw_adding(axes, rng):
    x, y = tasks.adding.generate(rng, 1, 40)
    numbers, marks = x[0].T
    (marked,) = np.nonzero(marks)
    axes.vlines(range(40), 0, numbers, color=GREY, linewidth=3)
    axes.vlines(marked, 0, numbers[marked], color=POSITIVE, linewidth=5)
    axes.set_ylabel("number")
    first, second = numbers[marked]
    answer = f"{first:.2f} + {second:.2f} = {y[0, 0]:.2f}"
    return f"adding: the sum of the marked numbers, {answer}"


def _draw_copying(axes, rng):
    x, y = tasks.copying.generate(rng, 1, 40, copied=5, symbols=4)
    style = {"ha": "center", "va": "center", "color": POSITIVE}
    for row, symbols in ((1, x[0].argmax(axis=1)), (0, y[0])):
        axes.plot(range(40), [row] * 40, ".", color=GREY, markersize=2)
        for step in np.flatnonzero(symbols):
            axes.text(step, row, "ABCD?"[symbols[step] - 1], **style)
    axes.set(yticks=[0, 1], yticklabels=["answer", "input"], ylim=(-0.6, 1.6))
    return "copying: say the symbols again after the cue"


def _draw_flip_flop(axes, rng):
    x, y = tasks.flip_flop.generate(rng, 1, 60, 3, pulse_probability=0.08)
    for bit in range(3):
        middle = 3 * (2 - bit)
        axes.step(range(60), middle + y[0, :, bit], where="mid", color=POSITIVE)
        pulses = np.flatnonzero(x[0, :, bit])
        heights = middle + x[0, pulses, bit]
        axes.vlines(pulses, middle, heights, color=GREY, linewidth=3)
    bits = [f"bit {bit + 1}" for bit in range(3)]
    axes.set(yticks=[6, 3, 0], yticklabels=bits)
    return "flip-flop: the sign of the latest pulse of a bit"


def _draw_pixels(axes, rng):
    image = load_digits().images[2]
    strip = tasks.sequential_pixels.generate(image[None])[0].T
    axes.imshow(strip, cmap="Greys", aspect="auto", extent=(0, 64, 0, 1))
    small = axes.inset_axes([0.86, 1.05, 0.14, 0.9])
    small.imshow(image, cmap="Greys")
    small.set(xticks=[], yticks=[])
    axes.set(yticks=[])
    return "pixels: which digit, read one pixel a step"


def _draw_motion(axes, rng):
    x, labels = load_basic_motions("train", return_type="numpy3d")
    channels = x[list(labels).index("running")][:3]
    for channel, color in zip(
        channels, (POSITIVE, NEGATIVE, GREY), strict=True
    ):
        axes.plot(channel, color=color, linewidth=1)
    axes.set_ylabel("acceleration")
    return "activity: standing, walking, running, badminton?"


def draw_matrices(results):
    """Identity, chain and orthogonal matrix, each as a matrix and as a graph of
    its units.
    """
    figure, panels = pictures.subplots(7, 5, 2, 3)
    titles = {
        "identity": "identity:\neach unit keeps its value",
        "chain": "chain:\neach unit feeds the next",
        "orthogonal": "orthogonal:\nall units mix, no value is lost",
    }
    columns = zip(panels.T, recurrent_matrices(8).items(), strict=True)
    for (above, below), (name, matrix) in columns:
        _show(above, matrix, titles[name])
        _draw_graph(below, matrix)
    panels[0, 0].set_ylabel("from unit")
    for axes in panels[0]:
        axes.set_xlabel("to unit")
    return figure


def _show(axes, matrix, title):
    axes.imshow(matrix, cmap="RdBu", vmin=-1, vmax=1)
    axes.set(xticks=[], yticks=[])
    axes.set_title(title, fontsize="medium")


def _draw_graph(axes, matrix):
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
            axes.annotate(
                "", places[receiver], places[sender], arrowprops=style
            )
    axes.plot(*places.T, "o", color=GREY, markersize=8)
    axes.set(xlim=(-1.6, 1.6), ylim=(-1.6, 1.6), aspect="equal")
    axes.axis("off")


def draw_pulse(results):
    """A pulse in the hidden state of an identity, a chain and an orthogonal
    recurrence, step by step.
    """
    return pulse.animation(recurrent_matrices(12))


def draw_regularizer(results):
    """Effective matrix V under L2 on U and under L2 on V."""
    units, shrink = 8, 0.98
    rng = np.random.default_rng(0)
    offset = 0.5 * rng.normal(size=(units, units)) / np.sqrt(units)
    figure, panels = pictures.subplots(7, 4.6, 2, 4)
    for column, updates in enumerate((0, 25, 50, 200)):
        factor = shrink**updates
        on_u = np.eye(units) + factor * offset
        on_v = factor * (np.eye(units) + offset)
        for axes, matrix in zip(panels[:, column], (on_u, on_v), strict=True):
            _show(axes, matrix, f"after {updates} updates")
    for axes, weights in zip(panels[:, 0], "UV", strict=True):
        axes.set_ylabel(f"L2 on {weights}")
    figure.suptitle("L2 on U leads V to the identity, L2 on V to zero")
    return figure


def flip_flop_points(updates):
    """Fixed points of a RIN, and the outputs of the model at them."""
    model, _ = fixed_points.train("RIN, tanh", 0, updates)
    layer, read_out = model.layers
    _, points, _ = fixed_points.analyse(layer, 0)
    states = points.states[:, : fixed_points.UNITS]
    return points, keras.ops.convert_to_numpy(read_out(states))


def draw_cube(points, outputs):
    """Fixed points at the outputs of three bits, and the cube of the bits."""
    figure = Figure(figsize=(6, 5.5), layout="constrained")
    axes = figure.add_subplot(projection="3d", elev=22, azim=-58)
    corners = np.array(list(itertools.product((-1, 1), repeat=3)))
    for edge in itertools.combinations(corners, 2):
        if np.abs(np.subtract(*edge)).sum() == 2:
            axes.plot(*zip(*edge, strict=True), color=GREY, linewidth=1)
    kinds = {
        "stable, at the corners": (points.stable, "o", POSITIVE),
        "saddle, on an edge": (points.expanding == 1, "s", NEGATIVE),
        "saddle, on a face": (points.expanding == 2, "^", NEGATIVE),
    }
    for label, (chosen, marker, color) in kinds.items():
        style = {"color": color, "markersize": 7, "linestyle": "none"}
        style["markerfacecolor"] = color if marker == "o" else "white"
        axes.plot(*outputs[chosen].T, marker, label=label, **style)
    for number, axis in enumerate("xyz", 1):
        axes.set(
            **{f"{axis}label": f"output {number}", f"{axis}ticks": [-1, 0, 1]}
        )
    axes.set_box_aspect(None, zoom=0.85)
    figure.legend(loc="outside lower center", ncols=3)
    return figure


def draw_sizes(results):
    """Accuracy on digits over the size of the LiteRT file."""
    exports = record.read(record.STUDIES / "exports" / "results.json")
    figure, axes = pictures.subplots(6.5, 3.8)
    for run in exports["records"]:
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


PICTURES = {
    "tasks.svg": draw_tasks,
    "matrices.svg": draw_matrices,
    "regularizer.svg": draw_regularizer,
    "pulse.svg": draw_pulse,
    "sizes.svg": draw_sizes,
    "cube.svg": "Fixed points of a network that remembers three bits, at its "
    "three outputs",
}
SMALLEST = {"updates": 20}
