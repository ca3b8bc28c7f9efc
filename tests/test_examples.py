"""The examples as a user runs them, in a process of their own."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import time

import image_data
import keras
import outputs
import pytest
import sequential_images
from absl import app
from absl import flags
from absl.testing import flagsaver

import keras_rin  # noqa: F401  a saved RIN needs it to be loaded

pytestmark = pytest.mark.skipif(
    keras.backend.backend() != "tensorflow",
    reason="the examples are tried on the default backend",
)
EXAMPLES = pathlib.Path(__file__).parents[1] / "examples"
MNIST = pathlib.Path(os.environ.get("TFDS_DATA_DIR", "")) / "mnist"


def run(script, *arguments):
    return subprocess.run(
        [sys.executable, EXAMPLES / script, *arguments],
        capture_output=True,
        text=True,
    )


def test_sequential_images_ends_with_table_picture_and_models(tmp_path):
    finished = run("sequential_images.py", "--smoke", f"--output={tmp_path}")
    assert finished.returncode == 0, finished.stderr
    for name in ("RIN", "RIN paper", "RIN chain", "SimpleRNN", "LSTM"):
        assert f"| {name} " in finished.stdout
    assert "answers the same" in finished.stdout
    assert (tmp_path / "learning_curves.png").stat().st_size > 10_000
    assert (tmp_path / "saved_model" / "saved_model.pb").exists()
    model = keras.models.load_model(tmp_path / "best_rin.keras")
    assert model.count_params() == 11_210
    record = json.loads((tmp_path / "results.json").read_text())
    assert len(record["runs"]) == 5


@pytest.mark.skipif(
    not MNIST.exists(), reason="TFDS_DATA_DIR names no folder with mnist in it"
)
def test_sequential_images_reads_mnist_through_tfds(tmp_path):
    finished = run(
        "sequential_images.py",
        "--smoke",
        "--dataset=mnist",
        "--permute",
        "--layers=RIN",
        f"--output={tmp_path}",
    )
    assert finished.returncode == 0, finished.stderr
    assert "| RIN " in finished.stdout


def test_adding_problem_ends_with_table_and_picture(tmp_path):
    finished = run(
        "adding_problem.py", "--smoke", "--length=10", f"--output={tmp_path}"
    )
    assert finished.returncode == 0, finished.stderr
    for name in ("RIN", "RIN chain", "IRNN", "SimpleRNN", "LSTM", "always 1"):
        assert f"| {name} " in finished.stdout
    assert (tmp_path / "learning_curves.png").exists()


def test_memory_curves_ends_with_tables_and_pictures(tmp_path):
    finished = run("memory_curves.py", "--smoke", f"--output={tmp_path}")
    assert finished.returncode == 0, finished.stderr
    for table in ("networks.md", "decoding.md"):
        written = (tmp_path / table).read_text()
        assert "| chain + identity |" in written and written in finished.stdout
    assert (tmp_path / "memory_curves.png").stat().st_size > 10_000
    assert (tmp_path / "decoding.png").stat().st_size > 10_000


def test_random_products_ends_with_its_table(tmp_path):
    finished = run("random_products.py", "--smoke", f"--output={tmp_path}")
    assert finished.returncode == 0, finished.stderr
    assert "| as drawn " in finished.stdout
    assert (tmp_path / "table.md").read_text() in finished.stdout


def test_watch_a_chain_emerge_ends_with_table_and_pictures(tmp_path):
    finished = run(
        "watch_a_chain_emerge.py", "--smoke", "--seed=0", f"--output={tmp_path}"
    )
    assert finished.returncode == 0, finished.stderr
    assert (tmp_path / "table.md").read_text() in finished.stdout
    for picture in ("hidden_chain.png", "henrici_departure.png"):
        assert (tmp_path / picture).stat().st_size > 10_000


def test_which_start_ends_with_its_table(tmp_path):
    finished = run(
        "which_start.py",
        "--smoke",
        "--length=5",
        "--length=10",
        "--layers=chain",
        "--layers=GRU",
        f"--output={tmp_path}",
    )
    assert finished.returncode == 0, finished.stderr
    table = (tmp_path / "table.md").read_text()
    assert "| chain " in table and "10 steps" in table
    assert table in finished.stdout


def test_gated_chains_learns_to_copy_and_to_read(tmp_path):
    text = tmp_path / "text.txt"
    text.write_text("the quick brown fox jumps over the lazy dog. " * 50)
    for name, arguments in (
        ("copying", ["--layers=LSTM mixed", "--layers=GRU chain"]),
        ("text", ["--layers=GRU mixed", f"--text_file={text}"]),
    ):
        output = tmp_path / name
        finished = run(
            "gated_chains.py",
            "--smoke",
            f"--task={name}",
            *arguments,
            f"--output={output}",
        )
        assert finished.returncode == 0, finished.stderr
        assert "| knows nothing " in finished.stdout
        assert (output / "learning_curves.png").exists()


def test_deep_linear_ends_with_tables_and_picture(tmp_path):
    finished = run(
        "deep_linear.py", "--smoke", "--depth=3", f"--output={tmp_path}"
    )
    assert finished.returncode == 0, finished.stderr
    assert "| eigenvalue -0.5 " in finished.stdout
    assert "loss > 0.125" in finished.stdout
    assert "| from a Gaussian start |" in finished.stdout
    assert (tmp_path / "losses.png").exists()


def test_memorise_random_labels_ends_with_table_and_picture(tmp_path):
    finished = run(
        "memorise_random_labels.py",
        "--smoke",
        "--batch_size=7",
        f"--output={tmp_path}",
    )
    assert finished.returncode == 0, finished.stderr
    assert "right, batches of 7 |" in finished.stdout
    record = json.loads((tmp_path / "results.json").read_text())
    assert record["runs"][0]["accuracy"] == {"7": 1.0}
    assert (tmp_path / "parameters.png").exists()


def interrupted(process):
    """Presses Ctrl-C, again where a library has swallowed it."""
    for _ in range(3):
        process.send_signal(signal.SIGINT)
        try:
            return process.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            continue
    process.kill()
    return process.communicate()


def test_ctrl_c_keeps_the_best_weights_and_the_table(tmp_path):
    process = subprocess.Popen(
        [
            sys.executable,
            EXAMPLES / "sequential_images.py",
            "--epochs=10000",
            "--units=8",
            f"--output={tmp_path}",
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    best = tmp_path / "models" / "RIN-0.keras"
    while not best.exists() and process.poll() is None:
        time.sleep(0.1)
    time.sleep(1)
    output, errors = interrupted(process)
    assert process.returncode == 0, errors
    assert "| RIN (cut off) " in output and "LSTM" not in output
    assert keras.models.load_model(tmp_path / "best_rin.keras").built
    assert (tmp_path / "saved_model" / "saved_model.pb").exists()


def test_missing_data_says_where_it_looked_and_what_to_do(tmp_path):
    with pytest.raises(FileNotFoundError, match="--data_dir.*--download") as e:
        image_data.load("mnist", data_dir=tmp_path)
    assert str(tmp_path) in str(e.value)


def test_digits_are_split_once_and_for_all():
    parts = image_data.load("digits")
    assert [len(images) for images, _ in parts] == [1294, 143, 360]
    assert [len(labels) for _, labels in parts] == [1294, 143, 360]
    rows = {image.tobytes() for images, _ in parts for image in images}
    assert len(rows) == 1797  # no digit stands in two of them


def test_an_output_that_cannot_be_written_stops_before_training(tmp_path):
    file = tmp_path / "file"
    file.write_text("")
    with pytest.raises(app.UsageError, match="--output must be a directory"):
        outputs.prepare(file / "runs")


@pytest.mark.parametrize(
    "flag", ["dataset=imagenet", "layers=GRU", "units=0", "seed=a"]
)
def test_wrong_flags_are_named(flag):
    name = flag.split("=")[0]
    with flagsaver.flagsaver(), pytest.raises(flags.Error, match=name):
        sequential_images.FLAGS(["sequential_images.py", f"--{flag}"])
