"""How accurate are classifiers without a recurrent layer?

Three classifiers of sktime read the same recordings: the nearest neighbor by
Euclidean distance and after dynamic time warping, and MiniRocket with three
seeds, which needs the package numba. Shorter recordings have zeros behind their
ends. The longest recordings are read by MiniRocket alone.
"""

import functools

import numpy as np

from engine import record
from engine import recordings
from engine.measurement import Variant
from engine.measurement import spread

ALL = "Euclidean distance", "dynamic time warping", "MiniRocket"


def measure(names=tuple(recordings.PACKAGES), classifiers=ALL):
    return {"classifiers": [classify(name, classifiers) for name in names]}


def classify(name, classifiers):
    """The accuracies of classifiers of sktime, MiniRocket's of each seed."""
    from sktime.classification import distance_based
    from sktime.classification.kernel_based import RocketClassifier

    train, test = recordings.read(name)
    steps = max(train.x.shape[1], test.x.shape[1])
    x, x_test = (as_sktime_reads(part.x, steps) for part in (train, test))
    nearest = functools.partial(
        distance_based.KNeighborsTimeSeriesClassifier, 1
    )
    rocket = functools.partial(RocketClassifier, rocket_transform="minirocket")

    estimators = {
        "Euclidean distance": [nearest(distance="euclidean")],
        "dynamic time warping": [nearest(distance="dtw")],
        "MiniRocket": [rocket(random_state=n) for n in range(3)],
    }

    def accuracy(classifier):
        classifier.fit(x, train.y)
        return float(np.mean(classifier.predict(x_test) == test.y))

    accuracies = {
        classifier: [*map(accuracy, estimators[classifier])]
        for classifier in classifiers
    }
    return {"data": name} | accuracies


def as_sktime_reads(x, steps):
    """Recordings `(recordings, channels, steps)` of equal length, float64."""
    x = np.pad(x, ((0, 0), (0, steps - x.shape[1]), (0, 0)))
    return x.transpose(0, 2, 1).astype("float64")


def tables(results):
    classifiers = results["classifiers"]
    rows = [
        [
            name,
            f"{np.mean([np.mean(row[name]) for row in classifiers]):.3f}",
        ]
        + [spread(row[name]) for row in classifiers]
        for name in list(classifiers[0])[1:]
    ]
    header = [
        "classifier",
        "mean",
        *(row["data"] for row in classifiers),
    ]
    caption = (
        "Accuracy on the test set (median, lowest to highest of the seeds)"
    )
    return {caption: record.markdown(header, rows)}


VARIANTS = {
    "": Variant("Eight data sets"),
    "long": Variant(
        "Recordings of up to 1,460 time steps",
        {"names": ("PLAID", "ACSF1"), "classifiers": ("MiniRocket",)},
    ),
}
SMALLEST = {"names": ("ItalyPowerDemand",)}
