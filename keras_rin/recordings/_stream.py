"""A network for an endless stream, from a log with a label in each row."""

import json
import pathlib
import time as clock
import typing
import zlib
from collections.abc import Sequence

import keras
import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from tqdm import tqdm

from keras_rin import export
from keras_rin._version import __version__
from keras_rin.recordings import _device
from keras_rin.recordings import _log
from keras_rin.recordings._read import read
from keras_rin.recordings._runs import Runs
from keras_rin.recordings._training import EPOCHS
from keras_rin.recordings._training import LAYERS
from keras_rin.recordings._training import Training

SETTLED = 20  # right answers in a row
# Layers and units, tried in this order: about 1,000 weights, then 350.
NETWORKS = (
    *(("MinGRU", 47), ("GRU", 14), ("RIN", 24)),
    *(("MinGRU", 16), ("GRU", 7), ("RIN", 12)),
)
TRAINING = 0.8  # of the minutes; the rest is for headers and tests
LOSS = 0.01  # of accuracy, that integers may cost


class Stream(typing.NamedTuple):
    """What `train_stream` found, which prints its tables.

    Attributes:
        table: DataFrame, a row for each baseline, training and header, with the
            accuracy over all rows of the test, the steps from a change to the
            first of 20 right answers in a row (median), and the share of
            changes after which that never came.
        networks: DataFrame, a row for each training of the search; one that
            diverged has the accuracy 0.
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

    Small networks of MinGRU, GRU or RIN are trained on joined windows, with a
    loss at every step, and compared on validation rows. The best network is
    trained again, and tested on rows of groups, or of the end of the log, that
    no training has seen. A search that was stopped resumes.

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
        flash: Bytes of flash for weights and code of the header, in integers
            where that is smallest.
        minutes: Minutes for training, headers and tests.
        seeds: Trainings of the best network, fewer when the time is over.
        seed: Seed of the first training.
        separator: Character between the cells of a text file.
        decimal: Decimal mark of a text file, `"."` or `","`.
        output: Folder to write to.

    Returns:
        `Stream`, which prints what was tried and tested.

    Raises:
        ValueError: A log that cannot be read, or can be read in two ways.
    """
    end = clock.monotonic() + 60 * minutes * TRAINING
    form: dict = {"separator": separator, "decimal": decimal}
    if join:
        form |= {"label": label, "time": time, "channels": channels}
        rows = _log.join_recordings(read(log, **form))
    else:
        rows = _log.read_log(log, label, group, time, channels, **form)
    print(rows.summary, flush=True)
    folder = pathlib.Path(output)
    folder.mkdir(parents=True, exist_ok=True)
    training = Training(rows, window, seed)
    content = zlib.crc32(rows.x.tobytes())
    job = minutes, training.window, seed, __version__
    runs = Runs(folder, [rows.summary, content, *job])
    try:
        with tqdm(unit="epoch", desc="sizes of headers") as progress:
            networks = _that_fit(training, flash)
            progress.reset((3 * len(networks) + seeds) * EPOCHS)
            ranking = _search(training, networks, runs, end, seeds, progress)
            model, scores = _repeat(
                training, ranking[0], runs, end, seeds, progress
            )
    except KeyboardInterrupt as error:
        raise KeyboardInterrupt(
            f"stopped. The same call resumes from {runs.folder}."
        ) from error
    kept, header, check, headers = _write(model, rows, folder, flash)
    table = pd.DataFrame([*_baselines(rows, window), *scores, *headers])
    tried = pd.DataFrame(
        ranking, columns=["layer", "units", "rate", "accuracy"]
    )
    result = Stream(table, tried, model, rows.classes, kept, header, check)
    model.save(folder / "model.keras")
    results = {
        "channels": rows.channels,
        "classes": rows.classes,
        "tested": rows.tested,
        "header": kept,
        "table": json.loads(table.to_json(orient="records")),
        "networks": json.loads(tried.to_json(orient="records")),
    }
    text = json.dumps(results, indent=1)
    (folder / "results.json").write_text(text + "\n")
    return result


def _that_fit(training, flash):
    """The networks whose smallest header takes at most as much flash."""
    sizes = {}
    for network in NETWORKS:
        model = training.build(*network)
        _, sizes[network] = next(_device.sizes(model, training.log))
    networks = [network for network, size in sizes.items() if size <= flash]
    if not networks:
        raise ValueError(
            f"No network takes at most {flash} bytes of flash; the smallest "
            f"takes {min(sizes.values())}: --flash={min(sizes.values())}"
        )
    return networks


def _search(training, networks, runs, end, seeds, progress):
    """Layer, units, rate and accuracy on the validation rows, the best first.

    Each network is trained at its usual rate, then those that were best at
    others, while there is time left to train the best one for each seed.
    """
    x, y = training.log.rows("validate")
    accuracies: dict = {}

    def accuracy(network):
        rates = LAYERS[network[0]][1]
        return accuracies.get((*network, rates[0]), 0.0)

    for n in range(3):
        for network in sorted(networks, key=accuracy, reverse=True):
            case = (*network, LAYERS[network[0]][1][n])
            score = runs.get(*case)
            needed = training.compiling + training.seconds * (seeds + 1)
            if (
                score is None
                and accuracies
                and clock.monotonic() + needed > end
            ):
                continue
            if score is None:
                progress.set_description("{}({}), rate {}".format(*case))
                model = training.fit(*case, ("train",), training.seed, progress)
                score = np.mean(_answers(model, x) == y) if model else 0.0
                runs.put(float(score), *case)
            accuracies[case] = score
    cases = sorted(accuracies, key=lambda case: -accuracies[case])
    return [(*case, accuracies[case]) for case in cases]


def _repeat(training, best, runs, end, seeds, progress):
    """The model of the first seed, and what each seed has on the test rows.

    The time ends after a seed as well.
    """
    x, y = training.log.rows("test")
    layer, units, rate, _ = best
    scores, first = [], None
    for seed in range(training.seed, training.seed + seeds):
        if first and clock.monotonic() + training.seconds > end:
            break
        case = layer, units, rate, seed
        row = runs.get(*case, "test")
        if row is None:
            row = {"name": f"{layer}({units}), seed {seed}"}
            progress.set_description(row["name"])
            parts = "train", "validate"
            model = training.fit(*case[:3], parts, seed, progress)
            if model is None:
                row["name"] += ", diverged"
            else:
                row |= _score(_answers(model, x), y)
                model.save_weights(runs.weights(*case))
            runs.put(row, *case, "test")
        scores.append(row)
        first = first or ("accuracy" in row and case)
    if not first:
        raise ValueError("Every training diverged: try another --seed.")
    model = training.build(layer, units)
    model.load_weights(runs.weights(*first))
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


def _write(model, log, folder, flash):
    """The header that is kept, its check, and what each form has on the test.

    Of those that fit, the smallest is kept that costs next to no accuracy.
    """
    x, y = log.rows("test")
    scores, fitting = [], dict[str, float]()
    for form, size in _device.sizes(model, log):
        row = {"name": f"header, {form}", "flash, bytes": size}
        if _device.can_compile():
            _device.write(model, log, form, folder)
            row |= _score(_device.answers(folder, x, log.classes), y)
        scores.append(row)
        if size <= flash or not fitting:
            fitting[form] = row.get("accuracy", 0)
    worst = max(fitting.values()) - LOSS
    chosen = next(form for form in fitting if fitting[form] >= worst)
    header = _device.write(model, log, chosen, folder)
    check = ""
    if _device.can_compile():
        check = str(_device.check(model, log, chosen, header.path))
    return chosen, header, check, scores[::-1]
