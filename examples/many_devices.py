"""Trains one network on several devices, or on several machines.

    python examples/many_devices.py
    python examples/many_devices.py --devices=2
    KERAS_BACKEND=jax python examples/many_devices.py \
        --coordinator=10.0.0.1:1234 --processes=2 --process=0

The first line takes the devices there are, the second cuts the processor into
two, to try. On JAX they may be those of several machines: each runs the third
line with its own --process. All draw the same data, and each trains on its
share of a batch: the losses are those of one device. They go, with the network,
to OUTPUT. With --resume a line goes on after the last whole epoch.
"""

import contextlib

import keras
import numpy as np
import outputs
from absl import app
from absl import flags
from absl import logging

from keras_rin import files
from keras_rin.callbacks import ResumableTraining
from keras_rin.layers import RIN
from keras_rin.tasks import adding

FLAGS = flags.FLAGS
KEPT = ["units", "samples", "length"]  # in the checkpoint, to compare


def distribute():
    """The scope in which a model is made for all the devices."""
    if keras.backend.backend() == "tensorflow":
        return _mirrored().scope()
    # Each process is handed whole batches; the model takes its share of them.
    keras.distribution.set_distribution(
        keras.distribution.DataParallel(auto_shard_dataset=False)
    )
    return contextlib.nullcontext()


def _mirrored():
    import tensorflow as tf

    if FLAGS.devices:
        (cpu,) = tf.config.list_physical_devices("CPU")
        part = tf.config.LogicalDeviceConfiguration()
        tf.config.set_logical_device_configuration(cpu, [part] * FLAGS.devices)
    kind = "GPU" if tf.config.list_physical_devices("GPU") else "CPU"
    return tf.distribute.MirroredStrategy(tf.config.list_logical_devices(kind))


def with_the_others(state):
    """A scope in which the processes, where there are several, work as one."""
    if FLAGS.processes == 1:
        return contextlib.nullcontext()
    import processes  # which needs JAX

    processes.join(FLAGS.coordinator, FLAGS.processes, FLAGS.process)
    processes.share_newest(state)
    return processes.failing_together()


def build_model():
    model = keras.Sequential(
        [keras.Input((None, 2)), RIN(FLAGS.units), keras.layers.Dense(1)]
    )
    model.compile(keras.optimizers.Adam(1e-3), "mse")
    return model


def train(output, state):
    rng = np.random.default_rng(0)
    x, y = adding.generate(rng, FLAGS.samples, FLAGS.length)
    with distribute():
        model = build_model()
    settings = {name: FLAGS[name].value for name in KEPT}
    try:
        resumable = ResumableTraining(state, settings)
    except ValueError as error:
        raise app.UsageError(f"--resume: {error}") from error
    model.fit(
        x,
        y,
        batch_size=64,
        initial_epoch=resumable.epoch,
        epochs=FLAGS.epochs,
        shuffle=False,
        verbose=2,
        callbacks=[resumable],
    )
    # All processes have to take part where the weights are gathered.
    file = output / f"model-{FLAGS.process}.keras"
    with files.replacing(file, "The network") as new:
        model.save(new)
    return resumable.history["loss"]


def main(argv):
    del argv
    logging.set_verbosity(logging.ERROR)
    output = outputs.prepare(FLAGS.output)
    state = output / f"training-{FLAGS.process}.npz"
    if not FLAGS.resume:
        state.unlink(missing_ok=True)
    keras.utils.set_random_seed(0)
    with with_the_others(state):
        losses = train(output, state)
    if FLAGS.process == 0:
        outputs.write(output, {"loss": losses}, lambda _: {})


if __name__ == "__main__":
    flags.DEFINE_string("output", "runs/many_devices", "Where to write.")
    flags.DEFINE_integer("devices", 0, "Cut the processor into so many.", 0)
    flags.DEFINE_string("coordinator", None, "Of process 0, host:port.")
    flags.DEFINE_integer("processes", 1, "That train together.", 1)
    flags.DEFINE_integer("process", 0, "Which of them this is.", 0)
    flags.DEFINE_integer("units", 32, "Width of the RIN.", 1)
    flags.DEFINE_integer("samples", 2_000, "To train on.", 1)
    flags.DEFINE_integer("length", 50, "Steps of a sequence.", 1)
    flags.DEFINE_integer("epochs", 2, "Epochs of training.", 1)
    flags.DEFINE_bool("resume", False, "Go on where an earlier run was ended.")
    app.run(main)
