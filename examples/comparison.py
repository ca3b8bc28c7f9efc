"""Trains networks side by side: one table, one picture, nothing lost."""

import dataclasses
import itertools
import math
import pathlib
import shutil
import statistics
import sys
import time

import epochs
import keep_best
import keras
import numpy as np
import outputs
from absl import app
from absl import flags
from matplotlib.figure import Figure
from tqdm.keras import TqdmCallback

from keras_rin.callbacks import RestoreOnNaN
from keras_rin.callbacks import ResumableTraining

FLAGS = flags.FLAGS
flags.DEFINE_integer("units", 100, "Width of each layer.", lower_bound=1)
flags.DEFINE_integer("epochs", 40, "Epochs of training.", lower_bound=1)
flags.DEFINE_integer("batch_size", 32, "Samples a step.", lower_bound=1)
flags.DEFINE_float("learning_rate", 1e-3, "Of the optimizer.", lower_bound=0)
flags.DEFINE_multi_integer("seed", [0], "Repeat the flag for several seeds.")
flags.DEFINE_bool(
    "resume",
    False,
    "Resume an earlier run with the same flags. Without it, what is in "
    "OUTPUT/models moves to OUTPUT/models_before.",
)
flags.DEFINE_bool("smoke", False, "One epoch on 64 samples: does it run?")

# A checkpoint keeps the command line: all flags but those of which a network
# sees nothing, or one value of several.
NOT_KEPT = {"data_dir", "download", "epochs", "output", "resume"}
ONE_OF = {"layers", "length", "seed", "start", "task"}
EXAMPLES = pathlib.Path(__file__).parent

LINE_STYLES = ["-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (1, 3))]


@dataclasses.dataclass
class Metric:
    """What is reported, and what an answer that knows nothing gets."""

    name: str  # as in the logs of Keras
    label: str
    mode: str  # "max" or "min": which way is better
    baseline: float
    baseline_label: str

    @property
    def better(self):
        return {"max": max, "min": min}[self.mode]

    def best(self, runs):
        return self.better(runs, key=lambda run: self.better(run.validation))


@dataclasses.dataclass
class Run:
    """One network, trained once; `score` is on the test data."""

    layer: str
    seed: int
    parameters: int
    score: float
    validation: list  # the metric after each epoch
    seconds_per_epoch: float
    finished: bool
    model: str  # the file of its best weights on the validation data
    error: str = ""  # why it ended early, where the loss was not finite


class EpochTimer(keras.callbacks.Callback):
    """Logs the seconds of each epoch, validation included."""

    def on_epoch_begin(self, epoch, logs=None):
        self._start = time.perf_counter()

    def on_epoch_end(self, epoch, logs=None):
        logs["seconds"] = time.perf_counter() - self._start


def train_all(build, layers, splits, metric, output):
    """Trains `build(layer)` for every seed and layer, until Ctrl-C.

    `splits` are pairs of arrays, or of a dictionary of arrays and one; or,
    already in batches, `Epochs` to train on and `tf.data.Dataset`s to evaluate
    on. Returns the runs so far. The best network of each is kept in a file, the
    state of its training beside it, for `--resume`.
    """
    if FLAGS.smoke:
        splits = [_a_few(split) for split in splits]
    networks = list(itertools.product(FLAGS.seed, layers))
    files = _prepare(output / "models", networks)
    runs = []
    for (seed, layer), file in zip(networks, files, strict=True):
        keras.utils.set_random_seed(seed)
        run = _train(build(layer), layer, seed, splits, metric, file)
        if run.validation:
            runs.append(run)
        if not run.finished:
            print("\nInterrupted: here is what there is.", file=sys.stderr)
            return runs
    return runs


def _prepare(folder, networks):
    """The file of each network, after a look at what an earlier run left."""
    if folder.exists() and not FLAGS.resume:
        before = folder.with_name("models_before")
        shutil.rmtree(before, ignore_errors=True)
        folder.rename(before)
    folder.mkdir(exist_ok=True)
    files = [folder / f"{layer}-{seed}.keras" for seed, layer in networks]
    for (seed, _), file in zip(networks, files, strict=True):
        try:
            ResumableTraining(_checkpoint(file), _settings(seed))
        except ValueError as error:
            raise app.UsageError(f"--resume: {error}") from error
    return files


def _checkpoint(file):
    return file.with_suffix(".npz")


def _settings(seed):
    """The flags on which the training of one network depends."""
    ours = {path.stem for path in EXAMPLES.glob("*.py")}
    kept = {"seed": seed}
    for module, defined in FLAGS.flags_by_module_dict().items():
        for flag in defined:
            several = flag.name in ONE_OF and isinstance(flag.value, list)
            if not several and flag.name not in NOT_KEPT:
                if pathlib.Path(module).stem in ours:
                    kept[flag.name] = flag.value
    return kept


def _a_few(split):
    if isinstance(split, tuple):
        return keras.tree.map_structure(lambda array: array[:64], split)
    if isinstance(split, epochs.Epochs):
        return dataclasses.replace(split, steps=1)
    return split.take(1)


def _train(model, layer, seed, splits, metric, file):
    train, validation, test = splits
    if isinstance(train, tuple):
        train = epochs.shuffled(train, FLAGS.batch_size)
    monitor = f"val_{metric.name}"
    resumable = ResumableTraining(_checkpoint(file), _settings(seed))
    history = resumable.history
    before = [v for v in history.get(monitor, []) if not math.isnan(v)]
    end = 1 if FLAGS.smoke else FLAGS.epochs
    finished, error = True, ""
    try:
        model.fit(
            train.stream(seed, resumable.epoch, end),
            steps_per_epoch=train.steps,
            initial_epoch=resumable.epoch,
            epochs=end,
            shuffle=False,  # the stream is
            validation_data=validation,
            validation_batch_size=FLAGS.batch_size,
            callbacks=[
                RestoreOnNaN(),
                EpochTimer(),
                keep_best.KeepBest(
                    file,
                    monitor,
                    metric.mode,
                    best=metric.better(before, default=None),
                ),
                resumable,
                TqdmCallback(verbose=0, desc=f"{layer}, seed {seed}"),
            ],
            verbose=0,
        )
    except KeyboardInterrupt:
        finished = False
    except FloatingPointError as not_finite:
        error = str(not_finite)
        print(f"\n{layer}, seed {seed}: {error}", file=sys.stderr)
    if file.exists():
        model = keras.models.load_model(file)
    scores = model.evaluate(**_as_arguments(test), verbose=0, return_dict=True)
    return Run(
        layer=layer,
        seed=seed,
        parameters=model.count_params(),
        score=scores[metric.name],
        validation=history.get(monitor, []),
        seconds_per_epoch=_steady(history.get("seconds", [])),
        finished=finished,
        model=str(file),
        error=error,
    )


def _as_arguments(split):
    if isinstance(split, tuple):
        x, y = split
        return {"x": x, "y": y, "batch_size": FLAGS.batch_size}
    return {"x": split}


def _steady(seconds):
    # The first epoch compiles; it counts only where there is no other.
    return statistics.median(seconds[1:] or seconds or [math.nan])


def report(runs, metric, output):
    """Prints the table; writes table.md, results.json, learning_curves.png.

    Without an epoch that is over, those of an earlier run stay.
    """
    if not runs:
        print(f"No epoch is over, so {output} stays as it is.")
        return
    record = {
        "tables": "comparison",
        "backend": keras.backend.backend(),
        "metric": dataclasses.asdict(metric),
        "runs": [dataclasses.asdict(run) for run in runs],
    }
    outputs.write(output, record, tables)
    outputs.save_picture(_draw(runs, metric), output / "learning_curves.png")


def tables(record):
    """The results in Markdown: median, worst and best over the seeds."""
    runs = [Run(**run) for run in record["runs"]]
    metric = Metric(**record["metric"])
    rows = []
    for layer, group in _by_layer(runs).items():
        rows.append(
            [
                layer + _how_it_ended(group),
                f"{group[0].parameters:,}",
                spread([run.score for run in group]),
                spread([run.seconds_per_epoch for run in group]),
            ]
        )
    rows.append([metric.baseline_label, "0", spread([metric.baseline]), ""])
    header = ["layer", "parameters", metric.label, "seconds an epoch"]
    return {"table.md": outputs.markdown(header, rows)}


def _how_it_ended(group):
    if any(run.error for run in group):
        return " (loss not finite)"
    return "" if all(run.finished for run in group) else " (cut off)"


def spread(values):
    """The median and, of several, the range; nothing of none."""
    if not values:
        return ""
    middle = f"{statistics.median(values):.3g}"
    if len(values) == 1:
        return middle
    return f"{middle} ({min(values):.3g} to {max(values):.3g})"


def _by_layer(runs):
    groups = {}
    for run in runs:
        groups.setdefault(run.layer, []).append(run)
    return groups


def _draw(runs, metric):
    """Median over seeds, shaded from the worst to the best."""
    figure = Figure(figsize=(8, 4.5), layout="constrained")
    axes = figure.subplots()
    styles = itertools.cycle(LINE_STYLES)
    for layer, group in _by_layer(runs).items():
        epochs = min(len(run.validation) for run in group)
        curves = np.array([run.validation[:epochs] for run in group])
        steps = np.arange(1, epochs + 1)
        (line,) = axes.plot(
            steps, np.median(curves, 0), linestyle=next(styles), label=layer
        )
        axes.fill_between(
            steps,
            curves.min(0),
            curves.max(0),
            alpha=0.15,
            color=line.get_color(),
        )
    axes.axhline(
        metric.baseline, color="grey", linewidth=1, label=metric.baseline_label
    )
    axes.set_xlabel("epoch")
    axes.set_ylabel(f"{metric.label} (validation)")
    axes.set_yscale("linear" if metric.mode == "max" else "log")
    figure.legend(loc="outside right upper", fontsize="small")
    return figure
