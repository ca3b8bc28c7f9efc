"""The examples as a reader runs them: one file, in an empty folder."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import types

import keras
import numpy as np
import pytest

from examples import sequential_images

pytestmark = [
    pytest.mark.one_backend,
    pytest.mark.skipif(
        keras.backend.backend() != "tensorflow",
        reason="the examples are tried on the default backend",
    ),
]
ROOT = pathlib.Path(__file__).parents[1]
MNIST = pathlib.Path(os.environ.get("TFDS_DATA_DIR", "")) / "mnist"
EXAMPLES = sorted((ROOT / "examples").glob("[a-z]*.py"))
NAMES = [path.stem for path in EXAMPLES]
LOG = re.compile(r"^(?:[IWEF]\d{4}[ \d]|INFO|WARNING|\d{4}-\d\d-\d\d ).*", re.M)


def run(name, folder, *arguments, **environment):
    """Runs a copy of an example as from a new shell, in the folder."""
    path = shutil.copy(ROOT / "examples" / f"{name}.py", folder)
    environment = {**os.environ, **environment}
    environment.pop("TF_CPP_MIN_LOG_LEVEL", None)
    finished = subprocess.run(
        [sys.executable, path, "--output=run", *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert not finished.returncode, finished.stderr
    assert not LOG.findall(finished.stderr)
    return finished.stdout + finished.stderr


RUNS = {
    "working_memory": (
        "--updates=2 --seconds=2",
        *("| RateRNN of rank 2 ", "working_memory.pdf"),
    ),
    "many_devices": (
        *("--samples=60 --length=5 --epochs=1 --devices=2", "loss: "),
        "model-0.keras",
    ),
    "sequential_images": (
        "--epochs=1 --units=8 --batch_size=500 --layers=RIN --layers=LSTM",
        *("| most frequent class ", "RIN.keras"),
    ),
}


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", RUNS)
def test_an_example_prints_its_lines(name, tmp_path):
    sizes, line, file = RUNS[name]
    assert line in run(name, tmp_path, *sizes.split())
    assert (tmp_path / "run" / file).stat().st_size > 5_000


@pytest.mark.parametrize("path", EXAMPLES, ids=NAMES)
def test_an_example_needs_no_other_file(path):
    imported = re.findall(r"^\s*(?:import|from) (\w+)", path.read_text(), re.M)
    assert not {*NAMES, "examples"} & set(imported)


def test_digits_are_split_once_and_for_all(monkeypatch):
    chosen = types.SimpleNamespace(dataset="digits", rows=False, permute=False)
    monkeypatch.setattr(sequential_images, "FLAGS", chosen)
    parts = sequential_images.load()
    assert [x.shape for x, _ in parts] == [(n, 64, 1) for n in (1294, 143, 360)]
    digits = {sequence.tobytes() for x, _ in parts for sequence in x}
    assert len(digits) == 1797  # no digit is in two of them
    chosen.rows = chosen.permute = True
    for (x, _), (rows, _) in zip(parts, sequential_images.load(), strict=True):
        assert rows.shape[1:] == (8, 8)
        np.testing.assert_array_equal(
            np.sort(rows.sum(axis=2)), np.sort(x.reshape(-1, 8, 8).sum(axis=2))
        )


@pytest.fixture
def small_mnist(tmp_path):
    """A folder of TFDS with 300 test images, to train on as well."""
    if not MNIST.exists():
        pytest.skip("TFDS_DATA_DIR names no folder with mnist in it")
    (version,) = MNIST.iterdir()
    folder = tmp_path / "data" / "mnist" / version.name
    shutil.copytree(version, folder, ignore=shutil.ignore_patterns("*train*"))
    (test,) = folder.glob("*test*")
    records, end = test.read_bytes(), 0
    for _ in range(300):
        end += 16 + int.from_bytes(records[end : end + 8], "little")
    for part in "test", "train":
        name = test.name.replace("test", part)
        (folder / name).write_bytes(records[:end])
    info = folder / "dataset_info.json"
    info.write_text(re.sub(r'"[16]0000"', '"300"', info.read_text()))
    return str(tmp_path / "data")


@pytest.mark.exhaustive
def test_sequential_images_reads_rows_of_mnist(tmp_path, small_mnist):
    arguments = "--dataset=mnist --rows --permute --units=2 --epochs=1"
    printed = run(
        "sequential_images",
        tmp_path,
        *arguments.split(),
        TFDS_DATA_DIR=small_mnist,
    )
    assert "| RIN chain " in printed


@pytest.mark.exhaustive
def test_cifar_residual_resumes_and_keeps_the_best_model(tmp_path, small_mnist):
    def train(*arguments):
        """The epochs that were run."""
        sizes = ("--small", "--dataset=mnist", *arguments)
        printed = run(
            "cifar_residual", tmp_path, *sizes, TFDS_DATA_DIR=small_mnist
        )
        assert "chance level" in printed
        return re.findall(r"^Epoch (\d)", printed, re.M)

    file = tmp_path / "run" / "best.keras"
    assert train("--epochs=2") == ["1", "2"]
    layers = keras.layers.Flatten(), keras.layers.Dense(10)
    best = keras.Sequential([keras.Input((28, 28, 1)), *layers])
    always_right = keras.metrics.SparseTopKCategoricalAccuracy(10)
    best.compile(loss="sparse_categorical_crossentropy", metrics=[always_right])
    best.save(file)
    saved = file.read_bytes()
    assert train("--resume", "--epochs=3") == ["3"]
    assert file.read_bytes() == saved
    assert train("--epochs=2") == ["1", "2"]
    assert file.read_bytes() != saved
