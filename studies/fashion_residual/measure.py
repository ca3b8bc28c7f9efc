"""Does small-variance initialization give a higher accuracy than Keras's?

A residual network with 74,512 weights and without normalization layers is
trained on Fashion-MNIST, without augmentation: three stages of 16, 32 and 64
channels with one block each, 12 epochs, Adam at 0.003, batches of 32. It is the
network of `examples/cifar_residual.py --small`. The weights with the highest
validation accuracy are evaluated on the test set. With one seed per initializer
the comparison is inconclusive.
"""

import keras
import tensorflow as tf
from tqdm import tqdm

from engine import record
from engine import training
from engine.data import load_images
from engine.measurement import example
from keras_rin import plots
from keras_rin.callbacks import RestoreOnNaN
from keras_rin.initializers import SmallVarianceNormal
from keras_rin.tasks import sequential_pixels

BATCH = 32
EXAMPLE = example("cifar_residual")
INITIALIZERS = {
    "SmallVarianceNormal": SmallVarianceNormal,
    "glorot_uniform": keras.initializers.GlorotUniform,
}


def measure(epochs=12, filters=(16, 32, 64), images=60_000):
    splits = [(x[:images], y[:images]) for x, y in load_images("fashion_mnist")]
    baseline = sequential_pixels.chance_accuracy(splits[2][1])
    runs = [train(name, splits, epochs, filters) for name in tqdm(INITIALIZERS)]
    return {"backend": "tensorflow", "runs": runs, "baseline": baseline}


def draw(results):
    """Learning curves."""
    return plots.plot_learning_curves(
        {run["layer"]: [run["validation"]] for run in results["runs"]},
        ylabel="accuracy, validation data",
        baseline=results["baseline"],
    )


def train(name, splits, epochs, filters, seed=0):
    keras.utils.set_random_seed(seed)
    train, validation, test = splits
    options = {"network": {"filters": list(filters), "blocks": 1}}
    options = EXAMPLE.SMALL | options
    model = EXAMPLE.build((28, 28, 1), 10, options, INITIALIZERS[name])
    best = training.keep_best("val_accuracy", epochs, "max")
    history = model.fit(
        training.batches(train, BATCH, seed, epochs).map(standardized),
        steps_per_epoch=-(-len(train[1]) // BATCH),
        epochs=epochs,
        shuffle=False,
        validation_data=in_batches(validation),
        callbacks=[RestoreOnNaN(), best],
        verbose=0,
    ).history
    return {
        "layer": name,
        "seed": seed,
        "parameters": model.count_params(),
        "score": model.evaluate(in_batches(test), verbose=0)[1],
        "validation": history["val_accuracy"],
    }


def in_batches(split):
    images = tf.data.Dataset.from_tensor_slices(split)
    return images.batch(BATCH).map(standardized)


def standardized(x, y):
    """Each image with mean 0 and variance 1."""
    return tf.image.per_image_standardization(x), y


def tables(results):
    baseline = {"layer": "most frequent class", "parameters": 0}
    rows = [*results["runs"], baseline | {"score": results["baseline"]}]
    columns = {"initializer": "{layer}", "parameters": "{parameters:,}"}
    columns["accuracy"] = "{score:.3g}"
    return {"Test set": record.table(columns, rows)}


PICTURES = {"learning_curves.svg": draw}
SMALLEST = {"epochs": 1, "filters": (16, 16, 16), "images": 64}
