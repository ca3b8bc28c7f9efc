"""Small protocols, and runs of them that were never made."""

import keras
import pytest

from experiments import checks
from experiments import results
from experiments import verdicts

UNDER_TENSORFLOW = pytest.mark.skipif(
    keras.backend.backend() != "tensorflow",
    reason="the experiments train under TensorFlow",
)
RESULTS = results.RESULTS / "claims"
PROTOCOLS = checks.read_all()
TRAINED = {n: p for n, p in PROTOCOLS.items() if p["grid"]}
TINY = {  # is trained
    "tier": "core",
    "tuned": ["learning_rate"],
    "seeds": [0, 1],
    "fixed": {
        "task": "adding",
        "length": 5,
        "train": 12,
        "units": 3,
        "updates": 4,
        "batch_size": 6,
    },
    "grid": [{"layer": ["RIN"], "learning_rate": [0.001, 0.1]}],
}
PROTOCOL = {  # is not: its runs are those of `runs_of`
    "tier": "core",
    "tuned": ["learning_rate"],
    "seeds": [0, 1, 2],
    "grid": [{"layer": ["a", "b"], "learning_rate": [1, 2]}],
}
A = (("layer", "a"),)  # one of its models
GOOD = """
question = "Which?"
setting = "Small."
tier = "core"
tuned = ["learning_rate"]
seeds = [0]
[fixed]
task = "copying"
units = 3
[[grid]]
layer = ["RIN", "LSTM"]
learning_rate = [1e-3, 1e-2]
[[claims]]
about = "mine"
compare = [[{ layer = "RIN" }, { layer = "LSTM" }]]
statement = "Better."
within = 0.05
"""


def runs_of(layer, rate, validation, test):
    return [
        {
            "layer": layer,
            "learning_rate": rate,
            "seed": seed,
            "validation": validation,
            "test": score,
            "baseline": 2.0,
        }
        for seed, score in enumerate(test)
    ]


def gains_study():
    grid = {"layer": ["both"], "gain": [0.0, 0.5], "other": [1.0, 2.0, 3.0]}
    protocol = {"tuned": ["gain", "other"], "seeds": [0], "fixed": {}}
    protocol["tier"] = "night"
    protocol["grid"] = [grid]
    runs = [
        {"layer": "both", "gain": gain, "other": other, "seed": 0}
        | {"validation": gain + other / 10, "test": 0.5, "baseline": 1.0}
        for gain in grid["gain"]
        for other in grid["other"]
    ]
    return verdicts.Study(protocol, {"protocol": protocol, "runs": runs})
