"""The data of a run, drawn from a random generator."""

import dataclasses
import os
from collections.abc import Callable

import keras
import numpy as np
import tensorflow_datasets as tfds
from scipy import stats
from sklearn.datasets import load_digits

from engine import babi
from keras_rin import tasks
from keras_rin.tasks import sequential_pixels


@dataclasses.dataclass
class Data:
    """Training, validation and test set, and the baseline loss."""

    splits: list
    answers: int
    loss: Callable
    score: Callable  # (y, answers) -> loss or error of each sample or step
    baseline: float
    every_step: bool = False


def draw(setting):
    """The data of a run, normalized if its setting says so."""
    rng = np.random.default_rng(setting["seed"])
    data = TASKS[setting["task"]](setting, rng)
    if setting["inputs"] == "normalized":
        layer = keras.layers.Normalization()
        layer.adapt(data.splits[0][0])
        normalized = ((layer(x), y) for x, y in data.splits)
        data.splits = [
            (keras.ops.convert_to_numpy(x), y) for x, y in normalized
        ]
    return data


def entropy(y, logits):
    return keras.losses.sparse_categorical_crossentropy(
        y, logits, from_logits=True
    )


def wrong(y, logits):
    return 1 - keras.metrics.sparse_categorical_accuracy(y, logits)


def adding_data(setting, rng):
    splits = _generated(setting, rng, tasks.adding, setting["length"])
    loss = keras.losses.mean_squared_error
    return Data(splits, 1, loss, loss, tasks.adding.baseline_loss())


def copying_data(setting, rng):
    choices = setting["length"], setting["copied"]
    splits = _generated(setting, rng, tasks.copying, *choices)
    baseline = tasks.copying.baseline_loss(*choices)
    return Data(splits, 9, entropy, entropy, baseline, every_step=True)


def _generated(setting, rng, task, *choices):
    sizes = setting["train"], 1_000, 1_000
    return [task.generate(rng, size, *choices) for size in sizes]


def pixels_data(setting, rng):
    parts = [
        (pool(x, setting["pooled"]), y)
        for x, y in load_images(setting["images"])
    ]
    order, steps = None, parts[0][0][0, ..., 0].size
    if setting["permuted"]:
        order = np.random.default_rng(0).permutation(steps)
    splits = [(sequential_pixels.generate(x, order), y) for x, y in parts]
    if setting["train"] is not None:
        splits[0] = _some(rng, splits[0], setting["train"])
    return _classifier(splits)


def images_data(setting, rng):
    """Whole images, with mean 0 and variance 1 on the training set."""
    parts = load_images(setting["images"])
    mean, deviation = parts[0][0].mean(), parts[0][0].std()
    return _classifier(
        [(((x - mean) / deviation).astype("float32"), y) for x, y in parts]
    )


def _classifier(splits):
    chance = sequential_pixels.chance_accuracy(splits[2][1])
    return Data(splits, 10, entropy, wrong, 1 - chance)


def text_data(setting, rng):
    """Windows of tiny Shakespeare; its last tenths validate and test."""
    builder = tfds.builder("tiny_shakespeare")
    text = "".join(
        example["text"].decode()
        for split in ("train", "validation", "test")
        for example in tfds.as_numpy(builder.as_dataset(split=split))
    )
    alphabet, codes = np.unique(list(text), return_inverse=True)
    one_hot = np.eye(len(alphabet), dtype="float32")
    cuts = [8 * len(codes) // 10, 9 * len(codes) // 10]
    splits = []
    for part in np.split(codes, cuts):
        x, y = windows(part, setting["length"])
        splits.append(_some(rng, (one_hot[x], y), setting["train"]))
    baseline = stats.entropy(np.bincount(part))  # of the test set
    answers = len(alphabet)
    return Data(splits, answers, entropy, entropy, baseline, every_step=True)


def windows(codes, length):
    """Consecutive windows of a text, and the same one character later."""
    size = (len(codes) - 1) // length * length
    parts = codes[:size], codes[1 : size + 1]
    return tuple(part.reshape(-1, length) for part in parts)


def _some(rng, split, count):
    rows = rng.permutation(len(split[1]))[:count]
    return tuple(part[rows] for part in split)


def babi_data(setting, rng):
    """Questions about stories; a tenth of those to train on validate."""
    folder = os.environ["BABI_DIR"]
    train, test, words = babi.read(folder, setting["number"])
    cut = len(train[2]) * 9 // 10
    parts = [a[:cut] for a in train], [a[cut:] for a in train], test
    splits = [({"story": s, "question": q}, answer) for s, q, answer in parts]
    most_frequent = np.bincount(splits[0][1]).argmax()
    loss = keras.losses.sparse_categorical_crossentropy
    baseline = float(np.mean(test[2] != most_frequent))
    return Data(splits, len(words), loss, wrong, baseline)


TASKS = {
    "adding": adding_data,
    "copying": copying_data,
    "pixels": pixels_data,
    "images": images_data,
    "text": text_data,
    "babi": babi_data,
}


def load_images(name):
    """(images, labels) to train, validate and test on.

    The digits of scikit-learn or a data set of TFDS. The first tenth of the
    training images validates.
    """
    rng = np.random.default_rng(0)
    if name == "digits":
        digits = load_digits()
        order = rng.permutation(len(digits.target))
        x, y = digits.images[order, ..., None] / 16, digits.target[order]
        (x, x_test), (y, y_test) = (x[360:], x[:360]), (y[360:], y[:360])
    else:
        options = {"split": ["train", "test"], "batch_size": -1}
        options |= {"as_supervised": True, "download": False}
        (x, y), (x_test, y_test) = tfds.as_numpy(tfds.load(name, **options))
    tenth = len(y) // 10
    return (x[tenth:], y[tenth:]), (x[:tenth], y[:tenth]), (x_test, y_test)


def pool(images, size):
    """The mean of each square of `size` x `size` pixels, channel by channel."""
    if size == 1:
        return images
    samples, height, width, channels = images.shape
    squares = images.reshape(
        samples, height // size, size, width // size, size, channels
    )
    return squares.mean(axis=(2, 4), dtype="float32") / 255


def missing_data(settings):
    """Which data runs need that do not exist, in words; "" if none."""
    tasks_of = {setting["task"] for setting in settings}
    if "babi" in tasks_of and not os.path.isdir(os.getenv("BABI_DIR", "")):
        return "BABI_DIR names no folder of bAbI files"
    names = {setting["images"] for setting in settings} - {"digits", None}
    if "text" in tasks_of:
        names.add("tiny_shakespeare")
    for name in sorted(names):
        if not tfds.builder(name).is_prepared():
            return f"there is no {name} in TFDS_DATA_DIR"
    return ""
