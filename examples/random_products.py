"""Compares powers of one random matrix with products of independent ones.

    python random_products.py
    python random_products.py --units=50 --draws=100

A linear recurrent network of n steps multiplies by W^n, a feedforward one of n
layers by W_1 ... W_n. The table has their spectral radii for Gaussian matrices,
as drawn and with each divided by its own spectral radius.
"""

import itertools
import json
import os
import pathlib
import shlex
import sys
from importlib.metadata import version

import numpy as np
from absl import app
from absl import flags
from tabulate import tabulate
from tqdm import tqdm

from keras_rin.diagnostics import product_versus_power

FACTORS = (1, 2, 5, 10, 20, 50)

FLAGS = flags.FLAGS


def measure(normalise, factors):
    """Logarithms of the spectral radii, one of each kind per draw."""
    rng = np.random.default_rng(factors)
    power, product = product_versus_power(
        FLAGS.units, factors, FLAGS.draws, rng, normalize=normalise
    )
    return {
        "normalise": normalise,
        "factors": factors,
        "power": power.tolist(),
        "product": product.tolist(),
    }


def tables(record):
    """{file: table in Markdown}: the ratio has median and 10th to 90th %."""
    rows = []
    for run in record["runs"]:
        power, product = np.array(run["power"]), np.array(run["product"])
        low, middle, high = np.exp(np.percentile(power - product, [10, 50, 90]))
        # With one factor the two differ by rounding.
        larger = (power - product > 1e-9).mean()
        rows.append(
            [
                "divided by own radius" if run["normalise"] else "as drawn",
                run["factors"],
                f"{np.exp(power.mean() / run['factors']):.3f}",
                f"{np.exp(product.mean() / run['factors']):.3f}",
                f"{middle:.3g}",
                f"{low:.3g} to {high:.3g}",
                f"{larger:.0%}",
            ]
        )
    header = ["matrices", "n", "W^n, per step", "product, per step"]
    header += ["ratio", "10 % to 90 %", "W^n larger"]
    return {"table.md": tabulate(rows, header, "github", disable_numparse=True)}


def main(argv):
    if argv[1:]:
        raise app.UsageError(f"Flags begin with --. Received: {argv[1:]}")
    folder = pathlib.Path(FLAGS.output)
    folder.mkdir(parents=True, exist_ok=True)
    cases = list(itertools.product([False, True], FACTORS))
    command = os.path.relpath(__file__), *sys.argv[1:]
    packages = "keras-rin", "numpy"
    record = {
        "tables": "examples.random_products",
        "command": shlex.join(["python", *command]),
        "versions": {name: version(name) for name in packages},
        "runs": [measure(*case) for case in tqdm(cases)],
    }
    (folder / "results.new").write_text(json.dumps(record) + "\n")
    os.replace(folder / "results.new", folder / "results.json")
    for file, table in tables(record).items():
        (folder / file).write_text(table + "\n")
        print(f"\n{folder / file}\n\n{table}")


if __name__ == "__main__":
    flags.DEFINE_string("output", "runs/random_products", "Folder to write to.")
    flags.DEFINE_integer("units", 100, "Size of a matrix.", lower_bound=1)
    flags.DEFINE_integer("draws", 200, "Pairs to compare.", lower_bound=1)
    flags.register_validator("output", str.strip, "Name a folder.")
    app.run(main)
