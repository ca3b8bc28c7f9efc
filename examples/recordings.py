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

import importlib.util
import itertools
import os
import pathlib
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
stderr = os.dup(2)  # TensorFlow logs to it even so, while it is imported
os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
try:
    import tensorflow as tf
finally:
    os.dup2(stderr, 2)
import keras
import numpy as np
import sktime
from absl import app
from absl import flags
from absl import logging
from matplotlib.figure import Figure
from scipy import stats
from sklearn.model_selection import train_test_split
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
STRIDE = 8  # time steps of a recording between the states of a convolution
FLAGS = flags.FLAGS


def read(path):
    """Recordings and labels, to train on and perhaps to test on."""
    if path.suffix == ".npz":
        file = np.load(path, allow_pickle=True)
        ends = ("", "_test") if {"x_test", "y_test"} & {*file} else ("",)
        return [(file[f"x{end}"], file[f"y{end}"]) for end in ends]
    folder = path if path.is_dir() else IN_SKTIME / path
    files = sorted(folder.glob("*.ts"), reverse=True)
    ends = [file.stem.rpartition("_")[2] for file in files]
    if len(files) == 1 or ends == ["TRAIN", "TEST"]:
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
    """Recordings, labels, rows to train and to test on, and the unit of y."""
    parts = read(pathlib.Path(FLAGS.data))
    x = [recording(values) for part, _ in parts for values in part]
    y = np.concatenate([labels for _, labels in parts])
    rows = np.split(np.arange(len(y)), [len(parts[0][1])])
    rows = rows if len(parts) == 2 else split(rows[0], y)
    sizes = [((len(part),), np.shape(labels)) for part, labels in parts]
    missing = [n for n, of in enumerate(x, 1) if not np.isfinite(of).all()]
    channels = sorted({of.shape[1] for of in x})
    is_regression, classes = y.dtype.kind == "f", np.unique(y[rows[0]])
    others = [] if is_regression else np.setdiff1d(y, classes)
    for wrong, message in (
        (any(x != y for x, y in sizes), f"x and y differ in length: {sizes}"),
        (missing, f"values are missing in the recordings {missing}"),
        (channels[1:], f"the numbers of channels differ: {channels}"),
        (len(classes) < 2, f"all recordings have the label {classes[0]}"),
        (len(others), f"classes are in the test set alone: {others}"),
        (is_regression and not np.isfinite(y).all(), "y must be finite"),
    ):
        if wrong:
            raise ValueError(message)
    if not is_regression:
        return x, np.searchsorted(classes, y), rows, None
    unit = float(y[rows[0]].std()), float(y[rows[0]].mean())
    return x, (y[:, None] - unit[1]) / unit[0], rows, unit


def own_scale(x):
    """By its mean and deviation, whose logarithm is one more channel."""
    deviation = x.std(axis=0) + 1e-6
    logarithm = np.broadcast_to(np.log(deviation), x.shape)
    return np.hstack([(x - x.mean(axis=0)) / deviation, logarithm])


class Network:
    """A layer behind a scale and a front, compiled once for all its runs."""

    def __init__(self, name, data, scale, front):
        x, self.y, self.rows, self.unit = data
        self.name, self.scale, self.front = name, scale, front
        self.scores, self.seconds = [], []  # of the test set, by seed
        x = x if scale == "set" else [*map(own_scale, x)]
        seen = np.concatenate([x[row] for row in self.rows[0]])
        mean, deviation = seen.mean(axis=0), seen.std(axis=0) + 1e-6
        # Zeros come before a recording, so that all end at the last step.
        x = [(of - mean) / deviation for of in x]
        self.x = keras.utils.pad_sequences(x, dtype="float32")
        inputs = keras.Input((None, len(mean)))
        layers, answers = self.build(inputs)
        self.model = keras.Model(inputs, answers)
        loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        self.model.compile(
            keras.optimizers.Adam(beta_2=0.99, global_clipnorm=1.0),
            "mse" if self.unit else loss,
            jit_compile=True,
            steps_per_execution=UPDATES,
        )
        scale = keras.layers.Normalization(mean=mean, variance=deviation**2)
        unit = [keras.layers.Rescaling(*self.unit)] if self.unit else []
        self.exported = keras.Sequential([inputs, scale, *layers, *unit])
        self.train(self.rows[0], 0.001, 0, 1e-9)  # XLA compiles it
        self.weights = self.model.get_weights()

    def build(self, x):
        """The layers, and their answers without the steps of the padding."""
        is_known = keras.ops.any(keras.ops.not_equal(x, 0), axis=2)
        has_front, layers = self.front == "convolution", keras.layers
        features = 32 if has_front else x.shape[2]
        layer, matrices, _ = LAYERS[self.name]
        # A matrix of n units has n * (n + features) weights but for the bias.
        weights = FLAGS.units * (FLAGS.units + features) / matrices
        units = round(np.sqrt(features**2 / 4 + weights) - features / 2)
        layer = layer(max(1, units), return_sequences=has_front)
        read_out = layers.Dense(1 if self.unit else int(self.y.max()) + 1)
        if not has_front:
            return [layer, read_out], read_out(layer(x, mask=is_known))
        convolution = layers.Conv1D(32, 16, STRIDE, "same", activation="relu")
        front = [convolution, layers.LayerNormalization()]
        mean, dropout = layers.GlobalAveragePooling1D(), layers.Dropout(0.3)
        is_known = is_known[:, ::STRIDE]
        states = layer(front[1](front[0](x)), mask=is_known)
        answers = read_out(dropout(mean(states, mask=is_known)))
        return [*front, layer, mean, dropout, read_out], answers

    def train(self, rows, rate, seed, limit):
        """The last loss from new weights, within a limit of seconds."""
        keras.utils.set_random_seed(seed)
        new = keras.models.clone_model(self.model).variables
        # Also the state of dropout, so that the seed alone determines a run.
        for variable, drawn in zip(self.model.variables, new, strict=True):
            variable.assign(drawn)
        for variable in self.model.optimizer.variables:
            variable.assign(keras.ops.zeros_like(variable))
        epochs = max(FEWEST, PASSES * len(rows) // BATCH) // UPDATES
        decay = keras.optimizers.schedules.CosineDecay(rate, 1.0)
        start = time.perf_counter()

        def schedule(epoch):
            spent = (time.perf_counter() - start) / limit
            part = max(epoch / epochs, spent) if epoch else 0.0
            self.model.stop_training = part >= 1
            return float(decay(part))

        data = tf.data.Dataset.from_tensor_slices((self.x[rows], self.y[rows]))
        history = self.model.fit(
            data.shuffle(len(rows), seed=seed).repeat().batch(BATCH),
            epochs=epochs,
            steps_per_epoch=UPDATES,
            shuffle=False,
            callbacks=[keras.callbacks.LearningRateScheduler(schedule)],
            verbose=0,
        )
        return history.history["loss"][-1]

    def test(self, rows, *options):
        """Scores of the recordings after training, NaN if it diverged."""
        loss = self.train(rows[0], *options)
        outputs = self.model.predict_on_batch(self.x[rows[1]])
        answers = outputs if self.unit else outputs.argmax(axis=1)
        scores = score(answers, self.y[rows[1]], self.unit)
        if not np.isfinite(loss):
            return np.nan * scores
        self.weights = self.model.get_weights()
        return scores


def score(answers, y, is_regression):
    """Of each recording; the mean is the accuracy, or R^2."""
    if is_regression:
        return 1 - (answers.ravel() - y.ravel()) ** 2 / np.var(y)
    return (answers == y).astype(float)


def compare(data, y, rows):
    """The networks, trained and tested in the order of seeds."""
    seconds = []  # of each run
    bar = tqdm(total=len(PREPARATIONS) + len(LAYERS) * (3 + FLAGS.seeds))

    def test(rows, network, rate, seed):
        bar.set_description(f"{network.name}, rate {rate:g}, seed {seed}")
        limit = (60 * FLAGS.minutes - sum(seconds)) / (bar.total - bar.n)
        start = time.monotonic()
        scores = network.test(rows, rate, seed, max(1e-9, limit))
        seconds.append(time.monotonic() - start)
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
            network.seconds.append(seconds[-1])
    bar.close()
    return networks


def interval(differences):
    """Mean and 95 % limits of differences (seeds, recordings).

    Both are samples: the squared standard errors of both means add up, with
    the degrees of freedom of Welch and Satterthwaite.
    """
    means = [differences.mean(axis=axis) for axis in (0, 1)]
    means = [of for of in means if len(of) > 1]
    squares = np.array([stats.sem(of) ** 2 for of in means])
    degrees = np.array([len(of) - 1 for of in means])
    freedom = squares.sum() ** 2 / np.maximum(sum(squares**2 / degrees), 1e-99)
    half = stats.t.ppf(0.975, max(1, freedom)) * np.sqrt(squares.sum())
    return differences.mean() + half * np.array([0, -1, 1])


def verdict(networks, measure):
    """The best network, and by how much, where no run of two diverged."""
    means = [-np.nan_to_num(of.scores).mean() for of in networks]
    best, other = (networks[n] for n in np.argsort(means)[:2])
    differences = np.subtract(best.scores, other.scores)
    differences = differences[np.isfinite(differences).all(axis=1)]
    if not len(differences):
        return best, f"{best.name} is best: {other.name} diverged each time."
    mean, low, high = interval(differences)
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
        "seconds": f"{np.median(network.seconds):.1f}",
        "kB in C": f"{weights / 250:.1f}" if network.front == "none" else "",
        "diverged": np.isnan(scores).sum(),
    }


def minirocket(x, y, rows, unit):
    """The mean score of sktime's MiniRocket, and its seconds."""
    from sktime.classification.kernel_based import RocketClassifier
    from sktime.regression.kernel_based import RocketRegressor

    start = time.monotonic()
    x = keras.utils.pad_sequences(x, dtype="float64").transpose(0, 2, 1)
    rocket = RocketRegressor if unit else RocketClassifier
    rocket = rocket(rocket_transform="minirocket")
    answers = rocket.fit(x[rows[0]], y[rows[0]].ravel()).predict(x[rows[1]])
    return score(answers, y[rows[1]], unit).mean(), time.monotonic() - start


def export(network, folder):
    """Writes the network, and its time step if it has no convolution."""
    network.model.set_weights(network.weights)
    path = folder / network.name
    network.exported.save(f"{path}.keras")
    if network.scale == "own":
        print("The exported files read recordings after own_scale.")
    if network.front == "convolution":
        print("They read whole recordings: no C header has the convolution.")
        return
    for form, end in (("c", "h"), ("litert", "tflite")):
        options = {"format": form, "verbose": False}
        export_streaming(network.exported, f"{path}.{end}", **options)


def draw(networks, measure):
    """The score of each seed over the seconds of its training."""
    figure = Figure(layout="constrained")
    axes = figure.subplots()
    for of in networks:
        axes.plot(of.seconds, np.mean(of.scores, axis=1), "o", label=of.name)
    axes.set(xlabel="seconds of training", ylabel=f"{measure}, test set")
    axes.set(xlim=(0, None))
    axes.legend()
    return figure


def main(argv):
    if argv[1:]:
        raise app.UsageError(f"Flags begin with --. Received: {argv[1:]}")
    logging.set_verbosity(logging.ERROR)
    tf.get_logger().setLevel("ERROR")
    try:
        x, y, rows, unit = data = load()
    except (AttributeError, KeyError, OSError, ValueError) as error:
        raise app.UsageError(f"--data={FLAGS.data}: {error}") from error
    measure, lengths = "R^2" if unit else "accuracy", [*map(len, x)]
    kind = "regression" if unit else f"{y.max() + 1} classes"
    print(
        f"{FLAGS.data}: {len(rows[0])} recordings to train on, {len(rows[1])} "
        f"to test on; {min(lengths)} to {max(lengths)} steps, channels: "
        f"{x[0].shape[1]}, {kind}."
    )
    folder = pathlib.Path(FLAGS.output)
    folder.mkdir(parents=True, exist_ok=True)
    networks = compare(data, y, rows)
    best, text = verdict(networks, measure)
    print(f"Scale: {best.scale}. Front: {best.front}.")
    table = [row(network, measure) for network in networks]
    print(tabulate(table, "keys", "github", disable_numparse=True))
    print(f"\n{text}")
    if importlib.util.find_spec("numba"):
        mean, seconds = minirocket(*data)
        print(f"MiniRocket: {mean:.3f} in {seconds:.1f} s.")
    export(best, folder)
    draw(networks, measure).savefig(folder / "scores.png", dpi=120)


if __name__ == "__main__":
    flags.DEFINE_string("output", "runs/recordings", "Folder to write to.")
    flags.DEFINE_string("data", "BasicMotions", "Data of sktime, or a path.")
    flags.DEFINE_float("minutes", 5.0, "Minutes of training at most.", 1e-3)
    flags.DEFINE_integer("seeds", 5, "Number of seeds.", 1)
    flags.DEFINE_integer("seed", 0, "First seed.", 0, 2**32 - 1)
    flags.DEFINE_integer("units", 64, "Units of RIN.", 1)
    app.run(main)
