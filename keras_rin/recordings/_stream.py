"""A network for an endless stream, from a log with a label in each row."""

import pathlib
import time as clock
import typing
import zlib
from collections.abc import Sequence

import keras
import pandas as pd

from keras_rin import export
from keras_rin._version import __version__
from keras_rin.recordings import _baselines
from keras_rin.recordings import _device
from keras_rin.recordings import _log
from keras_rin.recordings._read import read
from keras_rin.recordings._report import write_stream
from keras_rin.recordings._runs import Runs
from keras_rin.recordings._search import Search
from keras_rin.recordings._search import answers
from keras_rin.recordings._verdict import stream_score
from keras_rin.recordings._verdict import stream_verdict

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
        verdict: String, whether a network is ahead of the baselines.
        model: The trained Keras model, which reads rows as in the log.
        classes: List of strings, the names of the classes in order.
        form: String, the form of the header that is in the folder.
        header: `keras_rin.export.Header`.
        check: String, what `Header.compare` says of the test rows.
    """

    table: pd.DataFrame
    networks: pd.DataFrame
    verdict: str
    model: keras.Model
    classes: list
    form: str
    header: export.Header
    check: str

    def __repr__(self) -> str:
        form = {"float_format": "{:.3f}".format, "na_rep": ""}
        return "\n\n".join(
            [
                "Networks, by their accuracy on the validation rows:",
                self.networks.to_string(index=False, **form),
                "On the test rows:",
                self.table.to_string(index=False, **form),
                self.verdict,
                f"{self.header}\n{self.check}",
                f"{self.header.path} is the header. main.c beside it reads "
                "rows as in the log, and prints the class of each; report.md "
                "has a picture of the answers.",
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

    A MinGRU, a GRU and a RIN, as large as `flash` permits and of about 2,000
    weights at most, are trained on joined windows with a loss at every step,
    and compared on validation rows. The best network is trained again, four
    times as long, and tested on rows of groups, or of the end of the log, that
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
    text: dict = {"separator": separator, "decimal": decimal}
    if join:
        text |= {"label": label, "time": time, "channels": channels}
        rows = _log.join_recordings(read(log, **text))
    else:
        rows = _log.read_log(log, label, group, time, channels, **text)
    print(rows.summary, flush=True)
    folder = pathlib.Path(output)
    folder.mkdir(parents=True, exist_ok=True)
    content = zlib.crc32(rows.x.tobytes())
    job = minutes, flash, window, seed, __version__
    runs = Runs(folder, [rows.summary, content, *job])
    search = Search(rows, window, runs, end, range(seed, seed + seeds))
    try:
        tried, model, scores = search.run(flash)
    except KeyboardInterrupt as error:
        raise KeyboardInterrupt(
            f"stopped. The same call resumes from {runs.folder}."
        ) from error
    baselines = _baselines.of_stream(rows, window)
    form, header, check, headers = _write(model, rows, folder, flash)
    result = Stream(
        pd.DataFrame([*baselines, *scores, *headers]),
        pd.DataFrame(
            [(*case, accuracy) for case, accuracy in tried],
            columns=["layer", "units", "rate", "accuracy"],
        ),
        stream_verdict(scores, baselines),
        model,
        rows.classes,
        form,
        header,
        check,
    )
    model.save(folder / "model.keras")
    x_test, _ = rows.rows("test")
    write_stream(result, rows, answers(model, x_test), folder)
    return result


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
            row |= stream_score(_device.answers(folder, x, log.classes), y)
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
