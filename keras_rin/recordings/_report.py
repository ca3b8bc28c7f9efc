"""The folder of a result: report, results, model and its program."""

import json
import pathlib

import keras
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from sklearn.metrics import confusion_matrix

DRAWN = 5_000  # rows of a stream
PROGRAM = '''"""Answers for recordings in files: python predict.py FILE..."""

import pathlib
import sys

import keras

from keras_rin import recordings

CLASSES = {classes!r}
OPTIONS = {options!r}  # of the recordings that were learned
model = keras.models.load_model(pathlib.Path(__file__).with_name("model.keras"))
for path in sys.argv[1:]:
    data = recordings.read(path, labelled=False, **OPTIONS)
    for name, x in zip(data.names, data.x):
        output = keras.ops.convert_to_numpy(model(x[None]))[0]
        print(name, CLASSES[output.argmax()] if CLASSES else output[0])
'''


def write(result, data, rows, entries, best):
    """Writes the folder `result.output`."""
    folder = pathlib.Path(result.output)
    folder.mkdir(parents=True, exist_ok=True)
    write_results(
        folder,
        recordings=len(data.x),
        channels=data.channels,
        classes=data.classes,
        left_out=data.left_out,
        table=result.table,
        verdict=result.verdict,
    )
    sections = ["# Recordings", _lines(repr(data))]
    sections += [_markdown(result.table), _lines(result.verdict)]
    sections += ["![Scores of the models](scores.png)"]
    _draw(entries, folder / "scores.png")
    if best is not None:
        best.raw_model.save(folder / "model.keras")
        program = PROGRAM.format(classes=data.classes, options=data.options)
        (folder / "predict.py").write_text(program, encoding="utf-8")
        sections += _of_model(best, data, rows[1])
    _write_report(folder, sections)


def write_results(folder, **results):
    """Writes `results.json`, where a table is a list of its rows."""
    for name, value in results.items():
        if isinstance(value, pd.DataFrame):
            results[name] = json.loads(value.to_json(orient="records"))
    text = json.dumps(results, indent=1)
    (folder / "results.json").write_text(text + "\n", encoding="utf-8")


def _write_report(folder, sections):
    report = "\n\n".join(sections)
    (folder / "report.md").write_text(report + "\n", encoding="utf-8")


def _lines(text):
    return "  \n".join(text.splitlines())


def _markdown(frame):
    rows = [[*frame.columns], ["---"] * len(frame.columns)]
    for values in frame.astype(object).where(frame.notna(), "").to_numpy():
        rows.append(
            [f"{of:.4g}" if isinstance(of, float) else str(of) for of in values]
        )
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _of_model(best, data, rows):
    """What `model.keras` is, and its confusion matrix."""
    scale, front = best.preparation
    answers = np.array([best.scored[n] for n in rows.tolist()])
    alone = [
        keras.ops.convert_to_numpy(best.raw_model(data.x[n][None]))[0]
        for n in rows
    ]
    close = np.isclose(alone, answers, rtol=1e-3, atol=1e-3).all()
    text = f"`model.keras` is {best.name}; scale: {scale}, front: {front}. "
    text += (
        "It answers every test recording as it was scored."
        if close
        else "It does not answer as it was scored, because values are rounded "
        "to float32: on JAX set `JAX_ENABLE_X64=1`."
    )
    text += " Call `model(x)`, as `predict.py` does, where small changes of "
    text += "large values count: `predict` rounds its inputs to float32."
    if not data.classes:
        return [text]
    answers = answers.argmax(axis=1)
    return [text, _confusion(data.classes, data.y[rows], answers)]


def _confusion(classes, y, answers):
    counts = confusion_matrix(y, answers, labels=np.arange(len(classes)))
    matrix = pd.DataFrame(counts, columns=classes)
    matrix.insert(0, "true \\ answer", classes, allow_duplicates=True)
    return _markdown(matrix)


def _draw(entries, path):
    figure = Figure(figsize=(6, 0.5 + 0.4 * len(entries)), layout="tight")
    axes = figure.subplots()
    for row, scores in enumerate(entries.values()):
        means = np.mean(scores, axis=1) if len(scores) else []
        axes.plot(means, [row] * len(means), "o", alpha=0.6)
    axes.set_yticks(range(len(entries)), [*entries])
    axes.invert_yaxis()
    axes.set_xlabel("score on the test recordings, a point for each seed")
    figure.savefig(path)


def write_stream(stream, log, answers, folder):
    """Writes report and results of a stream, with answers to the test rows."""
    write_results(
        folder,
        channels=log.channels,
        classes=log.classes,
        tested=log.tested,
        header=stream.form,
        table=stream.table,
        networks=stream.networks,
        verdict=stream.verdict,
    )
    _, y = log.rows("test")
    _draw_stream(log.classes, y, answers, folder / "stream.png")
    sections = [
        "# Stream",
        _lines(log.summary),
        "Networks, by their accuracy on the validation rows:",
        _markdown(stream.networks),
        "On the test rows:",
        _markdown(stream.table),
        _lines(stream.verdict),
        "![Answers along the test rows](stream.png)",
        _confusion(log.classes, y, answers),
        _lines(f"{stream.header}\n{stream.check}"),
    ]
    _write_report(folder, sections)


def _draw_stream(classes, y, answers, path):
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
