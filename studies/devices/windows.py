"""What does a classifier of a sliding window reach on these streams?

The streams, folds and scores are those of [streams](#streams). Mean, standard
deviation and mean absolute difference of each channel over the last 16, 32, 64
or 128 steps are read by a logistic regression, whose weights are counted with
its biases, or by random forests of 10 trees with at most 64 leaves or 100 trees
with at least 5 examples in a leaf, whose splits and leaves are counted. They
learn from every tenth step of the recordings. The window of each fold is that
of the highest accuracy on the people of whom a network's learning rate is that.

A window of 32 steps holds 384 bytes of counts. Two classifiers, or a network
and one, are compared in the mean of three folds: no interval is given.
"""

import itertools

import numpy as np
import pandas as pd
from devices import streams
from devices import watch
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from engine import record

WINDOWS = (16, 32, 64, 128)
EVERY = 10  # steps, of which one is learned from
CLASSIFIERS = {
    "logistic regression": lambda: make_pipeline(
        StandardScaler(), LogisticRegression(max_iter=2000)
    ),
    "forest of 10 trees": lambda: RandomForestClassifier(
        10, max_leaf_nodes=64, random_state=0
    ),
    "forest of 100 trees": lambda: RandomForestClassifier(
        100, min_samples_leaf=5, random_state=0
    ),
}


def measure(windows=WINDOWS, test=streams.TEST):
    return {"runs": [run(name, windows, test) for name in CLASSIFIERS]}


def run(name, windows, test):
    """Window, size and scores of each fold."""
    folds = []
    for fold in watch.FOLDS:
        left_out = watch.others(fold)[:: streams.FOLDS]
        people = watch.others(fold + left_out)
        accuracies = [
            scores(name, window, people, left_out, (2, test[1]))["accuracies"]
            for window in windows
        ]
        window = windows[int(np.argmax(accuracies))]
        of_fold = scores(name, window, watch.others(fold), fold, test)
        folds.append({"windows": window} | of_fold)
    columns = {key: [fold[key] for fold in folds] for key in folds[0]}
    return {"classifier": name} | columns


def scores(name, window, people, left_out, test):
    """What is measured on streams of people left out."""
    classifier = CLASSIFIERS[name]()
    classifier.fit(*examples(window, people))
    x, y = watch.streams(left_out, *test)
    answers = [classifier.predict(features(stream, window)) for stream in x]
    right = np.stack(answers) == y
    settle = watch.steps_to_settle(right, y)
    median = float(np.median(settle))
    return {
        "sizes": size_of(classifier),
        "accuracies": round(float(right.mean()), 5),
        "settle": median if np.isfinite(median) else None,
        "never": round(float(np.isinf(settle).mean()), 5),
    }


def examples(window, people):
    """Features of every tenth step of the recordings of people, and classes."""
    data = watch.read()
    rows = np.flatnonzero(np.isin(data.person, people))
    recordings = (
        data.x[start : start + length]
        for start, length in zip(
            data.starts[rows], data.lengths[rows], strict=True
        )
    )
    parts = [features(x, window)[::EVERY] for x in recordings]
    return np.concatenate(parts), np.repeat(data.y[rows], [*map(len, parts)])


def features(x, window):
    """Of each step `(steps, 18)`, those of the steps up to it."""
    frame = pd.DataFrame(x)
    rolling = frame.rolling(window, min_periods=1)
    changes = frame.diff().abs().rolling(window, min_periods=1).mean()
    columns = [rolling.mean(), rolling.std(ddof=0), changes]
    return pd.concat(columns, axis=1).fillna(0).to_numpy()


def size_of(classifier):
    """Weights and biases, or splits and leaves."""
    if hasattr(classifier, "estimators_"):
        return sum(tree.tree_.node_count for tree in classifier.estimators_)
    regression = classifier[-1]
    return regression.coef_.size + regression.intercept_.size


def network_rows():
    """The means of the networks of streams, the best one of each size."""
    results = record.read(record.STUDIES / "devices" / "results_streams.json")
    runs = streams.rows_of(results, "test")
    for _, of_size in itertools.groupby(runs, lambda run: run["size"]):
        best = max(of_size, key=streams.mean_accuracy)
        yield [
            best["layer"],
            "—",
            f"{best['weights']:,}",
            f"{streams.mean_accuracy(best):.3f}",
            f"{min(streams.finished(best, 'accuracies')):.3f}",
            streams.steps(np.median(streams.finished(best, "settle"))),
            f"{np.mean(streams.finished(best, 'never')):.1%}",
        ]


def classifier_rows(results):
    for run in results["runs"]:
        settle = [np.inf if steps is None else steps for steps in run["settle"]]
        yield [
            run["classifier"],
            ", ".join(map(str, run["windows"])),
            f"{int(np.median(run['sizes'])):,}",
            f"{np.mean(run['accuracies']):.3f}",
            f"{min(run['accuracies']):.3f}",
            streams.steps(np.median(settle)),
            f"{np.mean(run['never']):.1%}",
        ]


def tables(results):
    header = ["classifier, or best network", "windows", "weights or nodes"]
    header += ["accuracy", "worst fold or run", "steps to settle", "never"]
    rows = [*classifier_rows(results), *network_rows()]
    return {
        "Streams of people left out: accuracy (mean), steps to settle after a "
        "change (median), share of changes after which that never came": (
            record.markdown(header, rows, words=2)
        )
    }


SMALLEST = {"windows": (16,), "test": (2, 1_000)}
