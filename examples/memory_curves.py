"""Measures the memory of noisy recurrent networks, in theory and in use.

    python memory_curves.py
    python memory_curves.py --units=200 --seed=0 --seed=1

No training: recurrent matrices of six kinds run from a hidden state of zero,
with one signal per time step into the first unit. Writes the diagnostics of
each matrix (networks.md, memory_curves.png), and how well the first signal is
decoded linearly from the last hidden state (decoding.md, decoding.png).
"""

import itertools
import json
import os
import pathlib
import shlex
import statistics
import sys
from importlib.metadata import version

import numpy as np
from absl import app
from absl import flags
from matplotlib.figure import Figure
from tabulate import tabulate
from tqdm import tqdm

from keras_rin import diagnostics

NETWORKS = {
    "identity": lambda rng, units: np.eye(units),
    "orthogonal": lambda rng, units: (
        np.linalg.qr(rng.normal(size=(units, units))).Q
    ),
    "gaussian": lambda rng, units: gaussian(rng, units),
    "chain": lambda rng, units: 1.02 * np.eye(units, k=1),
    "feedback chain": lambda rng, units: (
        0.99 * np.eye(units, k=1) + 0.04 * np.eye(units, k=-1)
    ),
    "1.02 chain + 0.1 identity": lambda rng, units: (
        1.02 * np.eye(units, k=1) + 0.1 * np.eye(units)
    ),
}
# Activation and variance of the noise.
SETTINGS = {
    "linear": (None, 0),
    "linear, noise": (None, 0.01),
    "elu": (lambda z: np.where(z > 0, z, np.expm1(np.minimum(z, 0))), 0),
}
LINE_STYLES = ["-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (1, 3))]

FLAGS = flags.FLAGS


def gaussian(rng, units):
    matrix = rng.normal(size=(units, units))
    return 0.95 * matrix / diagnostics.spectral_radius(matrix)


def measure(network, seed):
    rng = np.random.default_rng(seed)
    matrix = NETWORKS[network](rng, FLAGS.units)
    horizon = 2 * FLAGS.units  # noise of two passes of a chain
    best = diagnostics.optimal_input_vector(matrix, horizon=horizon)
    norms = diagnostics.transient_amplification(matrix, steps=horizon)
    curve = diagnostics.fisher_memory_curve(matrix, horizon=horizon)
    return {
        "network": network,
        "seed": seed,
        "curve": curve.tolist(),
        "sizes": norms.tolist(),
        "total": diagnostics.total_memory(matrix, horizon=horizon),
        "best total": diagnostics.total_memory(
            matrix, input_vector=best, horizon=horizon
        ),
        "departure": diagnostics.henrici_departure(matrix),
        "spectral radius": diagnostics.spectral_radius(matrix),
        "numerical radius": diagnostics.numerical_radius(matrix),
        "peak": norms.max(),
        "accuracy": {
            name: diagnostics.first_signal_r2(
                matrix,
                noise=noise,
                activation=activation,
                samples=FLAGS.samples,
                rng=rng,
            )
            for name, (activation, noise) in SETTINGS.items()
        },
    }


def by_network(record):
    runs = record["networks"]
    return {n: [run for run in runs if run["network"] == n] for n in NETWORKS}


def tables(record):
    """{file: table in Markdown}: median, lowest and highest of the seeds."""
    columns = {
        "total memory": "total",
        "best input": "best total",
        "Henrici departure": "departure",
        "spectral radius": "spectral radius",
        "numerical radius": "numerical radius",
        "largest response": "peak",
    }
    networks, decoding = [], []
    for network, runs in by_network(record).items():
        values = [[run[key] for run in runs] for key in columns.values()]
        networks.append([network, *map(spread, values)])
        values = [[run["accuracy"][name] for run in runs] for name in SETTINGS]
        decoding.append([network, *map(spread, values)])
    plain = {"tablefmt": "github", "disable_numparse": True}
    return {
        "networks.md": tabulate(networks, ["network", *columns], **plain),
        "decoding.md": tabulate(decoding, ["network", *SETTINGS], **plain),
    }


def spread(values):
    low, middle, high = (
        f"{round(f(values), 6):.3g}" for f in (min, statistics.median, max)
    )
    return middle if low == high else f"{middle} ({low} to {high})"


def draw_curves(record):
    figure = Figure(figsize=(10, 4), layout="constrained")
    left, right = figure.subplots(1, 2)
    networks = by_network(record).items()
    for (network, (run, *_)), style in zip(networks, LINE_STYLES, strict=True):
        left.plot(run["curve"], linestyle=style, label=network)
        right.plot(run["sizes"], linestyle=style)
    left.set(xlabel="lag k", ylabel="Fisher memory J(k)")
    right.set(xlabel="step k", ylabel="norm of the response |v W^k|")
    # A response may become 0.
    left.set(yscale="log", ylim=(1e-4, 1.5))
    right.set(yscale="log", ylim=(1e-3, None))
    figure.legend(loc="outside right upper", fontsize="small")
    return figure


def draw_decoding(record):
    """A dot for each seed."""
    figure = Figure(figsize=(10, 3.5), layout="constrained")
    panels = figure.subplots(1, len(SETTINGS), sharey=True)
    for axes, setting in zip(panels, SETTINGS, strict=True):
        for row, runs in enumerate(by_network(record).values()):
            scores = [run["accuracy"][setting] for run in runs]
            axes.plot(scores, [row] * len(scores), "o", alpha=0.6)
        axes.set(title=setting, xlabel="R² of the first signal")
        axes.set_xlim(-0.2, 1.1)
        axes.set_yticks(range(len(NETWORKS)), NETWORKS)
    axes.invert_yaxis()
    return figure


def main(argv):
    if argv[1:]:
        raise app.UsageError(f"Flags begin with --. Received: {argv[1:]}")
    folder = pathlib.Path(FLAGS.output)
    folder.mkdir(parents=True, exist_ok=True)
    cases = list(itertools.product(NETWORKS, FLAGS.seed))
    command = os.path.relpath(__file__), *sys.argv[1:]
    packages = "keras-rin", "numpy"
    record = {
        "tables": "examples.memory_curves",
        "command": shlex.join(["python", *command]),
        "versions": {name: version(name) for name in packages},
        "networks": [measure(*case) for case in tqdm(cases)],
    }
    (folder / "results.new").write_text(json.dumps(record) + "\n")
    os.replace(folder / "results.new", folder / "results.json")
    for file, table in tables(record).items():
        (folder / file).write_text(table + "\n")
        print(f"\n{folder / file}\n\n{table}")
    draw_curves(record).savefig(folder / "memory_curves.png", dpi=120)
    draw_decoding(record).savefig(folder / "decoding.png", dpi=120)


if __name__ == "__main__":
    flags.DEFINE_string("output", "runs/memory_curves", "Folder to write to.")
    flags.DEFINE_integer("units", 100, "Units of each network.", lower_bound=2)
    flags.DEFINE_integer("samples", 2_000, "To decode from.", lower_bound=4)
    flags.DEFINE_multi_integer(
        "seed", [0, 1, 2, 3, 4], "Repeat the flag.", 0, 2**32 - 1
    )
    flags.register_validator("output", str.strip, "Name a folder.")
    flags.register_validator(
        "seed", lambda v: len({*v}) == len(v), "Give each value once."
    )
    app.run(main)
