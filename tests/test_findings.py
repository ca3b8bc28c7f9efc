"""Claims that are no comparison of two models."""

import numpy as np
import pytest
from scipy import stats
from studies import PROTOCOL
from studies import PROTOCOLS
from studies import UNDER_TENSORFLOW
from studies import runs_of

from experiments import findings
from experiments import verdicts

pytestmark = UNDER_TENSORFLOW


@pytest.mark.parametrize("diverged", [False, True])
def test_solving_every_length_means_every_run_of_the_best_rate(diverged):
    runs = [
        {**run, "length": length, "layer": "a"}
        for length in (10, 20)
        for run in runs_of("a", 1, 0.5, [0.2, 0.4, 0.6])
    ]
    if diverged:
        del runs[4]["validation"], runs[4]["test"], runs[4]["baseline"]
        runs[4]["error"] = "The loss is not finite."
    grid = [{"length": [10, 20], "learning_rate": [1]}]
    study = verdicts.Study({**PROTOCOL, "grid": grid}, {"runs": runs})
    first, second = findings.solves_every_length(
        study, where={"length": [10, 20]}
    )
    told = "3 of 3 solved, 0 diverged, median loss 0.2"
    assert first == ("10 steps", told, "yes")
    assert second[::2] == ("20 steps", "no" if diverged else "yes")
    if diverged:
        assert second[1].startswith("2 of 3 solved, 1 diverged")


@pytest.mark.parametrize(
    "mean, answer",
    [(0.01, "yes"), (-0.2, "no"), (0.2, "no"), (0.05, "inconclusive")],
)
def test_mean_changes_are_compared_with_their_root_mean_square(mean, answer):
    runs = runs_of("a", 1, 0.5, [1.0] * 3) + runs_of("a", 2, 0.9, [1.0] * 3)
    for run, noise in zip(runs[:2], (-0.001, 0.001), strict=True):
        run["estimation_error"] = {"mean": mean + noise}

    def parts(where):
        study = verdicts.Study(PROTOCOL, {"runs": runs})
        return findings.changes_average_to_zero(study, where)

    ((condition, found, said),) = parts({"layer": ["a"]})
    assert (condition, said) == ("a", answer)
    assert found.startswith(f"{mean:+.2g} (")
    without = ("b", "", verdicts.UNTESTED)  # b has no runs
    assert parts({"layer": ["a", "b"]}) == [(condition, found, said), without]
    assert parts({"layer": ["b"]}) == []


@pytest.mark.parametrize(
    "error, answer", [(0.04, "yes"), (0.06, "no"), (0.05, "inconclusive")]
)
def test_an_accuracy_is_reached_by_the_mean_of_all_seeds(error, answer):
    runs = runs_of("a", 1, 0.5, [error - 0.001, error, error + 0.001])
    runs += runs_of("a", 2, 0.9, [0.0] * 3)  # worse on validation data
    for run in runs:
        run["baseline"] = 0.9
    study = verdicts.Study(PROTOCOL, {"runs": runs})

    def parts(layers):
        return findings.reaches_95_percent(study, {"layer": layers})

    ((condition, found, said),) = parts(["a"])
    interval = stats.t.interval(0.95, 2, 1 - error, 0.001 / np.sqrt(3))
    low, high = (f"{bound:.1%}" for bound in interval)
    assert found == f"{1 - error:.1%} ({low} to {high})"
    assert (condition, said) == ("a", answer)
    assert parts(["b", "a"])[-1] == ("b", "", verdicts.UNTESTED)


@pytest.mark.parametrize(
    "end, answer", [(0.5, "yes"), (0.6, "no"), (0.52, "inconclusive")]
)
def test_overfitting_is_a_validation_error_that_rises_again(end, answer):
    runs = runs_of("a", 1, 0.5, [1.0] * 3) + runs_of("a", 2, 0.9, [1.0] * 3)
    for run, noise in zip(runs, (0, 0.001, 0.002) * 2, strict=True):
        run["curve"] = [0.9, 0.5, end + noise]
        run["training_curve"] = [0.8, 0.3, 0.125]
    study = verdicts.Study({**PROTOCOL, "within": 0.02}, {"runs": runs})
    ((_, found, said),) = findings.does_not_overfit(study, {"layer": "a"})
    assert said == answer
    assert found.endswith("training error 0.12, test error 1")
    assert findings.does_not_overfit(study, {"layer": "b"}) == []


@pytest.mark.parametrize(
    "gain, answer", [(0.1, "yes"), (-0.1, "no"), (0, "inconclusive")]
)
def test_layers_are_compared_over_tasks(gain, answer):
    losses = [0.2, 0.5, 0.8, 0.6]
    noise = [0.01, -0.01, 0.01, -0.01]
    runs = [
        {"layer": layer, "number": number, "learning_rate": 0.1, "seed": 0}
        | {"validation": loss, "test": loss, "baseline": 1.0}
        for number, both in enumerate(zip(losses, noise, strict=True))
        for layer, loss in (
            ("a", both[0] - gain + both[1]),
            ("b", both[0]),
            ("c", 0),
        )
    ]
    best = len(runs)
    runs += [{**run, "learning_rate": 1.0, "validation": 1.0} for run in runs]
    rates = [0.1, 1.0]
    grid = [{"layer": [*"abc"], "number": [*range(4)], "learning_rate": rates}]
    protocol = {**PROTOCOL, "grid": grid, "fixed": {}, "seeds": [0]}
    where = {"layer": ["a", "b"]}

    def parts(runs, **rates):
        study = verdicts.Study(protocol, {"runs": runs})
        return findings.lower_over_tasks(study, {**where, **rates})

    ((condition, found, said),) = parts(runs)
    low, high = stats.ttest_1samp(
        gain - np.array(noise), 0
    ).confidence_interval()
    ones = f"{0.475 + gain:.1%}"  # both means are of 0.2, 0.5, 0.8 and 0.6
    accuracies = f"4 tasks, mean accuracy {ones} vs. 47.5%"
    assert (condition, said) == (accuracies, answer)
    assert found == f"{gain:+.2g} ({low:.2g} to {high:.2g})"
    for run in runs[best:]:
        run["test"] *= 0.5
    assert parts(runs) == [(condition, found, said)]
    ((at_rates, *_),) = parts(runs, learning_rate=[0.1, 1.0])
    assert at_rates == f"4 tasks, mean accuracy {ones} vs. 73.8%"
    assert parts([run for run in runs if run["number"] < 3]) == []
    for run in runs[:2]:  # diverged in their first epoch
        del run["validation"], run["test"]
    ((condition, *_),) = parts(runs)
    assert condition.endswith(" vs. 27.5%")  # of 1, 0.5, 0.8 and 0.6


def test_every_finding_has_a_claim():
    claimed = {
        claim["finding"]
        for protocol in PROTOCOLS.values()
        for claim in protocol["claims"]
        if "finding" in claim
    }
    assert claimed == findings.ALL.keys()


@pytest.mark.parametrize("grows, said", [(True, "yes"), (False, "no")])
def test_the_lead_of_a_chain_is_that_over_orthogonal(grows, said):
    noises, leads = (0.0, 1.0), (0.1, 0.3) if grows else (0.3, 0.1)
    layers = ["chain", "orthogonal"]
    grid = [{"layer": layers, "noise": [*noises], "learning_rate": [1]}]
    runs = [
        {**run, "noise": noise}
        for noise, lead in zip(noises, leads, strict=True)
        for layer, losses in (
            ("chain", [1 - 2 * lead, 1.01 - 2 * lead, 1.02 - 2 * lead]),
            ("orthogonal", [1.0] * 3),
        )
        for run in runs_of(layer, 1, 0.5, losses)
    ]
    study = verdicts.Study({**PROTOCOL, "grid": grid}, {"runs": runs})
    ((*_, answer),) = findings.noise_increases_the_lead_of_a_chain(study)
    assert answer == said
