"""What do linear networks with noise retain of their inputs?

Recurrent matrices of 100 units and six kinds run untrained from a hidden state
of zero, with one signal per time step into the first unit. The first table has
the diagnostics of each matrix; the second R^2 of the first signal, decoded
linearly from the last hidden state: median (lowest to highest) of five seeds.
"""

import itertools

import numpy as np
from tqdm import tqdm

from engine import pictures
from engine import record
from engine import verdicts
from engine.measurement import groups
from engine.measurement import spread
from keras_rin import diagnostics

NETWORKS = {
    "identity": lambda rng, n: np.eye(n),
    "orthogonal": lambda rng, n: np.linalg.qr(rng.normal(size=(n, n))).Q,
    "gaussian": lambda rng, n: gaussian(rng, n),
    "chain": lambda rng, n: diagonals(n, above=1.02),
    "feedback chain": lambda rng, n: diagonals(n, above=0.99, below=0.04),
    "1.02 chain + 0.1 identity": lambda rng, n: diagonals(n, 1.02, main=0.1),
}
SETTINGS = {
    "linear": {},
    "linear, noise": {"noise": 0.01},
    "elu": {
        "activation": lambda z: np.where(z > 0, z, np.expm1(z.clip(max=0)))
    },
}
COLUMNS = {
    "total memory": "total",
    "best input": "best total",
    "Henrici departure": "departure",
    "spectral radius": "spectral radius",
    "largest response": "peak",
}
STYLES = pictures.STYLES | {
    "gaussian": {"color": pictures.OTHER, "linestyle": ":"},
    "1.02 chain + 0.1 identity": pictures.STYLES["chain + identity"],
}


def diagonals(n, above, below=0, main=0):
    """A matrix with a value on each of three diagonals."""
    return above * np.eye(n, k=1) + below * np.eye(n, k=-1) + main * np.eye(n)


def gaussian(rng, units):
    matrix = rng.normal(size=(units, units))
    return 0.95 * matrix / diagnostics.spectral_radius(matrix)


def measure(units=100, samples=2_000, seeds=range(5)):
    cases = list(itertools.product(NETWORKS, seeds))
    networks = [measure_network(*case, units, samples) for case in tqdm(cases)]
    return {"units": units, "networks": networks}


def measure_network(network, seed, units, samples):
    rng = np.random.default_rng(seed)
    matrix = NETWORKS[network](rng, units)
    drawn = {"samples": samples, "rng": rng}
    horizon = 2 * units  # noise of two passes of a chain
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
        "peak": norms.max(),
        "accuracy": {
            name: first_signal_r2(matrix, **drawn, **options)
            for name, options in SETTINGS.items()
        },
    }


def first_signal_r2(matrix, samples, rng, noise=0.0, activation=None):
    """R^2 of a linear decoder of the first signal from the last state.

    h_t = activation(h_{t-1} V + s_t e_1 + z_t), z_t ~ N(0, noise I)

    The signals s_t are N(0, 1). The decoder is fitted on as many
    sequences as R^2 is then measured on.
    """
    units = len(matrix)
    signals = rng.normal(size=(units, 2 * samples))
    states = np.zeros((2 * samples, units))
    for signal in signals:
        states = states @ matrix
        states[:, 0] += signal
        if noise:
            states += np.sqrt(noise) * rng.normal(size=states.shape)
        if activation:
            states = activation(states)
    # Units that amplify or shrink the signal count alike.
    states = states / (np.abs(states).max(axis=0) + (states == 0).all(axis=0))
    states = np.column_stack([states, np.ones(len(states))])
    (fitted, test), (s_fitted, s_test) = (
        np.split(array, 2) for array in (states, signals[0])
    )
    rcond = np.finfo(float).eps * max(fitted.shape)
    decoder = np.linalg.lstsq(fitted, s_fitted, rcond)[0]
    return float(1 - np.mean((test @ decoder - s_test) ** 2) / s_test.var())


def tables(results):
    networks, r2 = [], []
    for network, runs in groups(results["networks"], "network").items():
        values = [[run[key] for run in runs] for key in COLUMNS.values()]
        networks.append([network, *map(rounded_spread, values)])
        values = [[run["accuracy"][name] for run in runs] for name in SETTINGS]
        r2.append([network, *map(rounded_spread, values)])
    return {
        "Diagnostics": record.markdown(["network", *COLUMNS], networks),
        "R² of the first signal": record.markdown(["network", *SETTINGS], r2),
    }


def rounded_spread(values):
    return spread([round(value, 6) for value in values])


def draw_curves(results):
    """Memory curves, and the response to a pulse."""
    figure, (above, below) = pictures.subplots(6.5, 7, 2)
    for name, (run, *_) in groups(results["networks"], "network").items():
        style = STYLES[name]
        above.plot(run["curve"], label=name, **style)
        below.plot(run["sizes"], **style)
    above.set(xlabel="lag k", ylabel="Fisher memory J(k)")
    below.set(xlabel="step k", ylabel="norm of the response |w V^k|")
    # A response may become 0.
    above.set(yscale="log", ylim=(1e-4, 1.5))
    below.set(yscale="log", ylim=(1e-3, None))
    title = "A chain remembers until its last unit, and then nothing"
    above.set_title(title, loc="left")
    below.set_title("It amplifies the signal on the way", loc="left")
    figure.legend(loc="outside lower center", ncols=3, fontsize="small")
    return figure


def draw_decoding(results):
    """R² of the linear decoder."""
    networks = groups(results["networks"], "network")
    figure, panels = pictures.subplots(6.5, 7, len(SETTINGS), sharex=True)
    for axes, setting in zip(panels, SETTINGS, strict=True):
        for row, (name, runs) in enumerate(networks.items()):
            scores = [run["accuracy"][setting] for run in runs]
            color = STYLES[name]["color"]
            axes.plot(scores, [row] * len(scores), "o", color=color, alpha=0.6)
        axes.set_title(setting, loc="left")
        axes.set_xlim(-0.2, 1.1)
        axes.set_yticks(range(len(NETWORKS)), NETWORKS)
        axes.invert_yaxis()
    axes.set_xlabel("R² of the first signal")
    return figure


PICTURES = {"memory_curves.svg": draw_curves, "decoding.svg": draw_decoding}
SMALLEST = {"units": 2, "samples": 4, "seeds": (0,)}


def chain_retains_the_signal(results):
    """R^2 of the first input, decoded from the last hidden state."""

    def scores(network):
        runs = [r for r in results["networks"] if r["network"] == network]
        runs.sort(key=lambda run: run["seed"])
        return [run["accuracy"]["linear, noise"] for run in runs]

    return verdicts.difference(scores("chain"), scores("orthogonal"))
