"""The pictures of a study."""

import numpy as np
from studies import PROTOCOL
from studies import UNDER_TENSORFLOW
from studies import gains_study
from studies import runs_of

from experiments import pictures
from experiments import verdicts

pytestmark = UNDER_TENSORFLOW


def test_two_hyperparameters_are_drawn_as_a_map():
    study = gains_study()
    drawn = pictures.of(study)
    assert drawn.keys() == {"models.png", "settings.png"}
    axes, _ = drawn["settings.png"](study).axes
    assert [text.get_text() for text in axes.texts] == [
        *("0.10", "0.60"),  # other = 1, gain = 0 and 0.5
        *("0.20", "0.70"),
        *("0.30", "0.80"),
    ]
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("gain", "other")


def test_curves_are_drawn_if_a_protocol_asks_for_them():
    runs = runs_of("a", 1, 0.5, [1.0, 1.2, 1.4])
    for run in runs:
        run["curve"] = [run["baseline"] * 0.9, run["baseline"] * 0.5]
    protocol = {**PROTOCOL, "grid": [{"layer": ["a"], "learning_rate": [1]}]}
    study = verdicts.Study({**protocol, "curves": True}, {"runs": runs})
    figure = pictures.of(study)["curves.png"](study)
    line = figure.axes[0].lines[0]
    np.testing.assert_allclose(line.get_ydata(), [0.9, 0.5])
    assert figure.axes[0].get_yscale() == "linear"
    quiet = verdicts.Study(protocol, {"runs": runs})
    assert "curves.png" not in pictures.of(quiet)


def test_curves_of_each_length_have_a_panel_logarithmic_if_one_is_low():
    grid = {"length": [1, 2], "layer": ["a", "b"]}
    protocol = {"tier": "core", "tuned": [], "seeds": [0], "grid": [grid]}
    protocol |= {"curves": True, "panels": "length"}
    runs = [
        {"length": length, "layer": layer, "seed": 0, "baseline": 1.0}
        | {"curve": [0.9, end], "validation": end, "test": end}
        for length, layer, end in [
            *((1, "a", 0.01), (1, "b", 0.5)),
            *((2, "a", 0.7), (2, "b", 0.8)),
        ]
    ]
    study = verdicts.Study(protocol, {"runs": runs})
    figure = pictures.of(study)["curves.png"](study)
    (legend,), panels = figure.legends, figure.axes
    assert [text.get_text() for text in legend.get_texts()] == ["a", "b"]
    assert [axes.get_title("left") for axes in panels] == [
        *("length 1", "length 2"),
    ]
    ends = [[*axes.lines[n].get_ydata()][-1] for axes in panels for n in (0, 1)]
    assert ends == [0.01, 0.5, 0.7, 0.8]
    assert {axes.get_yscale() for axes in panels} == {"log"}


def test_each_task_has_a_panel_with_the_best_model_on_top():
    grid = {"task": ["add", "copy"], "layer": ["a", "b"]}
    protocol = {"tier": "core", "tuned": [], "seeds": [0], "grid": [grid]}
    protocol["panels"] = "task"
    scores = {("add", "a"): 0.2, ("add", "b"): 0.1}
    scores |= {("copy", "a"): 0.3, ("copy", "b"): 0.4}
    runs = [
        {"task": task, "layer": layer, "seed": 0, "baseline": 1.0}
        | {"test": score, "validation": score}
        for (task, layer), score in scores.items()
    ]
    study = verdicts.Study(protocol, {"runs": runs})
    panels = pictures.of(study)["models.png"](study).axes
    assert [axes.get_title("left") for axes in panels] == ["add", "copy"]
    names = [[text.get_text() for text in a.get_yticklabels()] for a in panels]
    assert names == [["b", "a"], ["a", "b"]]  # the best first
    assert all(axes.get_xlim()[1] >= 0.4 for axes in panels)

    protocol["tables"] = ["panels"]  # a row for each task instead
    figure = pictures.of(study)["models.png"](study)
    (legend,), (axes,) = figure.legends, figure.axes
    assert [text.get_text() for text in legend.get_texts()] == ["a", "b"]
    rows = [text.get_text() for text in axes.get_yticklabels()]
    assert rows == ["add", "copy"]
    assert axes.get_ylim() == (1.5, -0.5)  # no marker is cut
    drawn = [list(line.get_xdata()) for line in axes.lines[:2]]
    assert drawn == [[0.2, 0.3], [0.1, 0.4]]
