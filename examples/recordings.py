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
as many seeds as fit into `--minutes`. The best layer is exported.
"""

import importlib.util
import itertools
import os
import pathlib
import time

# TensorFlow's log, without its lines while it is imported.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
stderr = os.dup(2)
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

from keras_rin.callbacks import RestoreOnNaN
from keras_rin.export import export_streaming
from keras_rin.layers import RIN

# The class of each layer, and learning rates to choose from, the usual first.
LAYERS = {
    "RIN": (RIN, (0.001, 0.0003, 0.003)),
    "GRU": (keras.layers.GRU, (0.003, 0.001, 0.01)),
    "LSTM": (keras.layers.LSTM, (0.003, 0.001, 0.01)),
}
PREPARATIONS = list(itertools.product(("set", "own"), ("none", "convolution")))
IN_SKTIME = pathlib.Path(sktime.__file__).parent / "datasets" / "data"
BATCH, UPDATES = 16, 25  # recordings of an update, updates of an epoch
FEWEST, PASSES = 300, 40  # updates of a run, and passes over the recordings
STRIDE = 8  # time steps of a recording between the states of a convolution
FLAGS = flags.FLAGS


def require(condition, message):
    if not condition:
        raise app.UsageError(f"--data={FLAGS.data}: {message}")


def load():
    """Recordings, labels, rows to train and to test on, outputs, and unit."""
    try:
        parts = read(pathlib.Path(FLAGS.data))
        x = [recording(values) for part, _ in parts for values in part]
        y = np.concatenate([labels for _, labels in parts])
    except (AttributeError, KeyError, OSError, ValueError) as error:
        raise app.UsageError(f"--data={FLAGS.data}: {error}") from error
    sizes = [(len(part), *np.shape(labels)) for part, labels in parts]
    fits = all(len(size) == 2 and size[0] == size[1] for size in sizes)
    require(fits, f"x and y must have one length. Received: {sizes}")
    wrong = [n for n, of in enumerate(x, 1) if not np.isfinite(of).all()]
    require(not wrong, f"values are missing in the recordings {wrong}")
    channels = sorted({of.shape[1] for of in x})
    require(len(channels) == 1, f"the numbers of channels differ: {channels}")
    rows = np.split(np.arange(len(y)), [len(parts[0][1])])
    rows = rows if len(parts) == 2 else split(rows[0], y)
    seen = y[rows[0]]
    classes, others = np.unique(seen), np.setdiff1d(y[rows[1]], seen)
    require(len(classes) > 1, f"all recordings have the label {classes[0]}")
    if y.dtype.kind == "f":
        require(np.isfinite(y).all(), "y must be finite")
        unit = float(seen.std()), float(seen.mean())
        return x, (y[:, None] - unit[1]) / unit[0], rows, 1, unit
    require(not len(others), f"classes are in the test set alone: {others}")
    return x, np.searchsorted(classes, y), rows, len(classes), None


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
    names = {file.parent.name for file in IN_SKTIME.glob("*/*_TRAIN.ts")}
    message = "no .npz file, nor a folder with a .ts file, with NAME_TRAIN.ts "
    message += "and NAME_TEST.ts or with subfolders of .csv files, nor one of "
    require(files, message + ", ".join(sorted(names)))
    x = [np.genfromtxt(file, delimiter=",", ndmin=2) for file in files]
    return [(x, [file.parent.name for file in files])]


def recording(values):
    """Values (steps, channels), without empty steps at both ends."""
    x = np.asarray(values, "float32").reshape(len(values), -1)
    known = np.flatnonzero(np.isfinite(x).any(axis=1))
    return (
        x[known[0] : known[-1] + 1] if len(known) else np.full((1, 1), np.nan)
    )


def split(rows, y):
    """Three quarters of the rows, and one, with all classes in both."""
    strata = None if y.dtype.kind == "f" else y[rows]
    options = {"random_state": FLAGS.seed, "stratify": strata}
    try:
        return train_test_split(rows, test_size=0.25, **options)
    except ValueError as error:
        raise app.UsageError(f"--data={FLAGS.data}: {error}") from error


def own_scale(x):
    """By its mean and deviation, whose logarithm is one more channel."""
    deviation = x.std(axis=0) + 1e-6
    logarithm = np.broadcast_to(np.log(deviation), x.shape)
    return np.hstack([(x - x.mean(axis=0)) / deviation, logarithm])


def shares(lengths, front):
    """What each state adds to the one that is read (recordings, states).

    That is the last state or, behind a convolution, the mean of the states.
    """
    lengths = np.array(lengths)[:, None]
    if front == "none":
        return (np.arange(lengths.max()) == lengths - 1).astype("float32")
    lengths = -(-lengths // STRIDE)
    return ((np.arange(lengths.max()) < lengths) / lengths).astype("float32")


class Network:
    """A layer behind a scale and a front, compiled once for all its runs."""

    def __init__(self, name, data, scale, front):
        x, self.y, (self.rows, self.test_rows), outputs, self.unit = data
        self.name, self.scale, self.front = name, scale, front
        self.lowest_loss, self.scores, self.seconds = np.inf, [], []
        x = x if scale == "set" else [*map(own_scale, x)]
        self.padded = keras.utils.pad_sequences(x, None, "float32", "post")
        self.shares = shares([*map(len, x)], front)
        seen = np.concatenate([x[row] for row in self.rows])
        mean, variance = seen.mean(axis=0), seen.var(axis=0)
        states = keras.layers.Normalization(mean=mean, variance=variance)
        self.build(states, outputs, seen.shape[1])

    def build(self, normalization, outputs, channels):
        """Compiles a model to train, and makes one to export, of its layers.

        The first reads recordings and shares. The second answers at each step
        or, behind a convolution, reads a recording without padding.
        """
        layers, has_front = keras.layers, self.front != "none"
        x, share = keras.Input((None, channels)), keras.Input((None,))
        states = normalization(x)
        if has_front:
            states = layers.Conv1D(32, 16, STRIDE, "same")(states)
            states = layers.LayerNormalization()(layers.ReLU()(states))
        layer, units = LAYERS[self.name][0], FLAGS.units
        most = count(RIN, units, states)
        while units > 1 and count(layer, units, states) > most:
            units -= 1
        states = layer(units, return_sequences=True, name=self.name)(states)
        state = layers.Dot(1)([share, states])
        if has_front:
            state = layers.Dropout(0.3)(state)
            states = layers.GlobalAveragePooling1D()(states)
        read_out = layers.Dense(outputs)
        self.model = keras.Model([x, share], read_out(state))
        answers = read_out(states)
        loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        if self.unit:
            loss = keras.losses.MeanSquaredError()
            answers = layers.Rescaling(*self.unit)(answers)
        self.exported = keras.Model(x, answers)
        self.model.compile(
            keras.optimizers.Adam(beta_2=0.99, global_clipnorm=1.0),
            loss,
            jit_compile=True,
            steps_per_execution=UPDATES,
        )

    def train(self, rows, rate, seed, updates=UPDATES):
        """The loss after training from new weights, infinite if it diverged."""
        keras.utils.set_random_seed(seed)
        new = keras.models.clone_model(self.model)
        # Also the state of dropout, so that the seed alone determines a run.
        pairs = zip(self.model.variables, new.variables, strict=True)
        for variable, drawn in pairs:
            variable.assign(drawn)
        for variable in self.model.optimizer.variables:
            variable.assign(keras.ops.zeros_like(variable))
        inputs, y = (self.padded[rows], self.shares[rows]), self.y[rows]
        batches = tf.data.Dataset.from_tensor_slices((inputs, y))
        batches = batches.shuffle(len(y), seed=seed).repeat().batch(BATCH)
        epochs = updates // UPDATES
        decay = keras.optimizers.schedules.CosineDecay(rate, epochs)
        schedule = keras.callbacks.LearningRateScheduler(
            lambda epoch: float(decay(epoch))
        )
        options = {"callbacks": [schedule, RestoreOnNaN()], "verbose": 0}
        options |= {
            "epochs": epochs,
            "steps_per_epoch": UPDATES,
            "shuffle": False,
        }
        try:
            return self.model.fit(batches, **options).history["loss"][-1]
        except FloatingPointError:
            return np.inf

    def predict_scores(self, rows):
        inputs = self.padded[rows], self.shares[rows]
        outputs = self.model.predict_on_batch(inputs)
        answers = outputs if self.unit else outputs.argmax(axis=1)
        return score(answers, self.y[rows], self.unit)

    def update_seconds(self):
        """What an update takes, once it is compiled."""
        self.train(self.rows, 1e-9, 0)
        start = time.perf_counter()
        self.train(self.rows, 1e-9, 0)
        return (time.perf_counter() - start) / UPDATES

    def validate(self, rate, updates):
        """Scores on a quarter that is held out, very low if it diverged."""
        rows, rows_out = split(self.rows, self.y)
        loss = self.train(rows, rate, FLAGS.seed, updates)
        scores = self.predict_scores(rows_out)
        return scores if loss < np.inf else np.full(len(rows_out), -1e9)

    def test(self, rate, seed, updates):
        """Trains on all but the test set, and keeps scores and seconds."""
        start = time.perf_counter()
        loss = self.train(self.rows, rate, seed, updates)
        self.seconds.append(time.perf_counter() - start)
        scores = self.predict_scores(self.test_rows)
        self.scores.append(scores if loss < np.inf else np.nan * scores)
        if loss <= self.lowest_loss:
            self.lowest_loss, self.weights = loss, self.model.get_weights()


def count(layer, units, states):
    layer = layer(units)
    layer.build(states.shape)
    return layer.count_params()


def score(answers, y, is_regression):
    """Of each recording; the mean is the accuracy, or R^2."""
    if is_regression:
        return 1 - (answers.ravel() - y.ravel()) ** 2 / np.var(y)
    return (answers == y).astype(float)


def compare(data):
    """The networks, trained and tested in the order of seeds."""
    end = time.monotonic() + 60 * FLAGS.minutes
    bar = tqdm(total=len(PREPARATIONS) + len(LAYERS) * (3 + FLAGS.seeds))

    def run(name, rate, function, *arguments):
        bar.set_description(f"{name}, rate {rate:g}")
        result = function(rate, *arguments)
        bar.update()
        return result

    def updates(share, seconds):
        """As many as a share of the time allows for."""
        most = max(FEWEST, PASSES * len(data[2][0]) // BATCH)
        allowed = share * (end - time.monotonic()) / seconds
        return UPDATES * max(1, int(min(most, allowed) / UPDATES))

    rins = [Network("RIN", data, *prepared) for prepared in PREPARATIONS]
    few = updates(1 / 4, 4 * rins[0].update_seconds())
    rin = rins[
        first_of_best([run("RIN", 0.001, of.validate, few) for of in rins])
    ]
    networks = {"RIN": rin}
    for name in [*LAYERS][1:]:
        networks[name] = Network(name, data, rin.scale, rin.front)
    seconds = sum(of.update_seconds() for of in networks.values())
    many = updates(0.9, seconds * (3 + min(3, FLAGS.seeds)))
    for name, network in networks.items():
        rates = LAYERS[name][1]
        scores = [run(name, rate, network.validate, many) for rate in rates]
        network.rate = rates[first_of_best(scores)]
    for seed in range(FLAGS.seed, FLAGS.seed + FLAGS.seeds):
        start = time.monotonic()
        for name, network in networks.items():
            run(name, network.rate, network.test, seed, many)
        if 2 * time.monotonic() - start > end:
            break
    bar.close()
    return networks


def first_of_best(scores):
    """The first one that is within a standard error of the best one."""
    best = scores[np.argmax(np.mean(scores, axis=1))]
    behind = [np.mean(best - of) <= stats.sem(best - of) for of in scores]
    return int(np.argmax(behind))


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
    """The best layer, and by how much, where no run of two diverged."""
    scores = {name: np.array(of.scores) for name, of in networks.items()}
    means = {name: np.nan_to_num(of).mean() for name, of in scores.items()}
    best, other = sorted(means, key=means.get, reverse=True)[:2]
    differences = scores[best] - scores[other]
    differences = differences[np.isfinite(differences).all(axis=1)]
    if not len(differences):
        return best, f"{best} is best: {other} diverged with each seed."
    mean, low, high = interval(differences)
    text = f"{best} is ahead of {other} by {mean:.3f} in {measure} (95 % "
    text += f"interval {low:.3f} to {high:.3f}, over seeds and recordings)."
    unclear = "No difference that these data can show: "
    return best, text if low > 0 else unclear + text


def minirocket(x, y, rows, _, unit):
    """The row of sktime's MiniRocket."""
    from sktime.classification.kernel_based import RocketClassifier
    from sktime.regression.kernel_based import RocketRegressor

    start = time.perf_counter()
    x = keras.utils.pad_sequences(x, dtype="float64", padding="post")
    train, test = (x[part].transpose(0, 2, 1) for part in rows)
    rocket = RocketRegressor if unit else RocketClassifier
    rocket = rocket(rocket_transform="minirocket")
    rocket.fit(train, y[rows[0]].ravel())
    scores = score(rocket.predict(test), y[rows[1]], unit)
    seconds = time.perf_counter() - start
    return ["MiniRocket", "", "", f"{scores.mean():.3f}", f"{seconds:.1f}"]


def row(network):
    """The row of a layer: medians, and in brackets the range over seeds."""
    scores = np.mean(network.scores, axis=1)
    low, middle, high = np.nanquantile(scores, [0, 0.5, 1])
    weights = network.exported.count_params()
    return [
        network.name,
        f"{weights:,}",
        f"{network.rate:g}",
        f"{middle:.3f} ({low:.3f} to {high:.3f})",
        f"{np.median(network.seconds):.1f}",
        f"{weights / 250:.1f}" if network.front == "none" else "none",
        np.isnan(scores).sum(),
    ]


def export(network, folder):
    """Writes the best network, and its time step if it has no convolution."""
    network.model.set_weights(network.weights)
    model, path = network.exported, folder / network.name
    model.save(f"{path}.keras")
    if network.scale == "own":
        print("The exported files read recordings after own_scale.")
    if network.front == "convolution":
        print("They read whole recordings: no C header has the convolution.")
        return model.export(folder / "saved_model", verbose=False)
    files = {"c": f"{path}.h", "litert": f"{path}.tflite"}
    for form, file in {
        **files,
        "tf_saved_model": folder / "saved_model",
    }.items():
        export_streaming(model, file, format=form, verbose=False)


def draw(networks, measure):
    """The score of each seed over the seconds of its training."""
    figure = Figure(layout="constrained")
    axes = figure.subplots()
    for name, of in networks.items():
        axes.plot(of.seconds, np.mean(of.scores, axis=1), "o", label=name)
    axes.set(xlabel="seconds of training", ylabel=f"{measure}, test set")
    axes.set_xlim(left=0)
    axes.legend()
    return figure


def main(argv):
    if argv[1:]:
        raise app.UsageError(f"Flags begin with --. Received: {argv[1:]}")
    logging.set_verbosity(logging.ERROR)
    tf.get_logger().setLevel("ERROR")
    data, folder = load(), pathlib.Path(FLAGS.output)
    x, _, rows, outputs, unit = data
    measure, lengths = "R^2" if unit else "accuracy", [*map(len, x)]
    print(
        f"{FLAGS.data}: {len(rows[0])} recordings to train on, {len(rows[1])} "
        f"to test on; {min(lengths)} to {max(lengths)} steps, channels: "
        f"{x[0].shape[1]}, {'regression' if unit else f'{outputs} classes'}."
    )
    folder.mkdir(parents=True, exist_ok=True)
    networks = compare(data)
    best, text = verdict(networks, measure)
    rows = [row(network) for network in networks.values()]
    if importlib.util.find_spec("numba"):
        rows.append(minirocket(*data))
    columns = "layer", "weights", "rate", measure, "seconds", "kB in C"
    columns += ("diverged",)
    print(f"Scale: {networks[best].scale}. Front: {networks[best].front}.")
    print(tabulate(rows, columns, "github", disable_numparse=True))
    print(f"\n{text}")
    export(networks[best], folder)
    draw(networks, measure).savefig(folder / "scores.png", dpi=120)


if __name__ == "__main__":
    flags.DEFINE_string("output", "runs/recordings", "Folder to write to.")
    flags.DEFINE_string("data", "BasicMotions", "Data of sktime, or a path.")
    flags.DEFINE_float("minutes", 5.0, "Minutes of training at most.")
    flags.DEFINE_integer("seeds", 5, "Seeds at most.", 1)
    flags.DEFINE_integer("seed", 0, "First seed.", 0, 2**32 - 1)
    flags.DEFINE_integer("units", 64, "Units of RIN.", 1)
    flags.register_validator("output", str.strip, "Name a folder.")
    flags.register_validator(
        "minutes", lambda minutes: 0 < minutes < np.inf, "It must be above 0."
    )
    app.run(main)
