"""The examples as a user runs them, in a process of their own."""

import json
import os
import pathlib
import signal
import time

import adding_problem
import babi
import babi_network
import epochs
import image_batches
import image_data
import keras
import numpy as np
import outputs
import pytest
import scripts
import sequential_images
from absl import app
from absl import flags
from absl.testing import flagsaver

import keras_rin  # noqa: F401  a saved RIN needs it to be loaded
from keras_rin.tasks import sequential_pixels

pytestmark = pytest.mark.skipif(
    keras.backend.backend() != "tensorflow",
    reason="the examples are tried on the default backend",
)
MNIST = pathlib.Path(os.environ.get("TFDS_DATA_DIR", "")) / "mnist"


def run(script, *arguments):
    return scripts.run(f"examples/{script}", *arguments)


@pytest.mark.exhaustive
def test_sequential_images_ends_with_models_that_stream(tmp_path):
    finished = run(
        "sequential_images.py",
        "--smoke",
        "--layers=RIN paper",
        "--layers=LSTM",
        f"--output={tmp_path}",
    )
    assert finished.returncode == 0, finished.stderr
    for name in ("RIN paper", "LSTM"):
        assert f"| {name} " in finished.stdout
    assert "answers the same" in finished.stdout
    assert (tmp_path / "learning_curves.png").stat().st_size > 10_000
    assert (tmp_path / "saved_model" / "saved_model.pb").exists()
    model = keras.models.load_model(tmp_path / "best_rin.keras")
    assert model.count_params() == 11_210
    record = json.loads((tmp_path / "results.json").read_text())
    assert len(record["runs"]) == 2
    finished = run(
        "stream_pixels.py",
        f"--model={tmp_path / 'best_rin.keras'}",
        "--images=3",
        f"--output={tmp_path / 'streamed'}",
    )
    assert finished.returncode == 0, finished.stderr
    assert "| 192 " in finished.stdout


@pytest.mark.exhaustive
@pytest.mark.skipif(
    not MNIST.exists(), reason="TFDS_DATA_DIR names no folder with mnist in it"
)
def test_sequential_images_reads_mnist_through_tfds(tmp_path):
    finished = run(
        "sequential_images.py",
        "--smoke",
        "--dataset=mnist",
        "--rows",
        "--permute",
        "--layers=RIN",
        f"--output={tmp_path}",
    )
    assert finished.returncode == 0, finished.stderr
    assert "| RIN " in finished.stdout


@pytest.mark.parametrize("shape", [(3, 4, 5), (3, 4, 5, 2)])
def test_rows_are_the_steps_of_a_sequence(rng, shape):
    images = rng.normal(size=shape).astype("float32")
    x = sequential_pixels.generate(image_data.rows(images))
    assert x.shape[:2] == (3, 4)
    for step, row in enumerate(images.swapaxes(0, 1)):
        for one, expected in zip(x[:, step], row, strict=True):
            np.testing.assert_array_equal(one, expected.ravel())


def test_the_layers_that_read_images_answer(rng):
    x = rng.normal(size=(2, 4, 3)).astype("float32")
    for name, make in sequential_images.LAYERS.items():
        assert make(5)(x).shape == (2, 5), name


def test_the_layers_that_add_have_about_as_many_weights():
    for name, (make, _) in adding_problem.LAYERS.items():
        layer = make()
        layer.build((None, None, 2))
        assert layer.count_params() == pytest.approx(2_650, abs=60), name


@pytest.mark.exhaustive
def test_adding_problem_ends_with_table_and_picture(tmp_path):
    finished = run(
        "adding_problem.py",
        *("--length=10", "--samples=60", "--epochs=2", "--layers=RIN"),
        f"--output={tmp_path}",
    )
    assert finished.returncode == 0, finished.stderr
    assert "| RIN " in finished.stdout
    assert (tmp_path / "learning_curves.png").stat().st_size > 10_000
    record = json.loads((tmp_path / "results.json").read_text())
    assert [len(run["validation"]) for run in record["runs"]] == [2]
    model = keras.models.load_model(tmp_path / "RIN-0.keras")
    assert model.count_params() == 2_701 + 5  # normalization: 2, 2 and 1


def test_memory_curves_ends_with_tables_and_pictures(tmp_path):
    finished = run("memory_curves.py", "--smoke", f"--output={tmp_path}")
    assert finished.returncode == 0, finished.stderr
    for table in ("networks.md", "decoding.md"):
        written = (tmp_path / table).read_text()
        assert "| chain + identity |" in written and written in finished.stdout
    assert (tmp_path / "memory_curves.png").stat().st_size > 10_000
    assert (tmp_path / "decoding.png").stat().st_size > 10_000


def test_gradient_horizons_ends_with_table_and_picture(tmp_path):
    finished = run("gradient_horizons.py", "--smoke", f"--output={tmp_path}")
    assert finished.returncode == 0, finished.stderr
    assert (tmp_path / "table.md").read_text() in finished.stdout
    assert (tmp_path / "gradient_horizons.png").stat().st_size > 10_000


@pytest.mark.exhaustive
def test_state_growth_ends_with_tables_and_picture(tmp_path):
    finished = run("state_growth.py", "--smoke", f"--output={tmp_path}")
    assert finished.returncode == 0, finished.stderr
    for table in ("loss.md", "gradient_norm.md"):
        assert (tmp_path / table).read_text() in finished.stdout
    assert (tmp_path / "state_growth.png").stat().st_size > 10_000


def test_random_products_ends_with_its_table(tmp_path):
    finished = run("random_products.py", "--smoke", f"--output={tmp_path}")
    assert finished.returncode == 0, finished.stderr
    assert "| as drawn " in finished.stdout
    assert (tmp_path / "table.md").read_text() in finished.stdout


@pytest.mark.exhaustive
def test_watch_a_chain_emerge_ends_with_table_and_pictures(tmp_path):
    finished = run(
        "watch_a_chain_emerge.py", "--smoke", "--seed=0", f"--output={tmp_path}"
    )
    assert finished.returncode == 0, finished.stderr
    assert (tmp_path / "table.md").read_text() in finished.stdout
    for picture in ("hidden_chain.png", "henrici_departure.png"):
        assert (tmp_path / picture).stat().st_size > 10_000


@pytest.mark.exhaustive
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


@pytest.mark.exhaustive
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


def write_babi_task(folder, task):
    places = ["hall", "garden", "attic"]
    for kind in ("train", "test"):
        lines = []
        for place in 20 * places:
            lines += [f"1 Ann is in the {place}.", "2 Bob went away."]
            lines += [f"3 Where is Ann?\t{place}\t1"]
        file = folder / f"qa{task}_where_{kind}.txt"
        file.write_text("\n".join(lines))


@pytest.mark.exhaustive
def test_babi_ends_with_its_table(tmp_path):
    for task in (1, 14):
        write_babi_task(tmp_path, task)
    finished = run(
        "babi.py",
        "--smoke",
        f"--data_dir={tmp_path}",
        "--task=1",
        "--task=14",
        "--layers=IRNN + noise",
        "--units=8",
        f"--output={tmp_path / 'out'}",
    )
    assert finished.returncode == 0, finished.stderr
    table = (tmp_path / "out" / "table.md").read_text()
    assert table in finished.stdout
    assert [row[-1] for row in cells(table)] == [
        babi.BASELINE,
        "0.333",
        "0.333",
    ]
    record = json.loads((tmp_path / "out" / "results.json").read_text())
    assert [run["task"] for run in record["runs"]] == [1, 14]


def cells(table):
    head, _, *rows = table.splitlines()
    return [[c.strip() for c in row.split("|")[1:-1]] for row in (head, *rows)]


def test_the_babi_table_has_tasks_against_layers():
    runs = [(1, "RIN", 0.5), (1, "LSTM", 0.25), (3, "LSTM", 1), (1, "RIN", 0.4)]
    names = ("task", "layer", "score")
    record = [
        {"baseline": 0.2, **dict(zip(names, r, strict=True))} for r in runs
    ]
    assert cells(babi.tables({"runs": record})["table.md"]) == [
        ["task", "RIN", "LSTM", babi.BASELINE],
        ["1", "0.45 (0.4 to 0.5)", "0.25", "0.2"],
        ["3", "", "1", "0.2"],
    ]


@pytest.mark.parametrize("layer", babi_network.LAYERS)
def test_the_babi_network_does_not_see_what_fills_up_a_story(
    rng, layer, tmp_path
):
    model = babi_network.build_model(layer, words=9, steps=5, units=4)
    longer = babi_network.build_model(layer, words=9, steps=8, units=4)
    longer.set_weights(model.get_weights())
    story = rng.integers(1, 9, (3, 5))
    story[1, 3:] = 0
    question = rng.integers(1, 9, (3, 2))
    answer = model({"story": story, "question": question})
    filled = {"story": np.pad(story, ((0, 0), (0, 3)))}
    filled["question"] = np.pad(question, ((0, 0), (0, 1)))
    np.testing.assert_allclose(answer, longer(filled), rtol=1e-5, atol=1e-6)
    longer.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras", compile=False)
    np.testing.assert_allclose(answer, loaded(filled), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("layer", babi_network.LAYERS)
def test_the_paper_starts_of_the_babi_network(layer):
    model = babi_network.build_model(layer, 9, 5, units=40, paper_start=True)
    rnns = [one for one in model.layers if isinstance(one, keras.layers.RNN)]
    story, question, both = [one.get_weights() for one in rnns]
    assert not np.array_equal(story[0], question[0])
    for kernel, _, bias in (story, question, both):
        assert not bias.any()
        assert layer == "LSTM" or abs(kernel.std() - 0.001) < 0.0002


def test_the_noisy_irnn_starts_where_a_rin_does():
    start = babi_network.IdentityAndNoise()((200, 200))
    offset = np.asarray(start) - np.eye(200)
    assert abs(offset.std() - 0.001) < 0.0001
    assert abs(offset.mean()) < 0.0001


def test_the_last_tenth_to_train_on_is_for_validation(tmp_path):
    write_babi_task(tmp_path, 1)
    splits, words = babi_network.load(tmp_path, 1)
    assert [len(y) for _, y in splits] == [54, 6, 60]
    for x, y in splits:
        assert x["story"].shape == (len(y), 10)
        assert x["question"].shape == (len(y), 4)
    assert words[splits[1][1][0]] == "hall"


def test_deep_linear_ends_with_tables_and_picture(tmp_path):
    finished = run(
        "deep_linear.py",
        "--smoke",
        "--depth=3",
        "--seed=0",
        f"--output={tmp_path}",
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


@pytest.fixture
def npz(tmp_path):
    rng = np.random.default_rng(0)
    x = rng.integers(0, 256, (60, 8, 8, 3), "uint8")
    y = np.arange(60)[:, None] % 3
    path = tmp_path / "images.npz"
    np.savez(path, x_train=x, y_train=y, x_test=x[:20], y_test=y[:20])
    return path


def state_of_training(output):
    (path,) = (output / "models").glob("*.npz")
    with np.load(path) as file:
        arrays = dict(file)
    history = json.loads(arrays.pop("history").item())
    del history["seconds"]
    return history, {name: a.tobytes() for name, a in arrays.items()}


@pytest.mark.exhaustive
def test_cifar_residual_goes_on_where_it_ended(npz, tmp_path):
    def train(name, *arguments):
        arguments += ("--small", "--augment", f"--data_npz={npz}")
        output = tmp_path / name
        finished = run("cifar_residual.py", *arguments, f"--output={output}")
        assert finished.returncode == 0, finished.stderr
        assert "| SmallVarianceNormal |" in finished.stdout
        return state_of_training(output)

    train("ended", "--epochs=1")
    again = train("ended", "--resume", "--epochs=2")
    assert again == train("whole", "--epochs=2")
    record = json.loads((tmp_path / "ended" / "results.json").read_text())
    (ended,) = record["runs"]
    assert ended["validation"] == again[0]["val_accuracy"]
    assert len(ended["validation"]) == 2


@pytest.mark.exhaustive
def test_a_killed_training_goes_on_bit_for_bit(tmp_path):
    finished = run("kill_and_resume.py", "--times=2", f"--output={tmp_path}")
    assert finished.returncode == 0, finished.stderr
    record = json.loads((tmp_path / "results.json").read_text())
    killed = [fault for fault in record["faults"] if fault["signal"]]
    refused = [fault for fault in record["faults"] if fault["error"]]
    assert (len(killed), len(refused)) == (8, 3)
    assert {fault["signal"] for fault in killed} == {
        signal.SIGKILL,
        signal.SIGXFSZ,
    }
    assert all(fault["same"] for fault in record["faults"])
    epochs_done = [fault["epoch"] for fault in record["faults"]]
    assert epochs_done == sorted(epochs_done) and epochs_done[-1] > 3
    assert record["end_same"] == 1
    assert "stops, names the file" in finished.stdout


def test_a_loss_not_finite_ends_one_network_and_names_its_weight(tmp_path):
    finished = run(
        "adding_problem.py",
        *("--epochs=1", "--samples=200", "--length=5", "--layers=IRNN"),
        "--learning_rate=1e30",
        f"--output={tmp_path}",
    )
    assert finished.returncode == 0, finished.stderr
    assert "IRNN, seed 0: Epoch 1, step " in finished.stderr
    assert "The first weight not finite is sequential" in finished.stderr
    assert "| 1 of 1 | " in finished.stdout


def test_a_file_of_images_is_split_and_its_labels_are_flat(npz):
    parts = image_data.load_npz(npz)
    assert [len(images) for images, _ in parts] == [54, 6, 20]
    assert [labels.shape for _, labels in parts] == [(54,), (6,), (20,)]


def test_a_file_without_its_arrays_says_which(tmp_path):
    np.savez(tmp_path / "x.npz", x_train=[1], x_test=[1])
    with pytest.raises(ValueError, match="x.npz has no y_train, y_test"):
        image_data.load_npz(tmp_path / "x.npz")


def save_images(folder, value, count):
    folder.mkdir(parents=True)
    for number in range(count):
        image = np.full((6, 5, 3), value, "uint8")
        keras.utils.save_img(folder / f"{number}.png", image, scale=False)


def test_a_folder_of_images_is_read_with_its_classes(tmp_path):
    for label, name in enumerate(("cats", "dogs")):
        save_images(tmp_path / "train" / name, 100 * label, 10)
        save_images(tmp_path / "test" / name, 100 * label, 4)
    parts = image_data.load_folder(tmp_path, size=4)
    assert [images.shape for images, _ in parts] == [
        (18, 4, 4, 3),
        (2, 4, 4, 3),
        (8, 4, 4, 3),
    ]
    for images, labels in parts:
        np.testing.assert_array_equal(images[:, 0, 0, 0], 100 * labels)


def test_a_folder_that_is_not_there_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="train is not a folder"):
        image_data.load_folder(tmp_path, size=4)


def test_folders_with_other_classes_are_refused(tmp_path):
    for folder in ("train/cats", "train/dogs", "test/dogs"):
        save_images(tmp_path / folder, 0, 1)
    with pytest.raises(ValueError, match="class_names"):
        image_data.load_folder(tmp_path, size=4)


def test_batches_are_standardised_and_training_ones_moved():
    image = np.zeros((1, 8, 8), "uint8")
    image[0, 3, 4] = 255
    two = np.concatenate([image, 3 * (image // 6)])
    ((still, labels),) = image_batches.evaluation(two, [0, 1], 4)
    assert tuple(still.shape) == (2, 8, 8, 1) and list(labels) == [0, 1]
    np.testing.assert_allclose(np.mean(still, (1, 2)), 0, atol=1e-5)
    np.testing.assert_allclose(np.std(still, (1, 2)), 1, atol=1e-4)

    batches = image_batches.training(image, [0], 4, True, True)
    moving = batches.stream(seed=0, first=0, end=300)
    places = {np.unravel_index(np.argmax(x), (8, 8)) for x, _ in moving}
    rows, columns = (set(axis) for axis in zip(*places, strict=True))
    assert rows == {1, 2, 3, 4, 5}
    assert columns == {1, 2, 3, 4, 5, 6}  # 2 to 6, and mirrored


def test_an_epoch_is_the_same_wherever_training_starts():
    rows = np.arange(10)
    batches = epochs.shuffled((rows, -rows), size=4)
    assert batches.steps == 3
    whole = [tuple(x.numpy()) for x, _ in batches.stream(3, 0, 3)]
    later = [tuple(x.numpy()) for x, _ in batches.stream(3, 1, 3)]
    assert later == whole[3:]
    seen = [sum(whole[i : i + 3], ()) for i in (0, 3, 6)]
    assert [sorted(rows) for rows in seen] == [list(range(10))] * 3
    other = [tuple(x.numpy()) for x, _ in batches.stream(4, 0, 1)]
    assert len({*seen, sum(other, ())}) == 4
    assert all((x == -y).numpy().all() for x, y in batches.stream(0, 0, 1))


def interrupted(running):
    """Presses Ctrl-C, again where a library has swallowed it."""
    for _ in range(3):
        os.kill(running.process.pid, signal.SIGINT)
        running.process.join(60)
        if not running.is_alive():
            break
    return running.end(timeout=1)


@pytest.mark.exhaustive
def test_ctrl_c_keeps_the_best_weights_and_the_table(tmp_path):
    running = scripts.Running(
        "examples/sequential_images.py",
        "--epochs=10000",
        "--units=8",
        f"--output={tmp_path}",
    )
    best = tmp_path / "models" / "RIN-0.keras"
    while not best.exists() and running.is_alive():
        time.sleep(0.1)
    time.sleep(1)
    finished = interrupted(running)
    assert finished.returncode == 0, finished.stderr
    assert "| RIN (cut off) " in finished.stdout
    assert "LSTM" not in finished.stdout
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
