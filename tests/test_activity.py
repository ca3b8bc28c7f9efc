"""The example that reads recordings: its data, and what is trained on them."""

import types

import keras
import numpy as np
import pytest
from absl import app
from ai_edge_litert.interpreter import Interpreter

pytest.importorskip("sktime", reason="sktime reads the recordings")
pytest.importorskip("tensorflow", reason="it makes the batches")

from examples import activity  # noqa: E402

pytestmark = [
    # XLA is off once a test has turned on the determinism of TensorFlow.
    pytest.mark.filterwarnings("ignore:Model doesn't support `jit_compile"),
    pytest.mark.skipif(
        keras.backend.backend() != "tensorflow",
        reason="the examples are tried on the default backend",
    ),
]
GOOD = ("1,2,3:4,5,6:a", "1,0,3:4,5,7:b")


def write(path, lines, labels="true a b"):
    """A file of two channels, whose header promises equal lengths."""
    header = [
        *("@problemName name", "@timeStamps false", "@missing false"),
        *("@univariate false", "@equalLength true", f"@classLabel {labels}"),
    ]
    path.write_text("\n".join([*header, "@data", *lines]) + "\n")


def folder_of(path, train=GOOD, test=GOOD, labels="true a b"):
    write(path / "X_TRAIN.ts", train, labels)
    write(path / "X_TEST.ts", test, labels)
    return str(path)


def sequences_of(lengths, features=2):
    rng = np.random.default_rng(0)
    return [rng.normal(size=(n, features)).astype("float32") for n in lengths]


def test_recordings_of_unequal_lengths_are_read(tmp_path):
    lines = ("1,2,3:4,5,6:b", "7,8:9,-1:a")
    (x, y), (x_test, y_test), classes = activity.load(
        folder_of(tmp_path, lines, GOOD[1:])
    )
    np.testing.assert_array_equal(x[0], [[1, 4], [2, 5], [3, 6]])
    np.testing.assert_array_equal(x[1], [[7, 9], [8, -1]])
    np.testing.assert_array_equal(x_test, [[[1, 4], [0, 5], [3, 7]]])
    assert [*classes] == ["a", "b"]
    assert [*y] == [1, 0] and [*y_test] == [1]


BAD = {
    "missing": ({"train": ("1,?,3:4,5,6:a", GOOD[1])}, r"missing.*\[1\], of 2"),
    "missing, not declared": ({"test": (GOOD[0], "1,nan,3:4,5,6:b")}, r"\[2\]"),
    "infinite": ({"train": ("1,inf,3:4,5,6:a", GOOD[1])}, "missing values"),
    "lengths of channels": (
        {"train": ("1,2,3:4,5:a", "1,2,3:4,5:b")},
        r"channels of different lengths: \[1, 2\]",
    ),
    "an empty channel": ({"train": (":4,5,6:a", GOOD[1])}, "missing values"),
    "number of channels": (
        {"train": ("1,2,3:a", GOOD[1])},
        "inconsistent number of dimensions",
    ),
    "channels of the test": ({"test": ("1,2,3:a",)}, "channels: 1, 2"),
    "one class": ({"train": GOOD[:1], "test": GOOD[:1]}, "single class: a"),
    "another class in the test": (
        {"test": ("1,2,3:4,5,6:c",)},
        "classes that .*X_TRAIN.ts does not have: c",
    ),
    "labels left out": (
        {"train": ("1,2,3:4,5,6", "1,2,3:4,5,7"), "test": ("1,2,3:4,5,8",)},
        "does not have: 4,5,8",
    ),
    "no labels": (
        {
            "train": ("1,2,3:4,5,6",),
            "test": ("1,2,3:4,5,6",),
            "labels": "false",
        },
        "no file of recordings with class labels",
    ),
    "words": ({"train": ("1,x,3:4,5,6:a", GOOD[1])}, "to float: 'x'"),
    "no recordings": ({"train": ()}, "no data"),
}


@pytest.mark.parametrize("name", BAD)
def test_recordings_that_are_wrong_are_refused(tmp_path, name):
    files, message = BAD[name]
    folder = folder_of(tmp_path, **files)
    with pytest.raises(app.UsageError, match=message):
        activity.load(folder)


@pytest.mark.parametrize("part", ["TRAIN", "TEST"])
def test_a_folder_without_one_of_the_files_is_refused(tmp_path, part):
    folder = folder_of(tmp_path)
    (tmp_path / f"X_{part}.ts").rename(tmp_path / "X.ts")
    with pytest.raises(app.UsageError, match="BasicMotions") as error:
        activity.load(folder)
    assert f"Received: --data={folder}" in str(error.value)


def test_a_folder_with_two_data_sets_is_refused(tmp_path):
    folder = folder_of(tmp_path)
    write(tmp_path / "Y_TRAIN.ts", GOOD)
    (tmp_path / "X_TEST.ts").unlink()
    with pytest.raises(app.UsageError, match="one NAME_TRAIN.ts"):
        activity.load(folder)


def test_nothing_is_trained_on_wrong_data(tmp_path, monkeypatch):
    output = tmp_path / "output"
    data = folder_of(tmp_path, **BAD["missing"][0])
    values = types.SimpleNamespace(data=data, output=str(output))
    monkeypatch.setattr(activity, "FLAGS", values)
    with pytest.raises(app.UsageError, match="missing values"):
        activity.main(["activity.py"])
    assert not output.exists()


def test_the_recordings_of_the_watch():
    (x, y), (x_test, y_test), classes = activity.load("BasicMotions")
    assert {recording.shape for recording in [*x, *x_test]} == {(100, 6)}
    assert {*classes} == {"badminton", "running", "standing", "walking"}
    for labels in (y, y_test):
        np.testing.assert_array_equal(np.bincount(labels), [10] * 4)


@pytest.mark.parametrize("features", [1, 6, 12])
@pytest.mark.parametrize("name", activity.LAYERS)
def test_the_layers_have_about_as_many_weights(name, features):
    x = sequences_of([3], features)
    layers = {
        layer: activity.build(layer, x, 4, 64).layers[1]
        for layer in ("RIN", name)
    }
    most = layers["RIN"].count_params()
    assert 0.94 * most < layers[name].count_params() <= most


def test_the_loss_is_that_of_the_last_steps():
    x = sequences_of(range(3, 19))  # a batch of 16
    y = np.arange(16) % 3
    model = activity.build("LSTM", x, 3, 4)
    loss = activity.train(model, x, y, 1e-30, 0, 1)
    logits = [model(steps[None]).numpy()[0, -1] for steps in x]
    expected = keras.losses.sparse_categorical_crossentropy(
        y, np.stack(logits), from_logits=True
    )
    assert loss == pytest.approx(float(keras.ops.mean(expected)), rel=1e-5)


def test_a_run_depends_on_its_seed_alone():
    x, y = sequences_of([5, 9, 7]), np.array([0, 1, 0])
    model = activity.build("RIN", x, 2, 4)
    begin = model.layers[0].get_weights()
    losses = [activity.train(model, x, y, 0.01, seed, 2) for seed in (3, 4, 3)]
    assert losses[0] == losses[2] != losses[1]
    trained = model.get_weights()
    activity.train(model, x, y, 0.03, 4, 1)
    activity.train(model, x, y, 0.01, 3, 2)
    for weights, expected in zip(model.get_weights(), trained, strict=True):
        np.testing.assert_array_equal(weights, expected)
    for weights, expected in zip(
        model.layers[0].get_weights(), begin, strict=True
    ):
        np.testing.assert_array_equal(weights, expected)


def test_a_run_that_diverges_has_an_infinite_loss(capsys):
    x, y = sequences_of([5, 9, 7]), np.array([0, 1, 0])
    model = activity.build("RIN", x, 2, 4)
    assert activity.train(model, x, y, 1e30, 0, 2) == np.inf
    assert "diverged" in capsys.readouterr().err
    for weights in model.get_weights():
        assert np.isfinite(weights).all()


def test_accuracies_are_those_of_recordings_that_are_cut():
    x = sequences_of([7, 11, 5, 9, 8])
    y = np.array([0, 1, 2, 0, 1])
    model = activity.build("GRU", x, 3, 6)
    classes = [  # of each recording, after 1, 2, ... steps
        [
            model(steps[None, :n]).numpy()[0, -1].argmax()
            for n in range(1, len(steps) + 1)
        ]
        for steps in x
    ]
    expected = []
    for percent in range(1, 101):
        ends = [-(-percent * len(steps) // 100) for steps in x]
        right = [
            after[end - 1] == label
            for after, end, label in zip(classes, ends, y, strict=True)
        ]
        expected.append(np.mean(right))
    assert activity.accuracies(model, x, y) == pytest.approx(expected)
    assert len({*expected}) > 1


@pytest.mark.exhaustive
def test_the_best_run_is_saved_and_streams(tmp_path):
    splits = activity.load("JapaneseVowels")
    (x, y), (x_test, y_test), classes = splits
    splits = (x[::9], y[::9]), (x_test[::37], y_test[::37]), classes
    result = activity.compare("RIN", splits, tmp_path, 0.003, [0, 1], 2, 8)
    own_rate, shared = activity.LAYERS["RIN"][1], 0.003
    pairs = [(run["rate"], run["seed"]) for run in result["runs"]]
    assert pairs == [
        (rate, seed)
        for rate in dict.fromkeys([own_rate, shared])
        for seed in (0, 1)
    ]
    best = min(result["runs"][:2], key=lambda run: run["loss"])
    model = keras.models.load_model(tmp_path / "RIN.keras")
    assert activity.accuracies(model, *splits[1]) == best["accuracies"]
    serve = Interpreter(str(tmp_path / "RIN.tflite")).get_signature_runner(
        "serve"
    )
    steps = x_test[0][None]
    (answers,) = serve(**{[*serve.get_input_details()][0]: steps}).values()
    np.testing.assert_allclose(
        answers, model.predict_on_batch(steps), rtol=1e-3, atol=1e-4
    )
    row = activity.row(result, shared)
    assert row["weights"] == f"{model.count_params():,}"
    assert row["own rate"] == f"{own_rate:g}"
