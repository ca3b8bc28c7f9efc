"""The examples as a reader runs them: one file, in an empty folder."""

import functools
import os
import pathlib
import re

import keras
import numpy as np
import pytest
import scripts
from absl import app
from absl import flags

from examples import adding_problem
from examples import sequential_images
from keras_rin.tasks import adding

pytestmark = pytest.mark.skipif(
    keras.backend.backend() != "tensorflow",
    reason="the examples are tried on the default backend",
)
MNIST = pathlib.Path(os.environ.get("TFDS_DATA_DIR", "")) / "mnist"
EXAMPLES = sorted((scripts.ROOT / "examples").glob("[a-z]*.py"))


def run(name, output, *arguments):
    """Standard output of an example, which has to end well."""
    finished = scripts.run(
        f"examples/{name}.py", *arguments, f"--output={output}"
    )
    assert finished.returncode == 0, finished.stderr
    return finished


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_needs_no_other_file(path):
    imported = re.findall(r"^\s*(?:import|from) (\w+)", path.read_text(), re.M)
    assert not {other.stem for other in EXAMPLES} & set(imported)
    assert "examples" not in imported


# The smallest values of flags, a row of the table, and the pictures.
def test_activity_ends_at_a_table_and_a_picture(tmp_path):
    sizes = ("--units=1", "--epochs=1", "--seed=0", "--layers=RIN")
    finished = run("activity", tmp_path, *sizes)
    assert "| RIN " in finished.stdout
    assert (tmp_path / "accuracy.png").stat().st_size > 10_000


def test_the_layers_that_add_have_about_as_many_weights():
    for name, make in adding_problem.LAYERS.items():
        layer = make()
        layer.build((None, None, 2))
        assert layer.count_params() == pytest.approx(2_650, abs=60), name


@pytest.mark.exhaustive
def test_adding_problem(tmp_path):
    sizes = ("--length=10", "--samples=60", "--epochs=2", "--layers=RIN")
    finished = run("adding_problem", tmp_path, *sizes, "--test_length=30")
    model = keras.models.load_model(tmp_path / "RIN.keras")
    assert model.count_params() == 2_701 + 5  # normalization: 2, 2 and 1
    assert (tmp_path / "learning_curves.png").stat().st_size > 10_000
    rng = np.random.default_rng(0)
    for samples, length in ((60, 10), (1_000, 30), (1_000, 30)):
        x, y = adding.generate(rng, samples, length)
    loss = 6 * np.mean((model.predict(x, verbose=0) - y) ** 2)
    (printed,) = re.findall(r"\| RIN +\| 2,706 +\| (\S+) ", finished.stdout)
    assert float(printed) == pytest.approx(loss, rel=0.05)


@pytest.mark.exhaustive
def test_a_loss_not_finite_ends_one_network_and_names_its_weight(tmp_path):
    sizes = ("--length=5", "--samples=200", "--epochs=1", "--layers=IRNN")
    arguments = (*sizes, "--learning_rate=1e30")
    finished = run("adding_problem", tmp_path, *arguments)
    assert "IRNN: Epoch 1, step " in finished.stderr
    assert "The first weight not finite is sequential" in finished.stderr
    assert "| IRNN (diverged) " in finished.stdout


@pytest.mark.exhaustive
def test_sequential_images_ends_with_models_and_a_table(tmp_path):
    sizes = ("--units=8", "--epochs=1", "--batch_size=500")
    layers = ("--layers=RIN paper", "--layers=LSTM")
    finished = run("sequential_images", tmp_path, *layers, *sizes)
    assert "Best RIN" in finished.stdout
    assert (tmp_path / "learning_curves.png").stat().st_size > 10_000
    model = keras.models.load_model(tmp_path / "best_rin.keras")
    assert model.count_params() == 80 + 90
    table = (tmp_path / "table.md").read_text()
    assert table in finished.stdout
    for name in ("RIN paper", "LSTM", "most frequent class"):
        assert f"| {name} " in table


@pytest.mark.exhaustive
@pytest.mark.skipif(
    not MNIST.exists(), reason="TFDS_DATA_DIR names no folder with mnist in it"
)
def test_sequential_images_reads_rows_of_mnist(tmp_path):
    small_mnist(tmp_path)
    finished = run(
        "sequential_images",
        tmp_path,
        *("--dataset=mnist", "--rows", "--permute", "--layers=RIN"),
        *("--units=2", "--epochs=1", "--batch_size=500"),
        f"--data_dir={tmp_path}",
    )
    assert "| RIN " in finished.stdout


@pytest.mark.exhaustive
def test_ctrl_c_keeps_the_best_weights_and_the_table(tmp_path):
    finished = scripts.Running(
        "examples/sequential_images.py",
        *("--layers=RIN", "--units=4", "--batch_size=500", "--layers=LSTM"),
        *("--epochs=100", f"--output={tmp_path}"),
        prepare=functools.partial(interrupt_in_epoch, 3),
        INTERRUPTED=str(tmp_path),
    ).end()
    assert finished.returncode == 0, finished.stderr
    assert "| RIN (interrupted) " in finished.stdout
    assert "LSTM" not in finished.stdout
    assert keras.models.load_model(tmp_path / "best_rin.keras").built
    assert (tmp_path / "saved_model" / "saved_model.pb").exists()
    assert not scripts.left_behind(f"INTERRUPTED={tmp_path}")


def interrupt_in_epoch(number):
    def on_epoch_begin(self, epoch, logs=None):
        if epoch + 1 == number:
            scripts.interrupt()

    keras.callbacks.History.on_epoch_begin = on_epoch_begin


@pytest.fixture
def with_flags(monkeypatch):
    """Gives the main job flags of its own."""

    def give(**values):
        chosen = flags.FlagValues()
        defaults = {"data_dir": None, "download": False}
        defaults |= {"permute": False, "rows": False}
        for name, value in {**defaults, **values}.items():
            flags.DEFINE_string(name, None, "", flag_values=chosen)
            chosen[name].value = value
        chosen.mark_as_parsed()
        monkeypatch.setattr(sequential_images, "FLAGS", chosen)

    return give


def test_digits_are_split_once_and_for_all(with_flags):
    with_flags(dataset="digits")
    parts = sequential_images.load()
    assert [x.shape for x, _ in parts] == [(n, 64, 1) for n in (1294, 143, 360)]
    rows = {sequence.tobytes() for x, _ in parts for sequence in x}
    assert len(rows) == 1797  # no digit is in two of them
    with_flags(dataset="digits", rows=True, permute=True)
    for (x, _), (rows, _) in zip(parts, sequential_images.load(), strict=True):
        assert rows.shape[1:] == (8, 8)
        np.testing.assert_array_equal(
            np.sort(rows.sum(axis=2)), np.sort(x.reshape(-1, 8, 8).sum(axis=2))
        )


def test_missing_data_says_where_it_looked_and_what_to_do(with_flags, tmp_path):
    with_flags(dataset="mnist", data_dir=str(tmp_path))
    with pytest.raises(app.UsageError, match="--data_dir.*--download") as e:
        sequential_images.load()
    assert str(tmp_path) in str(e.value)


def cut_off(content):
    return content[: len(content) // 2]


def cut_between_records(content):
    """Half of the records of a file of TFDS, each of them whole."""
    at = 0
    while at < len(content) // 2:
        at += 16 + int.from_bytes(content[at : at + 8], "little")
    return content[:at]


def flipped(content):
    middle = len(content) // 2
    return content[:middle] + b"\xff" * 8 + content[middle + 8 :]


def missing(content):
    return None


TEST = "mnist-test.tfrecord-00000-of-00001"
DAMAGES = [
    ("dataset_info.json", cut_off),
    (TEST, cut_between_records),
    *(
        pytest.param(file, damage, marks=pytest.mark.exhaustive)
        for file, damage in (
            ("dataset_info.json", missing),
            (TEST, cut_off),
            (TEST, flipped),
            (TEST, missing),
        )
    ),
]


@pytest.mark.skipif(
    not MNIST.exists(), reason="TFDS_DATA_DIR names no folder with mnist in it"
)
@pytest.mark.parametrize("name, damage", DAMAGES)
def test_a_damaged_folder_of_data_is_named(tmp_path, with_flags, name, damage):
    folder = small_mnist(tmp_path)
    content = damage((folder / name).read_bytes())
    (folder / name).unlink()
    if content is not None:
        (folder / name).write_bytes(content)
    with_flags(dataset="mnist", data_dir=str(tmp_path))
    with pytest.raises(
        app.UsageError, match="cannot be read. .*--data_dir"
    ) as e:
        sequential_images.from_tfds()
    assert str(tmp_path) in str(e.value)


def small_mnist(root):
    """A folder in which the images to test on are those to train on as well."""
    (version,) = MNIST.iterdir()
    folder = root / "mnist" / version.name
    folder.mkdir(parents=True)
    for file in version.iterdir():
        source = version / TEST if "train" in file.name else file
        (folder / file.name).write_bytes(source.read_bytes())
    info = folder / "dataset_info.json"
    info.write_text(info.read_text().replace('"60000"', '"10000"'))
    return folder


def save_images(folder, color, count):
    folder.mkdir(parents=True)
    for number in range(count):
        image = np.full((6, 5, 3), color, "uint8")
        image[number % 6] = 255
        keras.utils.save_img(folder / f"{number}.png", image, scale=False)


@pytest.mark.exhaustive
def test_cifar_residual_resumes_and_keeps_the_best_model(tmp_path):
    for label, name in enumerate(("cats", "dogs")):
        save_images(tmp_path / "images" / "train" / name, 100 * label, 30)
        save_images(tmp_path / "images" / "test" / name, 100 * label, 4)

    def train(*arguments):
        """The epochs in the log, the best one so far."""
        folder = f"--image_folder={tmp_path / 'images'}"
        output = tmp_path / "run"
        run("cifar_residual", output, "--small", folder, *arguments)
        rows = (output / "log.csv").read_text().splitlines()[1:]
        return [row.split(",")[0] for row in rows]

    best = tmp_path / "run" / "best.keras"
    assert train("--epochs=1") == ["0"]
    first = best.stat().st_mtime_ns
    log = tmp_path / "run" / "log.csv"
    header, row = log.read_text().splitlines()
    cells = dict(zip(header.split(","), row.split(","), strict=True))
    cells["val_accuracy"] = "1.1"  # no later epoch is better
    log.write_text(f"{header}\n{','.join(cells.values())}\n")
    assert train("--resume", "--epochs=2") == ["0", "1"]
    assert best.stat().st_mtime_ns == first
    assert train("--epochs=1") == ["0"]
    assert best.stat().st_mtime_ns > first
