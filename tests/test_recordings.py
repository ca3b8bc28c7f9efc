"""The example that compares layers on recordings: its data and its verdict."""

import types

import keras
import numpy as np
import pytest
from absl import app
from scipy import stats

pytest.importorskip("sktime", reason="sktime reads the recordings")
pytest.importorskip("tensorflow", reason="it makes the batches")

from examples import recordings  # noqa: E402

pytestmark = [
    # XLA is off once a test has turned on the determinism of TensorFlow.
    pytest.mark.filterwarnings("ignore:Model doesn't support `jit_compile"),
    pytest.mark.skipif(
        keras.backend.backend() != "tensorflow",
        reason="the examples are tried on the default backend",
    ),
]
RNG = np.random.default_rng(0)
X = RNG.normal(size=(16, 12, 2)).astype("float32")
X[3:, 10:] = np.nan  # recordings of two lengths
Y = np.arange(16) % 2
FRONT = "own", "convolution"


@pytest.fixture
def with_flags(monkeypatch):
    """Gives the example flags of its own."""

    def give(**values):
        defaults = {"seed": 0, "seeds": 1, "units": 3, "minutes": 0.01}
        flags = types.SimpleNamespace(**defaults | values)
        monkeypatch.setattr(recordings, "FLAGS", flags)

    return give


def write_npz(folder, x=X, y=Y, **more):
    np.savez(folder / "data.npz", x=x, y=y, **more)
    return folder / "data.npz"


def write_lists(folder):
    lengths = np.isfinite(X[..., 0]).sum(axis=1)
    x = np.empty(len(X), object)
    x[:] = [of[:length] for of, length in zip(X, lengths, strict=True)]
    return write_npz(folder, x)


def write_csv(folder, header="a,b\n"):
    for number in np.argsort(Y, kind="stable"):
        path = folder / f"class_{Y[number]}" / f"{number:02}.csv"
        path.parent.mkdir(exist_ok=True)
        lines = [f"{a!r},{b!r}" for a, b in X[number].tolist()]
        path.write_text(header + "\n".join(lines) + "\n")
    return folder


def write_ts(folder, labels=Y, name="X", header="@classLabel true 0 1"):
    lines = [
        *("@problemName X", "@timeStamps false", "@missing true"),
        *("@univariate false", "@equalLength true", header, "@data"),
    ]
    for x, label in zip(X, labels, strict=True):
        channels = [",".join(map(repr, values)) for values in x.T.tolist()]
        lines.append(":".join([*channels, str(label)]).replace("nan", "?"))
    (folder / f"{name}.ts").write_text("\n".join(lines) + "\n")
    return folder


@pytest.mark.parametrize("write", [write_npz, write_lists, write_csv, write_ts])
def test_each_kind_of_file_has_the_same_recordings(write, tmp_path, with_flags):
    with_flags(data=str(write(tmp_path)))
    x, y, (rows, test_rows), unit = recordings.load()
    order = np.argsort(Y, kind="stable") if write is write_csv else range(16)
    for number, read in zip(order, x, strict=True):
        expected = X[number][np.isfinite(X[number, :, 0])]
        np.testing.assert_allclose(read, expected, rtol=1e-6)
    np.testing.assert_array_equal(y, Y[order])
    assert unit is None
    assert sorted([*rows, *test_rows]) == [*range(16)]
    np.testing.assert_array_equal(np.bincount(y[test_rows]), [2, 2])


def test_a_test_set_that_is_given_is_kept(tmp_path, with_flags):
    path = write_npz(tmp_path, x_test=X[:3], y_test=Y[:3])
    for name in ("X_TRAIN", "X_TEST"):
        write_ts(tmp_path, name=name)
    for data, end in ((path, 19), (tmp_path, 32)):
        with_flags(data=str(data))
        rows, test_rows = recordings.load()[2]
        assert [*rows] == [*range(16)] and [*test_rows] == [*range(16, end)]


def test_labels_of_floats_are_a_regression(tmp_path, with_flags):
    y = RNG.normal(5, 3, 16)
    with_flags(data=str(write_npz(tmp_path, y=y)))
    _, normalized, (rows, _), (deviation, mean) = recordings.load()
    np.testing.assert_allclose(normalized[:, 0] * deviation + mean, y)
    assert normalized[rows].mean() == pytest.approx(0, abs=1e-12)
    assert normalized[rows].std() == pytest.approx(1)


MISSING = np.where(np.arange(12)[:, None] == 4, np.nan, X)
REFUSED = {
    "no such data": (None, "BasicMotions"),
    "no labels": ({"y": None}, "y is not a file"),
    "a test set without labels": ({"x_test": X}, "y_test is not a file"),
    "labels of another length": ({"y": Y[1:]}, r"in length: .*16,.*15,"),
    "missing values": ({"x": MISSING}, r"missing in the recordings \[1, 2, "),
    "channels": ({"x_test": X[..., :1], "y_test": Y}, r"differ: \[1, 2\]"),
    "a single class": ({"y": 0 * Y}, "all recordings have the label 0"),
    "a class of the test": ({"x_test": X, "y_test": Y + 1}, r"alone: \[2\]"),
    "a rare class": ({"y": np.arange(16) == 0}, "least populated class"),
    "a target": ({"y": np.where(Y, np.inf, 0.5)}, "y must be finite"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_data_that_are_wrong_are_refused(name, tmp_path, with_flags):
    arrays, message = REFUSED[name]
    path = tmp_path / "none"
    if arrays is not None:
        arrays = {"x": X, "y": Y} | arrays
        arrays = {key: of for key, of in arrays.items() if of is not None}
        path = tmp_path / "data.npz"
        np.savez(path, **arrays)
    with_flags(data=str(path))
    with pytest.raises(app.UsageError, match=message):
        recordings.main([])


def test_a_recording_is_scaled_by_its_own_deviation():
    x = X[0].astype("float64")
    scaled = recordings.own_scale(x)
    np.testing.assert_allclose(scaled[:, :2].mean(axis=0), 0, atol=1e-9)
    np.testing.assert_allclose(scaled[:, :2].std(axis=0), 1, rtol=1e-5)
    logarithm = np.log(x.std(axis=0))
    np.testing.assert_allclose(scaled[:, 2:] - logarithm, 0, atol=1e-5)


@pytest.mark.parametrize(
    "front",
    ["none", pytest.param("convolution", marks=pytest.mark.exhaustive)],
)
def test_the_model_to_export_reads_what_was_trained(
    front, tmp_path, with_flags
):
    """That is the recording without the padding, in the model's own unit."""
    with_flags(data=str(write_npz(tmp_path, X[:, 4:], RNG.normal(size=16))))
    x, _, _, (deviation, mean) = data = recordings.load()
    network = recordings.Network("GRU", data, "set", front)
    for weight in network.model.trainable_variables:
        weight.assign(RNG.normal(size=weight.shape))
    outputs = network.model.predict_on_batch(network.x) * deviation + mean
    for number in (0, 4):  # of 8 steps, and of 6
        alone = network.exported.predict_on_batch(x[number][None])
        if front == "none" or number == 0:
            np.testing.assert_allclose(outputs[number], alone[0], atol=1e-5)


def test_the_interval_is_that_of_a_paired_t_test():
    first, second = RNG.normal(size=(2, 30))
    paired = stats.ttest_rel(first, second).confidence_interval()
    differences = np.array([first - second])
    for axis in (0, 1):  # one seed, or seeds without recordings
        mean, low, high = recordings.interval(np.moveaxis(differences, 0, axis))
        assert mean == pytest.approx((first - second).mean())
        assert (low, high) == pytest.approx((paired.low, paired.high))
    assert [*recordings.interval(np.ones((3, 4)))] == [1, 1, 1]


@pytest.mark.parametrize(
    "kind",
    ["classes", pytest.param("regression", marks=pytest.mark.exhaustive)],
)
def test_the_job_ends_at_a_table_a_verdict_and_files(
    kind, tmp_path, with_flags, monkeypatch, capsys
):
    layers = {name: recordings.LAYERS[name] for name in ("RIN", "GRU")}
    monkeypatch.setattr(recordings, "LAYERS", layers)
    fronts = (
        [("set", "none")] if kind == "classes" else [("own", "convolution")]
    )
    monkeypatch.setattr(recordings, "PREPARATIONS", fronts)
    y = Y if kind == "classes" else RNG.normal(size=16)
    path, output = write_npz(tmp_path, y=y), tmp_path / "output"
    with_flags(data=str(path), output=str(output))
    recordings.main(["recordings.py"])
    printed = capsys.readouterr().out
    assert "| RIN " in printed and "| GRU " in printed
    assert " is ahead of " in printed
    assert (output / "scores.png").stat().st_size > 5_000
    (best,) = output.glob("*.keras")
    model = keras.models.load_model(best)
    has_step = kind == "classes"
    assert (output / f"{best.stem}.h").exists() == has_step
    assert model.output_shape[1:] == ((2,) if has_step else (1,))


@pytest.mark.exhaustive
def test_a_run_depends_on_its_seed_alone(with_flags):
    """Also behind a front, whose dropout has a state of its own."""
    with_flags()
    x = list(np.nan_to_num(X))
    rows = np.split(np.arange(len(x)), [12])
    network = recordings.Network("RIN", (x, Y, rows, None), *FRONT)
    first, other, again = (
        network.train(rows[0], 0.01, seed, limit=60) for seed in (0, 1, 0)
    )
    assert first == again != other
    network.train(rows[0], 0.01, 0, limit=1e-9)
    assert network.model.get_weights()[-1].any()  # even so it learned
