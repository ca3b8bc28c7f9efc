"""The example that compares layers on recordings: its data and its verdict."""

import types

import keras
import numpy as np
import pytest
from absl import app
from scipy import stats

pytest.importorskip("sktime", reason="sktime reads the recordings")

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
NUMBERS = RNG.normal(5, 3, 16)


@pytest.fixture
def with_flags(monkeypatch, tmp_path):
    """Gives the example flags of its own."""

    def give(data):
        flags = {"seed": 0, "seeds": 1, "units": 3, "minutes": 0.01}
        flags |= {"data": str(data), "output": str(tmp_path / "output")}
        monkeypatch.setattr(recordings, "FLAGS", types.SimpleNamespace(**flags))

    return give


def write_npz(folder, **arrays):
    arrays = {"x": X, "y": Y} | arrays
    arrays = {key: of for key, of in arrays.items() if of is not None}
    np.savez(folder / "data.npz", **arrays)
    return folder / "data.npz"


def write_lists(folder):
    x = np.empty(len(X), object)
    x[:] = [of[np.isfinite(of[:, 0])] for of in X]
    return write_npz(folder, x=x)


def write_csv(folder):
    for number in np.argsort(Y, kind="stable"):
        path = folder / f"class_{Y[number]}" / f"{number:02}.csv"
        path.parent.mkdir(exist_ok=True)
        lines = [f"{a!r},{b!r}" for a, b in X[number].tolist()]
        path.write_text("\n".join(["a,b", *lines, ""]))
    return folder


def write_ts(folder, name="X"):
    lines = [
        *("@problemName X", "@timeStamps false", "@missing true"),
        *("@univariate false", "@equalLength true"),
        *("@classLabel true 0 1", "@data"),
    ]
    for x, label in zip(X, Y, strict=True):
        channels = [",".join(map(repr, values)) for values in x.T.tolist()]
        lines.append(":".join([*channels, str(label)]).replace("nan", "?"))
    (folder / f"{name}.ts").write_text("\n".join(lines) + "\n")
    return folder


@pytest.mark.parametrize("write", [write_npz, write_lists, write_csv, write_ts])
def test_each_kind_of_file_has_the_same_recordings(write, tmp_path, with_flags):
    with_flags(write(tmp_path))
    x, y, (rows, test_rows) = recordings.load()
    order = np.argsort(Y, kind="stable") if write is write_csv else range(16)
    for number, read in zip(order, x, strict=True):
        expected = X[number][np.isfinite(X[number, :, 0])]
        np.testing.assert_allclose(read, expected, rtol=1e-6)
    np.testing.assert_array_equal(y, Y[order])
    assert sorted([*rows, *test_rows]) == [*range(16)]
    np.testing.assert_array_equal(np.bincount(y[test_rows]), [2, 2])


def test_a_test_set_that_is_given_is_kept(tmp_path, with_flags):
    path = write_npz(tmp_path, x_test=X[:3], y_test=Y[:3])
    for name in ("X_TRAIN", "X_TEST"):
        write_ts(tmp_path, name)
    for data, end in ((path, 19), (tmp_path, 32)):
        with_flags(data)
        rows, test_rows = recordings.load()[2]
        assert [*rows] == [*range(16)] and [*test_rows] == [*range(16, end)]


MISSING = np.where(np.arange(12)[:, None] == 4, np.nan, X)
REFUSED = {
    "no labels": ({"y": None}, "y is not a file"),
    "a test set without labels": ({"x_test": X}, "y_test is not a file"),
    "labels of another length": ({"y": Y[1:]}, r"of samples: \[16, 15\]"),
    "missing values": ({"x": MISSING}, "Input recording 0 contains NaN"),
    "channels": ({"x_test": X[..., :1], "y_test": Y}, "index 16 has size 1"),
    "a single class": ({"y": 0 * Y}, "all recordings have the label 0"),
    "a class of the test": ({"x_test": X, "y_test": Y + 1}, r"labels: \[.*2"),
    "a rare class": ({"y": np.arange(16) == 0}, "least populated class"),
    "a target": ({"y": np.where(Y, np.inf, 0.5)}, "Input y contains inf"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_arrays_that_are_wrong_are_refused(name, tmp_path, with_flags):
    arrays, message = REFUSED[name]
    with_flags(write_npz(tmp_path, **arrays))
    with pytest.raises(app.UsageError, match=message):
        recordings.main([])


def test_words_and_names_of_no_data_are_refused(tmp_path, with_flags):
    with_flags(tmp_path / "none")
    with pytest.raises(app.UsageError, match="nor one of .*BasicMotions"):
        recordings.main([])
    with pytest.raises(app.UsageError, match=r"Received: \['word'\]"):
        recordings.main(["recordings.py", "word"])


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
    """That is the recording without the padding, and labels in their unit."""
    with_flags(write_npz(tmp_path, x=X[:, 4:], y=NUMBERS))
    x, y, rows = data = recordings.load()
    np.testing.assert_array_equal(y, NUMBERS)
    network = recordings.Network("GRU", data, "set", front)
    for weight in network.model.trainable_variables:
        weight.assign(RNG.normal(size=weight.shape))
    outputs = network.model.predict_on_batch(network.x)
    for number in (0, 4):  # of 8 steps, and of 6
        alone = network.exported.predict_on_batch(x[number][None])
        if front == "none" or number == 0:
            np.testing.assert_allclose(outputs[number], alone[0], rtol=1e-4)
    kernel, bias = network.model.trainable_variables[-2:]
    kernel.assign(0 * kernel)
    for value in (0, 1):
        bias.assign([value])
        answer = network.exported.predict_on_batch(x[0][None])
        expected = y[rows[0]].mean() + value * y[rows[0]].std()
        assert answer == pytest.approx(expected, rel=1e-5)


def test_the_interval_is_that_of_a_paired_t_test():
    first, second = RNG.normal(size=(2, 30))
    paired = stats.ttest_rel(first, second).confidence_interval()
    differences = np.array([first - second])
    for axis in (0, 1):  # one seed, or seeds without recordings
        mean, low, high = recordings.interval(np.moveaxis(differences, 0, axis))
        assert mean == pytest.approx((first - second).mean())
        assert (low, high) == pytest.approx((paired.low, paired.high))
    both = recordings.interval(differences + differences[:, :5].T)
    assert both[2] > recordings.interval(differences)[2] + both[0] - mean


@pytest.mark.parametrize(
    "preparation, y, shape",
    [
        (("set", "none"), Y, (2,)),
        pytest.param(
            *(("own", "convolution"), NUMBERS, (1,)),
            marks=pytest.mark.exhaustive,
        ),
    ],
)
def test_the_job_ends_at_a_table_a_verdict_and_files(
    preparation, y, shape, tmp_path, with_flags, monkeypatch, capsys
):
    layers = {name: recordings.LAYERS[name] for name in ("RIN", "GRU")}
    monkeypatch.setattr(recordings, "LAYERS", layers)
    monkeypatch.setattr(recordings, "PREPARATIONS", [preparation])
    with_flags(write_npz(tmp_path, y=y))
    recordings.main(["recordings.py"])
    printed = capsys.readouterr().out
    assert "| RIN " in printed and "| GRU " in printed
    assert " is ahead of " in printed
    (best,) = (tmp_path / "output").glob("*.keras")
    model = keras.models.load_model(best)
    assert best.with_suffix(".h").exists() == (y is Y)
    assert model.output_shape[1:] == shape


@pytest.mark.exhaustive
def test_a_run_depends_on_its_seed_alone(with_flags):
    """Also behind a front, whose dropout has a state of its own."""
    with_flags("")
    x = list(np.nan_to_num(X))
    rows = np.split(np.arange(len(x)), [12])
    network = recordings.Network("RIN", (x, Y, rows), "own", "convolution")
    bias = network.model.trainable_variables[-1]
    assert keras.ops.any(bias != 0)  # even in no time it learned

    def trained(seed):
        network.train(rows[0], 0.01, seed, limit=1e9)
        return bias.numpy().tolist()

    first, other, again = map(trained, (0, 1, 0))
    assert first == again != other
