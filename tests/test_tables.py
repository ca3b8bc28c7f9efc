"""The tables of one study."""

from studies import PROTOCOL
from studies import UNDER_TENSORFLOW
from studies import A
from studies import runs_of

from experiments import tables
from experiments import verdicts

pytestmark = UNDER_TENSORFLOW


def test_the_table_of_settings_has_all_of_them_on_validation_data():
    runs = runs_of("a", 1, 0.5, [1.0] * 3) + runs_of("a", 2, 0.9, [0.1] * 3)
    del runs[1]["validation"], runs[1]["test"]
    runs[1]["error"] = "The loss is not finite."
    runs += runs_of("b", 1, 1.5, [1.0] * 3) + runs_of("b", 2, 3.0, [0.1] * 3)
    table = tables.of_settings(verdicts.Study(PROTOCOL, {"runs": runs}))
    rows = [line.split("|")[1:-1] for line in table.splitlines()[2:]]
    assert [[cell.strip() for cell in row] for row in rows] == [
        ["a", "0.25, 2 of 3", "0.45, 3 of 3"],
        ["b", "0.75, 0 of 3", "1, 0 of 3"],
    ]


def test_the_table_of_rates_counts_divergence_apart():
    runs = runs_of("a", 1, 0.5, [0.2, 0.4, 0.6])
    runs += runs_of("a", 2, 1.5, [0.1, 0.3, 0.5])
    del runs[1]["validation"], runs[1]["test"], runs[1]["baseline"]
    runs[1]["error"] = "The loss is not finite."
    table = tables.of_rates(verdicts.Study(PROTOCOL, {"runs": runs}))
    cells = [
        [cell.strip() for cell in line.split("|")[1:-1]]
        for line in table.splitlines()[2:]
    ]
    assert cells == [
        ["a", "1", "2 of 3", "1", "0.3 (0.1 to 1)"],
        ["a", "2", "0 of 3", "0", "0.15 (0.05 to 0.25)"],
    ]


def test_accuracies_are_those_of_test_data_at_the_best_rate():
    runs = runs_of("a", 1, 0.5, [0.2, 0.4, 0.6])
    runs += runs_of("a", 2, 0.4, [0.1, 0.8, 0.3])
    for run in runs:
        run["baseline"] = 0.9
    del runs[4]["validation"], runs[4]["test"]
    runs[4]["error"] = "The loss is not finite."
    table = tables.of_accuracies(verdicts.Study(PROTOCOL, {"runs": runs}))
    cells = [cell.strip() for cell in table.splitlines()[2].split("|")[1:-1]]
    assert cells == ["a", "70.0% (10.0% to 90.0%)", "2*"]


def test_the_table_of_panels_has_a_column_for_each_model():
    grid = {"task": ["add", "copy"], "layer": ["a", "b"]}
    grid |= {"learning_rate": [1, 2]}
    protocol = {**PROTOCOL, "grid": [grid], "panels": "task"}
    runs = [
        {**run, "task": task}
        for task, layer, loss in (
            *(("add", "a", 0.2), ("add", "b", 0.4)),
            ("copy", "b", 0.6),
        )
        for rate in (1, 2)
        for run in runs_of(layer, rate, rate / 4, [loss] * 3)
    ]
    table = tables.of_panels(verdicts.Study(protocol, {"runs": runs}))
    header, _, *rows = [line.split("|")[1:-1] for line in table.splitlines()]
    assert [cell.strip() for cell in header] == ["task", "a", "b"]
    assert [[cell.strip() for cell in row] for row in rows] == [
        ["add", "0.1 (1*)", "0.2 (1*)"],
        ["copy", "", "0.3 (1*)"],
    ]


def test_a_star_says_that_the_best_may_lie_beyond():
    runs = runs_of("a", 1, 0.9, [1.0] * 3) + runs_of("a", 2, 0.5, [1.0] * 3)
    outcome = verdicts.outcomes(PROTOCOL, runs)[A]
    assert list(tables._chosen(outcome)) == ["2*"]
    runs += runs_of("a", 3, 0.7, [1.0] * 3)
    outcome = verdicts.outcomes(PROTOCOL, runs)[A]
    assert list(tables._chosen(outcome)) == ["2"]


def test_models_are_told_by_the_settings_that_differ():
    lengths = [{"layer": "a", "length": n, "updates": 10 * n} for n in (1, 2)]
    assert tables.told_by(lengths, ["layer", "length", "updates"]) == ["length"]
    grids = [
        {"task": "copying", "train": 5, "layer": "a"},
        {"task": "copying", "train": 5, "layer": "b"},
        {"task": "pixels", "images": "digits", "layer": "a"},
        {"task": "pixels", "images": "mnist", "train": 5, "layer": "a"},
        {"task": "text", "train": 5, "layer": "a"},
    ]
    assert tables.told_by(grids, ["task", "train", "layer", "images"]) == [
        "task",
        "layer",
        "images",
    ]
    alike = [{"layer": "a", "units": 5}]
    assert tables.told_by(alike, ["layer", "units"]) == ["layer"]


def test_bools_numbers_and_missing_settings_are_cells_of_a_table():
    cells = [tables._cell(value) for value in (True, False, 0.01, "a", None)]
    assert cells == ["yes", "no", "0.01", "a", ""]


def test_tasks_of_babi_are_called_tasks():
    assert tables.label([("layer", "a"), ("number", 4)]) == "a, task 4"
    assert tables.label([("layer", "a"), ("units", 4)]) == "a, units 4"


def test_a_rate_that_was_the_only_one_has_no_star():
    grid = [{"layer": ["a"], "learning_rate": [1]}]
    runs = runs_of("a", 1, 0.5, [1.0] * 3)
    found = verdicts.outcomes({**PROTOCOL, "grid": grid}, runs)
    assert list(tables._chosen(found[A])) == ["1"]


def test_solved_and_diverged_are_counted_over_all_rates():
    runs = runs_of("a", 1, 0.5, [0.2, 0.4, 0.6])
    runs += runs_of("a", 2, 1.5, [0.1] * 3)
    del runs[4]["validation"], runs[4]["test"]
    runs[4]["error"] = "The loss is not finite."
    table = tables.of_models(verdicts.Study(PROTOCOL, {"runs": runs}))
    cells = [cell.strip() for cell in table.splitlines()[2].split("|")[1:-1]]
    assert cells == ["a", "0.2 (0.1 to 0.3)", "1*", "3 of 6", "1 of 6"]
