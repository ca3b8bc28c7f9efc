"""The result of a job, and its folder: report, results, pictures, model."""

import json
import pathlib
import typing
from collections.abc import Sequence

import keras
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from sklearn.metrics import confusion_matrix

DRAWN = 5_000  # rows of a stream
SHOWN = 500  # steps of a recording in the picture of the data
EXAMPLES = 3  # of a class


class Result(typing.NamedTuple):
    """What a job gives, which prints tables and verdict.

    Attributes:
        table: DataFrame, what the baselines, the trainings and the headers have
            on the test.
        trials: DataFrame, what was tried on the validation, the best first.
        verdict: String, whether a network pays.
        model: The best Keras model, which reads raw recordings or rows.
        answers: Array, the outputs of the model for the test recordings, or the
            number of the class of each test row.
        recalls: DataFrame, the share of right answers by class and group of a
            stream, or `None`.
        lines: List of strings, what else the report says.
        output: String, the folder, or `None`.
    """

    table: pd.DataFrame
    trials: pd.DataFrame
    verdict: str
    model: keras.Model
    answers: np.ndarray
    recalls: pd.DataFrame | None
    lines: Sequence[str]
    output: str | None

    def __repr__(self) -> str:
        form = {"float_format": "{:.3f}".format, "na_rep": ""}
        frames = [self.trials, self.table, self.recalls]
        frames = [frame for frame in frames if frame is not None]
        texts = [of.to_string(index=False, **form) for of in frames]
        folder = self.output and f"{self.output} has report.md and model.keras."
        texts = [*texts, *self.lines, self.verdict, folder or ""]
        return "\n\n".join(filter(None, texts))


def write(result, data, sections):
    """Writes `report.md`, `results.json` and `model.keras`."""
    folder = pathlib.Path(result.output)
    results = {
        "data": repr(data),
        "classes": data.classes,
        "verdict": result.verdict,
    }
    results["lines"] = [*result.lines]
    for name in ("table", "trials", "recalls"):
        frame = getattr(result, name)
        if frame is not None:
            results[name] = json.loads(frame.to_json(orient="records"))
    text = json.dumps(results, indent=1, ensure_ascii=False)
    (folder / "results.json").write_text(text + "\n", encoding="utf-8")
    parts = [
        repr(data),
        "![The data](data.png)",
        "On the validation:",
        result.trials,
    ]
    parts += [
        "On the test:",
        result.table,
        result.recalls,
        *result.lines,
        result.verdict,
        *sections,
    ]
    texts = [
        _markdown(part)
        if isinstance(part, pd.DataFrame)
        else "  \n".join(part.splitlines())
        for part in parts
        if part is not None
    ]
    report = "\n\n".join(["# Recordings", *texts])
    (folder / "report.md").write_text(report + "\n", encoding="utf-8")
    result.model.save(folder / "model.keras")


def _markdown(frame):
    rows = [[*map(str, frame.columns)], ["---"] * len(frame.columns)]
    for values in frame.astype(object).where(frame.notna(), "").to_numpy():
        texts = [f"{v:.4g}" if isinstance(v, float) else str(v) for v in values]
        rows.append([text.replace("|", "\\|") for text in texts])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def confusion(classes, y, answers):
    """A table with a row for each true class."""
    counts = confusion_matrix(y, answers, labels=np.arange(len(classes)))
    matrix = pd.DataFrame(counts, columns=classes)
    matrix.insert(0, "true \\ answer", classes, allow_duplicates=True)
    return matrix


def _examples(data):
    """A few recordings of each class, or of targets, with a name."""
    x, y = data.x, data.y
    if data.is_log:
        cuts = [np.flatnonzero(np.diff(labels)) + 1 for labels in y]
        pairs = [*zip(x, y, cuts, strict=True)]
        x = [part for of, _, cut in pairs for part in np.split(of, cut)]
        y = [part[0] for _, of, cut in pairs for part in np.split(of, cut)]
    if not data.classes:
        rows = np.argsort(y)[:: max(1, len(y) // 4)]
        return {f"{y[row]:.4g}": [x[row]] for row in rows}
    return {
        name: [x[row] for row in np.flatnonzero(np.equal(y, n))[:EXAMPLES]]
        for n, name in enumerate(data.classes[:10])
    }


def draw_data(data, path):
    """Draws a few recordings of each class."""
    examples = _examples(data)
    figure = Figure(figsize=(9, 0.5 + 1.3 * len(examples)), layout="tight")
    axes = figure.subplots(len(examples), EXAMPLES, squeeze=False, sharey=True)
    for row, (name, recordings) in zip(axes, examples.items(), strict=True):
        row[0].set_ylabel(name)
        for panel, x in zip(row, recordings, strict=False):
            panel.plot(x[:SHOWN], linewidth=0.8)
    figure.legend(axes[0, 0].lines, data.channels[:10], loc="upper right")
    figure.savefig(path)


def draw_scores(scores, path):
    """Draws the mean score of each seed."""
    figure = Figure(figsize=(6, 0.5 + 0.4 * len(scores)), layout="tight")
    axes = figure.subplots()
    for row, values in enumerate(scores.values()):
        axes.plot(np.mean(values, axis=1), [row] * len(values), "o", alpha=0.6)
    axes.set_yticks(range(len(scores)), [*scores])
    axes.invert_yaxis()
    axes.set_xlabel("score on the test recordings, a point for each seed")
    figure.savefig(path)


def draw_answers(classes, y, answers, path):
    """Draws answers along the rows of a test."""
    rows = np.arange(0, len(y), len(y) // DRAWN + 1)
    figure = Figure(figsize=(8, 1 + 0.3 * len(classes)), layout="tight")
    axes = figure.subplots()
    axes.plot(rows, y[rows], "s", color="0.8", label="class")
    axes.plot(rows, answers[rows], ".", markersize=2, label="answer")
    axes.set_yticks(range(len(classes)), classes)
    axes.invert_yaxis()
    axes.set_xlabel("row of the test")
    axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=2)
    figure.savefig(path)
