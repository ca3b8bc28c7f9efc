"""Which linear maps does gradient descent from the identity learn?

A stack of `LinearResidual` layers learns x -> R x by full-batch descent on
|(I + A_L) ... (I + A_1) - R|^2 / 2. Theory predicts how fast positive R are
learned, where a negative eigenvalue stalls the descent, and which rotations
are reached. Then identity and Gaussian initialization are compared over depth,
each with the best of three learning rates. A target is learned at a loss below
1e-10; 1,500 steps are made at most. *Zero last layer*: all layers but the last
begin as the identity, and that as the zero map (`Offset("zeros")`).
"""

import keras
import numpy as np
from tqdm import tqdm

from engine import pictures
from engine import record
from engine import verdicts
from engine.measurement import Variant
from keras_rin.initializers import Offset
from keras_rin.layers import LinearResidual

SOLVED = 1e-10
DEPTHS = 2, 4, 8, 16, 32, 64
EVERY = 5  # steps between two looks at the loss


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
} | {
    f"rotation by {degrees} degrees": rotation(degrees)
    for degrees in (30, 90, 150, 170, 179, 180)
}


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


def losses_of_descent(
    target, depth, steps, identity=True, rate=1.0, seed=0, last="identity"
):
    """The losses of a descent; `rate` is in units of `stable_rate`.

    With `identity` the last layer begins as the map `last`.
    """
    keras.utils.set_random_seed(seed)
    size = len(target)
    model = keras.Sequential([keras.Input((size,))])
    for layer in range(depth):
        gaussian = keras.initializers.RandomNormal(stddev=size**-0.5)
        options = {"use_bias": False, "kernel_initializer": gaussian}
        dense = keras.layers.Dense(size, **options)
        offset = Offset(last if layer == depth - 1 else "identity")
        model.add(LinearResidual(offset) if identity else dense)
    optimizer = keras.optimizers.SGD(rate * stable_rate(target, depth))
    model.compile(optimizer, half_square, steps_per_execution=EVERY)
    x, y = np.eye(size, dtype="float32"), target.T.astype("float32")
    watch = Losses(x, y)
    # One batch holds all of the data.
    x, y = (np.tile(rows, (steps, 1)) for rows in (x, y))
    model.fit(x, y, size, shuffle=False, callbacks=[watch], verbose=0)
    return watch.losses


def steps_needed(losses):
    return EVERY * len(losses) if losses and losses[-1] < SOLVED else None


def fewest_steps(depth, steps, identity, seed=0):
    """Steps needed at the best of three learning rates."""
    target = symmetric(*np.geomspace(0.5, 2, 10))
    descents = (
        losses_of_descent(target, depth, steps, identity, rate, seed)
        for rate in (1, 0.3, 0.1)
    )
    return min(filter(None, map(steps_needed, descents)), default=None)


def theory_and_observation(target, losses, depth, last):
    """Symmetric targets keep their eigenvectors: each eigenvalue by itself.

    From a zero last layer any target is learned.
    """
    if last == "zeros" or not np.allclose(target, target.T):
        return "learned", "learned" if losses[-1] < SOLVED else "not learned"
    eigenvalues = np.linalg.eigvalsh(target)
    negative = eigenvalues[eigenvalues < 0]
    if negative.size:
        return f"loss > {np.sum(negative**2) / 2:.3f}", f"loss {losses[-1]:.3f}"
    rate = stable_rate(target, depth)
    contraction = 1 - rate * depth * eigenvalues[0] ** (2 - 2 / depth)
    late = [loss for loss in losses if SOLVED < loss < 1e-5]
    ratio = late[-1] / late[0] if late else np.nan
    observed = ratio ** (0.5 / (EVERY * max(len(late) - 1, 1)))
    return tuple(f"error x {f:.4f} a step" for f in (contraction, observed))


def measure(
    depth=20,
    names=tuple(TARGETS),
    depths=DEPTHS,
    steps=1_500,
    seeds=range(5),
    last="identity",
):
    targets = {name: descend(name, depth, steps, last) for name in tqdm(names)}
    starts = [
        {
            "depth": n,
            "identity": fewest_steps(n, steps, True),
            "Gaussian": [fewest_steps(n, steps, False, seed) for seed in seeds],
        }
        for n in tqdm(depths)
    ]
    return {"targets": targets, "starts": starts}


def descend(name, depth, steps, last):
    target = TARGETS[name]
    losses = losses_of_descent(target, depth, steps, last=last)
    return {
        "words": theory_and_observation(target, losses, depth, last),
        "steps": steps_needed(losses),
        "losses": [float(f"{loss:.4g}") for loss in losses],
    }


def tables(results):
    targets = [
        [name, *run["words"], step_count(run["steps"])]
        for name, run in results["targets"].items()
    ]
    rows = []
    for run in results["starts"]:
        solved = [steps for steps in run["Gaussian"] if steps]
        count = f"{len(solved)} of {len(run['Gaussian'])}"
        steps = step_count(None)
        if solved:
            steps = f"{min(solved):,} to {max(solved):,}"
        identity = step_count(run["identity"])
        rows.append([run["depth"], identity, f"{steps}, {count}"])
    header = ["target", "theory", "observed", "steps"]
    titles = ["depth", "identity initialization", "Gaussian initialization"]
    captions = {
        "20 layers, by target": record.markdown(header, targets, words=3)
    }
    if rows:
        table = record.markdown(titles, rows)
        captions["Steps to a loss below 1e-10, by depth"] = table
    return captions


def step_count(steps):
    return f"{steps:,}" if steps else "not reached"


def draw(results):
    """Losses over steps, target by target."""
    if not results["starts"]:
        return None  # all targets are learned
    figure, axes = pictures.subplots(6, 5)
    # Each line has a final marker of its own, also in grey.
    for marker, (name, run) in zip(
        "osv^DPX*<>", results["targets"].items(), strict=False
    ):
        losses = np.maximum(run["losses"], 1e-15)
        counts = EVERY * np.arange(1, len(losses) + 1)
        style = {"marker": marker, "markevery": [-1], "label": name}
        axes.loglog(counts, losses, **style)
    axes.set(xlabel="step", ylabel="loss")
    title = "A negative eigenvalue or half a turn is not learned"
    axes.set_title(title, loc="left")
    figure.legend(loc="outside lower center", fontsize="small", ncols=2)
    return figure


VARIANTS = {
    "": Variant(),
    "zero_last": Variant("Zero last layer", {"last": "zeros", "depths": ()}),
}
PICTURES = {"losses.svg": draw}
SMALLEST = {"depth": 3, "depths": (1, 2), "steps": 60, "seeds": (0,)}
SMALLEST["names"] = ("eigenvalue -0.5", "rotation by 30 degrees")


def identity_initialization_trains_deep(results):
    deepest = results["starts"][-1]
    identity, gaussian = deepest["identity"], deepest["Gaussian"]
    reached = [steps for steps in gaussian if steps is not None]
    steps = "not reached" if identity is None else f"{identity} steps"
    summary = f"identity {steps}, "
    summary += f"Gaussian {len(reached)} of {len(gaussian)} runs solved"
    yes = identity is not None and all(steps > identity for steps in reached)
    answer = verdicts.answer(yes, not yes)
    return verdicts.Part(f"depth {deepest['depth']}", summary, answer)
