"""Layers and baselines on the same recordings: a table and a verdict."""

import os
import pathlib
import typing

import numpy as np
import pandas as pd

from keras_rin.recordings import _baselines
from keras_rin.recordings import _recording_networks
from keras_rin.recordings import _report
from keras_rin.recordings import _scores
from keras_rin.recordings._read import recordings_of
from keras_rin.recordings._search import Search
from keras_rin.recordings._split import parts_of
from keras_rin.recordings._store import Store

RECURRENT = "RIN", "GRU", "LSTM"
FEWEST, PASSES = 300, 40  # updates of a training, and passes over recordings
BATCH = 16


def compare(
    data: typing.Any,
    *,
    minutes: float = 5.0,
    updates: int | None = None,
    seeds: int = 5,
    seed: int = 0,
    units: int = 64,
    output: str | os.PathLike = "runs/recordings",
    **columns: typing.Any,
) -> _report.Result:
    """Compares RIN, GRU, LSTM and baselines on recordings.

    Each layer chooses scale, front and learning rate on the validation, and is
    then trained with all but the test. What fits into the minutes is planned
    before. The same call resumes from trainings that were made.

    Args:
        data: `Recordings`, or what `read` takes.
        minutes: Float, the minutes for training. Defaults to 5.0.
        updates: Integer, updates of each training, of which all are made
            whatever they take. Defaults to `None`: 300 or more, in `minutes`.
        seeds: Integer, the number of seeds. Defaults to 5.
        seed: Integer, the first seed. Defaults to 0.
        units: Integer, the units of RIN; the others have about as many
            weights. Defaults to 64.
        output: Folder to write to. Defaults to `"runs/recordings"`.
        **columns: Those of `read`, such as `channels` and `label`.

    Returns:
        `Result`, which prints table and verdict.

    Raises:
        ValueError: Too few recordings, or what `read` raises.
    """
    data = recordings_of(data, columns, needs_recording=True)
    parts = parts_of(data, False)
    count = updates or max(FEWEST, PASSES * len(parts[0].x) // BATCH)
    with Store(output, data, units) as store:
        _report.draw_data(data, pathlib.Path(output, "data.png"))
        baselines = _baselines.scores(parts)
        search = Search(
            _recording_networks.candidates(parts, units),
            store,
            lambda outputs: _validated(outputs, parts[1]),
            range(seed, seed + seeds),
            (count, count),
            None if updates else 60 * minutes,
        )
        search.run()
        return _result(parts, search, baselines, output)


def _validated(outputs, part):
    return np.nan_to_num(_scores.score(outputs, part).mean(), nan=-1e9)


def _result(parts, search, baselines, output):
    """What the trainings show, and its folder."""
    trainings = {family: search.tested(family) for family in search.families}
    scores = {name: [test] for name, (_, test) in baselines.items()}
    validated = {
        name: validation.mean() for name, (validation, _) in baselines.items()
    }
    for name, runs in trainings.items():
        scores[name] = [_scores.score(run.outputs, parts[2]) for run in runs]
        validated[name] = _validated(search.best(name).outputs, parts[1])
    ranked = sorted(scores, key=lambda name: -validated[name])
    layers = [name for name in ranked if name in RECURRENT]
    others = [name for name in ranked if name not in RECURRENT]
    best = min(trainings[layers[0]], key=lambda run: run.end == "diverged")
    named = layers[0], others[0], scores, "recordings", search.missing()
    result = _report.Result(
        pd.DataFrame([_row(name, scores, validated) for name in scores]),
        search.table(),
        _scores.verdict("recurrent layer", *named),
        search.loaded(best).raw_model,
        best.outputs,
        pd.DataFrame(),
        [*_lines(best, layers, scores)],
        str(output),
    )
    _report.write(result, parts)
    return result


def _row(name, scores, validated):
    """A row of the table: median and range over seeds."""
    means = np.nan_to_num(np.mean(scores[name], axis=1))
    low, middle, high = np.quantile(means, [0, 0.5, 1])
    row = {"name": name, "validation": validated[name], "test": middle}
    return row | {"lowest": low, "highest": high}


def _lines(best, layers, scores):
    """What else has to be known."""
    yield f"model.keras is {best.candidate.name}."
    if len(layers) > 1:
        pair = [scores[name] for name in layers[:2]]
        mean, low, high = _scores.difference(*pair)
        yield (
            f"The best on the validation are {layers[0]} and {layers[1]}; on "
            f"the test they differ by {mean:.3f} ({low:.3f} to {high:.3f})."
        )
    if not _baselines.has_numba():
        yield "MiniRocket is not in the table: pip install numba"
