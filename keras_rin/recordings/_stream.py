"""A network for an endless stream, from a log with a label in each row."""

import itertools
import json
import pathlib
import tempfile
import time as clock
import typing
from collections.abc import Sequence

import keras
import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from tqdm import tqdm

from keras_rin import export
from keras_rin.recordings import _device
from keras_rin.recordings import _log
from keras_rin.recordings._read import read
from keras_rin.recordings._training import EPOCHS
from keras_rin.recordings._training import Training

SETTLED = 20  # right answers in a row
NETWORKS = ("RIN", 12), ("GRU", 7), ("RIN", 24), ("GRU", 14)  # and units
RATES = {"RIN": (0.01, 0.003, 0.03), "GRU": (0.03, 0.01, 0.1)}
TRAININGS = "trainings.jsonl"
LOSS = 0.01  # of accuracy, that integers may cost


class Stream(typing.NamedTuple):
    """What `train_stream` found, which prints its tables.

    Attributes:
        table: DataFrame, a row for each baseline, training and header, with the
            accuracy over all rows of the test, the steps from a change to the
            first of 20 right answers in a row (median), and the share of
            changes after which that never came.
        networks: DataFrame, a row for each training of the choice.
        model: The trained Keras model, which reads rows as in the log.
        classes: List of strings, the names of the classes in order.
        kept: String, the form of the header that is in the folder.
        header: `keras_rin.export.StreamingFile` of the header.
        check: String, what `check_header` says of the test rows.
    """

    table: pd.DataFrame
    networks: pd.DataFrame
    model: keras.Model
    classes: list
    kept: str
    header: export.StreamingFile
    check: str

    def __repr__(self) -> str:
        form = {"float_format": "{:.3f}".format, "na_rep": ""}
        return "\n\n".join(
            [
                "Networks, by their accuracy on the validation rows:",
                self.networks.to_string(index=False, **form),
                "On the test rows:",
                self.table.to_string(index=False, **form),
                f"{self.header}\n{self.check}",
                f"{self.header.path} is the header. main.c beside it reads "
                "rows as in the log, and prints the class of each.",
            ]
        )


def train_stream(
    log: object,
    *,
    label: str | None = None,
    group: str | None = None,
    time: str | None = None,
    channels: Sequence[str] | None = None,
    join: bool = False,
    window: int = 128,
    flash: int = 4096,
    minutes: float = 5.0,
    seeds: int = 3,
    seed: int = 0,
    separator: str | None = None,
    decimal: str | None = None,
    output: str = "runs/stream",
) -> Stream:
    """Trains a network that follows an endless stream, and writes it in C.

    Small networks are trained on joined windows, with a loss at every step.
    The best one on validation rows is trained again, and tested on rows of
    groups, or of the end of the log, that no training has seen. A call that was
    stopped goes on from the trainings in the folder `output`.

    Args:
        log: A CSV or Parquet file, or a DataFrame, with a label in each row;
            with `join`, recordings as `read` takes them.
        label: Column of the label.
        group: Column of what differs in the test, such as a person or a day.
            Defaults to a column of such a name; without one the last rows are
            the test.
        time: Column of the clock, which is left out.
        channels: Names of the channels; all other columns are left out.
        join: Whether `log` are short recordings of one class each.
        window: Rows of a window; two are joined to train on.
        flash: Bytes of flash for the weights and the code of the header.
        minutes: Minutes to train for.
        seeds: Trainings of the best network.
        seed: Seed of the first training.
        separator: Character between the cells of a text file.
        decimal: Decimal mark of a text file, `"."` or `","`.
        output: Folder to write to.

    Returns:
        `Stream`, which prints what was tried and tested.

    Raises:
        ValueError: A log that cannot be read, or can be read in two ways.
    """
    end = clock.monotonic() + 60 * minutes
    if join:
        recordings = read(
            log,
            label=label,
            time=time,
            channels=channels,
            separator=separator,
            decimal=decimal,
        )
        rows = _log.join_recordings(recordings)
    else:
        columns = label, group, time, channels
        rows = _log.read_log(log, *columns, separator, decimal)
    print(rows.summary, flush=True)
    folder = pathlib.Path(output)
    folder.mkdir(parents=True, exist_ok=True)
    training = Training(rows, window, seed)
    trainings = 3 * len(NETWORKS) + seeds
    try:
        with tqdm(total=trainings * EPOCHS, unit="epoch") as progress:
            networks = _search(training, flash, folder, end, seeds, progress)
            best = networks.loc[networks["accuracy"].idxmax()]
            model, scores = _repeat(training, best, seeds, progress)
    except KeyboardInterrupt as error:
        raise KeyboardInterrupt(
            f"stopped. The same call goes on from the trainings that are "
            f"finished, in {folder / TRAININGS}."
        ) from error
    kept, header, check, headers = _write(model, rows, folder)
    table = pd.DataFrame([*_baselines(rows, window), *scores, *headers])
    networks = networks.sort_values("accuracy", ascending=False)
    result = Stream(table, networks, model, rows.classes, kept, header, check)
    model.save(folder / "model.keras")
    text = json.dumps(
        {
            "channels": rows.channels,
            "classes": rows.classes,
            "tested": rows.tested,
            "header": kept,
            "table": json.loads(table.to_json(orient="records")),
            "networks": json.loads(networks.to_json(orient="records")),
        },
        indent=1,
    )
    (folder / "results.json").write_text(text + "\n")
    return result


def _search(training, flash, folder, end, seeds, progress):
    """The accuracy of each network and learning rate on validation rows."""
    path = folder / TRAININGS
    settings = [training.log.summary, training.window, training.seed]
    lines = path.read_text().splitlines() if path.exists() else []
    runs = [run for run in map(json.loads, lines) if run["of"] == settings]
    kept = {(run["layer"], run["units"], run["rate"]): run for run in runs}
    networks = _that_fit(training, flash)
    x, y = training.log.rows("validate")
    runs, longest = [], 0.0
    for n, network in itertools.product(range(3), networks):
        case = (*network, RATES[network[0]][n])
        start = clock.monotonic()
        if case in kept:
            runs.append(kept[case])
        elif not runs or start + longest * (seeds + 1) < end:
            progress.set_description("{}({}), rate {}".format(*case))
            model = training.fit(*case, ("train",), training.seed, progress)
            accuracy = np.mean(_answers(model, x) == y) if model else 0.0
            run = {"layer": case[0], "units": case[1], "rate": case[2]}
            run |= {"accuracy": float(accuracy), "diverged": model is None}
            with path.open("a") as file:
                file.write(json.dumps({"of": settings, **run}) + "\n")
            runs.append(run)
            longest = max(longest, clock.monotonic() - start)
    return pd.DataFrame(runs).drop(columns="of", errors="ignore")


def _that_fit(training, flash):
    """The networks whose weights and code take at most as much flash."""
    sizes = {}
    for network in NETWORKS:
        with tempfile.TemporaryDirectory() as folder:
            form = "int8 weights"
            made = _device.write(
                training.build(*network), training.log, form, folder
            )
            sizes[network] = made.weight_bytes + (made.code_bytes or 0)
    networks = [network for network, size in sizes.items() if size <= flash]
    if not networks:
        raise ValueError(
            f"No network takes at most {flash} bytes of flash; the smallest "
            f"takes {min(sizes.values())}: --flash={min(sizes.values())}"
        )
    return networks


def _repeat(training, best, seeds, progress):
    """The model of the first seed, and what each seed has on the test rows."""
    x, y = training.log.rows("test")
    layer, units = best["layer"], int(best["units"])
    scores, weights = [], None
    for seed in range(training.seed, training.seed + seeds):
        progress.set_description(f"{layer}({units}), seed {seed}")
        parts = "train", "validate"
        options = best["rate"], parts, seed, progress
        model = training.fit(layer, units, *options)
        name = f"{layer}({units}), seed {seed}"
        if model is None:
            scores.append({"name": f"{name}, diverged"})
            continue
        scores.append({"name": name} | _score(_answers(model, x), y))
        weights = weights or model.get_weights()
    if weights is None:
        raise ValueError("Every training diverged: try another --seed.")
    model = training.models[layer, units]
    model.set_weights(weights)
    return model, scores


def _answers(model, x):
    return model.predict(x[None], verbose=0)[0].argmax(axis=-1)


def _score(answers, y):
    """Accuracy, and steps to settle after a change of the class."""
    right = answers == y
    changes = np.flatnonzero(np.diff(y)) + 1
    steps = []
    for of in np.split(right, changes)[1:]:
        runs = np.convolve(of, np.ones(SETTLED, int), "valid") == SETTLED
        steps.append(runs.argmax() if runs.any() else np.inf)
    settle = float(np.median(steps)) if steps else np.nan
    return {
        "accuracy": float(right.mean()),
        "steps to settle": settle,
        "never": float(np.isinf(steps).mean()) if steps else np.nan,
    }


def _baselines(log, window):
    """The most frequent class, and a regression on a sliding window."""
    x, y = log.rows("train", "validate")
    x_test, y_test = log.rows("test")
    most = np.full(len(y_test), np.bincount(y).argmax())
    regression = make_pipeline(StandardScaler(), LogisticRegression())
    every = slice(None, None, max(1, len(y) // 10_000))
    regression.fit(_sliding(x, window)[every], y[every])
    named = f"logistic regression on the last {window} rows"
    return [
        {"name": "most frequent class"} | _score(most, y_test),
        {"name": named}
        | _score(regression.predict(_sliding(x_test, window)), y_test),
    ]


def _sliding(x, window):
    """Mean, deviation and mean change of each channel over the last rows."""
    frame = pd.DataFrame(x)
    rolling = frame.rolling(window, min_periods=1)
    changes = frame.diff().abs().rolling(window, min_periods=1).mean()
    columns = [rolling.mean(), rolling.std(ddof=0), changes]
    return pd.concat(columns, axis=1).fillna(0).to_numpy()


def _write(model, log, folder):
    """The header that is kept, its check, and what each form has on the test.

    The smallest form is kept that costs next to no accuracy.
    """
    x, y = log.rows("test")
    scores, kept = [], "float32"
    for form in _device.FORMS:
        file = _device.write(model, log, form, folder)
        row = {"name": f"header, {form}", "bytes of weights": file.weight_bytes}
        if _device.can_compile():
            answers = _device.answers(folder, x, log.classes)
            row |= _score(answers, y)
        scores.append(row)
        worst = scores[0].get("accuracy", 0) - LOSS
        kept = form if row.get("accuracy", 0) >= worst else kept
    header = _device.write(model, log, kept, folder)
    check = ""
    if _device.can_compile():
        check = str(_device.check(model, log, kept, header.path))
    return kept, header, check, scores
