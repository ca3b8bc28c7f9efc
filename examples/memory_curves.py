"""What noisy networks remember: Fisher memory curves, and a read-out's answer.

    python examples/memory_curves.py
    python examples/memory_curves.py --units=200 --seed=0 --seed=1

No training: recurrent matrices of six kinds run from rest, with one signal a
step into the first unit. What theory says that the state holds goes to
networks.md and memory_curves.png, what a linear read-out finds of the first
signal in the last state to decoding.md and decoding.png, all below --output.
"""

import itertools
import statistics

import numpy as np
import outputs
from absl import app
from absl import flags
from matplotlib.figure import Figure
from tqdm import tqdm

from keras_rin import diagnostics

FLAGS = flags.FLAGS

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
    "chain + identity": lambda rng, units: (
        1.02 * np.eye(units, k=1) + 0.1 * np.eye(units)
    ),
}
# activation, variance of the noise
SETTINGS = {
    "linear": (None, 0),
    "linear, noise": (None, 0.01),
    "elu": (lambda z: np.where(z > 0, z, np.expm1(np.minimum(z, 0))), 0),
}
LINE_STYLES = ["-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (1, 3))]


def gaussian(rng, units):
    matrix = rng.normal(size=(units, units))
    return 0.95 * matrix / diagnostics.spectral_radius(matrix)


def theory(matrix):
    """The diagnostics, with noise gathered over two passes of a chain."""
    horizon = 2 * len(matrix)
    best = diagnostics.optimal_input_vector(matrix, horizon)
    sizes = diagnostics.transient_amplification(matrix, steps=horizon)
    return {
        "curve": diagnostics.fisher_memory_curve(
            matrix, horizon=horizon
        ).tolist(),
        "sizes": sizes.tolist(),
        "total": diagnostics.total_memory(matrix, horizon=horizon),
        "best total": diagnostics.total_memory(matrix, best, horizon=horizon),
        "departure": diagnostics.henrici_departure(matrix),
        "spectral radius": diagnostics.spectral_radius(matrix),
        "numerical radius": diagnostics.numerical_radius(matrix),
        "peak": sizes.max(),
    }


def run_network(network, seed, units, samples):
    rng = np.random.default_rng(seed)
    matrix = NETWORKS[network](rng, units)
    return {
        "network": network,
        "seed": seed,
        **theory(matrix),
        "accuracy": {
            name: diagnostics.first_signal_r2(
                matrix,
                noise=noise,
                activation=activation,
                samples=samples,
                rng=rng,
            )
            for name, (activation, noise) in SETTINGS.items()
        },
    }


def main(argv):
    del argv
    output = outputs.prepare(FLAGS.output)
    units = 10 if FLAGS.smoke else FLAGS.units
    samples = 50 if FLAGS.smoke else 2_000
    seeds = FLAGS.seed[:1] if FLAGS.smoke else FLAGS.seed
    record = {
        "tables": "memory_curves",
        "units": units,
        "networks": [
            run_network(network, seed, units, samples)
            for network, seed in tqdm(list(itertools.product(NETWORKS, seeds)))
        ],
    }
    outputs.write(output, record, tables)
    outputs.save_picture(draw_curves(record), output / "memory_curves.png")
    outputs.save_picture(draw_decoding(record), output / "decoding.png")


def by_network(record):
    return {
        network: [r for r in record["networks"] if r["network"] == network]
        for network in NETWORKS
    }


def tables(record):
    return {
        "networks.md": networks_table(record),
        "decoding.md": decoding_table(record),
    }


def networks_table(record):
    columns = ["total", "best total", "departure"]
    columns += ["spectral radius", "numerical radius", "peak"]
    rows = [
        [network, *(spread([r[key] for r in runs]) for key in columns)]
        for network, runs in by_network(record).items()
    ]
    header = ["network", "total memory", "best input", "Henrici departure"]
    header += ["spectral radius", "numerical radius", "largest response"]
    return outputs.markdown(header, rows)


def decoding_table(record):
    rows = [
        [network, *(spread([r["accuracy"][s] for r in runs]) for s in SETTINGS)]
        for network, runs in by_network(record).items()
    ]
    return outputs.markdown(["network", *SETTINGS], rows)


def spread(values):
    """Median, and worst and best over the seeds where they differ."""
    low, middle, high = (
        f"{round(f(values), 6):.3g}" for f in (min, statistics.median, max)
    )
    return middle if low == high else f"{middle} ({low} to {high})"


def draw_curves(record):
    figure = Figure(figsize=(10, 4), layout="constrained")
    left, right = figure.subplots(1, 2)
    styles = itertools.cycle(LINE_STYLES)
    for network, (run, *_) in by_network(record).items():
        style = next(styles)
        left.plot(run["curve"], linestyle=style, label=network)
        right.plot(run["sizes"], linestyle=style)
    left.set(xlabel="lag k", ylabel="Fisher memory J(k)")
    right.set(xlabel="step k", ylabel="size of the response |v W^k|")
    # Where a response is below what matters, a logarithm has no end.
    left.set(yscale="log", ylim=(1e-4, 1.5))
    right.set(yscale="log", ylim=(1e-3, None))
    figure.legend(loc="outside right upper", fontsize="small")
    return figure


def draw_decoding(record):
    """A dot for each seed."""
    figure = Figure(figsize=(10, 3.5), layout="constrained")
    for axes, setting in zip(
        figure.subplots(1, len(SETTINGS), sharey=True), SETTINGS, strict=True
    ):
        for row, runs in enumerate(by_network(record).values()):
            scores = [run["accuracy"][setting] for run in runs]
            axes.plot(scores, [row] * len(scores), "o", alpha=0.6)
        axes.set(title=setting, xlabel="R² of the first signal")
        axes.set_xlim(-0.2, 1.1)
        axes.set_yticks(range(len(NETWORKS)), NETWORKS)
    axes.invert_yaxis()
    return figure


if __name__ == "__main__":
    flags.DEFINE_string("output", "runs/memory_curves", "Where to write.")
    flags.DEFINE_integer("units", 100, "Width of each network.", lower_bound=2)
    flags.DEFINE_multi_integer("seed", [0, 1, 2, 3, 4], "Repeat the flag.")
    flags.DEFINE_bool("smoke", False, "Ten units, few samples: does it run?")
    app.run(main)
