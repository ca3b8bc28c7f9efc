"""Which fixed points does a network have that remembers three bits?

RIN, GRU and LSTM with 24 units are trained on the flip-flop task, then the
fixed points of their states under zero input are searched from 400 states near
their trajectories. A network that solves the task has a stable one for each of
the 8 combinations of bits, and saddles between them (Sussillo and Barak, 2013).
A cell has the median (lowest to highest) of five seeds.
"""

import itertools

import keras
import numpy as np
from tqdm import tqdm

import keras_rin
from engine import pictures
from engine import record
from engine.measurement import groups
from engine.measurement import spread
from keras_rin import diagnostics
from keras_rin import plots
from keras_rin.tasks import flip_flop

UNITS, LENGTH, BATCH = 24, 40, 64
# The layer, and its learning rate at the first update.
NETWORKS = {
    "RIN, tanh": (keras_rin.layers.RIN, {"activation": "tanh"}, 0.005),
    "GRU": (keras.layers.GRU, {}, 0.01),
    "LSTM": (keras.layers.LSTM, {}, 0.01),
    "RIN, ReLU": (keras_rin.layers.RIN, {}, 0.003),
}
STYLES = {
    "RIN, tanh": {"color": pictures.STYLES["RIN"]["color"]},
    "RIN, ReLU": {"color": pictures.STYLES["IRNN"]["color"]},
}


def measure(names=tuple(NETWORKS), updates=1_000, seeds=range(5)):
    runs, analyses = [], {}
    for name, seed in tqdm(list(itertools.product(names, seeds))):
        run, analysis = measure_network(name, seed, updates)
        runs.append(run)
        analyses.setdefault(name, analysis)
    figures = draw_fixed_points(analyses), draw_spectra(analyses)
    figures = dict(zip(PICTURES, figures, strict=True))
    return {"runs": runs, "figures": figures}


def measure_network(name, seed, updates):
    model, loss = train(name, seed, updates)
    layer, read_out = model.layers
    trajectories, fixed_points, spectrum = analyse(layer, seed)
    outputs = read_out(fixed_points.states[fixed_points.stable, :UNITS])
    outputs = keras.ops.convert_to_numpy(outputs)
    near = np.all(np.abs(np.abs(outputs) - 1) < 0.5, axis=1)
    run = {
        "network": name,
        "seed": seed,
        "loss": loss,
        "combinations": len(np.unique(np.sign(outputs[near]), axis=0)),
        "stable": int(fixed_points.stable.sum()),
        "saddles": int((fixed_points.expanding > 0).sum()),
        "unconverged": len(fixed_points.unconverged_states),
        "exponent": float(spectrum.exponents[0]),
    }
    return run, (trajectories, fixed_points, spectrum)


def train(name, seed, updates):
    """The trained model, and its normalized loss on new data."""
    keras.utils.set_random_seed(seed)
    kind, options, rate = NETWORKS[name]
    layer = kind(UNITS, return_sequences=True, **options)
    read_out = keras.layers.Dense(3)
    model = keras.Sequential([keras.Input((LENGTH, 3)), layer, read_out])
    rate = keras.optimizers.schedules.CosineDecay(rate, updates, 0.01)
    optimizer = keras.optimizers.Adam(rate, global_clipnorm=1.0)
    model.compile(optimizer, "mse", jit_compile=True)
    rng = np.random.default_rng(seed)
    x, y = flip_flop.generate(rng, updates * BATCH, LENGTH)
    model.fit(x, y, batch_size=BATCH, verbose=0)
    x, y = flip_flop.generate(rng, 500, LENGTH)
    loss = model.evaluate(x, y, batch_size=500, verbose=0)
    return model, loss / flip_flop.baseline_loss()


def analyse(layer, seed):
    """States along new sequences, fixed points, and Lyapunov exponents."""
    rng = np.random.default_rng([seed, 1])
    x, _ = flip_flop.generate(rng, 50, LENGTH)
    trajectories = diagnostics.state_trajectories(layer, x)[:, 1:]
    states = rng.permutation(np.concatenate(trajectories))[:400]
    states = states + 0.3 * rng.normal(size=states.shape)
    fixed_points = diagnostics.fixed_points(layer, states, x=np.zeros(3))
    spectrum = diagnostics.lyapunov_spectrum(layer, x[:10])
    return trajectories, fixed_points, spectrum


def tables(results):
    header = ["network", "normalized loss", "combinations found, of 8, by seed"]
    header += ["stable", "saddles", "unconverged, of 400", "largest exponent"]
    keys = ["loss", "stable", "saddles", "unconverged", "exponent"]
    rows = []
    for name, runs in groups(results["runs"], "network").items():
        combinations = ", ".join(str(run["combinations"]) for run in runs)
        loss, *others = (spread([run[key] for run in runs], 2) for key in keys)
        rows.append([name, loss, combinations, *others])
    return {"Networks": record.markdown(header, rows)}


def draw_fixed_points(analyses):
    rows = -(-len(analyses) // 2)
    figure, grid = pictures.subplots(9, 4.8 * rows, rows, 2, squeeze=False)
    for axes, (name, (trajectories, fixed_points, _)) in zip(
        grid.flat, analyses.items(), strict=False
    ):
        plots.plot_fixed_points(fixed_points, trajectories[:12], ax=axes)
        axes.set_title(name)
    return figure


def draw_spectra(analyses):
    figure, (above, below) = pictures.subplots(6, 8, 2)
    spectra, eigenvalues = {}, {}
    for name, (_, fixed_points, spectra[name]) in analyses.items():
        stable = fixed_points.eigenvalues[fixed_points.stable]
        # Without conjugates, and without what a marker covers.
        eigenvalues[name] = np.unique(stable[stable.imag >= 0].round(2))
    plots.plot_jacobian_spectra(eigenvalues, ax=above)
    above.set_title("Jacobians at stable fixed points", loc="left")
    above.set(xlim=(-0.5, 1.1), ylim=(-0.02, 1.02))
    plots.plot_lyapunov_spectra(spectra, ax=below)
    below.set_title("Lyapunov spectra", loc="left")
    below.set_ylim(-4, 0.2)
    for axes in above, below:
        for line in axes.lines:
            line.set(**STYLES.get(line.get_label(), {}))
        axes.legend()
    return figure


PICTURES = {
    "fixed_points.svg": "Fixed points of four networks in the plane of two "
    "principal components",
    "spectra.svg": "Eigenvalues at stable fixed points, without the conjugate "
    "of each pair, and Lyapunov spectra",
}
SMALLEST = {"names": ("GRU",), "updates": 20, "seeds": (0,)}
