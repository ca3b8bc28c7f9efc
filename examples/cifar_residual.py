"""Classifies small images with the residual network without normalisation.

    python examples/cifar_residual.py --download
    python examples/cifar_residual.py --small --dataset=fashion_mnist
    python examples/cifar_residual.py --small --image_folder=photos

The first line is the paper's network and schedule on CIFAR-10, for a GPU.
`--start` trains the same network from another start as well. Writes a table,
the learning curves and the best network; `--resume` goes on after an end.
"""

import comparison
import image_batches
import image_data
import keras
import numpy as np
import outputs
from absl import app
from absl import flags
from absl import logging

from keras_rin.initializers import SmallVarianceNormal
from keras_rin.models import residual_convnet
from keras_rin.tasks import sequential_pixels

STARTS = {
    "SmallVarianceNormal": SmallVarianceNormal,
    "glorot_uniform": keras.initializers.GlorotUniform,
    "he_normal": keras.initializers.HeNormal,
}
OPTIMIZERS = {
    "sgd": lambda rate: keras.optimizers.SGD(rate, momentum=0.9),
    "adam": keras.optimizers.Adam,
}
# What stands where the command line says nothing.
PAPER = {"epochs": 154, "batch_size": 128, "learning_rate": 0.05}
SMALL = {
    "epochs": 12,
    "batch_size": 32,
    "learning_rate": 0.003,
    "drops": [12_000, 17_000],
    "optimizer": "adam",
    "augment": False,
    "blocks": 1,
    "widths": [16, 32, 64],
}

FLAGS = flags.FLAGS
flags.DEFINE_string("output", "runs/cifar_residual", "Where to write.")
flags.DEFINE_enum("dataset", "cifar10", image_data.NAMES, "What to classify.")
flags.DEFINE_string("data_npz", None, "Or x_train, y_train, x_test, y_test.")
flags.DEFINE_string("image_folder", None, "Or train/CLASS, test/CLASS in it.")
flags.DEFINE_integer("image_size", 32, "To scale a folder's to.", 1)
flags.DEFINE_string("data_dir", None, "Where TFDS finds prepared data.")
flags.DEFINE_bool("download", False, "Fetch data that is not there.")
flags.DEFINE_bool("augment", True, "Shift and mirror images in training.")
flags.DEFINE_bool("flip", True, "Mirror them, which digits do not like.")
flags.DEFINE_bool("small", False, "A network and a schedule for a laptop.")
flags.DEFINE_multi_enum("start", list(STARTS)[:1], list(STARTS), "To compare.")
flags.DEFINE_integer("blocks", 9, "Of each stage.", 1)
flags.DEFINE_multi_integer("widths", [64, 128, 256], "Of the stages.", 1)
flags.DEFINE_enum("optimizer", "sgd", list(OPTIMIZERS), "sgd has momentum.")
flags.DEFINE_multi_integer("drops", [30_000, 50_000], "Steps; rate / 10.", 1)
flags.DEFINE_float("weight_decay", 1e-4, "L2 of the kernels, times 2.", 0)
flags.DEFINE_enum("mixed_precision", None, ["bfloat16", "float16"], "Use it.")
flags.DEFINE_bool("jit_compile", None, "Use XLA. Default: Keras decides.")


def build_model(start, input_shape, classes):
    model = residual_convnet(
        input_shape,
        classes,
        stem=min(16, FLAGS.widths[0]),
        widths=FLAGS.widths,
        blocks=FLAGS.blocks,
        kernel_initializer=STARTS[start](),
        kernel_regularizer=keras.regularizers.L2(FLAGS.weight_decay / 2),
    )
    rates = FLAGS.learning_rate * 0.1 ** np.arange(len(FLAGS.drops) + 1)
    schedule = keras.optimizers.schedules.PiecewiseConstantDecay(
        FLAGS.drops, rates.tolist()
    )
    model.compile(
        OPTIMIZERS[FLAGS.optimizer](schedule),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
        jit_compile="auto" if FLAGS.jit_compile is None else FLAGS.jit_compile,
    )
    return model


def load_images():
    try:
        if FLAGS.data_npz:
            return image_data.load_npz(FLAGS.data_npz)
        if FLAGS.image_folder:
            return image_data.load_folder(FLAGS.image_folder, FLAGS.image_size)
        return image_data.load(FLAGS.dataset, FLAGS.data_dir, FLAGS.download)
    except (FileNotFoundError, ValueError) as error:
        raise app.UsageError(str(error)) from error


def main(argv):
    del argv
    logging.set_verbosity(logging.ERROR)
    for name, value in (SMALL if FLAGS.small else PAPER).items():
        FLAGS.set_default(name, value)
    if FLAGS.mixed_precision:
        keras.config.set_dtype_policy(f"mixed_{FLAGS.mixed_precision}")
    output = outputs.prepare(FLAGS.output)
    train, validation, test = load_images()
    classes = 1 + max(train[1].max(), test[1].max())
    size = FLAGS.batch_size
    datasets = [
        image_batches.training(*train, size, FLAGS.augment, FLAGS.flip),
        image_batches.evaluation(*validation, size),
        image_batches.evaluation(*test, size),
    ]
    input_shape = datasets[1].element_spec[0].shape[1:]
    metric = comparison.Metric(
        "accuracy",
        label="accuracy",
        mode="max",
        baseline=sequential_pixels.chance_accuracy(test[1]),
        baseline_label="most frequent class",
    )

    def build(start):
        return build_model(start, input_shape, classes)

    runs = comparison.train_all(build, FLAGS.start, datasets, metric, output)
    comparison.report(runs, metric, output)


if __name__ == "__main__":
    app.run(main)
