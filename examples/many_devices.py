"""Trains one network on several devices, or on several machines.

    python examples/many_devices.py
    python examples/many_devices.py --devices=2
    KERAS_BACKEND=jax python examples/many_devices.py --process=0 \
        --addresses=10.0.0.1:1234,10.0.0.2:1234

The first line takes the devices there are, the second cuts the processor into
two, to try. On JAX they may be those of several machines: each runs the third
line with its own --process. All draw the same data, and each trains on its
share of a batch: the losses are those of one device. They go, with the network,
to OUTPUT.
"""

import contextlib

import keras
import numpy as np
import outputs
from absl import app
from absl import flags
from absl import logging

from keras_rin.layers import RIN
from keras_rin.tasks import adding

FLAGS = flags.FLAGS


def distribute():
    """The scope in which a model is made for all the devices."""
    if keras.backend.backend() == "tensorflow":
        return _mirrored().scope()
    if FLAGS.addresses:
        import jax

        jax.config.update("jax_cpu_collectives_implementation", "gloo")
        keras.distribution.initialize(
            FLAGS.addresses, len(FLAGS.addresses.split(",")), FLAGS.process
        )
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


def build_model():
    model = keras.Sequential(
        [keras.Input((None, 2)), RIN(FLAGS.units), keras.layers.Dense(1)]
    )
    model.compile(keras.optimizers.Adam(1e-3), "mse")
    return model


def main(argv):
    del argv
    logging.set_verbosity(logging.ERROR)
    output = outputs.prepare(FLAGS.output)
    keras.utils.set_random_seed(0)
    rng = np.random.default_rng(0)
    x, y = adding.generate(rng, FLAGS.samples, FLAGS.length)
    with distribute():
        model = build_model()
    history = model.fit(
        x, y, batch_size=64, epochs=FLAGS.epochs, shuffle=False, verbose=2
    )
    # All processes have to take part where the weights are gathered.
    model.save(output / f"model-{FLAGS.process}.keras")
    if FLAGS.process == 0:
        outputs.write(output, {"loss": history.history["loss"]}, lambda _: {})


if __name__ == "__main__":
    flags.DEFINE_string("output", "runs/many_devices", "Where to write.")
    flags.DEFINE_integer("devices", 0, "Cut the processor into so many.", 0)
    flags.DEFINE_string(
        "addresses", "", "Of all machines, host:port, by comma."
    )
    flags.DEFINE_integer("process", 0, "Which of the addresses this is.", 0)
    flags.DEFINE_integer("units", 32, "Width of the RIN.", 1)
    flags.DEFINE_integer("samples", 2_000, "To train on.", 1)
    flags.DEFINE_integer("length", 50, "Steps of a sequence.", 1)
    flags.DEFINE_integer("epochs", 2, "Epochs of training.", 1)
    app.run(main)
