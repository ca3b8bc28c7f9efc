"""Does small-variance initialization give a higher accuracy than Keras's?

A residual network with 74,512 weights and without normalization layers is
trained on Fashion-MNIST, without augmentation: three stages of 16, 32 and 64
channels with one block each, 12 epochs, Adam at 0.003, batches of 32. It is the
network of `examples/cifar_residual.py --small`. The weights with the highest
validation accuracy are evaluated on the test set. With one seed per initializer
the comparison is inconclusive.
"""

import pathlib
import tempfile

import keras
import tensorflow as tf
from tqdm import tqdm

from engine import record
from engine.data import load_images
from engine.measurement import Measurement
from keras_rin import plots
from keras_rin.callbacks import KeepBest
from keras_rin.callbacks import RestoreOnNaN
from keras_rin.initializers import SmallVarianceNormal
from keras_rin.models import residual_convnet
from keras_rin.tasks import sequential_pixels

BATCH = 32
INITIALIZERS = {
    "SmallVarianceNormal": SmallVarianceNormal,
    "glorot_uniform": keras.initializers.GlorotUniform,
}


def measure(epochs=12, filters=(16, 32, 64), images=60_000):
    splits = [(x[:images], y[:images]) for x, y in load_images("fashion_mnist")]
    baseline = sequential_pixels.chance_accuracy(splits[2][1])
    runs = [train(name, splits, epochs, filters) for name in tqdm(INITIALIZERS)]
    curves = {run["layer"]: [run["validation"]] for run in runs}
    ylabel = "accuracy, validation data"
    figure = plots.plot_learning_curves(
        curves, ylabel=ylabel, baseline=baseline
    )
    results = {"backend": "tensorflow", "runs": runs, "baseline": baseline}
    return results, {"learning_curves": figure}


def train(name, splits, epochs, filters, seed=0):
    keras.utils.set_random_seed(seed)
    train, validation, test = splits
    model = build(name, filters)
    with tempfile.TemporaryDirectory() as folder:
        best = pathlib.Path(folder, "best.keras")
        history = model.fit(
            batches(*train, seed, epochs),
            steps_per_epoch=-(-len(train[1]) // BATCH),
            epochs=epochs,
            shuffle=False,
            validation_data=standardized(*validation),
            callbacks=[RestoreOnNaN(), KeepBest(best, "val_accuracy", "max")],
            verbose=0,
        ).history
        model = keras.models.load_model(best)
    return {
        "layer": name,
        "seed": seed,
        "parameters": model.count_params(),
        "score": model.evaluate(standardized(*test), verbose=0)[1],
        "validation": history["val_accuracy"],
    }


def build(name, filters):
    model = residual_convnet(
        (28, 28, 1),
        10,
        stem_filters=16,
        filters=list(filters),
        blocks=1,
        kernel_initializer=INITIALIZERS[name](),
        kernel_regularizer=keras.regularizers.L2(0.5e-4),
    )
    rate = keras.optimizers.schedules.PiecewiseConstantDecay(
        [12_000, 17_000], [0.003, 0.0003, 0.00003]
    )
    model.compile(
        keras.optimizers.Adam(rate),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
    )
    return model


def batches(x, y, seed, epochs):
    """An order for each epoch, drawn from the seed and its number alone."""

    def epoch(number):
        rows = tf.random.experimental.stateless_shuffle(
            tf.range(len(y)), [seed, number]
        )
        return standardized(tf.gather(x, rows), tf.gather(y, rows))

    return tf.data.Dataset.range(epochs).flat_map(epoch)


def standardized(x, y):
    """In batches, each image with mean 0 and variance 1."""
    images = tf.data.Dataset.from_tensor_slices((x, y)).batch(BATCH)
    return images.map(lambda x, y: (tf.image.per_image_standardization(x), y))


def tables(results):
    rows = [
        [run["layer"], f"{run['parameters']:,}", f"{run['score']:.3g}"]
        for run in results["runs"]
    ]
    rows.append(["most frequent class", "0", f"{results['baseline']:.3g}"])
    header = ["initializer", "parameters", "accuracy"]
    return {"Test set": record.markdown(header, rows)}


STUDY = Measurement(
    __file__,
    __doc__,
    measure,
    tables,
    {"learning_curves": "Learning curves"},
    smallest={"epochs": 1, "filters": (16, 16, 16), "images": 64},
)

if __name__ == "__main__":
    STUDY.main()
