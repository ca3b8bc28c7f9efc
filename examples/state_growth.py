"""What does a recurrent network do with long sequences before any training?

    python examples/state_growth.py
    python examples/state_growth.py --length=10 --length=100 --seed=0

On sequences of the adding problem, whose inputs lie in [0, 1], draws the norm
of the hidden state over time, and over the sequence length the loss and the
norm of its gradient at update 0. Each initialization is drawn once a seed.
"""

import statistics

import keras
import numpy as np
import outputs
import tensorflow as tf
from absl import app
from absl import flags
from absl import logging
from matplotlib.figure import Figure

import keras_rin
from keras_rin.diagnostics import state_norms
from keras_rin.initializers import Offset
from keras_rin.initializers import PartialIdentity
from keras_rin.layers import RIN
from keras_rin.tasks import adding

STYLES = ["-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (1, 3))]

FLAGS = flags.FLAGS


def build(layer):
    return keras.Sequential(
        [keras.Input((None, 2)), layer, keras.layers.Dense(1)]
    )


def default(units, x):
    del x
    return build(RIN(units))


def adapted(units, x):
    model = build(RIN(units))
    keras_rin.adapt(model, x)
    return model


def adapted_without_noise(units, x):
    model = build(RIN(units, recurrent_initializer="zeros"))
    keras_rin.adapt(model, x)
    return model


def scaled(units, x):
    """The same, W divided by the root of the length, the read-out by it."""
    model, length = adapted_without_noise(units, x), x.shape[1]
    kernel, (read_out, _) = model.layers[0].cell.kernel, model.layers[1].weights
    kernel.assign(kernel / length**0.5)
    read_out.assign(read_out / length)
    model.layers[0].adapt(x)
    return model


def partial_identity(units, x):
    del x
    return build(RIN(units, recurrent_initializer=Offset(PartialIdentity())))


def gru(units, x):
    del x
    return build(keras.layers.GRU(units))


MODELS = {
    "RIN": default,
    "RIN, adapted": adapted,
    "RIN, adapted, U = 0": adapted_without_noise,
    "RIN, adapted, U = 0, scaled": scaled,
    "RIN, normalized, partial identity": partial_identity,
    "GRU": gru,
}


def measure(name, length, seed):
    """State norms, loss over the baseline, and the norm of the gradient."""
    keras.utils.set_random_seed(seed)
    x, y = adding.generate(np.random.default_rng(seed), 50, length)
    if "normalized" in name:
        x = (x - x.mean(axis=(0, 1))) / x.std(axis=(0, 1))
    model = MODELS[name](FLAGS.units, x)
    norms = state_norms(model.layers[0], x)
    weights = [weight.value for weight in model.trainable_weights]

    @tf.function
    def loss_and_gradient():
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((model(x, training=True) - y) ** 2)
        return loss, tf.linalg.global_norm(tape.gradient(loss, weights))

    loss, gradient_norm = loss_and_gradient()
    return {
        "model": name,
        "length": length,
        "seed": seed,
        "loss": float(loss) / adding.baseline_loss(),
        "gradient_norm": float(gradient_norm),
        "state_norms": norms[1 :: max(1, length // 100)].tolist(),
    }


def tables(record):
    """Median over the seeds, lowest to highest, at some of the lengths."""
    lengths = sorted({run["length"] for run in record["runs"]})
    lengths = [n for n in lengths if n in (10, 100, 1_000, 10_000)] or lengths
    made = {}
    for key in ("loss", "gradient_norm"):
        rows = [
            [name, *(_spread(record["runs"], name, n, key) for n in lengths)]
            for name in MODELS
        ]
        header = ["model", *(f"{length:,} steps" for length in lengths)]
        made[f"{key}.md"] = outputs.markdown(header, rows)
    return made


def _values(runs, name, length, key):
    return [
        run[key]
        for run in runs
        if (run["model"], run["length"]) == (name, length)
    ]


def _spread(*which):
    values = _values(*which)
    low, high = min(values), max(values)
    return f"{statistics.median(values):.2g} ({low:.2g} to {high:.2g})"


def draw(runs):
    """State norms over time, then loss and gradient norm over the length."""
    lengths = sorted({run["length"] for run in runs})
    shown = min(1_000, lengths[-1]) if 1_000 in lengths else lengths[-1]
    figure = Figure(figsize=(11, 4.2), layout="constrained")
    states, *others = figure.subplots(1, 3)
    for name, style in zip(MODELS, STYLES, strict=True):
        norms = np.median(_values(runs, name, shown, "state_norms"), axis=0)
        time = 1 + np.arange(len(norms)) * max(1, shown // 100)
        states.loglog(time, norms, linestyle=style, label=name)
        for axes, key in zip(others, ("loss", "gradient_norm"), strict=True):
            middle = [
                statistics.median(_values(runs, name, length, key))
                for length in lengths
            ]
            axes.loglog(lengths, middle, linestyle=style, marker=".")
    states.set(xlabel="time step", ylabel="norm of the hidden state")
    others[0].set(xlabel="sequence length", ylabel="loss / baseline loss")
    others[1].set(xlabel="sequence length", ylabel="gradient norm")
    figure.legend(loc="outside upper center", ncols=3, fontsize="small")
    return figure


def main(argv):
    del argv
    logging.set_verbosity(logging.ERROR)
    output = outputs.prepare(FLAGS.output)
    lengths, seeds = FLAGS.length, FLAGS.seed
    if FLAGS.smoke:
        lengths, seeds = [5], seeds[:1]
    runs = [
        measure(name, length, seed)
        for length in lengths
        for name in MODELS
        for seed in seeds
    ]
    record = {"tables": "state_growth", "runs": runs}
    outputs.write(output, record, tables)
    outputs.save_picture(draw(runs), output / "state_growth.png")


if __name__ == "__main__":
    flags.DEFINE_string("output", "runs/state_growth", "Where to write.")
    flags.DEFINE_multi_integer(
        "length", [10, 30, 100, 300, 1_000, 3_000, 10_000], "Sequence lengths."
    )
    flags.DEFINE_integer("units", 50, "Units of each layer.", lower_bound=1)
    flags.DEFINE_multi_integer("seed", [0, 1, 2, 3, 4], "One run for each.")
    flags.DEFINE_bool(
        "smoke", False, "One short length, one seed: does it run?"
    )
    app.run(main)
