"""Which recurrent layer suits your recordings? A table and a verdict.

    python recordings.py
    python recordings.py --data=JapaneseVowels
    python recordings.py --data=FILE.npz
    python recordings.py --data=FOLDER

Data are a name of sktime's; a `.npz` file with `x` (recordings, steps,
channels), or an array of arrays (steps, channels), and `y`; a folder with a
`.ts` file, or with NAME_TRAIN.ts and NAME_TEST.ts; or a folder with a subfolder
of `.csv` files for each class. Without `x_test` and `y_test`, or NAME_TEST.ts,
a quarter of each class is held out. A `y` of floats is a regression.

RIN, GRU and LSTM of about as many weights are compared. A quarter of what is
not held out validates: there RIN, the fastest, chooses the scale and the front,
and each layer its learning rate. Then all learn from all but the test set, with
several seeds, within `--minutes`. The best layer is exported.
"""

import itertools
import os
import pathlib
import sys
import time

# TensorFlow logs to file descriptor 2. Python's messages get one of their own.
sys.stderr = open(os.dup(2), "w", buffering=1, closefd=False)
os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
import keras
import numpy as np
import sktime
from absl import app
from absl import flags
from absl import logging
from scipy import stats
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import LabelEncoder
from sklearn.preprocessing import StandardScaler
from sklearn.utils import assert_all_finite
from sklearn.utils import check_consistent_length
from sktime.datasets import load_from_tsfile
from tabulate import tabulate
from tqdm import tqdm

from keras_rin.export import export_streaming
from keras_rin.layers import RIN

# The class, the number of recurrent matrices, and learning rates to choose
# from, the usual first.
LAYERS = {
    "RIN": (RIN, 1, (0.001, 0.0003, 0.003)),
    "GRU": (keras.layers.GRU, 3, (0.003, 0.001, 0.01)),
    "LSTM": (keras.layers.LSTM, 4, (0.003, 0.001, 0.01)),
}
PREPARATIONS = list(itertools.product(("set", "own"), ("none", "convolution")))
IN_SKTIME = pathlib.Path(sktime.__file__).parent / "datasets" / "data"
BATCH, UPDATES = 16, 25  # recordings of an update, updates of an epoch
FEWEST, PASSES = 300, 40  # updates of a run, and passes over the recordings
FLAGS = flags.FLAGS


def read(path):
    """Recordings and labels, to train on and perhaps to test on."""
    if path.suffix == ".npz":
        file = np.load(path, allow_pickle=True)
        ends = ("", "_test") if {"x_test", "y_test"} & {*file} else ("",)
        return [(file[f"x{end}"], file[f"y{end}"]) for end in ends]
    folder = path if path.is_dir() else IN_SKTIME / path
    if files := sorted(folder.glob("*.ts"), reverse=True):  # TRAIN, TEST
        options = {"return_data_type": "df-list"}
        return [load_from_tsfile(str(file), **options) for file in files]
    files = sorted(path.glob("*/*.csv"))
    if not files:
        names = sorted(at.parent.name for at in IN_SKTIME.glob("*/*_TRAIN.ts"))
        kinds = "FILE.npz, FOLDER/*.ts or FOLDER/CLASS/*.csv"
        raise ValueError(f"no {kinds}, nor one of {', '.join(names)}")
    x = [np.genfromtxt(file, delimiter=",", ndmin=2) for file in files]
    return [(x, [file.parent.name for file in files])]


def recording(values):
    """Values (steps, channels), without empty steps at both ends."""
    x = np.asarray(values, "float32").reshape(len(values), -1)
    known = np.flatnonzero(np.isfinite(x).any(axis=1))
    return x[known[0] : known[-1] + 1] if len(known) else x


def split(rows, y):
    """Three quarters of the rows, and one, with all classes in both."""
    strata = None if y.dtype.kind == "f" else y[rows]
    options = {"random_state": FLAGS.seed, "stratify": strata}
    return train_test_split(rows, test_size=0.25, **options)


def load():
    """Recordings, labels, and the rows to train and to test on."""
    parts = read(pathlib.Path(FLAGS.data))
    for part in parts:
        check_consistent_length(*part)
    x = [recording(values) for part, _ in parts for values in part]
    y = np.concatenate([labels for _, labels in parts])
    rows = np.split(np.arange(len(y)), [len(parts[0][1])])
    rows = rows if len(parts) == 2 else split(rows[0], y)
    for number, of in enumerate(x):
        assert_all_finite(of, input_name=f"recording {number}")
    np.concatenate(x)  # refuses another number of channels
    assert_all_finite(y, input_name="y")
    labels = np.unique(y[rows[0]])
    if len(labels) < 2:
        raise ValueError(f"all recordings have the label {labels[0]}")
    if y.dtype.kind != "f":
        y = LabelEncoder().fit(labels).transform(y)
    return x, y, rows


def own_scale(x):
    """By its mean and deviation, whose logarithm is one more channel."""
    deviation = x.std(axis=0) + 1e-6
    logarithm = np.broadcast_to(np.log(deviation), x.shape)
    return np.hstack([(x - x.mean(axis=0)) / deviation, logarithm])


def build(name, features, front):
    """The layers before the read-out, for recordings padded with zeros."""
    has_front, layers = front == "convolution", keras.layers
    features = 32 if has_front else features
    layer, matrices, _ = LAYERS[name]
    # A matrix of n units has n * (n + features) weights but for the bias.
    weights = FLAGS.units * (FLAGS.units + features) / matrices
    units = round(np.sqrt(features**2 / 4 + weights) - features / 2)
    layer = layer(max(1, units), return_sequences=has_front)
    if not has_front:
        return [layers.Masking(), layer]
    # The padding remains zero behind it, for want of a bias.
    convolution = layers.Conv1D(32, 16, 8, "same", use_bias=False)
    front = [convolution, layers.Masking(), layers.ReLU()]
    mean, dropout = layers.GlobalAveragePooling1D(), layers.Dropout(0.3)
    return [*front, layers.LayerNormalization(), layer, mean, dropout]


class Network:
    """A layer behind a scale and a front, compiled once for all its runs."""

    def __init__(self, name, data, scale, front):
        x, self.y, rows = data
        self.name, self.scale, self.front = name, scale, front
        self.scores, self.seconds = [], []  # of seeds, and of all runs
        x = x if scale == "set" else [*map(own_scale, x)]
        scaler = StandardScaler().fit(np.concatenate([x[n] for n in rows[0]]))
        # Zeros come before a recording, so that all end at the last step.
        x = [*map(scaler.transform, x)]
        self.x = keras.utils.pad_sequences(x, dtype="float32")
        inputs, layers = keras.Input((None, x[0].shape[1])), keras.layers
        y = self.y[rows[0]]
        if y.dtype.kind == "f":
            unit = float(y.std()), float(y.mean())
            read_out = [layers.Dense(1), layers.Rescaling(*unit)]
            loss, weight = "mse", unit[0] ** -2
        else:
            read_out = [layers.Dense(int(y.max()) + 1, "softmax")]
            loss, weight = "sparse_categorical_crossentropy", 1.0
        network = [*build(name, x[0].shape[1], front), *read_out]
        self.model = keras.Sequential([inputs, *network])
        optimizer = keras.optimizers.Adam(beta_2=0.99, global_clipnorm=1.0)
        options = {"jit_compile": True, "steps_per_execution": UPDATES}
        self.model.compile(optimizer, loss, loss_weights=weight, **options)
        moments = {"mean": scaler.mean_, "variance": scaler.scale_**2}
        network = [of for of in network if not isinstance(of, layers.Masking)]
        network = [inputs, layers.Normalization(**moments), *network]
        self.exported = keras.Sequential(network)
        self.train(rows[0], 0.001, 0, 1e-9)  # XLA compiles it
        self.weights = self.model.get_weights()

    def train(self, rows, rate, seed, limit):
        """From new weights, with a cosine decay of the learning rate."""
        keras.utils.set_random_seed(seed)
        new = keras.models.clone_model(self.model).variables
        # Also the state of dropout, so that the seed alone determines a run.
        for variable, drawn in zip(self.model.variables, new, strict=True):
            variable.assign(drawn)
        for variable in self.model.optimizer.variables:
            variable.assign(keras.ops.zeros_like(variable))
        rng, start = np.random.default_rng(seed), time.monotonic()
        epochs = max(FEWEST, PASSES * len(rows) // BATCH) // UPDATES

        def batches():
            while True:
                batch = rng.choice(rows, BATCH)
                yield self.x[batch], self.y[batch]

        def schedule(epoch):
            spent = (time.monotonic() - start) / limit
            part = max(epoch / epochs, spent) if epoch else 0.0
            self.model.stop_training = part >= 1
            return rate * (1 + np.cos(np.pi * min(part, 1))) / 2

        decay = keras.callbacks.LearningRateScheduler(schedule)
        options = {"epochs": epochs, "steps_per_epoch": UPDATES, "verbose": 0}
        self.model.fit(batches(), callbacks=[decay], shuffle=False, **options)
        self.seconds.append(time.monotonic() - start)

    def test(self, rows, *options):
        """Scores of the recordings after training, NaN if it diverged."""
        self.train(rows[0], *options)
        outputs = self.model.predict_on_batch(self.x[rows[1]])
        y = self.y[rows[1]]
        if not np.isfinite(outputs).all():
            return np.full(len(y), np.nan)
        self.weights = self.model.get_weights()
        if y.dtype.kind == "f":  # the mean is R^2
            return 1 - (outputs[:, 0] - y) ** 2 / y.var()
        return (outputs.argmax(axis=1) == y).astype(float)


def compare(data):
    """The networks, trained and tested in the order of seeds."""
    _, y, rows = data
    bar = tqdm(total=len(PREPARATIONS) + len(LAYERS) * (3 + FLAGS.seeds))
    limit = 60 * FLAGS.minutes / bar.total

    def test(rows, network, rate, seed):
        bar.set_description(f"{network.name}, rate {rate:g}, seed {seed}")
        scores = network.test(rows, rate, seed, limit)
        bar.update()
        return scores

    def choose(candidates):
        """The first one within a standard error of the best one."""
        parts = split(rows[0], y)
        scores = [test(parts, *of, FLAGS.seed) for of in candidates]
        scores = np.nan_to_num(scores, nan=-1e9)
        behind = scores[scores.mean(axis=1).argmax()] - scores
        ties = behind.mean(axis=1) <= stats.sem(behind, axis=1)
        return candidates[ties.argmax()]

    rins = [Network("RIN", data, *of) for of in PREPARATIONS]
    rin, _ = choose([(network, 0.001) for network in rins])
    others = [Network(of, data, rin.scale, rin.front) for of in [*LAYERS][1:]]
    networks = [rin, *others]
    for network in networks:
        rates = LAYERS[network.name][2]
        _, network.rate = choose([(network, rate) for rate in rates])
    for seed in range(FLAGS.seed, FLAGS.seed + FLAGS.seeds):
        for network in networks:
            network.scores.append(test(rows, network, network.rate, seed))
    bar.close()
    return networks


def interval(differences):
    """Mean and 95 % limits of differences (seeds, recordings).

    Both are samples: the squares of the half widths of both means add up.
    """
    means = [differences.mean(axis=axis) for axis in (0, 1)]
    halves = [
        stats.sem(of) * stats.t.ppf(0.975, len(of) - 1)
        for of in means
        if len(of) > 1
    ]
    return differences.mean() + np.linalg.norm(halves) * np.array([0, -1, 1])


def verdict(networks, measure):
    """The best network, and by how much, if what diverged scores 0."""
    scores = np.nan_to_num([of.scores for of in networks])
    first, second = np.argsort(-scores.mean(axis=(1, 2)))[:2]
    best, other = networks[first], networks[second]
    mean, low, high = interval(scores[first] - scores[second])
    text = f"{best.name} is ahead of {other.name} by {mean:.3f} in {measure}, "
    text += f"95 % interval {low:.3f} to {high:.3f} over seeds and recordings."
    unclear = "No difference that these data can show: "
    return best, text if low > 0 else unclear + text


def row(network, measure):
    """The row of a layer: medians, and in brackets the range over seeds."""
    scores = np.mean(network.scores, axis=1)
    low, middle, high = np.nanquantile(scores, [0, 0.5, 1])
    weights = network.exported.count_params()
    return {
        "layer": network.name,
        "weights": f"{weights:,}",
        "rate": f"{network.rate:g}",
        measure: f"{middle:.3f} ({low:.3f} to {high:.3f})",
        "seconds": f"{np.median(network.seconds[-FLAGS.seeds :]):.1f}",
        "kB in C": f"{weights / 250:.1f}" if network.front == "none" else "",
        "diverged": np.isnan(scores).sum(),
    }


def export(network, folder):
    """Writes the network, and its time step if it has no convolution."""
    network.model.set_weights(network.weights)
    path = folder / network.name
    network.exported.save(f"{path}.keras")
    if network.scale == "own":
        print("The exported files read recordings after own_scale.")
    if network.front == "convolution":
        print("They read whole recordings: a header needs causal padding.")
        return
    for form, end in (("c", "h"), ("litert", "tflite")):
        options = {"format": form, "verbose": False}
        export_streaming(network.exported, f"{path}.{end}", **options)


def main(argv):
    if argv[1:]:
        raise app.UsageError(f"Flags begin with --. Received: {argv[1:]}")
    logging.set_verbosity(logging.ERROR)
    try:
        x, y, rows = data = load()
    except (AttributeError, KeyError, OSError, ValueError) as error:
        raise app.UsageError(f"--data={FLAGS.data}: {error}") from error
    measure = "R^2" if y.dtype.kind == "f" else "accuracy"
    lengths = [*map(len, x)]
    print(
        f"{FLAGS.data}: {len(rows[0])} recordings to train on, {len(rows[1])} "
        f"to test on; {min(lengths)} to {max(lengths)} steps, channels: "
        f"{x[0].shape[1]}, labels: {len(np.unique(y))}."
    )
    folder = pathlib.Path(FLAGS.output)
    folder.mkdir(parents=True, exist_ok=True)
    networks = compare(data)
    best, text = verdict(networks, measure)
    print(f"Scale: {best.scale}. Front: {best.front}.")
    table = [row(network, measure) for network in networks]
    print(tabulate(table, "keys", "github", disable_numparse=True))
    print(f"\n{text}")
    export(best, folder)


if __name__ == "__main__":
    flags.DEFINE_string("output", "runs/recordings", "Folder to write to.")
    flags.DEFINE_string("data", "BasicMotions", "Data of sktime, or a path.")
    flags.DEFINE_float("minutes", 5.0, "Minutes of training at most.", 1e-3)
    flags.DEFINE_integer("seeds", 5, "Number of seeds.", 1)
    flags.DEFINE_integer("seed", 0, "First seed.", 0, 2**32 - 1)
    flags.DEFINE_integer("units", 64, "Units of RIN.", 1)
    app.run(main)
