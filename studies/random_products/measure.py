"""Do powers of a random matrix outgrow products of independent ones?

A linear recurrent network of n steps multiplies by W^n, a feedforward one of n
layers by W_1 ... W_n. The spectral radii are those of Gaussian matrices of 100
units, as drawn and with each divided by its own spectral radius, in 200 draws.
The ratio of the two has its median and the 10th to 90th percentile.
"""

import itertools

import numpy as np
from tqdm import tqdm

from engine import record
from keras_rin.diagnostics import product_versus_power

FACTORS = (1, 2, 5, 10, 20, 50)


def measure(units=100, draws=200):
    cases = list(itertools.product([False, True], FACTORS))
    runs = [spectral_radii(*case, units, draws) for case in tqdm(cases)]
    return {"units": units, "draws": draws, "runs": runs}


def spectral_radii(normalise, factors, units, draws):
    """Logarithms of the spectral radii, one of each kind per draw."""
    rng = np.random.default_rng(factors)
    power, product = product_versus_power(
        units, factors, draws, rng, normalize=normalise
    )
    run = {"normalise": normalise, "factors": factors}
    return run | {"power": power.tolist(), "product": product.tolist()}


def tables(results):
    rows = []
    for run in results["runs"]:
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
    return {"Spectral radii": record.markdown(header, rows)}


SMALLEST = {"units": 1, "draws": 1}
