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
from engine import verdicts
from keras_rin.diagnostics import spectral_radius

FACTORS = (1, 2, 5, 10, 20, 50)


def measure(units=100, draws=200):
    cases = list(itertools.product([False, True], FACTORS))
    runs = [spectral_radii(*case, units, draws) for case in tqdm(cases)]
    return {"units": units, "draws": draws, "runs": runs}


def spectral_radii(normalise, factors, units, draws):
    """Logarithms of the spectral radii, one of each kind per draw."""
    rng = np.random.default_rng(factors)
    pairs = [log_radii(normalise, factors, units, rng) for _ in range(draws)]
    power, product = np.transpose(pairs).tolist()
    run = {"normalise": normalise, "factors": factors}
    return run | {"power": power, "product": product}


def log_radii(normalise, factors, units, rng):
    """log rho(W_1^n) and log rho(W_1 ... W_n), for matrices drawn in turn."""
    product, log_size = np.eye(units), 0.0
    for factor in range(factors):
        matrix = rng.normal(scale=units**-0.5, size=(units, units))
        if normalise:
            matrix /= spectral_radius(matrix)
        if factor == 0:
            first = matrix
        product = product @ matrix
        # At norm 1, or the product would overflow.
        log_size += np.log(np.linalg.norm(product))
        product /= np.linalg.norm(product)
    power = factors * np.log(spectral_radius(first))
    return power, np.log(spectral_radius(product)) + log_size


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


def power_over_product(results, normalise):
    """The ratio over 50 factors, and the low end of its interval."""
    case = {"factors": 50, "normalise": normalise}
    (run,) = (run for run in results["runs"] if run | case == run)
    logs = np.subtract(run["power"], run["product"])
    low, high = np.exp(verdicts.mean_interval(logs))
    summary = f"ratio {np.exp(np.mean(logs)):.2g} ({low:.2g} to {high:.2g})"
    return low, ("50 factors", summary)


def powers_outgrow_products(results):
    low, measured = power_over_product(results, normalise=False)
    return verdicts.Part(*measured, verdicts.answer(yes=low > 1, no=True))


def own_radius_removes_the_difference(results):
    low, measured = power_over_product(results, normalise=True)
    return verdicts.Part(*measured, verdicts.answer(yes=low <= 1, no=True))
