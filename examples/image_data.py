"""Images and labels as NumPy arrays, read from disk."""

import os
import pathlib

import keras
import numpy as np
import tensorflow_datasets as tfds
from sklearn.datasets import load_digits

NAMES = ["digits", "mnist", "fashion_mnist", "cifar10", "cifar100"]
IN_NPZ = ["x_train", "y_train", "x_test", "y_test"]


def load(name, data_dir=None, download=False):
    """Returns (train, validation, test), each a pair (images, labels).

    A tenth of the training images, always the same, is for validation.
    """
    if name == "digits":
        train, test = _digits()
    else:
        train, test = _from_tfds(name, data_dir, download)
    return *_held_out(*train), test


def load_npz(path):
    """The same of a file of NumPy with x_train, y_train, x_test, y_test."""
    with np.load(path) as file:
        missing = [name for name in IN_NPZ if name not in file]
        if missing:
            raise ValueError(f"{path} has no {', '.join(missing)}.")
        x, y, x_test, y_test = (file[name] for name in IN_NPZ)
    test = x_test, y_test.ravel()
    return *_held_out(*_shuffled(x, y.ravel())), test


def load_folder(path, size):
    """The same of PATH/train/CLASS/*.jpg and PATH/test/CLASS/*.jpg.

    Images are scaled to (size, size) and held in memory, one byte a value.
    """
    folders = [pathlib.Path(path) / part for part in ("train", "test")]
    for folder in folders:
        if not folder.is_dir():
            raise FileNotFoundError(f"{folder} is not a folder of images.")
    names = sorted(child.name for child in folders[0].iterdir())
    train, test = (_read_folder(folder, names, size) for folder in folders)
    return *_held_out(*_shuffled(*train)), test


def rows(images):
    """The same images one pixel wide, a row of each in the place of a pixel."""
    return images.reshape(*images.shape[:2], 1, -1)


def _held_out(images, labels):
    tenth = len(labels) // 10
    train = images[tenth:], labels[tenth:]
    return train, (images[:tenth], labels[:tenth])


def _shuffled(images, labels):
    order = np.random.default_rng(0).permutation(len(labels))
    return images[order], labels[order]


def _read_folder(path, names, size):
    dataset = keras.utils.image_dataset_from_directory(
        path,
        class_names=names,
        batch_size=1_000,
        image_size=(size, size),
        shuffle=False,
    )
    batches = [
        (images.numpy().round().astype("uint8"), labels.numpy())
        for images, labels in dataset
    ]
    return tuple(np.concatenate(part) for part in zip(*batches, strict=True))


def _digits():
    """The 1,797 digits of 8 x 8 pixels that scikit-learn ships."""
    data = load_digits()
    order = np.random.default_rng(0).permutation(len(data.target))
    images, labels = (data.images / 16)[order], data.target[order]
    return (images[360:], labels[360:]), (images[:360], labels[:360])


def _from_tfds(name, data_dir, download):
    folder = data_dir or os.environ.get("TFDS_DATA_DIR", "TFDS's own folder")
    try:
        builder = tfds.builder(name, data_dir=data_dir)
        folder = builder.data_dir
        if os.path.exists(folder):
            return tuple(_read_split(builder, s) for s in ("train", "test"))
    except Exception as error:  # TFDS and TensorFlow raise this and that
        raise ValueError(
            f"The prepared {name} in {folder} cannot be read: it is damaged or "
            f"of another version of TFDS ({type(error).__name__}: {error}). "
            "Name another folder with --data_dir, or delete this one and pass "
            "--download to fetch the data anew."
        ) from error
    if not download:
        raise FileNotFoundError(
            f"No prepared {name} in {folder}. Name the folder that holds it "
            "with --data_dir or TFDS_DATA_DIR, or pass --download to fetch it."
        )
    builder.download_and_prepare()
    return tuple(_read_split(builder, split) for split in ("train", "test"))


def _read_split(builder, split):
    images, labels = tfds.as_numpy(
        builder.as_dataset(split=split, batch_size=-1, as_supervised=True)
    )
    expected = builder.info.splits[split].num_examples
    if len(labels) != expected:
        raise ValueError(f"{split} has {len(labels)} images, not {expected}")
    return images, labels
