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

from keras_rin.recordings._verdict import score
from keras_rin.recordings._verdict import stream_score

PENALTIES = np.logspace(-3, 3, 10)


def has_numba():
    """Whether MiniRocket runs: a folder of this name is no package."""
    spec = importlib.util.find_spec("numba")
    return spec is not None and spec.origin is not None


def scores(data, rows, seed):
    """The scores `(1, test recordings)` of each baseline."""
    summary = np.array([_summary(x) for x in data.x])
    if data.classes:
        constant = "most frequent class", DummyClassifier()
        name, model = "logistic", LogisticRegression(max_iter=2000)
    else:
        constant = "mean", DummyRegressor()
        name, model = "ridge", RidgeCV(PENALTIES)
    summarized = make_pipeline(StandardScaler(), model)
    entries = [
        (*constant, summary),
        (f"summary, {name} regression", summarized, summary),
    ]
    if has_numba():
        entries.append(_mini_rocket(data, rows, seed))
    results = {}
    for name, estimator, features in entries:
        estimator.fit(features[rows[0]], data.y[rows[0]])
        answers = estimator.predict(features[rows[1]])
        if data.classes:
            answers = np.eye(len(data.classes))[answers]
        results[name] = score(answers, data, rows[1])[None]
    return results


def _summary(x):
    """Mean, deviation and mean absolute difference of each channel."""
    steps = np.abs(np.diff(x, axis=0)).sum(axis=0) / max(1, len(x) - 1)
    return np.concatenate([x.mean(axis=0), x.std(axis=0), steps])


def _mini_rocket(data, rows, seed):
    from sktime.transformations.panel.rocket import (
        MiniRocketMultivariateVariable,
    )

    frames = [pd.DataFrame(x) for x in data.x]
    rocket = MiniRocketMultivariateVariable(
        random_state=seed, pad_value_short_series=0.0
    )
    with warnings.catch_warnings():  # that one for equal lengths is faster
        warnings.simplefilter("ignore")
        rocket.fit([frames[n] for n in rows[0]])
    features = np.asarray(rocket.transform(frames))
    ridge = RidgeClassifierCV if data.classes else RidgeCV
    model = make_pipeline(StandardScaler(with_mean=False), ridge(PENALTIES))
    return "MiniRocket", model, features


def of_stream(log, window):
    """The most frequent class, and a regression on a sliding window.

    The validation rows choose this window or a half, quarter or eighth of it.
    """
    _, y = log.rows("train", "validate")
    _, y_test = log.rows("test")
    most = np.full(len(y_test), np.bincount(y).argmax())
    validated = {}
    for size in sorted({max(2, window // 2**n) for n in range(4)}):
        answers, y_validate = _regression(log, size, "validate", "train")
        validated[size] = np.mean(answers == y_validate)
    best = max(validated, key=lambda size: validated[size])
    answers, _ = _regression(log, best, "test", "train", "validate")
    named = f"logistic regression on the last {best} rows"
    return [
        {"name": "most frequent class"} | stream_score(most, y_test),
        {"name": named} | stream_score(answers, y_test),
    ]


def _regression(log, window, tested, *parts):
    """Answers for the rows of a part, and their classes."""
    (x, y), (x_tested, y_tested) = log.rows(*parts), log.rows(tested)
    regression = LogisticRegression(max_iter=2000)
    regression = make_pipeline(StandardScaler(), regression)
    every = slice(None, None, max(1, len(y) // 10_000))
    regression.fit(_sliding(x, window)[every], y[every])
    return regression.predict(_sliding(x_tested, window)), y_tested


def _sliding(x, window):
    """Mean, deviation and mean change of each channel over the last rows."""
    frame = pd.DataFrame(x)
    rolling = frame.rolling(window, min_periods=1)
    changes = frame.diff().abs().rolling(window, min_periods=1).mean()
    columns = [rolling.mean(), rolling.std(ddof=0), changes]
    return pd.concat(columns, axis=1).fillna(0).to_numpy()
