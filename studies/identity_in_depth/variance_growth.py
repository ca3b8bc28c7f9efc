"""Which initializer keeps the scale of activations in a deep residual network?

Standard normal noise passes through 27 untrained blocks x + C2(relu(C1 x)) of
64 channels, without normalization; the network of the paper has nine in each
stage. A cell has the standard deviation behind a block over that of the noise,
the median of three draws.
"""

import statistics

import keras
import numpy as np
from tqdm import tqdm

from engine import pictures
from engine import record
from engine import verdicts
from keras_rin.initializers import SmallVarianceNormal
from keras_rin.layers import ResidualConv2D

SHOWN = (1, 9, 18, 27)
INITIALIZERS = {
    "SmallVarianceNormal, 1 / (k^2 c)": lambda filters: SmallVarianceNormal(),
    "1 / (k sqrt(c))": lambda filters: keras.initializers.RandomNormal(
        stddev=1 / (3 * filters**0.5)
    ),
    "glorot_uniform": lambda filters: keras.initializers.GlorotUniform(),
    "he_normal": lambda filters: keras.initializers.HeNormal(),
}


def measure(filters=64, draws=3):
    keras.utils.set_random_seed(0)
    runs = []
    for name in tqdm(INITIALIZERS):
        growths = [growth(name, filters) for _ in range(draws)]
        runs.append({"initializer": name, "draws": growths})
    return {"filters": filters, "runs": runs}


def growth(name, filters):
    """Standard deviation behind each block, over that of the noise."""
    x = keras.random.normal((4, 16, 16, filters))
    deviations = [np.std(keras.ops.convert_to_numpy(x))]
    for _ in range(max(SHOWN)):
        names = "kernel_initializer", "output_initializer"
        initializers = {key: INITIALIZERS[name](filters) for key in names}
        x = ResidualConv2D(filters, use_bias=False, **initializers)(x)
        deviations.append(np.std(keras.ops.convert_to_numpy(x)))
    return [float(value / deviations[0]) for value in deviations[1:]]


def tables(results):
    rows = []
    for run in results["runs"]:
        blocks = [[draw[block - 1] for draw in run["draws"]] for block in SHOWN]
        medians = [f"{statistics.median(block):,.5g}" for block in blocks]
        rows.append([run["initializer"], *medians])
    header = ["initializer of both kernels", *(f"block {n}" for n in SHOWN)]
    return {"Standard deviation (input = 1)": record.markdown(header, rows)}


def draw(results):
    """Standard deviation behind each block."""
    figure, axes = pictures.subplots(7, 4)
    lines = ["-", "--", "-.", ":"]
    for run, style in zip(results["runs"], lines, strict=True):
        median = np.median(run["draws"], 0)
        blocks = np.arange(1, len(median) + 1)
        axes.plot(blocks, median, style, label=run["initializer"])
    axes.set(xlabel="block", ylabel="standard deviation (input = 1)")
    axes.set_yscale("log")
    axes.legend()
    return figure


PICTURES = {"growth.svg": draw}
SMALLEST = {"filters": 1, "draws": 1}


def small_variance_keeps_size(results):
    small, usual = (
        [draw[-1] for draw in run["draws"]]
        for name in ("SmallVariance", "he_normal")
        for run in results["runs"]
        if run["initializer"].startswith(name)
    )
    summary = f"factor {np.median(small):.2g}"
    summary += f", he_normal {np.median(usual):.2g}"
    yes = max(small) < 2 < min(usual)
    return verdicts.Part("27 blocks", summary, verdicts.answer(yes, not yes))
