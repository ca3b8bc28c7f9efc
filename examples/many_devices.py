"""Trains one network on several devices, or on several machines.

    python many_devices.py
    python many_devices.py --devices=2
    KERAS_BACKEND=jax python many_devices.py \
        --coordinator=10.0.0.1:1234 --processes=2 --process=0

The first line uses all devices, the second splits the CPU into two, for a
test. On JAX the devices may be those of several machines: each runs the third
line with its own --process. All generate the same data, and each trains on its
share of a batch: the losses are those of one device. On one machine the same
command continues a training that ended early, after its last whole epoch.
"""

import contextlib
import os
import pathlib
import traceback

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
stderr = os.dup(2)  # TensorFlow logs to it even so, while it is imported
os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
try:
    import keras
finally:
    os.dup2(stderr, 2)
import numpy as np
from absl import app
from absl import flags
from absl import logging

from keras_rin.layers import RIN
from keras_rin.tasks import adding

FLAGS = flags.FLAGS


def join():
    """Waits for the other processes, before any computation."""
    import jax

    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    place = FLAGS.coordinator, FLAGS.processes, FLAGS.process
    keras.distribution.initialize(*place)


def distribute():
    """The scope in which a model is made for all the devices."""
    if keras.backend.backend() == "tensorflow":
        return mirrored_strategy().scope()
    # Each process is handed whole batches; the model takes its share of them.
    keras.distribution.set_distribution(
        keras.distribution.DataParallel(auto_shard_dataset=False)
    )
    return contextlib.nullcontext()


def mirrored_strategy():
    import tensorflow as tf

    if FLAGS.devices:
        (cpu,) = tf.config.list_physical_devices("CPU")
        part = tf.config.LogicalDeviceConfiguration()
        tf.config.set_logical_device_configuration(cpu, [part] * FLAGS.devices)
    kind = "GPU" if tf.config.list_physical_devices("GPU") else "CPU"
    return tf.distribute.MirroredStrategy(tf.config.list_logical_devices(kind))


def count_devices():
    """The number of devices among which the current scope divides a batch."""
    if keras.backend.backend() == "tensorflow":
        import tensorflow as tf

        return tf.distribute.get_strategy().num_replicas_in_sync
    return len(keras.distribution.list_devices())


def train(folder):
    rng = np.random.default_rng(0)
    with distribute():
        # Every device takes an equal share of each batch, also of the last.
        devices = count_devices()
        samples = FLAGS.samples - FLAGS.samples % devices
        batch_size = max(64 - 64 % devices, devices)
        if not samples:
            raise app.UsageError(
                f"--samples must be at least {devices}, one for each device. "
                f"Received: --samples={FLAGS.samples}"
            )
        print(f"{samples} samples, {devices} devices, batches of {batch_size}")
        x, y = adding.generate(rng, samples, FLAGS.length)
        layers = RIN(32), keras.layers.Dense(1)
        model = keras.Sequential([keras.Input((None, 2)), *layers])
        model.compile(keras.optimizers.Adam(1e-3), "mse")
    # Several processes would resume from different epochs.
    alone = FLAGS.processes == 1
    backup = keras.callbacks.BackupAndRestore(folder / "backup")
    options = {"batch_size": batch_size, "shuffle": False, "verbose": 2}
    options |= {"epochs": FLAGS.epochs, "callbacks": [backup] if alone else []}
    model.fit(x, y, **options)
    # All processes have to take part where the weights are gathered.
    model.save(folder / f"model-{FLAGS.process}.keras")


def main(_):
    logging.set_verbosity(logging.ERROR)
    folder = pathlib.Path(FLAGS.output)
    folder.mkdir(parents=True, exist_ok=True)
    keras.utils.set_random_seed(0)
    if FLAGS.processes > 1:
        join()
    try:
        train(folder)
    except Exception:
        if FLAGS.processes == 1:
            raise
        traceback.print_exc()
        print("A process has failed. Start all of them again.", flush=True)
        os._exit(1)  # an orderly exit waits for those that are gone


if __name__ == "__main__":
    flags.DEFINE_string("output", "runs/many_devices", "Folder to write to.")
    flags.DEFINE_integer("devices", 0, "Parts to split the CPU into.", 0)
    flags.DEFINE_string("coordinator", None, "Address of process 0, host:port.")
    flags.DEFINE_integer("processes", 1, "Processes that train together.", 1)
    flags.DEFINE_integer("process", 0, "Number of this process.", 0)
    flags.DEFINE_integer("samples", 2_000, "Training samples.", 1)
    flags.DEFINE_integer("length", 50, "Time steps.", 2)
    flags.DEFINE_integer("epochs", 2, "Epochs of training.", 1)
    app.run(main)
