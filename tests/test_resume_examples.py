"""What examples write stays whole, and resumes under its own flags only."""

import errno
import os
import pathlib
import resource
import tempfile

import comparison
import image_data
import keep_best
import keras
import numpy as np
import outputs
import pytest
import sequential_images
from absl import app
from absl.testing import flagsaver
from matplotlib.figure import Figure

pytestmark = pytest.mark.skipif(
    keras.backend.backend() != "tensorflow",
    reason="the examples are tried on the default backend",
)
MNIST = pathlib.Path(os.environ.get("TFDS_DATA_DIR", "")) / "mnist"
METRIC = comparison.Metric("loss", "loss", "min", 1.0, "zero")
X = np.linspace(-1, 1, 16, dtype="float32").reshape(8, 2)


def build(layer):
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    return model


def train(output, **flags):
    output.mkdir(exist_ok=True)
    with flagsaver.flagsaver(**flags):
        comparison.FLAGS.mark_as_parsed()
        splits = [(X, X[:, :1])] * 3
        return comparison.train_all(build, ["dense"], splits, METRIC, output)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    output = tmp_path_factory.mktemp("trained")
    (run,) = train(output, epochs=2)
    assert len(run.validation) == 2
    return output


OTHER = {
    "batch_size": 4,
    "dataset": "mnist",
    "learning_rate": 0.5,
    "permute": True,
    "rows": True,
    "smoke": True,
    "units": 7,
}


@pytest.mark.parametrize("flag", OTHER)
def test_other_flags_are_refused_and_named(trained, flag):
    before = contents(trained)
    with pytest.raises(app.UsageError, match=rf"--resume: .*settings.{flag}: "):
        train(trained, resume=True, epochs=3, **{flag: OTHER[flag]})
    assert contents(trained) == before


def test_flags_that_change_no_training_resume(trained):
    (run,) = train(trained, resume=True, epochs=3, layers=["RIN"], seed=[0])
    assert len(run.validation) == 3


def test_without_resume_an_earlier_run_moves_aside(tmp_path):
    train(tmp_path, epochs=2)
    before = contents(tmp_path / "models")
    (run,) = train(tmp_path, epochs=1)
    assert len(run.validation) == 1
    assert contents(tmp_path / "models_before") == before


def test_results_stay_where_no_epoch_is_over(tmp_path):
    (tmp_path / "results.json").write_text("old")
    comparison.report([], METRIC, tmp_path)
    assert (tmp_path / "results.json").read_text() == "old"
    assert os.listdir(tmp_path) == ["results.json"]


def test_every_flag_of_the_main_job_is_kept_or_known_to_change_nothing():
    """A flag that is added has to be thought of."""
    names = sequential_images.FLAGS.flags_by_module_dict()
    defined = {
        flag.name
        for module in ("comparison", "sequential_images")
        for flag in names[module]
    }
    kept = set(OTHER) | {"seed"}
    assert defined - kept == comparison.NOT_KEPT | {"layers"}


def contents(folder):
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder): path.read_bytes() for path in files}


def save_network(path):
    keep = keep_best.KeepBest(path, "val_loss", "min")
    keep.set_model(build("dense"))
    keep.on_epoch_end(0, {"val_loss": 1.0})


WRITERS = {
    "best.keras": save_network,
    "results.json": lambda path: outputs.write(
        path.parent, {"x": "y" * 200}, lambda _: {}
    ),
    "table.md": lambda path: outputs.save_text("|" * 200, path),
    "picture.png": lambda path: outputs.save_picture(Figure(), path),
}
CALLS = [(tempfile, "mkdtemp"), (os, "fsync"), (pathlib.Path, "replace")]


def full(*args, **kwargs):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.fixture(params=["write", *CALLS], ids=lambda call: call[-1])
def full_disk(request, monkeypatch):
    """A disk that is full at one kind of call, or for files of 100 bytes."""
    if request.param != "write":
        monkeypatch.setattr(*request.param, full)
        yield
        return
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("name", WRITERS)
def test_on_a_full_disk_the_old_file_stays_whole(tmp_path, full_disk, name):
    path = tmp_path / name
    path.write_text("old")
    with pytest.raises(OSError, match="stays as it is") as error:
        WRITERS[name](path)
    assert error.value.filename == str(path)
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == [name]


def test_the_best_network_is_that_of_the_best_epoch(tmp_path):
    keep = keep_best.KeepBest(tmp_path / "best.keras", "val_loss", "min", 3.0)
    model = build("dense")
    keep.set_model(model)
    saved = []
    for epoch, value in enumerate([4.0, 2.0, float("nan"), 2.5, 1.0]):
        model.layers[-1].bias.assign([epoch])
        keep.on_epoch_end(epoch, {"val_loss": value})
        if (tmp_path / "best.keras").exists():
            best = keras.models.load_model(tmp_path / "best.keras")
            saved.append(int(best.get_weights()[1][0]))
    assert saved == [1, 1, 1, 4]


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
    ("dataset_info.json", missing),
    (TEST, cut_between_records),
    *(
        pytest.param(TEST, damage, marks=pytest.mark.exhaustive)
        for damage in (cut_off, flipped, missing)
    ),
]


@pytest.mark.skipif(
    not MNIST.exists(), reason="TFDS_DATA_DIR names no folder with mnist in it"
)
@pytest.mark.parametrize("name, damage", DAMAGES)
def test_a_damaged_folder_of_data_is_named(tmp_path, monkeypatch, name, damage):
    folder = small_mnist(tmp_path)
    content = damage((folder / name).read_bytes())
    (folder / name).unlink()
    if content is not None:
        (folder / name).write_bytes(content)
    with flagsaver.flagsaver(dataset="mnist", data_dir=str(tmp_path)):
        sequential_images.FLAGS.mark_as_parsed()
        with pytest.raises(app.UsageError, match="cannot be read.*--data_dir"):
            sequential_images.load_sequences()


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


@pytest.mark.skipif(
    not MNIST.exists(), reason="TFDS_DATA_DIR names no folder with mnist in it"
)
def test_the_folder_that_is_damaged_can_be_read_before(tmp_path):
    small_mnist(tmp_path)
    parts = image_data.load("mnist", tmp_path)
    assert [len(labels) for _, labels in parts] == [9_000, 1_000, 10_000]
