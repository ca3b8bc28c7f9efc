"""Gradient descent on deep linear networks that start at the identity.

    python examples/deep_linear.py

Learns x -> R x with a stack of LinearResidual layers. Theory says beforehand
how fast positive R are learned, where a negative eigenvalue stalls the
descent, and which rotations are reached. Then the same from the identity and
from Gaussian starts, over depth, each with the best of three rates.
"""

import linear_descent
import numpy as np
import outputs
from absl import app
from absl import flags
from absl import logging
from linear_descent import DONE
from linear_descent import EVERY
from linear_descent import steps_needed
from matplotlib.figure import Figure
from tqdm import tqdm

FLAGS = flags.FLAGS


def symmetric(*eigenvalues):
    gaussian = np.random.default_rng(0).normal(size=[len(eigenvalues)] * 2)
    basis = np.linalg.qr(gaussian)[0]
    return (basis * eigenvalues) @ basis.T


def rotation(degrees):
    c, s = np.cos(np.radians(degrees)), np.sin(np.radians(degrees))
    return np.array([[c, -s], [s, c]]).round(12)


TARGETS = {
    "positive, 0.5 to 2": symmetric(0.5, 1, 2),
    "positive, 0.3 to 3": symmetric(0.3, 1, 3),
    "eigenvalue -0.5": symmetric(-0.5, 1, 1),
    "eigenvalue -1": symmetric(-1, 1, 1),
    **{
        f"rotation by {degrees} degrees": rotation(degrees)
        for degrees in (30, 90, 150, 170, 179, 180)
    },
}


def theory_and_observation(target, curve, depth):
    """Symmetric targets keep their eigenvectors: each eigenvalue by itself."""
    if not np.allclose(target, target.T):
        return "learned", "learned" if curve[-1] < DONE else "not learned"
    eigenvalues = np.linalg.eigvalsh(target)
    negative = eigenvalues[eigenvalues < 0]
    if negative.size:
        return f"loss > {np.sum(negative**2) / 2:.3f}", f"loss {curve[-1]:.3f}"
    rate = linear_descent.stable_rate(target, depth)
    contraction = 1 - rate * depth * eigenvalues[0] ** (2 - 2 / depth)
    late = [loss for loss in curve if DONE < loss < 1e-5]
    ratio = late[-1] / late[0] if late else np.nan
    seen = ratio ** (0.5 / (EVERY * max(len(late) - 1, 1)))
    return f"error x {contraction:.4f} a step", f"error x {seen:.4f} a step"


def best_of_rates(depth, steps, start, seed=0):
    target = symmetric(*np.geomspace(0.5, 2, 10))
    curves = [
        linear_descent.losses(target, depth, steps, start, rate, seed)
        for rate in (1, 0.3, 0.1)
    ]
    counts = map(steps_needed, curves)
    return min((count for count in counts if count), default=None)


def tables(record):
    targets = [
        [name, *run["words"], _count(run["steps"])]
        for name, run in record["targets"].items()
    ]
    starts = [
        [str(run["depth"]), _count(run["identity"]), _range(run["Gaussian"])]
        for run in record["starts"]
    ]
    header = ["target", "theory", "observed", "steps"]
    titles = ["depth", "from the identity", "from a Gaussian start"]
    return {
        "targets.md": outputs.markdown(header, targets),
        "starts.md": outputs.markdown(titles, starts),
    }


def _count(steps):
    return f"{steps:,}" if steps else "not reached"


def _range(counts):
    """Of several draws: the steps of those that got there, and how many."""
    reached = [steps for steps in counts if steps]
    if not reached:
        return f"not reached, 0 of {len(counts)}"
    low, high = map(_count, (min(reached), max(reached)))
    return f"{low} to {high}, {len(reached)} of {len(counts)}"


def draw(curves):
    figure = Figure(figsize=(8, 4), layout="constrained")
    axes = figure.subplots()
    for name, curve in curves.items():
        steps = EVERY * np.arange(1, len(curve) + 1)
        style = "--" if name.startswith("rotation") else "-"
        axes.loglog(steps, curve, style, label=name)
    axes.set_xlabel("step")
    axes.set_ylabel("loss")
    figure.legend(loc="outside right upper", fontsize="small")
    return figure


def main(argv):
    del argv
    logging.set_verbosity(logging.ERROR)
    output = outputs.prepare(FLAGS.output)
    depth, steps, depths = FLAGS.depth, FLAGS.steps, FLAGS.depths
    chosen = list(TARGETS.items())
    if FLAGS.smoke:
        steps, depths, chosen = 4 * EVERY, depths[:1], chosen[:3]
    curves, targets, starts = {}, {}, []
    for name, target in tqdm(chosen):
        curve = curves[name] = linear_descent.losses(target, depth, steps)
        words = theory_and_observation(target, curve, depth)
        targets[name] = {"words": words, "steps": steps_needed(curve)}
    for layers in tqdm(depths):
        starts.append(
            {
                "depth": layers,
                "identity": best_of_rates(layers, steps, "identity"),
                "Gaussian": [
                    best_of_rates(layers, steps, "Gaussian", seed)
                    for seed in FLAGS.seed
                ],
            }
        )
    record = {"tables": "deep_linear", "targets": targets, "starts": starts}
    outputs.write(output, record, tables)
    outputs.save_picture(draw(curves), output / "losses.png")


if __name__ == "__main__":
    flags.DEFINE_string("output", "runs/deep_linear", "Where to write.")
    flags.DEFINE_integer("depth", 20, "Layers for each target.", lower_bound=3)
    flags.DEFINE_multi_integer("depths", [2, 4, 8, 16, 32, 64], "To compare.")
    flags.DEFINE_integer("steps", 1_500, "Of descent, at most.", lower_bound=1)
    flags.DEFINE_multi_integer("seed", [0, 1, 2, 3, 4], "Of a Gaussian start.")
    flags.DEFINE_bool("smoke", False, "Twenty steps: does it run?")
    app.run(main)
