"""Whether claims hold that are no comparison of models.

Each function takes a study or the record of another script, or computes what
it needs, and returns a list of parts: (condition, what was found, answer). The
verdict follows from the answers, "yes", "no" or "inconclusive".
"""

import dataclasses
import inspect

import numpy as np

from experiments import protocols
from experiments import verdicts
from keras_rin.constructions import gradient_lower_bound
from keras_rin.constructions import near_identity_factors

FILE = "experiments/findings.py"


def powers_outgrow_products(record):
    return _power_over_product(record, normalise=False)


def own_radius_removes_the_difference(record):
    ((condition, found, grows),) = _power_over_product(record, normalise=True)
    return [(condition, found, "no" if grows == "yes" else "yes")]


def _power_over_product(record, normalise):
    (run,) = (
        run
        for run in record["runs"]
        if run["factors"] == 50 and run["normalise"] == normalise
    )
    logs = np.subtract(run["power"], run["product"])
    low, high = np.exp(verdicts.mean_interval(logs))
    found = f"ratio {np.exp(np.mean(logs)):.2g} ({low:.2g} to {high:.2g})"
    return [("50 factors", found, "yes" if low > 1 else "no")]


def chain_retains_the_signal(record):
    """R^2 of the first input, decoded from the last hidden state."""
    accuracy = {
        (run["network"], run["seed"]): run["accuracy"]["linear, noise"]
        for run in record["networks"]
    }
    seeds = sorted({seed for _, seed in accuracy})
    return _more(
        [accuracy["chain", seed] for seed in seeds],
        [accuracy["orthogonal", seed] for seed in seeds],
    )


def training_increases_nonnormality(record):
    return _more(
        [run["after"]["Henrici departure"] for run in record["runs"]],
        [run["before"]["Henrici departure"] for run in record["runs"]],
    )


def training_hides_a_chain(record):
    """Mean weights to the next and to the previous unit, after training."""
    after = [run["after"] for run in record["runs"]]
    return _more(
        [run["mean weight to the next unit"] for run in after],
        [run["mean weight to the unit before"] for run in after],
    )


def every_initialization_becomes_nonnormal(study):
    """Of each model at its best learning rates, over all tasks and seeds."""
    changes = {}
    for model, outcome in study.outcomes.items():
        layer = changes.setdefault(dict(model)["layer"], ([], []))
        for values, more in zip(
            layer, outcome.departures.get("recurrent", ([], [])), strict=True
        ):
            values += more
    return [
        part
        for layer, (before, after) in changes.items()
        for part in _more(after, before, layer)
    ]


def noise_increases_the_lead_of_a_chain(study):
    """Chain vs. orthogonal initialization, most noise vs. none."""
    models = study.outcomes

    def leads(noise):
        chain, orthogonal = (
            models[verdicts.model({"layer": layer, "noise": noise})].losses
            for layer in ("chain", "orthogonal")
        )
        return [orthogonal[seed] - chain[seed] for seed in chain]

    levels = {dict(model)["noise"] for model in models}
    return _more(leads(max(levels)), leads(min(levels)))


def _more(ones, others, condition=""):
    differences = np.subtract(ones, others)
    low, high = verdicts.mean_interval(differences)
    found = f"{differences.mean():+.2g} ({low:.2g} to {high:.2g})"
    return [(condition, found, _answer(yes=low > 0, no=high < 0))]


def _answer(yes, no):
    return "yes" if yes else "no" if no else "inconclusive"


def solves_every_length(study, where):
    """Solved, diverged and normalized loss at the best rate, by length."""
    outcomes = {
        dict(model)["length"]: found
        for model, found in study.outcomes.items()
        if protocols.matches(dict(model), where)
    }
    if not outcomes.keys() >= set(where["length"]):
        return []
    parts = []
    for length in where["length"]:
        outcome = outcomes[length]
        solved, count = verdicts.solved(outcome.best), len(outcome.best)
        found = (
            f"{solved} of {count} solved, {verdicts.diverged(outcome.best)} "
            f"diverged, median loss {outcome.median:.2g}"
        )
        answer = "yes" if solved == count else "no"
        parts.append((f"{length:,} steps", found, answer))
    return parts


def lower_over_tasks(study, where):
    """How much lower the errors of the first layer are, task by task.

    Each at its best learning rate, or at that which `where` names for it.
    """
    rates = where.get("learning_rate", [None] * 2)
    one, other = (
        {
            dict(model)["number"]: _at(outcome, rate)
            for model, outcome in study.outcomes.items()
            if dict(model)["layer"] == layer
        }
        for layer, rate in zip(where["layer"], rates, strict=True)
    )
    tasks = one.keys() & other.keys()
    if tasks < {
        run["number"] for run in protocols.all_settings(study.protocol)
    }:
        return []
    accuracies = " vs. ".join(
        f"{np.concatenate([of[t].accuracies for t in tasks]).mean():.1%}"
        for of in (one, other)
    )
    return _more(
        [other[task].median for task in tasks],
        [one[task].median for task in tasks],
        f"{len(tasks)} tasks, mean accuracy {accuracies}",
    )


def _at(outcome, rate):
    """The outcome at a learning rate, at the best one for `None`."""
    if rate is None:
        return outcome
    return dataclasses.replace(outcome, tuned={"learning_rate": rate})


def changes_average_to_zero(study, where, within=0.05):
    """Mean change of the hidden states per step, over its root mean square."""

    def change(outcome):
        key = "estimation_error"
        means = [run[key]["mean"] for run in outcome.best if key in run]
        low, high = verdicts.mean_interval(means)
        answer = _answer(
            yes=-within < low and high < within,
            no=low > within or high < -within,
        )
        return f"{np.mean(means):+.2g} ({low:.2g} to {high:.2g})", answer

    return _of_each(study, where, change)


def reaches_95_percent(study, where):
    """Mean test accuracy at the best learning rate."""

    def accuracy(outcome):
        low, high = verdicts.mean_interval(outcome.accuracies)
        found = f"{np.mean(outcome.accuracies):.1%} ({low:.1%} to {high:.1%})"
        return found, _answer(yes=low >= 0.95, no=high < 0.95)

    return _of_each(study, where, accuracy)


def _of_each(study, where, judge):
    """What is found of each model's outcome, and the answer.

    A model whose runs are missing is listed; no part is, where all are missing.
    """
    parts = []
    for model in protocols.all_models(study.protocol):
        if protocols.matches(model, where):
            condition = model["layer"] + ", permuted" * model.get("permuted", 0)
            outcome = study.outcomes.get(verdicts.model(model))
            judged = judge(outcome) if outcome else ("", verdicts.UNTESTED)
            parts.append((condition, *judged))
    untested = all(answer == verdicts.UNTESTED for *_, answer in parts)
    return [] if untested else parts


def does_not_overfit(study, where):
    """Whether the validation error rises again before training ends."""
    parts = []
    for model, outcome in study.outcomes.items():
        if not protocols.matches(dict(model), where):
            continue
        runs = [run for run in outcome.best if "curve" in run]
        within = study.protocol["within"]
        training = [run["training_curve"][-1] for run in runs]
        rise = [run["curve"][-1] - min(run["curve"]) for run in runs]
        low, high = verdicts.mean_interval(rise)
        found = (
            f"validation error at the end {np.mean(rise):+.2g} ({low:.2g} to "
            f"{high:.2g}) above its lowest; training error "
            f"{np.median(training):.2g}, "
            f"test error {np.median([run['test'] for run in runs]):.2g}"
        )
        answer = _answer(yes=high < within, no=low > within)
        parts.append(("", found, answer))
    return parts


def never_diverges(study, where):
    """Diverged runs of a model, over all hyperparameters and seeds."""
    by_length = {}
    for run in study.runs:
        if protocols.matches(run, where):
            by_length.setdefault(run["length"], []).append(run)
    parts = []
    for length, runs in by_length.items():
        diverged = verdicts.diverged(runs)
        found = f"{diverged} of {len(runs)} runs diverged"
        answer = "no" if diverged else "yes"
        parts.append((f"{length:,} steps", found, answer))
    return parts


def small_variance_keeps_size(record):
    growth = {
        run["initializer"]: [draw[-1] for draw in run["draws"]]
        for run in record["runs"]
    }
    (small,) = (v for k, v in growth.items() if k.startswith("SmallVariance"))
    (usual,) = (v for k, v in growth.items() if k == "he_normal")
    found = f"factor {np.median(small):.2g}"
    found += f", he_normal {np.median(usual):.2g}"
    answer = "yes" if max(small) < 2 < min(usual) else "no"
    return [("27 blocks", found, answer)]


def identity_initialization_trains_deep(record):
    deepest = record["starts"][-1]
    identity, gaussian = deepest["identity"], deepest["Gaussian"]
    reached = [steps for steps in gaussian if steps is not None]
    found = f"identity {_steps(identity)}, "
    found += f"Gaussian {len(reached)} of {len(gaussian)} runs solved"
    yes = identity is not None and all(steps > identity for steps in reached)
    return [(f"depth {deepest['depth']}", found, "yes" if yes else "no")]


def _steps(steps):
    return "not reached" if steps is None else f"{steps} steps"


def factors_are_small(_):
    """Norms of the factors of random targets, over the bound of theorem 2.1."""
    depth, shares = 64, []
    for seed in range(5):
        target = np.random.default_rng(seed).normal(size=(16, 16))
        target[0] *= np.sign(np.linalg.det(target))
        factors = near_identity_factors(target, depth)
        stretch = np.linalg.svd(target, compute_uv=False)
        gamma = np.abs(np.log(stretch[[0, -1]])).max()
        largest = np.linalg.norm(factors, 2, axis=(1, 2)).max()
        shares.append(largest * depth / (4 * np.pi + 3 * gamma))
    found = f"at most {max(shares):.2f} of the bound"
    answer = "yes" if max(shares) <= 1 else "no"
    return [("16 x 16, 64 factors", found, answer)]


def gradient_bound_as_printed(_):
    """At A_i = -I / 2 with a target of 0, where all is a multiple of I."""
    depth, units, tau = 5, 6, 0.5
    excess = units * tau ** (2 * depth)
    slope = depth * units * (2 * tau ** (2 * depth - 1)) ** 2
    printed = 4 * depth * (1 - tau) ** (depth - 1) * excess
    factors = np.tile(-np.eye(units) / 2, (depth, 1, 1))
    corrected = gradient_lower_bound(factors, np.zeros((units, units)))
    found = f"gradient squared {slope:.2g}, printed bound {printed:.2g}, "
    found += f"corrected {corrected:.2g}"
    return [("", found, "yes" if slope >= printed else "no")]


def fits_any_labels(record):
    ratios, accuracies = [], []
    for run in record["runs"]:
        n, r = run["points"], run["classes"]
        ratios.append(run["parameters"] / (n * np.log(n) + r**2))
        accuracies += run["accuracy"].values()
    points = max(run["points"] for run in record["runs"])
    found = f"accuracy {min(accuracies):.2%}, {min(ratios):.2f} to "
    found += f"{max(ratios):.2f} (n ln n + r^2) parameters"
    answer = "yes" if min(accuracies) == 1 and max(ratios) < 3 else "no"
    return [(f"up to {points:,} points", found, answer)]


def small_variance_trains_better(record):
    """With one seed per initializer the comparison is inconclusive."""
    found = ", ".join(
        f"{run['layer']} {run['score']:.3f}" for run in record["runs"]
    )
    return [("1 seed each", f"accuracy of {found}", "inconclusive")]


ALL = {
    name: function
    for name, function in list(globals().items())
    if inspect.isfunction(function)
    and function.__module__ == __name__
    and not name.startswith("_")
}
