"""What follows an endless stream: trained, tested, written in C, reported."""

import itertools
import json
import pathlib
import re
import shutil
import subprocess

import keras
import numpy as np
import pandas as pd
import pytest

from keras_rin import recordings
from keras_rin.export import Header
from keras_rin.recordings import _baselines
from keras_rin.recordings import _headers
from keras_rin.recordings import _scores
from keras_rin.recordings import _search
from keras_rin.recordings import _split
from keras_rin.recordings import _store
from keras_rin.recordings import _stream_networks

pytestmark = [
    pytest.mark.one_backend,
    pytest.mark.filterwarnings("ignore:Model doesn't support `jit_compile"),
]
PEOPLE = ["ann", "bob", "eve", "joe", "kim", "sue"]
COLUMNS = {"label": "activity", "channels": "ax,ay"}
SAID = COLUMNS | {"group": "person", "time": "t"}
needs_compiler = pytest.mark.skipif(
    not shutil.which("gcc"), reason="the header is compiled"
)


def log(people=PEOPLE, rows=300, offset=9.81, classes=("slow", "fast")):
    """Two waves with an offset, of a speed that the label names."""
    rng, frames = np.random.default_rng(0), []
    for person in people:
        label = np.repeat(rng.permutation(np.arange(6) % 2), rows // 6)
        phase = np.cumsum(np.where(label, 0.9, 0.2)) + rng.normal()
        frame = {"t": np.arange(rows) / 50, "ax": offset + np.sin(phase)}
        frame |= {"ay": np.cos(phase), "person": person}
        frames.append(
            pd.DataFrame(frame | {"activity": np.array(classes)[label]})
        )
    return pd.concat(frames, ignore_index=True)


def test_groups_are_whole_and_each_class_is_trained_on():
    parts = _split.split(recordings.read(log(), **SAID))
    groups = [{*part.groups} for part in parts]
    assert [len(of) for of in groups] == [3, 1, 2]
    assert len(set.union(*groups)) == 6
    rare = log(classes=("slow", "slow"))
    rare.loc[rare["person"] == "bob", "activity"] = "fast"
    parts = _split.split(recordings.read(rare, **SAID))
    assert "bob" in parts[0].groups


def test_without_groups_the_last_rows_are_the_test():
    data = recordings.read(log(), **COLUMNS)
    parts = _split.split(data)
    assert [len(part.rows()[1]) for part in parts] == [882, 378, 540]
    joined = np.concatenate([part.rows()[0] for part in parts])
    np.testing.assert_array_equal(joined, data.rows()[0])


def test_a_model_of_raw_rows_makes_the_features_of_each_part():
    parts = _split.split(recordings.read(log(rows=120), **SAID))
    windows = _stream_networks.Windows(parts, 40)
    network = _stream_networks.Network("RIN", True, 3, windows, 2)
    rows = np.split(network.x, windows.ends[:-1])
    for part, of_part in zip(parts, rows, strict=True):
        expected = network.model.predict(of_part[None], verbose=0)
        raw = np.concatenate(part.x)[None]
        y = network.raw_model.predict(raw, verbose=0)
        np.testing.assert_allclose(y, expected, atol=1e-5)


@pytest.mark.parametrize("short", ["eve", "ann"])
def test_windows_stay_in_their_stretch_and_part(short):
    """Also where a person has few rows."""
    frame = log(rows=120)
    frame = frame[(frame["person"] != short) | (frame.index % 120 < 12)]
    frame = frame.assign(ax=np.arange(len(frame)))
    parts = _split.split(recordings.read(frame, **SAID))
    windows = _stream_networks.Windows(parts, 40)
    windows.x = np.concatenate([part.rows()[0] for part in parts])
    people = frame["person"].to_numpy()
    for is_final in (False, True):
        end, rng = windows.ends[int(is_final)], np.random.default_rng(0)
        for _ in range(20):
            x, y = windows.draw(windows.x, end, rng)
            rows = x[..., 0].reshape(-1, windows.steps).astype(int)
            assert (np.diff(rows) == 1).all()
            assert (people[rows] == people[rows[:, :1]]).all()
            learned = {
                *np.concatenate([of.groups for of in parts[: 1 + is_final]])
            }
            assert {*people[rows].ravel()} <= learned
            expected = np.array(parts[0].classes)[y.reshape(rows.shape)]
            assert (frame["activity"].to_numpy()[rows] == expected).all()


def test_recordings_are_joined_within_their_parts():
    rng, y = np.random.default_rng(0), np.arange(24) % 3
    x = [rng.normal(size=(n, 1)) for n in rng.integers(20, 40, 24)]
    data = {"x": x, "y": [f"c{n}" for n in y], "group": np.arange(24) // 6}
    with pytest.raises(recordings.MissingArguments) as error:
        recordings.train_stream(data)
    assert error.value.arguments == {"join": True}
    parts = _split.parts_of(recordings.read(data), True, join=True)
    assert sorted(n for part in parts for n in {*part.groups}) == [*"0123"]
    for part in parts:
        assert part.is_log and {*np.hstack(part.y)} == {0, 1, 2}
        for values, labels in zip(part.x, part.y, strict=True):
            (n,) = [n for n, of in enumerate(x) if np.array_equal(of, values)]
            assert {*labels} == {y[n]}


def test_scores_of_a_stream_are_counted_by_hand():
    y = np.repeat([0, 1, 0], [100, 80, 60])
    answers = y.copy()
    answers[100:130] = 0  # 30 steps late
    answers[185:] = 1
    answers[180:185] = 0
    scores = _scores.stream_scores(answers, y, rate=10)
    assert scores["accuracy"] == pytest.approx(1 - 85 / 240)
    assert scores["never"] == 0.5 and scores["s to follow"] == np.inf
    assert scores["changes an hour"] == pytest.approx(3 / 239 * 36_000)
    answers[185:] = 0
    scores = _scores.stream_scores(answers, y)
    assert scores["rows to follow"] == 15


def test_the_answer_ends_the_likeliest_path():
    """Of all paths of classes, where each change costs the evidence."""
    outputs = np.random.default_rng(0).normal(size=(7, 3))
    answers, leads = _scores.followed(outputs, 0, 1, 2.5)
    np.testing.assert_array_equal(answers[0], outputs.argmax(axis=1))
    for cost, of_cost, lead in zip((0, 1, 2.5), answers, leads, strict=True):
        for steps in range(1, 8):
            paths = np.array([*itertools.product(range(3), repeat=steps)])
            scores = outputs[np.arange(steps), paths].sum(axis=1)
            scores -= cost * (np.diff(paths) != 0).sum(axis=1)
            best = [scores[paths[:, -1] == n].max() for n in range(3)]
            assert of_cost[steps - 1] == np.argmax(best)
            first, second, _ = sorted(best, reverse=True)
            assert lead[steps - 1] == pytest.approx(first - second)


def test_the_most_evidence_is_chosen_that_costs_little():
    y = np.repeat([0, 1], 4000)
    outputs = np.where(np.eye(2)[y] == 1, 1.0, 0.0)
    rule = _scores.choose_rule(outputs, y)
    assert rule == (32, 0, 1 - 32 / 8000)  # 64 rows would cost 0.008
    outputs[::7] = 1.5 * (1 - outputs[::7])
    outputs += 0.1 * np.random.default_rng(0).normal(size=outputs.shape)
    rule = _scores.choose_rule(outputs, y, unknown=0.1)
    assert rule.evidence in (8, 16, 32) and rule.accuracy > 0.99
    assert np.mean(outputs.argmax(axis=1) == y) < 0.9
    leads = _scores.followed(outputs, rule.evidence)[1]
    assert np.mean(leads < rule.lead) == pytest.approx(0.1, abs=0.02)


def features(x, window):
    """Mean, deviation and mean change, row by row."""
    padded = np.concatenate([np.repeat(x[:1], window - 1, axis=0), x])
    rows = [padded[n : n + window] for n in range(len(x))]
    changes = [abs(np.diff(of, axis=0)).mean(axis=0) for of in rows]
    parts = [(of.mean(axis=0), of.std(axis=0)) for of in rows]
    return np.array(
        [np.hstack([*a, b]) for a, b in zip(parts, changes, strict=True)]
    )


def test_the_features_of_a_window_are_those_of_numpy():
    x = np.random.default_rng(0).integers(-(2**15), 2**15, (300, 2))
    computed = np.concatenate([*_baselines.window_features(x, 16)])
    np.testing.assert_allclose(computed, features(x, 16), rtol=1e-6, atol=1e-4)


@needs_compiler
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize(("window", "evidence"), [(2, 8), (16, 0), (16, 128)])
def test_the_regression_in_integers_is_that_of_numpy(
    window, evidence, classes, tmp_path
):
    rng = np.random.default_rng(0)
    y = np.repeat(rng.integers(0, classes, 40), 50)
    x = np.round(
        rng.normal(size=(2000, 2)) * 900 * (1 + y[:, None]) + 300 * y[:, None]
    )
    names = ['a"b', "c??/d\u00e9", "e\\n"][:classes]
    data = recordings.Recordings([x], [y], names, ['a"', "b,c"], ["log"])
    counts = _headers.Counts.fitted([x])
    model, logits = _baselines.window_outputs([(x, y)], x, window)
    (expected,), (leads,) = _scores.followed(logits, evidence)
    ordered = np.sort(leads)[100:400]
    widest = np.diff(ordered).argmax()  # integers are rounded
    lead = ordered[widest : widest + 2].mean()
    expected[leads < lead] = -1
    _headers.write_regression(model, window, tmp_path)
    _headers.finish(tmp_path, data, counts, (evidence, lead))
    np.testing.assert_array_equal(_headers.answers(tmp_path, data), expected)
    header = Header(tmp_path / "rin.h")  # whose states it copies
    answers = header.predict(counts.of([x])[None]).argmax(axis=-1)
    assert np.mean(answers[0] == logits.argmax(axis=1)) > 0.999
    scaler, logistic = (step for _, step in model.steps)
    scores = (features(x, window) - scaler.mean_) / scaler.scale_
    scores = scores @ logistic.coef_.T + logistic.intercept_
    direct = scores.argmax(axis=1) if classes > 2 else scores[:, 0] > 0
    assert np.mean(direct == logits.argmax(axis=1)) > 0.999
    options = ["-Wall", "-Wextra", "-Werror", "-std=gnu99", "-o", "main"]
    options += ["-fsanitize=undefined", "-fno-sanitize-recover"]
    command = ["gcc", *options, "main.c", "-lm"]
    subprocess.run(command, check=True, cwd=tmp_path)
    frame = pd.DataFrame(x, columns=data.channels)
    frame.to_csv(tmp_path / "log.csv", index=False)
    printed = subprocess.check_output(["./main", "log.csv"], cwd=tmp_path)
    names.append("unknown")
    assert printed.decode().splitlines() == [names[n] for n in expected]
    for line, problem in (
        ('1,"2"\n\n3,\n', "line 5: .*b,c"),
        ("1\n", "line 2"),
    ):
        (tmp_path / "bad.csv").write_text(f'"a""","b,c"\n{line}')
        done = subprocess.run(
            ["./main", "bad.csv"], cwd=tmp_path, capture_output=True, text=True
        )
        is_right = done.returncode == 1 and re.match(problem, done.stderr)
        assert is_right or "line 4" in done.stderr, done.stderr


def test_counts_are_whole_numbers_or_powers_of_two():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(500, 4)) * [1, 2e-6, 30, 1] + [0, 48.137154, 1.7e9, 0]
    x[:, 3] = rng.integers(0, 1024, 500)
    counts = _headers.Counts.fitted([x])
    assert counts.offset[0] == counts.offset[3] == 0 and counts.unit[3] == 1
    read = counts.of([x]) * counts.unit + counts.offset
    assert (abs(read - x) < x.std(axis=0) / 500).all()
    assert (abs(counts.of([x])) <= 2**14).all()


@pytest.fixture
def small(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    networks = ("GRU", False, (200, 3), (0.03,)), ("RIN", True, (3,), (0.01,))
    monkeypatch.setattr(_stream_networks, "NETWORKS", networks)
    monkeypatch.setattr(_stream_networks, "OTHERS", ())
    monkeypatch.setattr(_stream_networks._training, "EPOCH", 3)
    monkeypatch.setattr(_headers, "SEQUENCES", 2)


@needs_compiler
@pytest.mark.parametrize(
    "layer", [pytest.param(None, marks=pytest.mark.exhaustive), "RIN"]
)
def test_main_reads_the_log_with_the_printed_accuracy(small, layer, tmp_path):
    frame = log().assign(note="x;y")
    text = {"sep": ";", "decimal": ",", "index": False}
    frame.to_csv("log.csv", **text)
    said = SAID | {"separator": ";", "decimal": ","}
    options = {"window": 32, "updates": 3, "seeds": 1, "layer": layer}
    result = recordings.train_stream("log.csv", unknown=0.3, **options, **said)
    test = frame[frame["person"].isin(result.recalls["class or group"])]
    test.to_csv("test.csv", **text)
    folder = pathlib.Path("runs/stream")
    command = ["gcc", folder / "main.c", "-o", "main", "-lm"]
    subprocess.run(command, check=True)
    printed = subprocess.check_output(["./main", "test.csv"]).decode()
    printed = np.array(printed.split())
    right = np.mean(printed == test["activity"])
    name = re.match("rin.h is the (.*), compiled and run", result.lines[0])[1]
    assert not layer or "RIN(3) with features" in name
    row = result.table[result.table["name"] == f"rin.h, {name}"]
    assert row["accuracy"].item() == pytest.approx(right)
    assert f"{right:.4f} on the test" in result.lines[0]
    recalls = result.recalls.set_index("class or group")["right"]
    for column in ("activity", "person"):
        is_right = (printed == test["activity"]).groupby(test[column]).mean()
        for name, value in is_right.items():
            assert recalls[name] == pytest.approx(value)
    truth = result.table.set_index("name").loc["the truth"]
    changes = np.sum(np.diff(test["activity"] == "fast") != 0) * 180_000
    assert truth["changes an hour"] == pytest.approx(changes / (len(test) - 1))
    known = printed != "unknown"
    right = np.mean((printed == test["activity"])[known])
    assert 0.1 < np.mean(~known) < 0.6
    assert f"{np.mean(~known):.1%} of the test" in result.lines[2]
    assert f"{right:.4f} are right" in result.lines[2]
    report = (folder / "report.md").read_text()
    results = json.loads((folder / "results.json").read_text())
    assert result.verdict in report and results["verdict"] == result.verdict
    assert (folder / "data.png").stat().st_size > 5_000 and "data.png" in report
    model = keras.models.load_model(folder / "model.keras")
    x = test[["ax", "ay"]].to_numpy()[None]
    answers = model.predict(x, verbose=0)[0].argmax(-1)
    first = result.table[
        result.table["name"].str.contains("training 1, evidence 0")
    ]
    of_model = np.mean(np.array(["fast", "slow"])[answers] == test["activity"])
    assert first["accuracy"].iloc[0] == pytest.approx(of_model)


@pytest.mark.exhaustive
def test_without_compilers_nothing_is_measured_or_chosen(small, monkeypatch):
    monkeypatch.setattr(_headers.shutil, "which", lambda name: None)
    options = {"window": 32, "updates": 3, "seeds": 1, "layer": "GRU"}
    result = recordings.train_stream(log(), **options, **SAID)
    assert "GRU(200), not run" in result.lines[0]
    assert (result.table.iloc[-2:, -4:] == "not measured").all(axis=None)


def test_no_network_fits(small):
    if _headers.cost is None or not shutil.which("arm-none-eabi-gcc"):
        pytest.skip("flash is measured with arm-none-eabi-gcc")
    with pytest.raises(ValueError, match="10 bytes of flash: --flash="):
        recordings.train_stream(log(), flash=10, **SAID)
    with pytest.raises(ValueError, match="Received: unknown=1"):
        recordings.train_stream(log(), unknown=1, **SAID)


@pytest.mark.parametrize("offset, deviation", [(1.7e9, 30), (48.137154, 2e-6)])
def test_a_large_offset_is_taken_out_in_float64(offset, deviation):
    frame = log(offset=0)
    frame["ax"] = offset + deviation * frame["ax"]
    parts = _split.split(recordings.read(frame, **SAID))
    windows = _stream_networks.Windows(parts, 32)
    x = np.concatenate([part.rows()[0] for part in parts])
    learned = x[: windows.ends[1]]
    exact = (x - learned.mean(axis=0)) / learned.std(axis=0)
    np.testing.assert_allclose(windows.x, exact, atol=1e-5)
    counts = _headers.Counts.fitted([learned])
    assert len(np.unique(counts.of([x])[:, 0])) > 1000


class Quick:
    """A network whose training takes a time of its own, by a clock of ours."""

    now, trained, slow = 0.0, (), 1.0
    value = 0.0

    def __init__(self, value):
        self.model, self.quality = self, value

    def seconds(self):
        Quick.now += 2  # compiling
        return 0.1 * Quick.slow

    def train(self, is_final, rate, seed, updates, end=np.inf):
        for done in range(1, updates + 1):  # noqa: B007
            Quick.now += 0.1 * Quick.slow
            if Quick.now >= end:
                break
        Quick.trained = *Quick.trained, (is_final, rate, seed, done)
        return done

    def outputs(self, is_final):
        return np.array([self.quality])

    def get_weights(self):
        return [np.array([self.quality])]

    def set_weights(self, weights):
        self.quality = weights[0][0]


@pytest.fixture
def search(monkeypatch, tmp_path):
    """A search of three candidates in some seconds."""
    monkeypatch.setattr(_search.time, "monotonic", lambda: Quick.now)
    monkeypatch.setattr(Quick, "now", 0.0)
    monkeypatch.setattr(Quick, "trained", ())

    def first(outputs):
        return float(outputs[0])

    def run(seconds, slow=1.0, seeds=(0, 1), folder="a"):
        monkeypatch.setattr(Quick, "slow", slow)
        candidates = [
            _search.Candidate("network", name, lambda v=v: Quick(v), (1, 2, 3))
            for v, name in ((0.1, "first"), (0.3, "best"), (0.2, "last"))
        ]
        with _store.Store(tmp_path / folder, "job") as store:
            searched = _search.Search(
                candidates, store, first, seeds, (10, 40), seconds
            )
            searched.run()
        return searched

    return run


def test_all_is_trained_where_the_time_is_enough(search):
    searched = search(60)
    assert searched.missing() == ""
    assert searched.best("network").candidate.name == "best"
    trials = [run for run in Quick.trained if not run[0] and run[1]]
    assert [run[1] for run in trials] == [1, 1, 1, 2, 3]
    assert [run[2:] for run in Quick.trained if run[0]] == [(0, 40), (1, 40)]


def test_fewer_candidates_are_trained_and_not_shorter_ones(search):
    searched = search(17)
    trials = [run for run in searched.trainings if not run.is_final]
    assert len(trials) < 5 and not any(trial.end for trial in trials)
    assert all(run[3] == (40 if run[0] else 10) for run in Quick.trained)
    assert Quick.now <= 17 * 1.1
    assert re.search(
        r"fitted .* 0 were cut .*--minutes=0.\d", searched.missing()
    )


def test_what_the_clock_cuts_is_marked_and_not_taken(search, monkeypatch):
    train = Quick.train

    def slower(self, is_final, *arguments):
        monkeypatch.setattr(Quick, "slow", 30.0 if is_final else 1.0)
        return train(self, is_final, *arguments)

    monkeypatch.setattr(Quick, "train", slower)
    searched = search(60)
    (tested,) = searched.tested("network")
    assert tested.updates == 10 and not tested.end
    assert searched.trainings[-1].is_final
    assert searched.table()["end"].tolist()[-1] == "cut"
    assert "were cut by the clock" in searched.missing()


@pytest.mark.parametrize(
    "network, missing, said",
    [
        (0.5, "x", "Not decided in this time"),
        (0.5, "", "No network is needed"),
        (1.0, "x", "A network pays"),
    ],
)
def test_a_verdict_says_what_the_clock_left_open(network, missing, said):
    scores = {"a": np.full((1, 5), network), "b": np.full((1, 5), 0.6)}
    text = _scores.verdict("network", "a", "b", scores, "groups", missing)
    assert text.startswith(said)


def test_a_stopped_search_gives_the_same_table(search, monkeypatch):
    expected, train = search(None, folder="whole").table(), Quick.train
    monkeypatch.setattr(Quick, "trained", ())

    def stop(self, *arguments):
        if len(Quick.trained) == 4:
            raise KeyboardInterrupt
        return train(self, *arguments)

    monkeypatch.setattr(Quick, "train", stop)
    with pytest.raises(KeyboardInterrupt):
        search(None)
    monkeypatch.setattr(Quick, "train", train)
    pd.testing.assert_frame_equal(search(None).table(), expected)
    assert len(Quick.trained) == 7


def test_a_store_tells_jobs_apart_and_has_whole_trainings(
    tmp_path, monkeypatch
):
    data = recordings.read(log(), **SAID)
    other = data._replace(y=[labels[::-1].copy() for labels in data.y])
    groups = data._replace(groups=data.groups[::-1].copy())
    order = data.take([*range(6)][::-1])
    for number, job in enumerate((data, other, groups, order)):
        with _store.Store(tmp_path, job) as store:
            assert store.load(["a", 1]) is None
            store.save(["a", 1], [np.ones(2)], np.zeros(3), number)
            with pytest.raises(ValueError, match="in use by another job"):
                _store.Store(tmp_path, job).__enter__()
    with _store.Store(tmp_path, data) as store:
        weights, outputs, updates = store.load(["a", 1])
        assert (weights[0].tolist(), outputs.size, updates) == ([1, 1], 3, 0)
        save = np.savez
        monkeypatch.setattr(np, "savez", lambda path, *_: save(path) or 1 / 0)
        with pytest.raises(ZeroDivisionError):
            store.save(["b", 2], [], 0, 0)
        assert store.load(["b", 2]) is None


@pytest.mark.exhaustive
def test_corrected_labels_are_another_job(small):
    options = {"window": 8, "updates": 3, "seeds": 1, "layer": "GRU"}
    said = {"label": "activity", "channels": "ax,ay"}
    frame, accuracies = log(rows=60), []
    swapped = frame["activity"].map({"slow": "fast", "fast": "slow"})
    for labels in (frame["activity"], swapped):
        result = recordings.train_stream(
            frame.assign(activity=labels), **options, **said
        )
        answers = result.model.predict(
            frame[["ax", "ay"]].to_numpy()[None, -108:], verbose=0
        )
        answers = np.array(["fast", "slow"])[answers[0].argmax(-1)]
        row = result.table[
            result.table["name"].str.contains("GRU.*training 1, evidence 0")
        ]
        accuracies.append(row["accuracy"].iloc[0])
        assert accuracies[-1] == pytest.approx(
            np.mean(answers == labels[-108:])
        )
