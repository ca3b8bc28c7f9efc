"""Which delays does a trained chain need?

The chain with aligned inputs of [the comparison](#comparison), 64 units, is
trained on copying and on adding at a learning rate of 0.003 in 1,500 updates.
`schur_ablation` then computes the loss of 300 test sequences without each band
of what is not normal in its recurrent matrix, or without all of them. A band
is the couplings from each Schur direction to the one that many places later: in
the chain, before training, band 1 is the matrix and all others are 0. A loss is
normalized and at most 1.
"""

import keras
import numpy as np
from nonnormal_inputs import comparison

from engine import pictures
from engine import record
from engine.measurement import Variant
from keras_rin import diagnostics

RATE, TEST, SEEDS = 3e-3, 300, 3
NEEDED = 0.1  # a larger loss than with all bands, by this much
RANGES = (1, 20), (21, 54), (55, 63)  # copying has a delay of 55 steps


def measure(seeds=SEEDS, units=64, updates=None):
    return {
        "runs": [
            ablated(task, seed, units, updates)
            for task in ("copying", "adding")
            for seed in range(seeds)
        ]
    }


def ablated(task, seed, units, updates=None):
    updates = updates or comparison.TASKS[task][-1]
    chain = "chain", "aligned"
    _, weights, _, tests = comparison.trained(
        task, seed, [chain], [RATE], units, updates
    )
    model = comparison.build(task, *chain, seed, units)
    model.set_weights([np.array(w[0]) for w in weights])
    x, y = (part[:TEST] for part in tests[-1])
    x = keras.ops.convert_to_numpy(comparison.inputs_of(task, x, 0))

    def loss():
        outputs = model.predict(x, batch_size=TEST, verbose=0)
        return comparison.score(task, y, outputs)

    ablation = diagnostics.schur_ablation(model.layers[0], loss, couplings=0)
    return {
        "task": task,
        "seed": seed,
        "loss": ablation.score,
        "bands": ablation.band_scores.tolist(),
        "norms": ablation.band_norms.tolist(),
        "normal": ablation.normal_score,
    }


def tables(results):
    rows = []
    for run in results["runs"]:
        bands = np.array(run["bands"])
        needed = np.flatnonzero(bands > run["loss"] + NEEDED) + 1
        counts = [
            f"{np.sum((needed >= first) & (needed <= last))}"
            f" of {last - first + 1}"
            for first, last in RANGES
        ]
        losses = [f"{loss:.2g}" for loss in (run["loss"], run["normal"])]
        rows.append([run["task"], run["seed"], *losses, *counts])
    caption = (
        "Test loss, also without all bands, and how many bands are needed: "
        "without one of them alone the loss is larger by more than 0.1"
    )
    header = ["task", "seed", "loss", "without all"]
    header += [f"bands {first} to {last}" for first, last in RANGES]
    return {caption: record.markdown(header, rows)}


def draw(results):
    """Test loss without each band, a line for each seed."""
    tasks = dict.fromkeys(run["task"] for run in results["runs"])
    figure, panels = pictures.subplots(8, 3, 1, len(tasks))
    for task, axes in zip(tasks, np.ravel(panels), strict=True):
        for run in results["runs"]:
            if run["task"] == task:
                bands = np.arange(len(run["bands"])) + 1
                axes.plot(bands, run["bands"], ".-", label=run["seed"])
        axes.set(title=task, xlabel="band without which", ylabel="test loss")
        axes.legend(title="seed")
    return figure


PICTURES = {"delays.svg": draw}
VARIANTS = {"": Variant(backend="jax")}
SMALLEST = {"seeds": 1, "units": 12, "updates": 2}
