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

DRAWN = 5_000  # rows of a stream
SHOWN, EXAMPLES = 500, 3  # steps and recordings of a class


class Result(typing.NamedTuple):
    """What a job gives, which prints tables and verdict.

    Attributes:
        table: DataFrame, what baselines, trainings and headers have on the
            test.
        trials: DataFrame, what was tried on the validation, the best first.
        verdict: String, whether a network pays.
        model: The best Keras model, which reads raw recordings or rows.
        answers: Array, the outputs of the model for the test recordings; of a
            stream, what the header answers to the test rows.
        recalls: DataFrame, right answers by class and group of a stream.
        lines: List of strings, what else has to be known.
        output: String, the folder, or `None`.
    """

    table: pd.DataFrame
    trials: pd.DataFrame
    verdict: str
    model: keras.Model
    answers: np.ndarray
    recalls: pd.DataFrame
    lines: Sequence[str]
    output: str | None

    def __repr__(self) -> str:
        form = {"float_format": "{:.3f}".format, "na_rep": ""}
        frames = [self.trials, self.table, self.recalls]
        texts = [
            frame.to_string(index=False, **form)
            for frame in frames
            if len(frame)
        ]
        texts += [*self.lines, self.verdict]
        texts += [f"{self.output} has report.md."] if self.output else []
        return "\n\n".join(texts)


def write(result, parts, *pictures):
    """Writes `report.md`, `results.json` and `model.keras`."""
    folder = pathlib.Path(result.output)
    sections = {"parts": described(parts), "trials": result.trials}
    sections |= {"table": result.table, "recalls": result.recalls}
    sections |= {"lines": "\n".join(result.lines), "verdict": result.verdict}
    texts, results = ["# Recordings"], {}
    for name, part in sections.items():
        if isinstance(part, pd.DataFrame):
            results[name] = json.loads(part.to_json(orient="records"))
            texts.append(_markdown(part))
        else:
            results[name] = part
            texts.append(part.replace("\n", "  \n"))
    texts += [f"![{name}]({name})" for name in ("data.png", *pictures)]
    text = json.dumps(results, indent=1, ensure_ascii=False)
    (folder / "results.json").write_text(text + "\n", encoding="utf-8")
    report = "\n\n".join(filter(None, texts)) + "\n"
    (folder / "report.md").write_text(report, encoding="utf-8")
    result.model.save(folder / "model.keras")


def _markdown(frame):
    rows = (
        [[*frame.columns], ["---"] * len(frame.columns)] if len(frame) else []
    )
    for values in frame.astype(object).where(frame.notna(), "").to_numpy():
        texts = [f"{v:.4g}" if isinstance(v, float) else str(v) for v in values]
        rows.append([text.replace("|", "\\|") for text in texts])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


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
    figure = Figure(figsize=(9, 0.5 + 1.3 * len(labels)), layout="tight")
    axes = figure.subplots(len(labels), EXAMPLES, squeeze=False, sharey=True)
    for panels, label in zip(axes, labels, strict=True):
        name = data.classes[label] if data.classes else f"{label:.4g}"
        panels[0].set_ylabel(name)
        rows = np.flatnonzero(np.equal(y, label))[:EXAMPLES]
        for panel, row in zip(panels, rows, strict=False):
            panel.plot(x[row][:SHOWN], linewidth=0.8)
    figure.legend(axes[0, 0].lines, data.channels[:10], loc="upper right")
    figure.savefig(path)


def draw_answers(classes, y, answers, path):
    """Draws answers along the rows of a test."""
    rows = np.arange(0, len(y), len(y) // DRAWN + 1)
    figure = Figure(figsize=(8, 1 + 0.3 * len(classes)), layout="tight")
    axes = figure.subplots()
    axes.plot(rows, y[rows], "s", color="0.8", label="class")
    axes.plot(rows, answers[rows], ".", markersize=2, label="answer")
    axes.set_yticks(range(len(classes)), classes)
    axes.set_xlabel("row of the test")
    axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=2)
    figure.savefig(path)
