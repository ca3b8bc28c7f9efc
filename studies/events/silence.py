"""Why is a residual unit in time right at a million steps?

A ResidualRNN(16, 50) with Keras's Adam and a RIN(50) with the first rung of
`short_then_longer` are trained on 200 steps of the adding problem. The marks of
a test sequence are in its first 200 steps: after these an answer should not
change. The raster has the inner units that are active along another sequence of
200 steps.
"""

import keras
import numpy as np
from short_then_longer import ladder

from engine import pictures
from engine import record
from keras_rin.diagnostics import state_trajectories
from keras_rin.layers import ResidualRNN
from keras_rin.tasks import adding

STEPS = 200
LENGTHS = (200, 1_000, 10_000, 100_000, 1_000_000)
COLORS = {"ResidualRNN": "#cc6677", "RIN": "#332288"}


def measure(samples=10_000, lengths=LENGTHS, sequences=8, updates=2_000):
    rng = np.random.default_rng(0)
    x, y = adding.generate(rng, samples, STEPS)
    residual = residual_network(x, y)
    rungs = ((STEPS, 50, updates, 3e-3),)
    ((rin, _, _),) = ladder.climb("RIN", 0, rungs)
    x, y = adding.generate(rng, sequences, STEPS)
    errors = {
        name: [errors_over(model, x, y, length) for length in lengths]
        for name, model in (("ResidualRNN", residual), ("RIN", rin))
    }
    apart = np.ptp(np.argwhere(x[..., 1])[:, 1].reshape(-1, 2), axis=1)
    farthest = x[apart.argmax()][None]
    return {"lengths": lengths, "errors": errors, **raster(residual, farthest)}


def residual_network(x, y):
    keras.utils.set_random_seed(0)
    normalization = keras.layers.Normalization()
    normalization.adapt(x)
    layers = [ResidualRNN(16, 50), keras.layers.Dense(1)]
    inputs = keras.Input((None, 2))
    model = keras.Sequential([inputs, normalization, *layers])
    model.compile("adam", "mse")
    model.fit(x, y, batch_size=50, epochs=10, verbose=0)
    return model


def errors_over(model, x, y, length):
    """The errors of sequences that go on without a mark."""
    rng = np.random.default_rng(length)
    longer = np.zeros((len(x), length, 2), "float32")
    longer[..., 0] = rng.random((len(x), length))
    longer[:, : x.shape[1]] = x
    outputs = model.predict(longer, batch_size=len(x), verbose=0)
    return (outputs - y)[:, 0].tolist()


def raster(model, x):
    """The arguments above 0 along a sequence, by unit, and its marks."""
    _, layer, _ = model.layers
    inputs = keras.ops.convert_to_numpy(model.layers[0](x))
    states = state_trajectories(layer, inputs)[0, :-1]
    kernel, recurrent, _, bias = layer.get_weights()
    arguments = inputs[0] @ kernel + states @ recurrent + bias
    steps, units = np.nonzero(arguments > 0)
    return {
        "steps": steps.tolist(),
        "units": units.tolist(),
        "marks": np.flatnonzero(x[0, :, 1]).tolist(),
        "inner_units": len(bias),
    }


def figure(results):
    """Left, inner units that are active along a sequence of 200 steps, with the
    marked steps dotted; right, errors of eight sequences without a mark after
    step 200.
    """
    figure, (left, right) = pictures.subplots(9.6, 3.6, 1, 2)
    for mark in results["marks"]:
        left.axvline(mark, color="grey", linestyle=":", linewidth=1)
    left.plot(
        *(results["steps"], results["units"], "o"),
        **{"color": COLORS["ResidualRNN"], "markersize": 4},
    )
    left.set(xlabel="time step", ylabel="inner unit", xlim=(-5, STEPS + 5))
    left.set_ylim(-1, results["inner_units"])
    left.set_title("Active at the two events alone", loc="left")
    for name, errors in results["errors"].items():
        for number, line in enumerate(np.transpose(errors)):
            label = None if number else name
            right.plot(
                *(results["lengths"], np.clip(line, -2, 2), "o-"),
                **{"color": COLORS[name], "label": label},
                **{"markersize": 3, "linewidth": 1, "alpha": 0.7},
            )
    right.set(xscale="log", xlabel="time steps", ylabel="error (at most 2)")
    right.set_title("After training on 200 steps", loc="left")
    right.legend()
    return figure


def tables(results):
    rows = [
        [name, *(f"{np.abs(e).max():.2g}" for e in errors)]
        for name, errors in results["errors"].items()
    ]
    header = ["layer", *(f"{length:,} steps" for length in results["lengths"])]
    active = len(results["steps"])
    inner = f"{active} of {STEPS * results['inner_units']:,}"
    return {
        "Largest error of the sequences": record.markdown(header, rows),
        "Active inner units, over all steps of a sequence": record.markdown(
            ["layer", "active"], [["ResidualRNN", inner]]
        ),
    }


PICTURES = {"silence.svg": figure}
SMALLEST = {"samples": 100, "lengths": (200, 210), "updates": 2}
