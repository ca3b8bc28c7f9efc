"""Trains deep linear networks by gradient descent from the identity.

    python deep_linear.py

A stack of LinearResidual layers learns x -> R x: full-batch descent on
|(I + A_L) ... (I + A_1) - R|^2 / 2. Theory predicts how fast positive R are
learned, where a negative eigenvalue stalls the descent, and which rotations
are reached. Then identity and Gaussian initialization are compared over depth,
each with the best of three learning rates.
"""

import json
import os
import pathlib
import shlex
import sys
from importlib.metadata import version

import keras
import numpy as np
from absl import app
from absl import flags
from matplotlib.figure import Figure
from tabulate import tabulate
from tqdm import tqdm

from keras_rin.layers import LinearResidual

SOLVED = 1e-10  # a loss below counts as learned
EVERY = 5  # steps between two looks at the loss

FLAGS = flags.FLAGS


def symmetric(*eigenvalues):
    n = len(eigenvalues)
    basis = np.linalg.qr(np.random.default_rng(0).normal(size=(n, n))).Q
    return (basis * eigenvalues) @ basis.T


def rotation(degrees):
    c, s = np.cos(np.radians(degrees)), np.sin(np.radians(degrees))
    return np.array([[c, -s], [s, c]]).round(12)


TARGETS = {
    "positive, 0.5 to 2": symmetric(0.5, 1, 2),
    "positive, 0.3 to 3": symmetric(0.3, 1, 3),
    "eigenvalue -0.5": symmetric(-0.5, 1, 1),
    "eigenvalue -1": symmetric(-1, 1, 1),
}
for degrees in (30, 90, 150, 170, 179, 180):
    TARGETS[f"rotation by {degrees} degrees"] = rotation(degrees)


class Losses(keras.callbacks.Callback):
    """The loss every few steps, until it is small or diverges."""

    def __init__(self, x, y):
        super().__init__()
        self.x, self.y, self.losses = x, y, []

    def on_train_batch_end(self, batch, logs=None):
        error = keras.ops.convert_to_numpy(self.model(self.x)) - self.y
        self.losses.append(float(np.sum(np.float64(error) ** 2) / 2))
        if not SOLVED <= self.losses[-1] < 1e6:
            self.model.stop_training = True


def half_square(y, prediction):
    return keras.ops.sum(keras.ops.square(y - prediction)) / 2


def stable_rate(target, depth):
    """1 / (L max(1, |R|)^(2 - 2/L)), within what the curvature allows."""
    largest = max(1.0, np.linalg.norm(target, 2))
    return 1 / (depth * largest ** (2 - 2 / depth))


def train(target, depth, identity=True, rate=1.0, seed=0):
    """The losses of a descent; `rate` is in units of `stable_rate`."""
    keras.utils.set_random_seed(seed)
    size = len(target)
    model = keras.Sequential([keras.Input((size,))])
    for _ in range(depth):
        gaussian = keras.initializers.RandomNormal(stddev=size**-0.5)
        dense = keras.layers.Dense(
            size, use_bias=False, kernel_initializer=gaussian
        )
        model.add(LinearResidual() if identity else dense)
    optimizer = keras.optimizers.SGD(rate * stable_rate(target, depth))
    model.compile(optimizer, half_square, steps_per_execution=EVERY)
    x, y = np.eye(size, dtype="float32"), target.T.astype("float32")
    watch = Losses(x, y)
    model.fit(
        np.tile(x, (FLAGS.steps, 1)),  # one batch holds all of the data
        np.tile(y, (FLAGS.steps, 1)),
        batch_size=size,
        shuffle=False,
        callbacks=[watch],
        verbose=0,
    )
    return watch.losses


def steps_needed(losses):
    return EVERY * len(losses) if losses and losses[-1] < SOLVED else None


def best_of_rates(depth, identity, seed=0):
    target = symmetric(*np.geomspace(0.5, 2, 10))
    counts = [
        steps_needed(train(target, depth, identity, rate, seed))
        for rate in (1, 0.3, 0.1)
    ]
    return min((count for count in counts if count), default=None)


def theory_and_observation(target, losses, depth):
    """Symmetric targets keep their eigenvectors: each eigenvalue by itself."""
    if not np.allclose(target, target.T):
        return "learned", "learned" if losses[-1] < SOLVED else "not learned"
    eigenvalues = np.linalg.eigvalsh(target)
    negative = eigenvalues[eigenvalues < 0]
    if negative.size:
        return f"loss > {np.sum(negative**2) / 2:.3f}", f"loss {losses[-1]:.3f}"
    rate = stable_rate(target, depth)
    contraction = 1 - rate * depth * eigenvalues[0] ** (2 - 2 / depth)
    late = [loss for loss in losses if SOLVED < loss < 1e-5]
    ratio = late[-1] / late[0] if late else np.nan
    seen = ratio ** (0.5 / (EVERY * max(len(late) - 1, 1)))
    return f"error x {contraction:.4f} a step", f"error x {seen:.4f} a step"


def tables(record):
    """{file: table in Markdown}: steps to a loss below 1e-10."""

    def count(steps):
        return f"{steps:,}" if steps else "not reached"

    targets = [
        [name, *run["words"], count(run["steps"])]
        for name, run in record["targets"].items()
    ]
    depths = []
    for run in record["starts"]:
        reached = [steps for steps in run["Gaussian"] if steps]
        ends = f"{min(reached):,} to {max(reached):,}" if reached else count(0)
        text = f"{ends}, {len(reached)} of {len(run['Gaussian'])}"
        depths.append([run["depth"], count(run["identity"]), text])
    header = ["target", "theory", "observed", "steps"]
    titles = ["depth", "identity initialization", "Gaussian initialization"]
    plain = {"tablefmt": "github", "disable_numparse": True}
    return {
        "targets.md": tabulate(targets, header, **plain),
        "starts.md": tabulate(depths, titles, **plain),
    }


def draw(curves):
    figure = Figure(figsize=(8, 4), layout="constrained")
    axes = figure.subplots()
    # Each line has a style and a final marker of its own, also in grey.
    for n, (name, losses) in enumerate(curves.items()):
        steps = EVERY * np.arange(1, len(losses) + 1)
        style = ["-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1))][n % 5]
        axes.loglog(
            steps,
            np.maximum(losses, 1e-15),
            linestyle=style,
            marker="osv^DPX*<>"[n % 10],
            markevery=[-1],
            label=name,
        )
    axes.set(xlabel="step", ylabel="loss")
    figure.legend(loc="outside right upper", fontsize="small")
    return figure


def main(argv):
    if argv[1:]:
        raise app.UsageError(f"Flags begin with --. Received: {argv[1:]}")
    folder = pathlib.Path(FLAGS.output)
    folder.mkdir(parents=True, exist_ok=True)
    curves, targets = {}, {}
    for name in tqdm(FLAGS.targets):
        losses = curves[name] = train(TARGETS[name], FLAGS.depth)
        words = theory_and_observation(TARGETS[name], losses, FLAGS.depth)
        targets[name] = {"words": words, "steps": steps_needed(losses)}
    starts = [
        {
            "depth": depth,
            "identity": best_of_rates(depth, True),
            "Gaussian": [best_of_rates(depth, False, s) for s in FLAGS.seed],
        }
        for depth in tqdm(FLAGS.depths)
    ]
    command = os.path.relpath(__file__), *sys.argv[1:]
    packages = "keras-rin", "keras", keras.backend.backend()
    record = {
        "tables": "examples.deep_linear",
        "command": shlex.join(["python", *command]),
        "versions": {name: version(name) for name in packages},
        "targets": targets,
        "starts": starts,
    }
    (folder / "results.new").write_text(json.dumps(record) + "\n")
    os.replace(folder / "results.new", folder / "results.json")
    for file, table in tables(record).items():
        (folder / file).write_text(table + "\n")
        print(f"\n{folder / file}\n\n{table}")
    draw(curves).savefig(folder / "losses.png", dpi=120)


if __name__ == "__main__":
    names = list(TARGETS)
    flags.DEFINE_string("output", "runs/deep_linear", "Folder to write to.")
    flags.DEFINE_integer("depth", 20, "Layers for each target.", lower_bound=3)
    flags.DEFINE_multi_enum("targets", names, names, "Targets to learn.")
    flags.DEFINE_multi_integer(
        "depths", [2, 4, 8, 16, 32, 64], "To compare.", 1
    )
    flags.DEFINE_integer("steps", 1_500, "Updates, at most.", lower_bound=1)
    flags.DEFINE_multi_integer(
        "seed", [0, 1, 2, 3, 4], "Gaussian draws.", 0, 2**32 - 1
    )
    flags.register_validator("output", str.strip, "Name a folder.")
    for name in ("depths", "seed", "targets"):
        flags.register_validator(
            name, lambda v: len({*v}) == len(v), "Give each value once."
        )
    app.run(main)
