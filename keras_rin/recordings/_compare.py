"""Layers and baselines on the same recordings: a table and a verdict."""

import os
import pathlib
import typing

import numpy as np
import pandas as pd

from keras_rin.recordings import _baselines
from keras_rin.recordings import _report
from keras_rin.recordings._forms import said_of
from keras_rin.recordings._networks import recording_candidates
from keras_rin.recordings._read import load
from keras_rin.recordings._recordings import Recordings
from keras_rin.recordings._scores import difference
from keras_rin.recordings._scores import finite
from keras_rin.recordings._scores import score
from keras_rin.recordings._scores import verdict
from keras_rin.recordings._search import Search
from keras_rin.recordings._split import described
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
    output: str | os.PathLike | None = "runs/recordings",
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
        output: Folder to write to, or `None`. Defaults to `"runs/recordings"`.
        **columns: Those of `read`, such as `channels` and `label`.

    Returns:
        `Result`, which prints table and verdict.

    Raises:
        ValueError: Too few recordings, or what `read` raises.
    """
    if not isinstance(data, Recordings):
        data = load(data, said_of(**columns), True)
    parts = parts_of(data, False)
    print(f"{data}\n{described(parts)}", flush=True)
    store = Store(output, *data.content(), units)
    if output is not None:
        _report.draw_data(data, pathlib.Path(output, "data.png"))
    count = updates or max(FEWEST, PASSES * len(parts[0].x) // BATCH)
    search = Search(
        recording_candidates(parts, units),
        store,
        lambda outputs: np.nan_to_num(
            score(outputs, parts[1]).mean(), nan=-1e9
        ),
        range(seed, seed + seeds),
        (count, count),
        None if updates else 60 * minutes,
    )
    try:
        baselines = _baselines.scores(parts)
        search.run()
        result = _result(data, parts, search, baselines, output)
    finally:
        store.close()
    return result


def _result(data, parts, search, baselines, output):
    """What the trainings show, and its folder."""
    trainings = {family: search.tested(family) for family in search.finals}
    scores = {name: [test] for name, (_, test) in baselines.items()}
    validated = {name: of.mean() for name, (of, _) in baselines.items()}
    for name, of in trainings.items():
        scores[name] = [score(training.outputs, parts[2]) for training in of]
        validated[name] = search.score(search.best(name).outputs)
    ranked = sorted(scores, key=lambda name: -validated[name])
    layers = [name for name in ranked if name in RECURRENT]
    others = [name for name in ranked if name not in RECURRENT]
    compared = layers[0], others[0], scores, "recordings", search.missing()
    texts = [verdict("recurrent layer", *compared)]
    if len(layers) > 1:
        first, second = layers[:2]
        mean, low, high = difference(scores[first], scores[second])
        texts.append(
            f"On the validation {first} is the best layer and {second} the next; "
            f"on the test it is ahead by {mean:.3f} ({low:.3f} to {high:.3f})."
        )
    if not _baselines.has_numba():
        texts.append("MiniRocket is not in the table: pip install numba")
    table = [
        _row(name, scores[name], validated[name], search) for name in scores
    ]
    finite_ones = [
        of for of in trainings[layers[0]] if np.isfinite(of.outputs).all()
    ]
    best = (finite_ones or trainings[layers[0]])[0]
    result = _report.Result(
        pd.DataFrame(table).convert_dtypes(),
        pd.DataFrame(search.table()),
        "\n".join(texts),
        search.loaded(best).raw_model,
        best.outputs,
        None,
        [f"model.keras is {best.candidate.name}."],
        None if output is None else str(output),
    )
    if output is not None:
        sections = ["![Scores](scores.png)"]
        if data.classes:
            answers = best.outputs.argmax(axis=-1)
            sections.append(
                _report.confusion(data.classes, parts[2].y, answers)
            )
        _report.draw_scores(
            {name: finite(of) for name, of in scores.items()},
            pathlib.Path(output, "scores.png"),
        )
        _report.write(result, data, sections)
    return result


def _row(name, scores, validated, search):
    """A row of the table: median and range over seeds."""
    means = np.nan_to_num(np.mean(scores, axis=1))
    low, middle, high = np.quantile(means, [0, 0.5, 1])
    row = {"name": name, "validation": validated, "test": middle}
    row |= {"lowest": low, "highest": high}
    if name in search.finals:
        finals = search.finals[name]
        network = search.network(finals[0].candidate)
        row["weights"] = network.raw_model.count_params()
        row["cut"] = sum(of.is_cut for of in finals)
        row["diverged"] = sum(
            not np.isfinite(of.outputs).all() for of in finals
        )
    return row
