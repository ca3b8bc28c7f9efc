"""The result of a job, and its folder: report, results, pictures, model."""

import json
import pathlib
import typing
from collections.abc import Sequence

import keras
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from keras_rin.recordings._split import described

SHOWN, EXAMPLES = 500, 3  # steps and recordings of a class


class Result(typing.NamedTuple):
    """What a job gives, which prints tables and verdict.

    Attributes:
        table: DataFrame, what baselines, trainings and headers have on the
            test.
        trials: DataFrame, what was tried on the validation, the best first,
            and what the clock cut or diverged.
        verdict: String, whether a network pays.
        model: The best Keras model, which reads raw recordings or rows.
        answers: Array, the outputs of the model for the test recordings; of a
            stream, what the header answers to the test rows.
        recalls: DataFrame, right answers by class and group of a stream.
        lines: List of strings, what else has to be known.
        output: String, the folder.
    """

    table: pd.DataFrame
    trials: pd.DataFrame
    verdict: str
    model: keras.Model
    answers: np.ndarray
    recalls: pd.DataFrame
    lines: Sequence[str]
    output: str

    def __repr__(self) -> str:
        rates = {"rate": "{:g}".format}
        form = {"float_format": "{:.3f}".format, "formatters": rates}
        frames = [self.trials, self.table, self.recalls]
        texts = [
            frame.to_string(index=False, na_rep="", **form)
            for frame in frames
            if len(frame)
        ]
        return "\n\n".join([*texts, *self.lines, self.verdict])


def write(result, parts):
    """Writes `report.md`, `results.json` and `model.keras`."""
    folder = pathlib.Path(result.output)
    results = {"parts": described(parts), "lines": [*result.lines]}
    results["verdict"] = result.verdict
    for name in ("trials", "table", "recalls"):
        frame = getattr(result, name)
        results[name] = json.loads(frame.to_json(orient="records"))
    text = json.dumps(results, indent=1, ensure_ascii=False)
    (folder / "results.json").write_text(text + "\n", encoding="utf-8")
    texts = ["# Recordings", described(parts), f"```text\n{result}\n```"]
    text = "\n\n".join([*texts, "![data.png](data.png)\n"])
    (folder / "report.md").write_text(text, encoding="utf-8")
    result.model.save(folder / "model.keras")


def draw_data(data, path):
    """Draws a few recordings of each class, or with some targets."""
    x, y = data.x, data.y
    if data.is_log:
        cuts = [np.flatnonzero(np.diff(labels)) + 1 for labels in y]
        stretches = [*zip(x, y, cuts, strict=True)]
        x = [part for rows, _, cut in stretches for part in np.split(rows, cut)]
        y = [
            part[0]
            for _, labels, cut in stretches
            for part in np.split(labels, cut)
        ]
    labels = range(min(10, len(data.classes))) if data.classes else [*y[:4]]
    size = 9, 0.5 + 1.3 * len(labels)
    figure = Figure(figsize=size, layout="constrained")
    axes = figure.subplots(len(labels), EXAMPLES, squeeze=False, sharey=True)
    for panels, label in zip(axes, labels, strict=True):
        name = data.classes[label] if data.classes else f"{label:.4g}"
        panels[0].set_ylabel(name)
        rows = np.flatnonzero(np.equal(y, label))[:EXAMPLES]
        for panel, row in zip(panels, rows, strict=False):
            panel.plot(x[row][:SHOWN], linewidth=0.8)
    figure.supxlabel("row")
    names = data.channels[:10]
    figure.legend(axes[0, 0].lines, names, loc="outside right upper")
    figure.savefig(path)
