"""What does the recipe of the page on long sequences print, whatever the seed?

The first block of docs/long_sequences.md runs as it stands, with other seeds in
place of 0, and its last network is tested on 1,000 sequences of each length. A
loss is normalized by that of a constant prediction: 0 is perfect, and a
sequence whose loss is above 1 runs away. A training that ends in NaN has
diverged; it is counted, and left out of the losses. The two backends round sums
in another order, as two machines do: one seed then draws the same weights and
data, and training ends elsewhere.
"""

import numpy as np

from engine import page_block
from engine import record
from engine.measurement import groups
from engine.measurement import spread
from engine.partial_runs import PartialRuns

PAGE = "docs/long_sequences.md"
BACKENDS = {"jax": "JAX", "tensorflow": "TensorFlow"}
SEEDS = {"jax": 10, "tensorflow": 2}
LENGTHS = (10_000, 30_000, 100_000)
TESTS = {"mean": "mean", "median": "median", "away": "runs away"}
# The networks of the page are tested in parts, which take less memory.
TEST = """
import json

results = {{}}
for length in {lengths}:
    rng = np.random.default_rng(length)
    errors = []
    for _ in range({parts}):
        x, y = adding.generate(rng, {samples}, length)
        outputs = model.predict(x, batch_size={samples}, verbose=0)
        errors.extend((outputs - y)[:, 0].astype("float64") ** 2)
    losses = np.array(errors) / adding.baseline_loss()
    results[length] = {{
        "mean": losses.mean(),
        "median": np.median(losses),
        "away": (losses > 1).mean(),
    }}
print(json.dumps(results))
"""


def measure(
    seeds=SEEDS,
    replaced=(),
    lengths=LENGTHS,
    parts=20,
    samples=50,
    partial=None,
):
    runs = PartialRuns(partial, ("backend", "seed"))
    test = TEST.format(lengths=lengths, parts=parts, samples=samples)

    def make(backend, seed):
        code = page_block.code_of(PAGE, seed, replaced) + test
        losses, seconds = page_block.run(code, backend)
        has_diverged = any(np.isnan(test["mean"]) for test in losses.values())
        return {
            "losses": None if has_diverged else losses,
            "seconds": seconds,
        }

    keys = [(name, seed) for name in seeds for seed in range(seeds[name])]
    return {"runs": runs.complete(keys, make)}


def tables(results):
    rows = []
    for backend, runs in groups(results["runs"], "backend").items():
        losses = [run["losses"] for run in runs if run["losses"]]
        diverged = f"{len(runs) - len(losses)} of {len(runs)}"
        for length in losses[0] if losses else ():
            tests = [loss[length] for loss in losses]
            cells = [
                spread([test[name] for test in tests], 2) for name in TESTS
            ]
            name = BACKENDS[backend]
            rows.append([name, f"{int(length):,}", *cells, diverged])
    caption = (
        "Normalized loss over 1,000 sequences, and the share of them that runs "
        "away (median, lowest to highest of the seeds)"
    )
    header = ["backend", "steps", *TESTS.values(), "diverged"]
    shown = {caption: record.markdown(header, rows, words=2)}
    factors = factors_of_pairs(results["runs"])
    if factors:
        shown[
            "The same seed on both backends: the larger of the two means over "
            "the longest sequences, divided by the smaller"
        ] = record.markdown(
            ["seeds", "factor"], [[len(factors), spread(factors, 2)]]
        )
    return shown


def factors_of_pairs(runs):
    factors = []
    for pair in groups(runs, "seed").values():
        losses = [run["losses"] for run in pair if run["losses"]]
        means = [list(loss.values())[-1]["mean"] for loss in losses]
        if len(means) == 2:
            factors.append(max(means) / min(means))
    return factors


SMALLEST = {
    "seeds": {"tensorflow": 1},
    "replaced": {
        "(200, 50, 2000, 3e-3)": "(20, 5, 20, 3e-3)",
        "    (500, 50, 400, 3e-4),\n    (1000, 50, 400, 2e-4),\n": "",
        "    (2000, 50, 400, 2e-4),\n    (5000, 50, 200, 1e-4),\n": "",
        "    (10000, 50, 100, 1e-4),\n    (30000, 16, 200, 1e-5),\n": "",
        "in 10000, 30000, 100000": "in 20,",
    },
    "lengths": (20, 30),
    "parts": 1,
}
