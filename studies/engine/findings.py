"""Whether claims hold that are no comparison of models.

A function of `OF_RUNS` takes a study and the `where` of the claim, one of
`OF_RESULTS` the results.json of a measured study, one of `COMPUTED` nothing.
Each returns a list of parts, which is empty where runs are missing.
"""

import numpy as np

from engine.study import count_diverged
from engine.study import count_solved
from engine.study import grouped
from engine.verdicts import UNTESTED
from engine.verdicts import Part
from engine.verdicts import answer
from engine.verdicts import mean_interval
from keras_rin.constructions import gradient_lower_bound
from keras_rin.constructions import near_identity_factors


def _difference(first, second, condition=""):
    differences = np.subtract(first, second)
    low, high = mean_interval(differences)
    summary = f"{differences.mean():+.2g} ({low:.2g} to {high:.2g})"
    return Part(condition, summary, answer(yes=low > 0, no=high < 0))


def every_initialization_becomes_nonnormal(study, where):
    """Henrici departures of each layer, over all tasks and seeds."""
    by_layer = grouped(study.outcomes, lambda outcome: outcome.variant.layer)
    parts = []
    for layer, outcomes in by_layer.items():
        departures = (o.best.departures("recurrent") for o in outcomes)
        before, after = map(np.concatenate, zip(*departures, strict=True))
        parts.append(_difference(after, before, layer))
    return parts


def noise_increases_the_lead_of_a_chain(study, where):
    """Chain vs. orthogonal initialization, most noise vs. none."""
    if len(study.outcomes) < len(study.protocol.variants):
        return []
    levels = {outcome.variant.noise for outcome in study.outcomes}

    def leads(noise):
        chain, orthogonal = (
            outcome.test_losses
            for layer in ("chain", "orthogonal")
            for outcome in study.outcomes
            if outcome.variant.matches({"layer": layer, "noise": noise})
        )
        return [orthogonal[seed] - chain[seed] for seed in chain]

    return [_difference(leads(max(levels)), leads(min(levels)))]


def solves_every_length(study, where):
    """Solved, diverged and normalized loss at the best rate, by length."""
    parts = []
    for length in where["length"]:
        for outcome in study.outcomes:
            if outcome.variant.matches({**where, "length": length}):
                runs = outcome.best.runs
                summary = (
                    f"{count_solved(runs)} of {len(runs)} solved, "
                    f"{count_diverged(runs)} diverged, median loss "
                    f"{outcome.median_test_loss:.2g}"
                )
                yes = count_solved(runs) == len(runs)
                part = Part(_steps(length), summary, answer(yes, not yes))
                parts.append(part)
    return parts if len(parts) >= len(where["length"]) else []


def _steps(length):
    return f"{length:,} steps"


def lower_over_tasks(study, where):
    """How much lower the errors of the first layer are, task by task.

    Each at its best learning rate, or at that which `where` names for it.
    """
    rates = where.get("learning_rate", [None, None])
    tasks = {setting.number for setting in study.protocol.settings}
    first, second = (
        {
            outcome.variant.number: outcome.best
            if rate is None
            else next(t for t in outcome.trials if t.values == (rate,))
            for outcome in study.outcomes
            if outcome.variant.layer == layer
        }
        for layer, rate in zip(where["layer"], rates, strict=True)
    )
    if not first.keys() & second.keys() >= tasks:
        return []
    accuracies = " vs. ".join(
        f"{np.concatenate([of[t].accuracies for t in tasks]).mean():.1%}"
        for of in (first, second)
    )
    part = _difference(
        [second[task].median_test_loss for task in tasks],
        [first[task].median_test_loss for task in tasks],
        f"{len(tasks)} tasks, mean accuracy {accuracies}",
    )
    return [part]


def changes_average_to_zero(study, where, within=0.05):
    """Mean change of the hidden states per step, over its root mean square."""

    def change(trial):
        errors = [run.estimation_error for run in trial.runs]
        means = [error["mean"] for error in errors if error is not None]
        low, high = mean_interval(means)
        summary = f"{np.mean(means):+.2g} ({low:.2g} to {high:.2g})"
        inside = -within < low and high < within
        return summary, answer(inside, no=low > within or high < -within)

    return _of_each_variant(study, where, change)


def reaches_95_percent(study, where):
    """Mean test accuracy at the best learning rate."""

    def accuracy(trial):
        low, high = mean_interval(trial.accuracies)
        summary = f"{np.mean(trial.accuracies):.1%} ({low:.1%} to {high:.1%})"
        return summary, answer(yes=low >= 0.95, no=high < 0.95)

    return _of_each_variant(study, where, accuracy)


def _of_each_variant(study, where, judge):
    """A part for each variant; none where the runs of all are missing."""
    parts, both_orders = [], "permuted" in study.protocol.varied
    for variant in study.protocol.variants:
        if variant.matches(where):
            outcome = study.outcome(variant)
            judged = judge(outcome.best) if outcome else ("", UNTESTED)
            order = ", permuted" if both_orders and variant.permuted else ""
            parts.append(Part(variant.layer + order, *judged))
    untested = all(part.answer == UNTESTED for part in parts)
    return [] if untested else parts


def does_not_overfit(study, where):
    """Whether the validation error rises again before training ends."""
    parts, within = [], study.protocol.source["within"]
    for outcome in study.outcomes:
        if not outcome.variant.matches(where):
            continue
        runs = [run for run in outcome.best.runs if run.curve is not None]
        training = [run.training_curve[-1] for run in runs]
        rise = [run.curve[-1] - min(run.curve) for run in runs]
        low, high = mean_interval(rise)
        summary = (
            f"validation error at the end {np.mean(rise):+.2g} ({low:.2g} to "
            f"{high:.2g}) above its lowest; training error "
            f"{np.median(training):.2g}, "
            f"test error {np.median([run.test for run in runs]):.2g}"
        )
        part = Part("", summary, answer(yes=high < within, no=low > within))
        parts.append(part)
    return parts


def never_diverges(study, where):
    """Diverged runs of a model, over all hyperparameters and seeds."""
    runs = [run for run in study.runs if run.setting.matches(where)]
    by_length, parts = grouped(runs, lambda run: run.setting.length), []
    for length, runs in by_length.items():
        count = count_diverged(runs)
        summary = f"{count} of {len(runs)} runs diverged"
        parts.append(Part(_steps(length), summary, answer(not count, no=count)))
    return parts


def powers_outgrow_products(results):
    low, part = _power_over_product(results, normalise=False)
    return [Part(*part, answer(yes=low > 1, no=True))]


def own_radius_removes_the_difference(results):
    low, part = _power_over_product(results, normalise=True)
    return [Part(*part, answer(yes=low <= 1, no=True))]


def _power_over_product(results, normalise):
    case = {"factors": 50, "normalise": normalise}
    (run,) = (run for run in results["runs"] if run | case == run)
    logs = np.subtract(run["power"], run["product"])
    low, high = np.exp(mean_interval(logs))
    summary = f"ratio {np.exp(np.mean(logs)):.2g} ({low:.2g} to {high:.2g})"
    return low, ("50 factors", summary)


def chain_retains_the_signal(results):
    """R^2 of the first input, decoded from the last hidden state."""

    def scores(network):
        runs = [r for r in results["networks"] if r["network"] == network]
        runs.sort(key=lambda run: run["seed"])
        return [run["accuracy"]["linear, noise"] for run in runs]

    return [_difference(scores("chain"), scores("orthogonal"))]


def training_increases_nonnormality(results):
    before, after = (
        [run[when]["Henrici departure"] for run in results["runs"]]
        for when in ("before", "after")
    )
    return [_difference(after, before)]


def training_hides_a_chain(results):
    """Mean weights to the next and to the previous unit, after training."""
    to_next, to_previous = (
        [run["after"][f"mean weight to the {unit}"] for run in results["runs"]]
        for unit in ("next unit", "unit before")
    )
    return [_difference(to_next, to_previous)]


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
    return [Part("27 blocks", summary, answer(yes, not yes))]


def identity_initialization_trains_deep(results):
    deepest = results["starts"][-1]
    identity, gaussian = deepest["identity"], deepest["Gaussian"]
    reached = [steps for steps in gaussian if steps is not None]
    steps = "not reached" if identity is None else f"{identity} steps"
    summary = f"identity {steps}, "
    summary += f"Gaussian {len(reached)} of {len(gaussian)} runs solved"
    yes = identity is not None and all(steps > identity for steps in reached)
    return [Part(f"depth {deepest['depth']}", summary, answer(yes, not yes))]


def fits_any_labels(results):
    ratios, accuracies = [], []
    for run in results["runs"]:
        n, r = run["points"], run["classes"]
        ratios.append(run["parameters"] / (n * np.log(n) + r**2))
        accuracies += run["accuracy"].values()
    points = max(run["points"] for run in results["runs"])
    summary = f"accuracy {min(accuracies):.2%}, {min(ratios):.2f} to "
    summary += f"{max(ratios):.2f} (n ln n + r^2) parameters"
    yes = min(accuracies) == 1 and max(ratios) < 3
    return [Part(f"up to {points:,} points", summary, answer(yes, not yes))]


def factors_are_small():
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
    summary = f"at most {max(shares):.2f} of the bound"
    yes = max(shares) <= 1
    return [Part("16 x 16, 64 factors", summary, answer(yes, not yes))]


def gradient_bound_as_printed():
    """At A_i = -I / 2 with a target of 0, where all is a multiple of I."""
    depth, units, tau = 5, 6, 0.5
    excess = units * tau ** (2 * depth)
    slope = depth * units * (2 * tau ** (2 * depth - 1)) ** 2
    printed = 4 * depth * (1 - tau) ** (depth - 1) * excess
    factors = np.tile(-np.eye(units) / 2, (depth, 1, 1))
    corrected = gradient_lower_bound(factors, np.zeros((units, units)))
    summary = f"gradient squared {slope:.2g}, printed bound {printed:.2g}, "
    summary += f"corrected {corrected:.2g}"
    return [Part("", summary, answer(slope >= printed, slope < printed))]


def _by_name(*functions):
    return {function.__name__: function for function in functions}


OF_RUNS = _by_name(
    every_initialization_becomes_nonnormal,
    noise_increases_the_lead_of_a_chain,
    solves_every_length,
    lower_over_tasks,
    changes_average_to_zero,
    reaches_95_percent,
    does_not_overfit,
    never_diverges,
)
OF_RESULTS = _by_name(
    powers_outgrow_products,
    own_radius_removes_the_difference,
    chain_retains_the_signal,
    training_increases_nonnormality,
    training_hides_a_chain,
    small_variance_keeps_size,
    identity_initialization_trains_deep,
    fits_any_labels,
)
COMPUTED = _by_name(factors_are_small, gradient_bound_as_printed)
