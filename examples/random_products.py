"""One random matrix again and again, or a new one each time?

    python examples/random_products.py
    python examples/random_products.py --units=50 --draws=100

A linear recurrent network of n steps multiplies by W^n, a feedforward one of n
layers by W_1 ... W_n. Compares their spectral radii for Gaussian matrices, as
drawn and with each divided by its own radius. Writes table.md to --output.
"""

import itertools

import numpy as np
import outputs
from absl import app
from absl import flags
from tqdm import tqdm

from keras_rin.diagnostics import product_versus_power

FLAGS = flags.FLAGS

FACTORS = (1, 2, 5, 10, 20, 50)


def run(normalise, factors, units, draws):
    power, product = product_versus_power(
        units, factors, draws, np.random.default_rng(factors), normalise
    )
    return {
        "normalise": normalise,
        "factors": factors,
        "power": power.tolist(),
        "product": product.tolist(),
    }


def main(argv):
    del argv
    output = outputs.prepare(FLAGS.output)
    units, draws = (5, 3) if FLAGS.smoke else (FLAGS.units, FLAGS.draws)
    cases = list(itertools.product([False, True], FACTORS))
    record = {
        "tables": "random_products",
        "units": units,
        "draws": draws,
        "runs": [run(*case, units, draws) for case in tqdm(cases)],
    }
    outputs.write(output, record, tables)


def tables(record):
    header = ["matrices", "n", "W^n, per step", "product, per step"]
    header += ["ratio", "10 % to 90 %", "W^n larger"]
    rows = [row(run) for run in record["runs"]]
    return {"table.md": outputs.markdown(header, rows)}


def row(run):
    power, product = np.array(run["power"]), np.array(run["product"])
    low, middle, high = np.exp(np.percentile(power - product, [10, 50, 90]))
    return [
        "divided by own radius" if run["normalise"] else "as drawn",
        str(run["factors"]),
        f"{np.exp(power.mean() / run['factors']):.3f}",
        f"{np.exp(product.mean() / run['factors']):.3f}",
        f"{middle:.3g}",
        f"{low:.3g} to {high:.3g}",
        # With one factor the two agree but for rounding.
        f"{(power - product > 1e-9).mean():.0%}",
    ]


if __name__ == "__main__":
    flags.DEFINE_string("output", "runs/random_products", "Where to write.")
    flags.DEFINE_integer("units", 100, "Size of a matrix.", lower_bound=1)
    flags.DEFINE_integer("draws", 200, "Pairs to compare.", lower_bound=1)
    flags.DEFINE_bool("smoke", False, "Three tiny draws: does it run?")
    app.run(main)
