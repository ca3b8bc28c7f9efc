"""What the results of other commands say of a claim.

Each takes the record of a results.json, or computes what it needs, and returns
what was found, in words, and the answers "yes", "no" or "undecided" that its
verdict is made of.
"""

import numpy as np

from benchmarks.claims import verdicts
from keras_rin.constructions import gradient_lower_bound
from keras_rin.constructions import near_identity_factors

FILE = "benchmarks/claims/findings.py"


def powers_outgrow_products(record):
    return _power_over_product(record, normalise=False)


def own_radius_ends_it(record):
    found, (grows,) = _power_over_product(record, normalise=True)
    return found, ["no" if grows == "yes" else "yes"]


def _power_over_product(record, normalise):
    (run,) = (
        run
        for run in record["runs"]
        if run["factors"] == 50 and run["normalise"] == normalise
    )
    logs = np.subtract(run["power"], run["product"])
    low, high = np.exp(verdicts.interval(np.median, logs))
    found = f"50 factors: x {np.exp(np.median(logs)):.3g} ({low:.3g} to "
    return f"{found}{high:.3g})", ["yes" if low > 1 else "no"]


def chain_holds_the_signal(record):
    """Share of variance of the first signal, read from the last state."""
    accuracy = {
        (run["network"], run["seed"]): run["accuracy"]["linear, noise"]
        for run in record["networks"]
    }
    seeds = sorted({seed for _, seed in accuracy})
    return _more(
        [accuracy["chain", seed] for seed in seeds],
        [accuracy["orthogonal", seed] for seed in seeds],
    )


def training_ends_normality(record):
    return _more(
        [run["after"]["Henrici departure"] for run in record["runs"]],
        [run["before"]["Henrici departure"] for run in record["runs"]],
    )


def training_hides_a_chain(record):
    """Weight to the next unit against that to the unit before, trained."""
    after = [run["after"] for run in record["runs"]]
    return _more(
        [run["mean weight to the next unit"] for run in after],
        [run["mean weight to the unit before"] for run in after],
    )


def every_start_leaves_normality(record):
    """Of each start at its best rates, over all tasks and seeds."""
    changes = {}
    contenders = verdicts.outcomes(record["protocol"], record["runs"])
    for contender, outcome in contenders.items():
        start = changes.setdefault(dict(contender)["layer"], ([], []))
        for values, more in zip(
            start, outcome.departures.get("recurrent", ([], [])), strict=True
        ):
            values += more
    found = {
        start: _more(after, before)
        for start, (before, after) in changes.items()
    }
    words = [f"{start} {words}" for start, (words, _) in found.items()]
    answers = [answer for _, (answer,) in found.values()]
    return "<br>".join(words), answers


def noise_widens_the_lead_of_a_chain(record):
    """Of a chain over an orthogonal start, most noise against none."""
    contenders = verdicts.outcomes(record["protocol"], record["runs"])

    def leads(noise):
        chain, orthogonal = (
            contenders[verdicts.contender({"start": start, "noise": noise})]
            for start in ("chain", "orthogonal")
        )
        seeds = record["protocol"]["seeds"]
        return [orthogonal.scores[s] - chain.scores[s] for s in seeds]

    levels = record["protocol"]["grid"][0]["noise"]
    return _more(leads(max(levels)), leads(min(levels)))


def _more(ones, others):
    differences = np.subtract(ones, others)
    low, high = verdicts.interval(np.mean, differences)
    found = f"{differences.mean():+.2g} ({low:.2g} to {high:.2g})"
    if low <= 0 <= high:
        return found, ["undecided"]
    return found, ["yes" if low > 0 else "no"]


def learns_at_every_length(record):
    """Solved, diverged and normalized loss at the best rate, by length."""
    found, answers = [], []
    contenders = verdicts.outcomes(record["protocol"], record["runs"])
    for contender, outcome in contenders.items():
        solved, count = verdicts.learned(outcome.best), len(outcome.best)
        diverged = verdicts.diverged(outcome.best)
        found.append(
            f"{dict(contender)['length']:,} steps: {solved} of {count} solved, "
            f"{diverged} diverged, median loss {outcome.median:.2g}"
        )
        answers.append("yes" if solved == count else "no")
    return "<br>".join(found), answers


def small_variance_keeps_size(record):
    growth = {
        run["start"]: [draw[-1] for draw in run["draws"]]
        for run in record["records"]
    }
    (small,) = (v for k, v in growth.items() if k.startswith("SmallVariance"))
    (usual,) = (v for k, v in growth.items() if k == "he_normal")
    found = f"after 27 blocks x {np.median(small):.3g}"
    found += f", he_normal x {np.median(usual):.2g}"
    return found, ["yes" if max(small) < 2 < min(usual) else "no"]


def identity_start_learns_deep(record):
    deepest = record["starts"][-1]
    identity, gaussian = deepest["identity"], deepest["Gaussian"]
    reached = [steps for steps in gaussian if steps is not None]
    found = f"depth {deepest['depth']}: {_steps(identity)} from the identity, "
    found += f"{len(reached)} of {len(gaussian)} Gaussian starts got there"
    yes = identity is not None and all(steps > identity for steps in reached)
    return found, ["yes" if yes else "no"]


def _steps(steps):
    return "not reached" if steps is None else f"{steps} steps"


def factors_are_small(record):
    """Norms of the factors, over what theorem 2.1 allows, of random targets."""
    depth, shares = 64, []
    for seed in range(5):
        target = np.random.default_rng(seed).normal(size=(16, 16))
        target[0] *= np.sign(np.linalg.det(target))
        factors = near_identity_factors(target, depth)
        stretch = np.linalg.svd(target, compute_uv=False)
        gamma = np.abs(np.log(stretch[[0, -1]])).max()
        largest = np.linalg.norm(factors, 2, axis=(1, 2)).max()
        shares.append(largest * depth / (4 * np.pi + 3 * gamma))
    found = f"at most {max(shares):.2f} of the bound, 16 x 16, 64 factors"
    return found, ["yes" if max(shares) <= 1 else "no"]


def gradient_bound_as_printed(record):
    """At A_i = -I / 2 with a target of 0, where all is a multiple of I."""
    depth, units, tau = 5, 6, 0.5
    excess = units * tau ** (2 * depth)
    slope = depth * units * (2 * tau ** (2 * depth - 1)) ** 2
    printed = 4 * depth * (1 - tau) ** (depth - 1) * excess
    factors = np.tile(-np.eye(units) / 2, (depth, 1, 1))
    corrected = gradient_lower_bound(factors, np.zeros((units, units)))
    found = f"gradient squared {slope:.2g}, printed bound {printed:.2g}, "
    found += f"corrected {corrected:.2g}"
    return found, ["yes" if slope >= printed else "no"]


def fits_any_labels(record):
    ratios, right = [], []
    for run in record["runs"]:
        n, r = run["points"], run["classes"]
        ratios.append(run["parameters"] / (n * np.log(n) + r**2))
        right += run["accuracy"].values()
    points = max(run["points"] for run in record["runs"])
    found = f"{min(right):.2%} right up to {points:,} points, with "
    found += f"{min(ratios):.2f} to {max(ratios):.2f} times n ln n + r^2"
    return found, ["yes" if min(right) == 1 and max(ratios) < 3 else "no"]


def small_start_trains_better(record):
    """One seed a start is no comparison, whatever came of it."""
    found = ", ".join(
        f"{run['layer']} {run['score']:.3f}" for run in record["runs"]
    )
    return f"{found}, one seed each", ["undecided"]
