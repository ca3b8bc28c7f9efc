"""The comparison of layers on recordings: scores, verdict and files."""

import json

import keras
import numpy as np
import pytest
from scipy import stats

pytest.importorskip("pandas", reason="pandas reads the recordings")
pytest.importorskip("sklearn", reason="scikit-learn makes the baselines")

from keras_rin import recordings  # noqa: E402
from keras_rin.recordings import _baselines  # noqa: E402
from keras_rin.recordings import _recording_networks  # noqa: E402
from keras_rin.recordings import _scores  # noqa: E402
from keras_rin.recordings import _split  # noqa: E402

pytestmark = pytest.mark.filterwarnings(
    "ignore:Model doesn't support `jit_compile"
)
RNG = np.random.default_rng(0)
X = [RNG.normal(3, 2, size=(steps, 2)) for steps in (20, 13) * 12]
Y = np.arange(24) // 2 % 2


@pytest.mark.one_backend
def test_the_interval_is_that_of_a_paired_t_test():
    first, second = RNG.normal(size=(2, 30))
    paired = stats.ttest_rel(first, second).confidence_interval()
    differences = np.array([first - second])
    for axis in (0, 1):  # one seed, or seeds without recordings
        mean, low, high = _scores.interval(np.moveaxis(differences, 0, axis))
        assert mean == pytest.approx((first - second).mean())
        assert (low, high) == pytest.approx((paired.low, paired.high))
    worst = np.array([[np.nan] * 3, [1, 1, 1]])
    assert _scores.difference(worst, np.ones((2, 3)))[0] == pytest.approx(-0.5)


def test_own_scale_is_that_of_numpy():
    x = np.stack([X[0], X[2] * 1e3])
    outputs = keras.ops.convert_to_numpy(recordings.OwnScale()(x))
    deviation = x.std(axis=1, keepdims=True)
    scaled = (x - x.mean(axis=1, keepdims=True)) / deviation
    logarithm = np.log(deviation) + 0 * x
    expected = np.concatenate([scaled, logarithm], axis=-1)
    np.testing.assert_allclose(outputs, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.one_backend
@pytest.mark.parametrize(
    "changes, message",
    [
        ({"y": np.arange(24) // 22}, "2 recordings of 1"),
        ({"classes": ["0"], "y": Y * 0}, "all have the class 0"),
        ({"y": np.ones(24), "classes": []}, "do not vary"),
        ({"groups": np.array(["a", "b"] * 12)}, "has 2 groups"),
        ({"groups": np.repeat([*"abcd"], 6), "y": Y * 0 + 1}, None),
        ({"y": [np.zeros(len(x), int) for x in X]}, "is a log"),
    ],
)
def test_parts_have_whole_groups_and_each_class(changes, message):
    data = recordings.read({"x": X, "y": Y}, label="y")._replace(**changes)
    if message:
        with pytest.raises(ValueError, match=message):
            _split.parts_of(data, False)
        return
    groups = [{*part.groups} for part in _split.parts_of(data, False)]
    assert sum(map(len, groups)) == 4


@pytest.mark.one_backend
def test_baselines_are_those_of_a_constant_and_of_what_is_summarized():
    y = RNG.normal(size=40)
    x = [np.full((9, 1), n) + RNG.normal(0, 0.01, (9, 1)) for n in y]
    parts = _split.split(recordings.read({"x": x, "y": y}, target="y"))
    scores = _baselines.scores(parts)
    learned = np.concatenate([part.y for part in parts[:2]])
    test = parts[2].y
    expected = 1 - (test - learned.mean()) ** 2 / test.var()
    np.testing.assert_allclose(scores["mean"][1], expected)
    assert scores["ridge regression on a summary"][1].mean() > 0.99


@pytest.mark.skipif(
    keras.backend.backend() == "torch", reason="trained on TensorFlow and JAX"
)
@pytest.mark.parametrize(
    "front, y",
    [
        ("none", Y),
        pytest.param("convolution", Y * 2.5, marks=pytest.mark.exhaustive),
    ],
)
def test_the_folder_has_the_model_that_was_scored(
    front, y, tmp_path, monkeypatch
):
    for name in ("GRU", "LSTM"):
        monkeypatch.delitem(_recording_networks.LAYERS, name)
    steps = 1 if front == "convolution" else 100
    monkeypatch.setattr(_recording_networks, "LONG", steps)
    kind = "label" if y is Y else "target"
    data = recordings.read({"x": X, "y": y}, **{kind: "y"})
    options = {"updates": 2, "seeds": 1, "units": 3}
    result = recordings.compare(data, output=tmp_path, **options)
    model = keras.models.load_model(tmp_path / "model.keras")
    test = _split.split(data)[2]
    for x, expected in zip(test.x, result.answers, strict=True):
        answer = model.predict(x[None], verbose=0)[0]
        np.testing.assert_allclose(answer, expected, rtol=1e-3, atol=1e-4)
    results = json.loads((tmp_path / "results.json").read_text())
    rows = {row["name"]: row for row in results["table"]}
    score = _scores.score(result.answers, test).mean()
    assert rows["RIN"]["test"] == pytest.approx(score)
    best = result.trials[result.trials["training"].str.startswith("RIN")]
    assert best["validation"].iloc[0] == best["validation"].max()
    assert f"model.keras is {best['training'].iloc[0]}." in result.lines
    report = (tmp_path / "report.md").read_text()
    rates = {f" {rate:g} " for rate in result.trials["rate"]}
    assert all(text in report for text in {"RIN", result.verdict} | rates)
    assert "data.png" in report and (tmp_path / "data.png").exists()
