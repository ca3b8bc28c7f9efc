"""The comparison of layers on recordings: scores, verdict and files."""

import json
import pathlib
import re
import runpy
import sys

import keras
import numpy as np
import pytest
from scipy import stats

pytest.importorskip("pandas", reason="pandas reads the recordings")
pytest.importorskip("sklearn", reason="scikit-learn makes the baselines")

from keras_rin import recordings  # noqa: E402
from keras_rin.recordings import _baselines  # noqa: E402
from keras_rin.recordings import _compare  # noqa: E402
from keras_rin.recordings import _networks  # noqa: E402
from keras_rin.recordings._command import main  # noqa: E402
from keras_rin.recordings._verdict import interval  # noqa: E402
from keras_rin.recordings._verdict import verdict  # noqa: E402

pytestmark = [
    # XLA is off once a test has turned on the determinism of TensorFlow.
    pytest.mark.filterwarnings("ignore:Model doesn't support `jit_compile"),
    pytest.mark.skipif(
        keras.backend.backend() == "torch",
        reason="the job runs on TensorFlow and JAX",
    ),
]
RNG = np.random.default_rng(0)
# Recordings of two lengths, each of which is silent in the middle.
X = [RNG.normal(3, 2, size=(steps, 2)) for steps in (20, 13) * 8]
for values in X:
    values[5:9] = 0
Y = np.arange(16) // 2 % 2
NUMBERS = RNG.normal(5, 3, 16)
ROOT = pathlib.Path(__file__).parents[1]


def data(y=Y):
    return recordings.read({"x": X, "y": y})


def small(monkeypatch, *preparations):
    """Two layers, and one preparation."""
    monkeypatch.delitem(_networks.LAYERS, "LSTM")
    monkeypatch.setattr(_compare, "preparations", lambda lengths: preparations)


@pytest.mark.one_backend
def test_the_interval_is_that_of_a_paired_t_test():
    first, second = RNG.normal(size=(2, 30))
    paired = stats.ttest_rel(first, second).confidence_interval()
    differences = np.array([first - second])
    for axis in (0, 1):  # one seed, or seeds without recordings
        mean, low, high = interval(np.moveaxis(differences, 0, axis))
        assert mean == pytest.approx((first - second).mean())
        assert (low, high) == pytest.approx((paired.low, paired.high))
    both = interval(differences + differences[:, :5].T)
    assert both[2] > interval(differences)[2] + both[0] - mean


RIGHT = np.ones((2, 20))
HALF = np.tile([0.0, 1.0], (2, 10))
WRONG = np.full((2, 20), -3.0)
DIVERGED = np.full((2, 20), np.nan)
VERDICTS = {
    "ahead": ({"RIN": RIGHT, "GRU": HALF}, "RIN is ahead of GRU by 0.500"),
    "all right": (
        {"RIN": RIGHT, "GRU": RIGHT, "LSTM": HALF},
        "RIN and GRU are right on every test recording",
    ),
    "equal": ({"RIN": HALF, "GRU": HALF}, "RIN and GRU have the same accuracy"),
    "unclear": (
        {"RIN": RIGHT, "GRU": np.eye(20)[:2] * -1 + 1},
        "No difference that these data show: RIN is ahead",
    ),
    "not needed": (
        {"RIN": HALF, "GRU": HALF, "summary": RIGHT[:1]},
        "No recurrent layer is needed: summary has a mean accuracy of 1.000",
    ),
    "needed": (
        {"RIN": RIGHT, "GRU": HALF, "mean": HALF[:1]},
        "A recurrent layer pays: mean has a mean accuracy of 0.500",
    ),
    "diverged": (
        {"GRU": DIVERGED, "RIN": WRONG, "LSTM": WRONG - 1, "mean": WRONG + 3},
        "RIN is ahead of LSTM .*Without a finite score: GRU",
    ),
    "some diverged": (
        {"GRU": np.vstack([RIGHT, DIVERGED]), "RIN": RIGHT * 0.9},
        "RIN is ahead of GRU|No difference that these data show: RIN",
    ),
}


@pytest.mark.one_backend
@pytest.mark.parametrize("name", VERDICTS)
def test_the_verdict_names_ties_and_needs(name):
    entries, expected = VERDICTS[name]
    text = verdict(entries, data()).replace("\n", " ")
    assert re.search(expected, text), text
    assert "by 0.000" not in text


@pytest.mark.one_backend
def test_baselines_are_those_of_a_constant_and_of_what_is_summarized():
    rng = np.random.default_rng(0)
    x = [np.full((9, 1), n) + rng.normal(0, 0.1, (9, 1)) for n in range(40)]
    rows = np.arange(0, 40, 2), np.arange(1, 40, 2)
    y = np.array([f.mean() for f in x])
    recorded = recordings.read({"x": x, "y": y})
    scores = _baselines.scores(recorded, rows, 0)
    test = y[rows[1]]
    expected = 1 - (test - y[rows[0]].mean()) ** 2 / test.var()
    np.testing.assert_allclose(scores["mean"][0], expected)
    assert scores["summary, ridge regression"].mean() > 0.999
    recorded = recordings.read({"x": x, "y": np.arange(40) < 30})
    scores = _baselines.scores(recorded, rows, 0)
    assert scores["most frequent class"].mean() == 0.75
    assert scores["summary, logistic regression"].mean() > 0.8


@pytest.mark.one_backend
@pytest.mark.parametrize(
    "changes, message",
    [
        ({"y": np.arange(16) // 15}, "takes at least 4"),
        ({"classes": ["0"], "y": Y * 0}, "all recordings have the class 0"),
        ({"y": np.ones(16), "classes": []}, "do not vary"),
        ({"y": Y, "is_test": Y == 1}, "class 1 has 0 recordings"),
        ({"y": None}, "no labels"),
    ],
)
def test_parts_without_a_class_are_refused_before_training(changes, message):
    with pytest.raises(ValueError, match=message):
        _compare.split(data()._replace(**changes), 0)


@pytest.mark.one_backend
def test_each_class_is_in_each_part():
    rows = _compare.split(data(), 0)
    assert sorted(np.concatenate(rows)) == [*range(16)]
    for part in (*rows, *_compare._parts(data(), rows[0], 0)):
        assert {*Y[part]} == {0, 1}


def test_own_scale_is_that_of_numpy():
    x = np.stack([X[0], X[2] * 1e3])
    outputs = keras.ops.convert_to_numpy(recordings.OwnScale()(x))
    deviation = x.std(axis=1, keepdims=True)
    scaled = (x - x.mean(axis=1, keepdims=True)) / deviation
    np.testing.assert_allclose(outputs[..., :2], scaled, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(
        outputs[..., 2:], np.log(deviation) + 0 * x, rtol=1e-4, atol=1e-5
    )


@pytest.mark.parametrize(
    "preparation, y",
    [
        (("set", "none"), Y),
        pytest.param(
            *(("own", "convolution"), NUMBERS), marks=pytest.mark.exhaustive
        ),
    ],
)
def test_the_folder_has_the_model_that_was_scored(
    preparation, y, tmp_path, monkeypatch, capsys
):
    small(monkeypatch, preparation)
    options = {"minutes": 1e-3, "seeds": 1, "units": 3}
    output = tmp_path / "output"
    result = recordings.compare(data(y), output=output, **options)
    printed = capsys.readouterr().out
    assert "16 recordings of 13 to 20 steps" in printed
    model = keras.models.load_model(output / "model.keras")
    assert {len(X[number]) for number in result.outputs} == {13, 20}
    for number, expected in result.outputs.items():
        answer = model.predict(X[number][None], verbose=0)[0]
        np.testing.assert_allclose(answer, expected, rtol=1e-3, atol=1e-4)
    results = json.loads((output / "results.json").read_text())
    assert {*results} == {
        *("recordings", "channels", "classes", "left_out", "table", "verdict")
    }
    rows = {row["name"]: row["score"] for row in results["table"]}
    assert rows["RIN"] == pytest.approx(best_score(result, y), abs=1e-6)
    assert results["verdict"] == result.verdict
    report = (output / "report.md").read_text()
    assert "It answers every test recording as it was scored" in report
    assert "| RIN |" in report and "scores.png" in report
    assert ("keras-rin stream" in report) == (y is Y)  # of classes alone
    np.savez(tmp_path / "new.npz", x=np.array(X[::2]))
    monkeypatch.setattr(sys, "argv", ["predict.py", str(tmp_path / "new.npz")])
    runpy.run_path(str(output / "predict.py"))
    answers = [
        line.split()[-1] for line in capsys.readouterr().out.splitlines()
    ]
    assert len(answers) == 8
    number = next(of for of in result.outputs if of % 2 == 0)
    if y is Y:
        assert answers[number // 2] == str(result.outputs[number].argmax())


def best_score(result, y):
    """The score of the outputs, computed in NumPy."""
    outputs = np.array([*result.outputs.values()])
    y = y[[*result.outputs]]
    if outputs.shape[1] == 2:
        return np.mean(outputs.argmax(axis=1) == y)
    return 1 - np.mean((outputs[:, 0] - y) ** 2) / y.var()


class Learned:
    """A network that is right at once, and is stopped in its fourth run."""

    runs_until_stopped = 10**6

    def __init__(self, name, data, rows, preparation, units):
        self.name, self.data, self.preparation = name, data, preparation
        self.rate, self.runs, self.scored = 0.1, [], {}
        layers = keras.layers.GlobalAveragePooling1D(), keras.layers.Dense(2)
        self.raw_model = keras.Sequential([keras.Input((None, 2)), *layers])

    def train(self, rows, rate, seed, limit):
        Learned.runs_until_stopped -= 1
        if not Learned.runs_until_stopped:
            raise KeyboardInterrupt
        return 1.0

    def outputs(self, rows):
        return np.eye(2)[self.data.y[rows]]


@pytest.mark.one_backend
@pytest.mark.parametrize(
    "runs, minutes, seeds, message",
    [
        (10**6, 1, [2, 2, 2, 2], None),
        (17, 1, [1, 1, 1, 0], "Ctrl-C ended the training after 16 of 21 runs"),
        (1, 1, [], "Ctrl-C ended the training after 0 of 21 runs"),
        (10**6, 0, [1], "--minutes ended the training after 2 of 20 runs"),
    ],
)
def test_what_is_done_is_kept(
    runs, minutes, seeds, message, monkeypatch, tmp_path
):
    """Two preparations and twelve rates are chosen before the first seed.

    The usual rate of RIN, with the preparation that is chosen, is one of them.
    """
    monkeypatch.setattr(_compare, "Network", Learned)
    preparations = [("set", "none"), ("own", "none")]
    monkeypatch.setattr(_compare, "preparations", lambda _: preparations)
    monkeypatch.setattr(Learned, "runs_until_stopped", runs)
    options = {"minutes": minutes, "seeds": 2, "output": tmp_path}
    result = recordings.compare(data(), **options)
    assert (message or "") in result.verdict
    assert ("resumes" in result.verdict) == bool(message)
    assert (result.model is not None) == (len(seeds) > 0)
    layers = result.table.iloc[2:]  # behind the baselines
    assert [int(n > 0) for n in seeds] == layers.score.astype(int).tolist()
    monkeypatch.setattr(Learned, "runs_until_stopped", 1000)
    resumed = recordings.compare(data(), **options)
    trained = 1000 - Learned.runs_until_stopped
    assert trained == {17: 5, 1: 21}.get(runs, 0)
    if message is None:
        assert resumed.table.equals(result.table)
        inputs = np.array(X[::2])
        np.testing.assert_array_equal(
            resumed.model.predict(inputs, verbose=0),
            result.model.predict(inputs, verbose=0),
        )


@pytest.mark.one_backend
@pytest.mark.parametrize(
    "arguments, message",
    [
        (["recordings", "nothing.csv"], "nothing.csv is no file or folder"),
        (["recordings", "a", "--flag"], "unrecognized arguments: --flag"),
        (["recordings", "a", "--seeds=x"], "--seeds: invalid int value: 'x'"),
        (["recordings", "{data}", "--classes"], "takes at least 4"),
    ],
)
def test_an_error_of_the_command_is_one_sentence(
    arguments, message, tmp_path, capsys
):
    path = tmp_path / "data.npz"
    np.savez(path, x=np.array(X[::2])[:3], y=np.arange(3))
    try:
        status = main([of.format(data=path) for of in arguments])
    except SystemExit as error:
        status = error.code
    printed = capsys.readouterr().err
    assert status and message in printed
    assert len(printed.splitlines()) == 1


@pytest.mark.one_backend
def test_each_argument_is_a_flag(capsys):
    with pytest.raises(SystemExit):
        main(["recordings", "--help"])
    flags = set(re.findall(r"^  --([\w-]+)", capsys.readouterr().out, re.M))
    assert {"time", "allow-pickle", "no-labelled", "minutes", "output"} <= flags
