"""Is the network of the README right at a million steps, whatever the seed?

The Python block of README.md runs as it stands, with other seeds in place of 0
and with each backend. A loss is normalized by that of a constant prediction: 0
is perfect. Each test has 20 sequences. Seconds are those of the processor, of
training and tests together.
"""

import collections

import numpy as np

from engine import page_block
from engine import pictures
from engine import record
from engine.measurement import groups
from engine.measurement import spread
from engine.partial_runs import PartialRuns

PRINT = "\nimport json\nprint(json.dumps(losses))\n"
BACKENDS = {"tensorflow": "TensorFlow", "jax": "JAX"}
BAR = 0.002  # which all seeds should keep at a million steps
COLORS = {"tensorflow": "#cc6677", "jax": "#332288"}


def measure(seeds=10, replaced=(), partial=None):
    runs = PartialRuns(partial, ("backend", "seed"))
    keys = [(backend, seed) for seed in range(seeds) for backend in BACKENDS]

    def run(backend, seed):
        code = page_block.code_of("README.md", seed, replaced) + PRINT
        losses, seconds = page_block.run(code, backend)
        return {"losses": losses, "seconds": seconds}

    return {"runs": runs.complete(keys, run)}


def figure(results):
    """Normalized loss over the length of the test sequences, one line for each
    seed and backend, trained on 200 steps.
    """
    figure, axes = pictures.subplots(6.4, 3.6)
    axes.axhline(1, color="grey", linewidth=1)
    axes.annotate(
        "a constant prediction",
        (200, 1),
        (0, -12),
        textcoords="offset points",
        fontsize=9,
    )
    for backend, runs in groups(results["runs"], "backend").items():
        for number, run in enumerate(runs):
            lengths = list(map(int, run["losses"]))
            label = (
                None
                if number
                else f"ResidualRNN on {BACKENDS[backend]}, {len(runs)} seeds"
            )
            axes.plot(
                lengths,
                run["losses"].values(),
                "o-",
                color=COLORS[backend],
                alpha=0.6,
                markersize=3,
                linewidth=1,
                label=label,
            )
    axes.axvline(200, color="grey", linestyle=":", linewidth=1)
    axes.set(xscale="log", xlabel="time steps of the test sequences")
    axes.set(yscale="log", ylabel="normalized loss", ylim=(1e-7, 3))
    axes.set_title("Adding, trained on sequences of 200 steps", loc="left")
    axes.legend(loc=(0.34, 0.66))
    return figure


def tables(results):
    rows = []
    for backend, runs in groups(results["runs"], "backend").items():
        losses = collections.defaultdict(list)
        for run in runs:
            for length, loss in run["losses"].items():
                losses[length].append(loss)
        last = np.array(losses[length])
        seconds = [run["seconds"] for run in runs]
        cells = [spread(values, 2) for values in losses.values()]
        within_bar = f"{(last <= BAR).sum()} of {len(last)}"
        rows.append([BACKENDS[backend], *cells, within_bar, spread(seconds, 2)])
    lengths = [f"{int(length):,} steps" for length in losses]
    header = ["backend", *lengths, f"at most {BAR} at the last", "seconds"]
    caption = "Normalized loss (median, lowest to highest of the seeds)"
    return {caption: record.markdown(header, rows)}


PICTURES = {"first_screen.svg": figure}
SMALLEST = {
    "seeds": 1,
    "replaced": {
        "samples=10_000": "samples=100",
        "[200, 10_000, 100_000, 1_000_000]": "[10, 20]",
        "epochs=10": "epochs=1",
    },
}
