"""Growth of the standard deviation through residual blocks.

    python -m benchmarks.variance_growth

Sends standard normal noise through untrained blocks x + C2(relu(C1 x)) of one
width, without normalization, and writes the standard deviation after each block
over that of the noise to table.md and growth.png in OUTPUT.
"""

import statistics

import keras
import numpy as np
from absl import app
from absl import flags
from absl import logging
from matplotlib.figure import Figure
from tqdm import tqdm

from experiments import results
from keras_rin.initializers import SmallVarianceNormal
from keras_rin.layers import ResidualConv2D

FLAGS = flags.FLAGS
SHOWN = (1, 9, 18, 27)  # the paper's network has nine blocks in each stage


def usual(filters):
    return keras.initializers.RandomNormal(stddev=1 / (3 * filters**0.5))


STARTS = {
    "SmallVarianceNormal, 1 / (k^2 c)": lambda filters: SmallVarianceNormal(),
    "1 / (k sqrt(c))": usual,
    "glorot_uniform": lambda filters: keras.initializers.GlorotUniform(),
    "he_normal": lambda filters: keras.initializers.HeNormal(),
}


def growth(start, filters, blocks, size):
    """Standard deviation after each block, over that of the noise."""
    x = keras.random.normal((4, size, size, filters))
    deviations = [np.std(keras.ops.convert_to_numpy(x))]
    for _ in range(blocks):
        block = ResidualConv2D(
            filters,
            use_bias=False,
            kernel_initializer=STARTS[start](filters),
            output_initializer=STARTS[start](filters),
        )
        x = block(x)
        deviations.append(np.std(keras.ops.convert_to_numpy(x)))
    return [float(one / deviations[0]) for one in deviations[1:]]


def main(argv):
    del argv
    logging.set_verbosity(logging.ERROR)
    output = results.prepare(FLAGS.output)
    keras.utils.set_random_seed(0)
    filters, size = (2, 4) if FLAGS.smoke else (FLAGS.filters, 16)
    records = [
        {
            "start": start,
            "draws": [
                growth(start, filters, max(SHOWN), size)
                for _ in range(FLAGS.draws)
            ],
        }
        for start in tqdm(STARTS)
    ]
    record = {
        "tables": "benchmarks.variance_growth",
        "filters": filters,
        "records": records,
    }
    results.write(output, record, tables)
    results.save_picture(draw(records), output / "growth.png")


def tables(record):
    """Median over the draws, after some of the blocks."""
    header = ["initializer of both kernels"]
    header += [f"block {block}" for block in SHOWN]
    rows = [
        [r["start"]]
        + [
            f"{statistics.median(one[block - 1] for one in r['draws']):,.5g}"
            for block in SHOWN
        ]
        for r in record["records"]
    ]
    return {"table.md": results.markdown(header, rows)}


def draw(records):
    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.subplots()
    for record, style in zip(records, ["-", "--", "-.", ":"], strict=True):
        median = np.median(record["draws"], 0)
        blocks = np.arange(1, len(median) + 1)
        axes.plot(blocks, median, style, label=record["start"])
    axes.set_yscale("log")
    axes.set_xlabel("block")
    axes.set_ylabel("standard deviation (input = 1)")
    axes.legend()
    return figure


if __name__ == "__main__":
    flags.DEFINE_string("output", "docs/results/variance_growth", "Results.")
    flags.DEFINE_bool("smoke", False, "Check with two channels.")
    flags.DEFINE_integer("filters", 64, "Channels of each block.", 1)
    flags.DEFINE_integer("draws", 3, "Draws of noise and kernels.", 1)
    app.run(main)
