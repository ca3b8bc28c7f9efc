"""Which learning rate does a deep residual network need, by the scale of its branches?

A stack of L layers `LinearResidual(kernel_initializer, scale=scale)` of 10
features learns x -> R x for the symmetric R with eigenvalues from 0.5 to 2 of
`linear_maps`. All data are one batch. A run has 50 updates of Adam (`beta_2=0.99,
global_clipnorm=1.0`), warm-up over a twentieth of them and cosine decay from a
rate among 2^-16, 2^-15, ..., 2^1. The kernels are Gaussian, with standard
deviation 1 / features (`SmallVarianceNormal`) or 1 / sqrt(features). A loss is
normalized by that of a constant prediction, 0. The best rate has the lowest
median loss over five seeds. With `scale="rezero"` the scale is trained, from 0.
"""  # noqa: E501

import functools

import keras
import numpy as np
from identity_in_depth.linear_maps import symmetric

from engine import pictures
from engine import record
from engine import verdicts
from engine.many_models import ManyModels
from engine.many_models import initial_weights
from engine.measurement import Variant
from engine.measurement import groups
from engine.partial_runs import PartialRuns
from keras_rin.initializers import SmallVarianceNormal
from keras_rin.layers import LinearResidual

FEATURES = 10
DEPTHS = 4, 8, 16, 32, 64, 128
RATES = tuple(2.0**k for k in range(-16, 2))
SCALES = {
    "1": lambda depth: 1.0,
    "1 / sqrt(L)": lambda depth: depth**-0.5,
    "1 / L": lambda depth: 1 / depth,
    "trained": lambda depth: "rezero",
}
KERNELS = {
    "1 / features": SmallVarianceNormal,
    "1 / sqrt(features)": lambda: keras.initializers.RandomNormal(
        stddev=FEATURES**-0.5
    ),
}


def measure(depths=DEPTHS, rates=RATES, seeds=5, updates=50, partial=None):
    runs = PartialRuns(partial, ("kernel", "scale", "depth"))
    make = functools.partial(train, rates=rates, seeds=seeds, updates=updates)
    keys = [(k, s, depth) for depth in depths for k in KERNELS for s in SCALES]
    return {"rates": rates, "runs": runs.complete(keys, make)}


def train(kernel, scale, depth, rates, seeds, updates):
    """Losses at the end, a row for each rate and a column for each seed."""

    def stack():
        model = keras.Sequential([keras.Input((FEATURES,))])
        for _ in range(depth):
            model.add(
                LinearResidual(KERNELS[kernel](), scale=SCALES[scale](depth))
            )
        return model

    target = symmetric(*np.geomspace(0.5, 2, FEATURES)).astype("float32")
    x = np.eye(FEATURES, dtype="float32")

    def loss(y, outputs):
        error = keras.ops.sum(keras.ops.square(outputs - y))
        return error / np.sum(target**2)

    cases = [(scale, seed) for _ in rates for seed in range(seeds)]
    _, losses = ManyModels(stack(), loss).train(
        initial_weights({scale: stack}, cases),
        {"rate": np.repeat(np.float32(rates), seeds)},
        lambda settings, update: (x, target.T),
        updates,
    )
    last = np.asarray(losses)[:, -1].reshape(len(rates), seeds)
    return {"losses": np.where(np.isfinite(last), last, 1e30).tolist()}


def medians(run):
    """Of the losses of the seeds, for each rate."""
    return np.median(run["losses"], axis=1)


def exponent(rates, runs):
    """The slope of the best rate over depth, both in logarithms."""
    best = [rates[int(np.argmin(medians(run)))] for run in runs]
    depths = [run["depth"] for run in runs]
    return float(np.polyfit(np.log(depths), np.log(best), 1)[0])


def tables(results):
    rates, rows, losses = results["rates"], [], []
    for names, runs in groups(results["runs"], "kernel", "scale").items():
        best = [int(np.argmin(medians(run))) for run in runs]
        lowest = [run_loss(run, i) for run, i in zip(runs, best, strict=True)]
        with_first_rate = run_loss(runs[-1], best[0])
        at_edge = {0, len(rates) - 1}
        cells = [f"{rates[i]:.2g}" + "*" * (i in at_edge) for i in best]
        rows.append([*names, *cells, f"{exponent(rates, runs):.2f}"])
        losses.append([*names, *lowest, with_first_rate])
    depths = [str(run["depth"]) for run in runs]
    header = ["standard deviation", "scale", *depths]
    last = f"{depths[-1]}, best rate of {depths[0]}"
    return {
        "Best learning rate, by depth; a star marks the edge of the grid": (
            record.markdown([*header, "exponent of depth"], rows, words=2)
        ),
        "Normalized loss with the best rate, by depth (median)": (
            record.markdown([*header, last], losses, words=2)
        ),
    }


def run_loss(run, rate):
    loss = medians(run)[rate]
    return "above 1" if loss > 1 else f"{loss:.2g}"


def draw(results):
    """Best learning rate and its loss over depth, by the scale of the branches
    and, left and right, the standard deviation of the kernels.
    """
    options = {"sharex": True, "sharey": "row"}
    figure, axes = pictures.subplots(7, 5.5, 2, 2, **options)
    columns = groups(results["runs"], "kernel")
    for (top, bottom), (kernel, runs) in zip(
        axes.T, columns.items(), strict=True
    ):
        for style, (scale, of_scale) in zip(
            ("o-", "s--", "^-.", "D:"),
            groups(runs, "scale").items(),
            strict=True,
        ):
            depths = [run["depth"] for run in of_scale]
            losses = np.array([medians(run) for run in of_scale])
            best = np.array(results["rates"])[losses.argmin(axis=1)]
            # A loss above the baseline says only that nothing is learned.
            lowest = np.minimum(losses.min(axis=1), 1)
            top.loglog(depths, np.where(lowest < 1, best, np.nan), style)
            bottom.loglog(depths, lowest, style, label=scale)
        top.set_title(f"standard deviation {kernel}", fontsize="medium")
        bottom.set(xlabel="layers L", xticks=depths, xticklabels=depths)
        bottom.minorticks_off()
    axes[0, 0].set(ylabel="best learning rate")
    axes[1, 0].set(ylabel="normalized loss")
    pictures.shared_legend(figure, axes[1, 0])
    return figure


VARIANTS = {"": Variant(backend="jax")}
PICTURES = {"branch_scales.svg": draw}
SMALLEST = {"depths": (1, 2), "rates": (0.01, 0.1), "seeds": 1, "updates": 3}


def best_rate_of_one_over_depth(results):
    runs = groups(results["runs"], "kernel", "scale")
    slopes = [
        exponent(results["rates"], runs[kernel, "1 / L"]) for kernel in KERNELS
    ]
    summary = "best rate falls as depth^" + " and ^".join(
        f"{slope:.2f}" for slope in slopes
    )
    yes = max(map(abs, slopes)) < 0.25
    return part(results, summary, yes)


def trained_scale_trains_deep(results):
    runs = groups(results["runs"], "kernel", "scale")
    losses = {key: medians(of_key[-1]).min() for key, of_key in runs.items()}
    ratios = [losses[k, "trained"] / losses[k, "1"] for k in KERNELS]
    summary = "loss over that of scale 1: " + " and ".join(
        f"{ratio:.2g}" for ratio in ratios
    )
    return part(results, summary, max(ratios) < 0.1)


def part(results, summary, yes):
    depth = results["runs"][-1]["depth"]
    answer = verdicts.answer(yes, not yes)
    return verdicts.Part(f"up to {depth} layers", summary, answer)
