"""What is right without a network: constants, summaries and MiniRocket."""

import importlib.util
import warnings

import numpy as np
import pandas as pd
from sklearn.dummy import DummyClassifier
from sklearn.dummy import DummyRegressor
from sklearn.linear_model import LogisticRegression
from sklearn.linear_model import RidgeClassifierCV
from sklearn.linear_model import RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from keras_rin.recordings._scores import score

PENALTIES = np.logspace(-3, 3, 10)
BLOCK = 50_000  # rows, whose features are computed at a time
LEARNED = 10_000  # rows of a log, about, from which a regression learns


def has_numba():
    """Whether MiniRocket runs: a folder of this name is no package."""
    spec = importlib.util.find_spec("numba")
    return spec is not None and spec.origin is not None


def scores(parts):
    """Validation and test scores `(recordings,)` of each baseline."""
    data, x = parts[0], [x for part in parts for x in part.x]
    summary = np.array([_summary(values) for values in x])
    if data.classes:
        constant = "most frequent class", DummyClassifier()
        name, model = "logistic", LogisticRegression(max_iter=2000)
    else:
        constant, name, model = (
            ("mean", DummyRegressor()),
            "ridge",
            RidgeCV(PENALTIES),
        )
    summarized = make_pipeline(StandardScaler(), model)
    entries = [(*constant, summary)]
    entries += [(f"{name} regression on a summary", summarized, summary)]
    if has_numba():
        entries.append(_mini_rocket(x, parts))
    y = np.concatenate([part.y for part in parts])
    ends = np.cumsum([0, *(len(part.y) for part in parts)])
    results: dict = {}
    for name, estimator, features in entries:
        results[name] = []
        for n in (1, 2):
            estimator.fit(features[: ends[n]], y[: ends[n]])
            answers = estimator.predict(features[ends[n] : ends[n + 1]])
            if data.classes:
                answers = np.eye(len(data.classes))[answers]
            results[name].append(score(answers, parts[n]))
    return results


def _summary(x):
    """Mean, deviation and mean absolute difference of each channel."""
    steps = np.abs(np.diff(x, axis=0)).sum(axis=0) / max(1, len(x) - 1)
    return np.concatenate([x.mean(axis=0), x.std(axis=0), steps])


def _mini_rocket(x, parts):
    from sktime.transformations.panel.rocket import (
        MiniRocketMultivariateVariable,
    )

    frames = [pd.DataFrame(values) for values in x]
    rocket = MiniRocketMultivariateVariable(
        random_state=0, pad_value_short_series=0.0
    )
    with warnings.catch_warnings():  # that one for equal lengths is faster
        warnings.simplefilter("ignore")
        rocket.fit(frames[: len(parts[0].x)])
    features = np.asarray(rocket.transform(frames))
    ridge = RidgeClassifierCV if parts[0].classes else RidgeCV
    model = make_pipeline(StandardScaler(with_mean=False), ridge(PENALTIES))
    return "MiniRocket", model, features


def window_features(x, window, every=1):
    """Mean, deviation and mean change of each channel over the last rows.

    Before the first row there are others like it. In blocks of rows.
    """
    for first in range(0, len(x), BLOCK):
        rows = np.arange(first - window + 1, min(first + BLOCK, len(x)))
        frame = pd.DataFrame(x[np.maximum(rows, 0)].astype("float64"))
        rolling = frame.rolling(window)
        changes = frame.diff().abs().rolling(window - 1).mean()
        columns = rolling.mean(), rolling.std(ddof=0), changes
        features = pd.concat(columns, axis=1).to_numpy()[window - 1 :]
        yield features[-first % every :: every]


def window_outputs(learned, tested, window):
    """A regression on windows of parts `(x, y)`, and its logits."""
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000))
    x, y = map(np.concatenate, zip(*learned, strict=True))
    every = max(1, len(y) // LEARNED)
    features = np.concatenate([*window_features(x, window, every)])
    model.fit(features, y[::every])
    blocks = map(model.decision_function, window_features(tested, window))
    logits = np.concatenate([*blocks])
    if logits.ndim == 1:  # of two classes, the second one's
        logits = np.stack([0 * logits, logits], axis=1)
    return model, logits
