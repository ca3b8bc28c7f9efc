"""A network for an endless stream: what is read, tested on, and written."""

import json
import re
import shutil
import subprocess

import keras
import numpy as np
import pandas as pd
import pytest

from keras_rin import recordings
from keras_rin.recordings import _baselines
from keras_rin.recordings import _command
from keras_rin.recordings import _log
from keras_rin.recordings import _search
from keras_rin.recordings import _training
from keras_rin.recordings._verdict import stream_score
from keras_rin.recordings._verdict import stream_verdict

pytestmark = pytest.mark.one_backend
PEOPLE = ["ann", "bob", "eve", "joe", "kim", "sue"]


@pytest.fixture(autouse=True)
def small(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(_search.LAYERS, "MinGRU")
    for name, (layer, _, rates) in [*_search.LAYERS.items()]:
        monkeypatch.setitem(_search.LAYERS, name, (layer, (200, 3), rates))
    monkeypatch.setattr(_search, "EPOCHS", 2)
    monkeypatch.setattr(_search, "LONGER", 3)
    monkeypatch.setattr(_search, "UPDATES", 3)


def log(people=PEOPLE, rows=300, seed=0):
    """Two waves with an offset, of a speed that the label names."""
    rng = np.random.default_rng(seed)
    frames = []
    for person in people:
        label = np.repeat(rng.permutation(np.arange(6) % 2), rows // 6)
        phase = np.cumsum(np.where(label, 0.9, 0.2)) + rng.normal()
        frame = {"t": np.arange(rows) / 50, "ax": 9.81 + np.sin(phase)}
        frame |= {"ay": np.cos(phase), "person": person}
        frames.append(
            pd.DataFrame(
                frame | {"activity": np.array(["slow", "fast"])[label]}
            )
        )
    return pd.concat(frames, ignore_index=True)


def missing(frame):
    frame.loc[7, "ax"] = np.nan
    return frame


def rows_of(frame, **columns):
    columns = {"label": None, "group": None, "time": None} | columns
    return _log.read_log(
        frame, **columns, channels=None, separator=None, decimal=None
    )


def test_a_log_is_tested_on_whole_groups():
    frame = log()
    rows = rows_of(frame)
    assert rows.classes == ["fast", "slow"]
    assert rows.channels == ["ax", "ay"]
    np.testing.assert_array_equal(rows.x, frame[["ax", "ay"]])
    parts = pd.Series(rows.part).groupby(frame["person"].to_numpy()).unique()
    assert sorted(part for (part,) in parts) == [
        *["test"] * 2,
        *["train"] * 3,
        "validate",
    ]
    for name in parts[[part[0] == "test" for part in parts]].index:
        assert name in rows.summary


def test_without_groups_the_last_rows_are_the_test():
    rows = rows_of(log().drop(columns="person"), time="t")
    assert rows.part[0] == "train" and rows.part[-1] == "test"
    changes = np.flatnonzero(rows.part[1:] != rows.part[:-1])
    assert len(changes) == 2
    assert np.sum(rows.part == "test") == 540


def test_windows_stay_in_one_piece_and_part():
    frame = log()
    frame["row"] = np.arange(len(frame)) * 1.0
    rows = rows_of(frame.drop(columns="ax"), time="row")
    index = rows._replace(x=np.arange(len(rows.y))[:, None])
    starts = rows.starts(("train",), 40)
    x, y = index.windows(starts, 40, 2, 500, np.random.default_rng(0))
    assert x.shape == (500, 80, 1) and y.shape == (500, 80)
    x = x[..., 0].astype(int)
    np.testing.assert_array_equal(y, rows.y[x])
    for window in (x[:, :40], x[:, 40:]):
        assert (np.diff(window) == 1).all()
        person = frame["person"].to_numpy()[window]
        assert (person == person[:, :1]).all()
        assert (rows.part[window] == "train").all()
    assert len(starts) == 3 * (300 - 40 + 1)


def test_short_recordings_are_joined():
    rng = np.random.default_rng(0)
    x = [rng.normal(size=(n, 1)) for n in rng.integers(20, 40, 24)]
    y = np.arange(24) % 3
    rows = _log.join_recordings(
        recordings.read({"x": x, "y": [f"c{n}" for n in y]})
    )
    assert len(rows.y) == sum(map(len, x))
    first = np.flatnonzero(np.diff(rows.piece, prepend=-1))
    assert len(first) == 24
    for part in _log.PARTS:
        assert (np.diff(rows.y[first][rows.part[first] == part]) != 0).all()
    for at in first:
        (number,) = [n for n, of in enumerate(x) if of[0, 0] == rows.x[at, 0]]
        assert rows.y[at] == y[number]
    # Each class is in each part.
    for part in _log.PARTS:
        assert set(rows.rows(part)[1]) == {0, 1, 2}


@pytest.mark.parametrize(
    ("frame", "columns", "message"),
    [
        (log().drop(columns="activity"), {}, "by --label"),
        (log().assign(label=0), {}, "may be activity or label; name"),
        (log(PEOPLE[:2]), {}, "2 groups"),
        (log(), {"group": "day"}, "no column 'day'"),
        (log().assign(activity="rest"), {}, "one class alone"),
        (missing(log()), {}, 'row 7, column "ax"'),
    ],
)
def test_a_log_that_cannot_be_read_is_refused(frame, columns, message):
    with pytest.raises(ValueError, match=message):
        rows_of(frame, **columns)


def test_settling_is_counted_from_each_change():
    y = np.repeat([0, 1, 0], [100, 80, 60])
    answers = y.copy()
    answers[100:130] = 0  # 30 steps late
    answers[180:] = 1  # never
    score = stream_score(answers, y)
    assert score["accuracy"] == 1 - 90 / 240
    assert score["never"] == 0.5
    assert score["steps to settle"] == np.inf  # the mean of 30 and never
    answers[185:] = 0
    assert stream_score(answers, y)["steps to settle"] == (30 + 5) / 2


def test_validation_chooses_the_window_of_the_regression(monkeypatch):
    def regression(log, window, tested, *parts):
        _, y = log.rows(tested)
        is_right = window == (16 if tested == "validate" else 32)
        return y if is_right else 1 - y, y

    monkeypatch.setattr(_baselines, "_regression", regression)
    _, row = _baselines.of_stream(rows_of(log()), 32)
    assert row["name"].endswith("last 16 rows") and row["accuracy"] == 0


@pytest.mark.parametrize(
    ("accuracies", "sentence"),
    [
        ([0.9, 0.8], "A network pays: it has an accuracy of 0.850 (0.800 to"),
        ([0.9, 0.6], "These rows do not show that a network is needed"),
        ([0.6, 0.7], "No network is needed for the accuracy: .* settles in 20"),
    ],
)
def test_the_verdict_compares_with_the_best_baseline(accuracies, sentence):
    steps = "steps to settle"
    baselines = [
        {"name": "most frequent class", "accuracy": 0.5, steps: np.inf},
        {"name": "regression", "accuracy": 0.7, steps: 80.5},
    ]
    networks = [
        {"accuracy": of, steps: settled}
        for of, settled in zip(accuracies, (18, 22), strict=True)
    ]
    text = stream_verdict([*networks, {"name": "diverged"}], baselines)
    assert re.match(sentence.replace("(", r"\("), text), text
    assert "regression 0.700. After a change" in text
    baselines[1][steps] = np.inf  # after most changes never
    assert "After" not in stream_verdict(networks, baselines)


@pytest.fixture
def trainings(monkeypatch):
    """Those that are made, each without an update."""
    made = []

    def train(search, epochs, layer, units, rate, seed, *parts):
        made.append((epochs, layer, units, rate, seed, *parts))
        keras.utils.set_random_seed(seed)
        return search.build(layer, units)

    monkeypatch.setattr(_search.Search, "_train", train)
    return made


@pytest.mark.skipif(not shutil.which("gcc"), reason="the header is compiled")
@pytest.mark.parametrize(
    "is_trained", [False, pytest.param(True, marks=pytest.mark.exhaustive)]
)
def test_the_header_has_the_printed_accuracy(is_trained, tmp_path, request):
    if not is_trained:
        request.getfixturevalue("trainings")
    path = tmp_path / "log.csv"
    log().to_csv(path, index=False)
    result = recordings.train_stream(path, window=32, seeds=2)
    names = (
        "most frequent class logistic regression on the last (32|16|8|4) rows"
    )
    assert re.fullmatch(names, " ".join(result.table["name"][:2]))
    command = [
        "gcc",
        "-Iruns/stream",
        "runs/stream/main.c",
        "-o",
        "program",
        "-lm",
    ]
    subprocess.run(command, check=True)
    frame = pd.read_csv(path)
    tested = json.loads((tmp_path / "runs/stream/results.json").read_text())[
        "tested"
    ]
    frame = frame[frame["person"].isin(tested)]
    text = "\n".join(
        f"{x} {y}" for x, y in zip(frame["ax"], frame["ay"], strict=True)
    )
    output = subprocess.check_output(["./program"], input=text.encode())
    right = np.array(output.decode().split()) == frame["activity"]
    row = result.table[result.table["name"] == f"header, {result.form}"]
    assert abs(right.mean() - row["accuracy"].item()) < 1e-9
    assert f"{right.mean():.3f}" in str(result)
    x = frame[["ax", "ay"]].to_numpy("float32")[None]
    answers = result.model.predict(x, verbose=0)[0].argmax(-1)
    of_model = np.mean(np.array(result.classes)[answers] == frame["activity"])
    first = result.table[result.table["name"].str.endswith("seed 0")]
    assert abs(of_model - first["accuracy"].item()) < 1e-9
    report = (tmp_path / "runs/stream/report.md").read_text()
    matrix = re.findall(r"^\| \S+ \| (\d+) \| (\d+) \|$", report, re.M)
    matrix = np.array(matrix, int)
    assert np.trace(matrix) / matrix.sum() == of_model
    assert result.verdict in report
    assert (tmp_path / "runs/stream/stream.png").stat().st_size > 5_000


def test_a_stopped_search_goes_on(trainings, monkeypatch, capsys):
    train = _search.Search._train

    def stop(*arguments):
        if len(trainings) == 3:
            raise KeyboardInterrupt
        return train(*arguments)

    log().to_csv("log.csv", index=False)
    command = ["stream", "log.csv", "--window=32", "--seeds=1"]
    monkeypatch.setattr(_search.Search, "_train", stop)
    assert _command.main(command) == 130
    assert "resumes" in capsys.readouterr().err
    monkeypatch.setattr(_search.Search, "_train", train)
    assert _command.main(command) == 0
    *searched, last = trainings
    assert len(searched) == len(set(searched)) == 6
    # Two hundred units do not fit.
    assert {of[2] for of in searched} == {3}
    assert {(of[0], *of[5:]) for of in searched} == {(2, "train")}
    assert (last[0], *last[4:]) == (3, 0, "train", "validate")
    assert "most frequent class" in capsys.readouterr().out


def test_rates_are_tried_until_the_best_is_between_others(monkeypatch):
    """RIN begins at 0.01 and its neighbors; here 0.1 and 0.001 are best."""

    def validate(search, layer, units, rate):
        made.append((layer, rate))
        return -abs(np.log(rate / best)) if layer == "RIN" else -9

    monkeypatch.setattr(_search.Search, "_validate", validate)
    monkeypatch.setattr(
        _search.Search, "_test", lambda *_: {"name": "diverged"}
    )
    for best, last in ((0.1, [0.1, 0.3]), (0.001, [0.001])):
        made = []
        with pytest.raises(ValueError, match="Every training diverged"):
            recordings.train_stream(log(), window=32, output=f"rate {best}")
        assert len(made) == 6 + len(last)
        assert made[6:] == [("RIN", rate) for rate in last]


def test_a_training_ends_with_its_time_or_where_it_diverges():
    keras.utils.set_random_seed(0)
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    trainer = _training.Trainer(model, "mse", 2)
    x, y = np.ones((2, 2)), np.ones((2, 1))

    def updates(*arguments):
        trainer.fit(lambda rng: (x, y), *arguments)
        return int(keras.ops.convert_to_numpy(model.optimizer.iterations))

    assert updates(0.1, 0, 4) == 8
    kernel, _ = model.get_weights()
    assert updates(0.1, 0, 4, 1e-9) == 2
    assert updates(0.1, 0, 4) == 8
    np.testing.assert_array_equal(model.get_weights()[0], kernel)
    x[:] = np.nan
    assert updates(0.1, 1, 4) == 2


def test_no_network_fits():
    with pytest.raises(ValueError, match="at most 10 bytes of flash"):
        recordings.train_stream(log(), flash=10)
