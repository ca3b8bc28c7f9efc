"""Recognizes motions from the sensors of a smart watch, one step at a time.

    python activity.py
    python activity.py --data=JapaneseVowels
    python activity.py --data=FOLDER

BasicMotions, of 3 axes of an accelerometer and 3 of a gyroscope, and
JapaneseVowels, speech of 7 to 29 frames, come with the package sktime. FOLDER
is yours, with NAME_TRAIN.ts and NAME_TEST.ts, as in the UCR and UEA archives.

RIN, SimpleRNN, GRU and LSTM with about equal numbers of weights are trained at
their own learning rates and at one for all. The models answer at every time
step, but only the answer at the last step of a recording is trained, by weights
that are 0 at the other steps and behind the end of a shorter recording. Trained
on all steps, a model learns the few recordings by heart.

Prints a table, draws the accuracy after each part of the recordings, and saves
the RIN of the lowest training loss as `.keras` file, SavedModel, LiteRT file
and C header. The last three also take one time step after another.
"""

import itertools
import pathlib
import statistics
import sys
import time

import keras
import numpy as np
import sktime
import tensorflow as tf
from absl import app
from absl import flags
from absl import logging
from ai_edge_litert.interpreter import Interpreter
from sktime.datasets import load_from_tsfile
from tabulate import tabulate
from tqdm import tqdm

from keras_rin import plots
from keras_rin.callbacks import RestoreOnNaN
from keras_rin.export import export_streaming
from keras_rin.layers import RIN

# The class of each layer, and its learning rate.
LAYERS = {
    "RIN": (RIN, 0.001),
    "SimpleRNN": (keras.layers.SimpleRNN, 0.001),
    "GRU": (keras.layers.GRU, 0.003),
    "LSTM": (keras.layers.LSTM, 0.01),
}
IN_SKTIME = pathlib.Path(sktime.__file__).parent / "datasets" / "data"
BATCH, UPDATES = 16, 25  # recordings of an update, updates of an epoch

FLAGS = flags.FLAGS


def require(condition, message):
    if not condition:
        raise app.UsageError(message)


def load(data):
    """Recordings and labels, to train and to test on, and the classes."""
    folder = pathlib.Path(data)
    folder = folder if folder.is_dir() else IN_SKTIME / data
    paths = [*folder.glob("*_TRAIN.ts"), *folder.glob("*_TEST.ts")]
    names = sorted(path.parent.name for path in IN_SKTIME.glob("*/*_TRAIN.ts"))
    require(
        [path.stem.rpartition("_")[2] for path in paths] == ["TRAIN", "TEST"],
        "--data must be a folder with one NAME_TRAIN.ts and one NAME_TEST.ts, "
        f"or one of {', '.join(names)}. Received: --data={data}",
    )
    (x, y), (x_test, y_test) = map(read, paths)
    classes = np.unique(y)
    require(len(classes) > 1, f"{paths[0]} has a single class: {classes[0]}")
    others = ", ".join(sorted({*y_test} - {*classes}))
    message = f"{paths[1]} has classes that {paths[0]} does not have: {others}"
    require(not others, message)
    channels = sorted({recording.shape[1] for recording in [*x, *x_test]})
    counts = ", ".join(map(str, channels))
    message = f"{folder} has files with different numbers of channels: {counts}"
    require(len(channels) == 1, message)
    y, y_test = (np.searchsorted(classes, labels) for labels in (y, y_test))
    return (x, y), (x_test, y_test), classes


def read(path):
    """The recordings of a file, each (steps, channels), and their labels."""
    try:
        frames, labels = load_from_tsfile(str(path), return_data_type="df-list")
    except (AttributeError, OSError, ValueError) as error:
        raise app.UsageError(
            f"{path} is no file of recordings with class labels: {error}"
        ) from error
    recordings = [frame.to_numpy("float32") for frame in frames]
    wrong = [n for n, x in enumerate(recordings, 1) if not np.isfinite(x).all()]
    require(
        not wrong,
        f"{path} has recordings with missing values or with channels of "
        f"different lengths: {wrong}, of {len(recordings)}.",
    )
    return recordings, labels


def build(name, recordings, classes, units):
    """A compiled model with about as many weights as a RIN of `units`."""
    features = recordings[0].shape[1]
    layer, most = LAYERS[name][0], count(RIN(units), features)
    while units > 1 and count(layer(units), features) > most:
        units -= 1
    normalization = keras.layers.Normalization()
    normalization.adapt(np.concatenate(recordings))
    inputs = keras.Input((None, features))
    read_out = keras.layers.Dense(classes)
    recurrent = layer(units, return_sequences=True, name=name.lower())
    model = keras.Sequential([inputs, normalization, recurrent, read_out])
    adam = keras.optimizers.Adam(beta_2=0.99, global_clipnorm=1.0)
    loss = keras.losses.SparseCategoricalCrossentropy(
        from_logits=True, reduction="mean_with_sample_weight"
    )
    model.compile(adam, loss, jit_compile=True, steps_per_execution=UPDATES)
    return model


def count(layer, features):
    layer.build((None, None, features))
    return layer.count_params()


def restart(model, seed):
    """Draws new weights, and keeps what XLA has compiled."""
    keras.utils.set_random_seed(seed)
    new = keras.models.clone_model(model)
    for layer, new_layer in zip(model.layers[1:], new.layers[1:], strict=True):
        layer.set_weights(new_layer.get_weights())
    for variable in model.optimizer.variables:
        variable.assign(keras.ops.zeros_like(variable))


def train(model, recordings, labels, rate, seed, epochs):
    """The loss after training from new weights, infinite if it diverged."""
    restart(model, seed)
    x = keras.utils.pad_sequences(recordings, dtype="float32", padding="post")
    y = np.repeat(labels[:, None], x.shape[1], axis=1)
    last = np.array([[len(recording) - 1] for recording in recordings])
    weights = (np.arange(x.shape[1]) == last).astype("float32")
    batches = tf.data.Dataset.from_tensor_slices((x, y, weights))
    batches = batches.shuffle(len(x), seed=seed).repeat().batch(BATCH)
    return fit(model, batches, rate, epochs, f"Seed {seed} at {rate}")


def fit(model, batches, rate, epochs, name):
    """The loss after training with cosine decay, infinite if it diverged."""
    decay = keras.optimizers.schedules.CosineDecay(rate, epochs)
    scheduler = keras.callbacks.LearningRateScheduler(lambda n: float(decay(n)))
    try:
        return model.fit(
            batches,
            steps_per_epoch=UPDATES,
            epochs=epochs,
            callbacks=[scheduler, RestoreOnNaN()],
            shuffle=False,  # the batches are
            verbose=0,
        ).history["loss"][-1]
    except FloatingPointError as error:
        print(f"\n{name} diverged: {error}", file=sys.stderr)
        return np.inf


def accuracies(model, recordings, labels):
    """After 1, 2, ... and 100 % of the steps of each recording."""
    x = keras.utils.pad_sequences(recordings, dtype="float32", padding="post")
    classes = model.predict(x, batch_size=len(x), verbose=0).argmax(axis=-1)
    lengths = np.array([len(recording) for recording in recordings])
    steps = np.ceil(np.outer(np.arange(1, 101) / 100, lengths)).astype(int)
    right = classes[np.arange(len(labels)), steps - 1] == labels
    return right.mean(axis=1).tolist()


def stream(path, recordings):
    """Median of the microseconds that a LiteRT file takes for one step."""
    step = Interpreter(str(path)).get_signature_runner("step")
    details = step.get_input_details().items()
    state = {name: np.zeros(of["shape"], of["dtype"]) for name, of in details}
    microseconds = []
    for x in np.concatenate(recordings):
        start = time.perf_counter()
        state = step(**{**state, "x": x[None]})
        microseconds.append(1e6 * (time.perf_counter() - start))
        state.pop("y")  # the answer after this step
    return statistics.median(microseconds)


def compare(name, splits, folder, rate, seeds, epochs, units):
    """Trains a layer at its own rate and at `rate`, and exports the best run.

    That is the one of the lowest training loss at the layer's own rate.
    """
    (x, y), test, classes = splits
    model, path = build(name, x, len(classes), units), folder / f"{name}.keras"
    own_rate, best, runs = LAYERS[name][1], None, []
    pairs = list(itertools.product(dict.fromkeys([own_rate, rate]), seeds))
    for run_rate, seed in tqdm(pairs, desc=name):
        start = time.perf_counter()
        loss = train(model, x, y, run_rate, seed, epochs)
        seconds = (time.perf_counter() - start) / epochs
        run = {"rate": run_rate, "seed": seed, "loss": loss, "seconds": seconds}
        runs.append(run | {"accuracies": accuracies(model, *test)})
        if run_rate == own_rate and (best is None or loss < best):
            best = loss
            model.save(path)
    streamed = path.with_suffix(".tflite")
    model = keras.models.load_model(path)
    export_streaming(model, streamed, format="litert", verbose=False)
    return {
        "layer": name,
        "weights": model.count_params(),
        "own": own_rate,
        "runs": runs,
        "kB": streamed.stat().st_size / 1000,
        "microseconds": stream(streamed, test[0][:100]),
    }


def row(result, rate):
    """A row of the table: medians, and in brackets the range over seeds."""
    at_own, at_shared = (
        spread([curve[-1] for curve in accuracies_at(result, of)])
        for of in (result["own"], rate)
    )
    seconds = [run["seconds"] for run in result["runs"]]  # the first compiles
    return {
        "layer": result["layer"],
        "weights": f"{result['weights']:,}",
        "own rate": f"{result['own']:g}",
        "accuracy": at_own,
        f"accuracy at {rate:g}": at_shared,
        "seconds an epoch": f"{statistics.median(seconds[1:] or seconds):.2g}",
        "kB": f"{result['kB']:.0f}",
        "µs a step": f"{result['microseconds']:.1f}",
    }


def accuracies_at(result, rate):
    """Along the recordings, of each seed."""
    runs = result["runs"]
    return [run["accuracies"] for run in runs if run["rate"] == rate]


def spread(values):
    three = min(values), statistics.median(values), max(values)
    low, middle, high = (f"{value:.3g}" for value in three)
    return middle if low == high else f"{middle} ({low} to {high})"


def draw(results, chance):
    """The accuracies along the recordings, each layer at its own rate."""
    curves = {of["layer"]: accuracies_at(of, of["own"]) for of in results}
    figure = plots.plot_learning_curves(
        curves, ylabel="accuracy, test data", baseline=chance
    )
    figure.axes[0].set_xlabel("part of the recording (%)")
    return figure


def main(argv):
    require(not argv[1:], f"Flags begin with --. Received: {argv[1:]}")
    logging.set_verbosity(logging.ERROR)
    splits = load(FLAGS.data)
    folder, rate = pathlib.Path(FLAGS.output), FLAGS.learning_rate
    folder.mkdir(parents=True, exist_ok=True)
    options = folder, rate, FLAGS.seed, FLAGS.epochs, FLAGS.units
    results = [compare(name, splits, *options) for name in FLAGS.layers]
    labels = splits[1][1]
    chance = np.bincount(labels).max() / len(labels)
    rows = [row(result, rate) for result in results]
    rows.append({"layer": "most frequent class", "accuracy": f"{chance:.3g}"})
    print(tabulate(rows, "keys", "github", disable_numparse=True))
    draw(results, chance).savefig(folder / "accuracy.png", dpi=120)
    if "RIN" in FLAGS.layers:
        model = keras.models.load_model(folder / "RIN.keras")
        export_streaming(model, folder / "saved_model")
        export_streaming(model, folder / "rin.h", format="c")


if __name__ == "__main__":
    names = list(LAYERS)
    flags.DEFINE_string("output", "runs/activity", "Folder to write to.")
    flags.DEFINE_string("data", "BasicMotions", "Data of sktime, or a folder.")
    flags.DEFINE_multi_enum("layers", names, names, "Layers to train.")
    flags.DEFINE_integer("units", 64, "Units of RIN.", 1)
    flags.DEFINE_integer("epochs", 8, "Epochs of 25 updates of 16 series.", 1)
    flags.DEFINE_float("learning_rate", 0.003, "Learning rate for all layers.")
    flags.DEFINE_multi_integer("seed", [0, 1, 2], "Seeds.", 0, 2**32 - 1)
    flags.register_validator("output", str.strip, "Name a folder.")
    for name in ("layers", "seed"):
        flags.register_validator(
            name, lambda v: len({*v}) == len(v), "Give each value once."
        )
    flags.register_validator(
        "learning_rate", lambda rate: 0 < rate < np.inf, "It must be above 0."
    )
    app.run(main)
