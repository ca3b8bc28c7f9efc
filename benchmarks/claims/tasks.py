"""The data sets of the protocols, drawn from a random generator."""

import dataclasses
import os
from collections.abc import Callable

import keras
import numpy as np

from examples import babi_network
from examples import image_data
from examples import text_data
from keras_rin.tasks import adding
from keras_rin.tasks import babi
from keras_rin.tasks import copying
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


def normalized(data):
    """Each input feature with mean 0 and variance 1 on the training set."""
    layer = keras.layers.Normalization()
    layer.adapt(data.splits[0][0])
    splits = [(keras.ops.convert_to_numpy(layer(x)), y) for x, y in data.splits]
    return dataclasses.replace(data, splits=splits)


def entropy(y, logits):
    return keras.losses.sparse_categorical_crossentropy(
        y, logits, from_logits=True
    )


def wrong(y, logits):
    return 1 - keras.metrics.sparse_categorical_accuracy(y, logits)


def adding_data(rng, length, train):
    splits = [adding.generate(rng, n, length) for n in (train, 1_000, 1_000)]
    loss = keras.losses.mean_squared_error
    return Data(splits, 1, loss, loss, adding.baseline_loss())


def copying_data(rng, length, train, copied):
    splits = [
        copying.generate(rng, n, length, copied) for n in (train, 1_000, 1_000)
    ]
    baseline = copying.baseline_loss(length, copied)
    return Data(splits, 9, entropy, entropy, baseline, every_step=True)


def pixels_data(rng, images="digits", train=None, permuted=False, pooled=1):
    parts = load_images(images)
    height, width = parts[0][0].shape[1:3]
    order = None
    if permuted:
        steps = height * width // pooled**2
        order = sequential_pixels.permutation(np.random.default_rng(0), steps)
    splits = [
        (sequential_pixels.generate(pool(x, pooled), order), y)
        for x, y in parts
    ]
    if train is not None:
        splits[0] = _some(rng, splits[0], train)
    chance = sequential_pixels.chance_accuracy(splits[2][1])
    return Data(splits, 10, entropy, wrong, 1 - chance)


def images_data(rng, images="digits", pooled=1):
    """Whole images, with mean 0 and variance 1 on the training set."""
    parts = [(pool(x, pooled), y) for x, y in load_images(images)]
    mean, deviation = parts[0][0].mean(), parts[0][0].std()
    shape = (*parts[0][0].shape[1:], 1)[:3]  # one channel by default
    splits = [
        (((x - mean) / deviation).astype("float32").reshape(len(x), *shape), y)
        for x, y in parts
    ]
    chance = sequential_pixels.chance_accuracy(splits[2][1])
    return Data(splits, 10, entropy, wrong, 1 - chance)


def characters_data(rng, length, train):
    splits, baseline = text_data.splits(text_data.read(), length)
    splits = [_some(rng, split, train) for split in splits]
    answers = splits[0][0].shape[-1]
    return Data(splits, answers, entropy, entropy, baseline, every_step=True)


def _some(rng, split, count):
    rows = rng.permutation(len(split[1]))[:count]
    return tuple(part[rows] for part in split)


def babi_data(rng, number):
    """Questions about stories; BABI_DIR is the folder of the bAbI files."""
    splits, words = babi_network.load(os.environ["BABI_DIR"], number)
    (_, known), _, (_, asked) = splits
    chance = babi.chance_accuracy(known, asked)
    loss = keras.losses.sparse_categorical_crossentropy
    return Data(splits, len(words), loss, wrong, 1 - chance)


def load_images(name):
    """Images from TFDS, or from the file IMAGES_NPZ for "npz"."""
    if name == "npz":
        return image_data.load_npz(os.environ["IMAGES_NPZ"])
    return image_data.load(name, os.environ.get("TFDS_DATA_DIR"))


def pool(images, size):
    """The mean of each square of `size` x `size` pixels, channel by channel."""
    if size == 1:
        return images
    samples, height, width, channels = images.shape
    squares = images.reshape(
        samples, height // size, size, width // size, size, channels
    )
    return squares.mean(axis=(2, 4), dtype="float32") / 255


TASKS = {
    "adding": (adding_data, {"length", "train"}),
    "copying": (copying_data, {"length", "train", "copied"}),
    "pixels": (pixels_data, {"images", "train", "permuted", "pooled"}),
    "images": (images_data, {"images", "pooled"}),
    "text": (characters_data, {"length", "train"}),
    "babi": (babi_data, {"number"}),
}


def draw(settings, rng):
    """The data of a run, from its settings."""
    make, names = TASKS[settings["task"]]
    return make(rng, **{n: settings[n] for n in names if n in settings})
