"""Which networks remember events over lengths far beyond those of training?

Each network is trained on 10,000 sequences of 200 steps, in 10 epochs of
batches of 50, with Adam at a constant learning rate and normalized inputs, and
tested on sequences of up to a million steps: 200 of 200 steps, 50 of 10,000, 20
of 100,000 and 10 of 1,000,000. An answer is right if the class is, the signs
are, the sum is within 0.04, or the count is the nearest. The layers have about
as many weights (1,567 to 2,100 with two features; MinGRU(100) has 601, since
more units take minutes). `ResidualRNN` has the defaults of Keras's Adam; the
others have clipped gradients, `global_clipnorm=1.0`, and of the learning rates
0.0001, 0.0003, 0.001 and so on, up to 0.03 or beyond the best, the one with
which seed 100 has the lowest loss at the end of training, task by task.
*Penalty on changes* adds 0.001 times the sum of |h_t - h_(t-1)| over steps and
units to their loss. States are those of 20 sequences of 400 steps, every tenth;
`diagnostics.holds` looks at all inputs without an event, between 0 and 1 in
channel 0 and 0 in the others. Seconds are those of the processor, beside other
work.
"""

import time

import keras
import numpy as np
from events.tasks import TASKS

from engine import record
from engine.measurement import Variant
from engine.measurement import groups
from engine.measurement import spread
from engine.partial_runs import PartialRuns
from keras_rin import diagnostics
from keras_rin.layers import RIN
from keras_rin.layers import MinGRU
from keras_rin.layers import ResidualRNN


def identity_rnn():
    return keras.layers.SimpleRNN(
        42, activation="relu", recurrent_initializer="identity"
    )


LAYERS = {
    "ResidualRNN": lambda: ResidualRNN(16, 50),
    "ResidualRNN, no penalty": lambda: ResidualRNN(16, 50, penalty=0.0),
    "ResidualRNN, no margin": lambda: ResidualRNN(16, 50, margin=0.0),
    "RIN": lambda: RIN(42),
    "IRNN": identity_rnn,
    "GRU": lambda: keras.layers.GRU(23),
    "LSTM": lambda: keras.layers.LSTM(20),
    "MinGRU": lambda: MinGRU(100),
}
CHANGES, PENALTY = ", penalty on changes", 1e-3
FIXED = tuple(LAYERS)[:3]  # at 0.001, without clipping
RATES = (1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1, 3e-1)
FEWEST = 6  # and higher ones while the highest is the best
TESTS = {200: 200, 10_000: 50, 100_000: 20, 1_000_000: 10}
SAMPLES, LENGTH, BATCH, EPOCHS = 10_000, 200, 50, 10
RATE_SEED = 100


EASY, HARDER = tuple(TASKS)[:8], tuple(TASKS)[8:]


def measure(
    tasks=EASY,
    layers=("ResidualRNN",),
    seeds=3,
    tests=TESTS,
    samples=SAMPLES,
    partial=None,
):
    runs = PartialRuns(partial, ("task", "layer", "seed", "rate"))

    def make(task, layer, seed, rate):
        return run(task, layer, seed, rate, tests, samples)

    rates = {
        (task, layer): best_rate(task, layer, runs, make)
        for layer in layers
        for task in tasks
    }
    keys = [
        (*case, seed, rate)
        for seed in range(seeds)
        for case, rate in rates.items()
    ]
    return {"runs": runs.complete(keys, make)}


def best_rate(task, layer, runs, make):
    if layer in FIXED:
        return 1e-3
    for count in range(FEWEST, len(RATES) + 1):
        rates = RATES[:count]
        tried = runs.complete(
            [(task, layer, RATE_SEED, r) for r in rates], make
        )
        losses = [np.nan_to_num(run["loss"], nan=np.inf) for run in tried]
        best = rates[int(np.argmin(losses))]
        if best < rates[-1]:
            break
    return best


def run(task, layer, seed, rate, tests, samples):
    keras.utils.set_random_seed(seed)
    rng, problem = np.random.default_rng(seed), TASKS[task]
    x, y = problem.generate(rng, samples, LENGTH)
    normalization = keras.layers.Normalization()
    normalization.adapt(x)
    recurrent = LAYERS[layer.removesuffix(CHANGES)]()
    read_out = keras.layers.Dense(problem.outputs)
    before = [keras.Input((None, problem.features)), normalization]
    model = trained = keras.Sequential([*before, recurrent, read_out])
    if layer.endswith(CHANGES):
        states = keras.layers.RNN(recurrent.cell, return_sequences=True)
        trained = keras.Sequential([*before, states, LastState(), read_out])
    clipping = {} if layer in FIXED else {"global_clipnorm": 1.0}
    optimizer = keras.optimizers.Adam(rate, **clipping)
    trained.compile(optimizer, problem.loss)
    begin = time.process_time()
    history = trained.fit(x, y, batch_size=BATCH, epochs=EPOCHS, verbose=0)
    seconds = time.process_time() - begin
    outcome = {
        "loss": history.history["loss"][-1],
        "weights": model.count_params() - 2 * problem.features - 1,
        "seconds": seconds,
    }
    if seed == RATE_SEED:
        return outcome
    outcome["right"] = {
        length: share_right(model, problem, length, sequences)
        for length, sequences in tests.items()
    }
    if isinstance(recurrent, ResidualRNN):
        outcome |= proved(problem, normalization, recurrent)
    return outcome


class LastState(keras.layers.Layer):
    """The last hidden state; the loss gets how much all of them change."""

    def call(self, states):
        changes = keras.ops.abs(states[:, 1:] - states[:, :-1])
        sums = keras.ops.sum(changes, axis=(1, 2))
        self.add_loss(PENALTY * keras.ops.mean(sums))
        return states[:, -1]


def share_right(model, problem, length, sequences):
    x, y = problem.generate(np.random.default_rng(length), sequences, length)
    outputs = model.predict(x, batch_size=10, verbose=0)
    return float(problem.is_right(y, outputs).mean())


def proved(problem, normalization, layer):
    """What holds for every tenth state along sequences of 400 steps."""
    x, _ = problem.generate(np.random.default_rng(0), 20, 400)
    x = keras.ops.convert_to_numpy(normalization(x))
    states = diagnostics.state_trajectories(layer, x)[:, ::10]
    box = np.zeros((2, 1, problem.features), "float32")
    box[1, 0, 0] = 1.0
    box = keras.ops.convert_to_numpy(normalization(box))
    low, high = box[:, 0]
    proof = diagnostics.holds(
        layer, states.reshape(-1, states.shape[-1]), low, high
    )
    return {
        "held": float(proof.holds.mean()),
        "margin": float(proof.margin.min()),
    }


def tables(results):
    rows = []
    for (task, layer), runs in groups(results["runs"], "task", "layer").items():
        cells = [
            spread([run["right"][length] for run in runs])
            for length in runs[0]["right"]
        ]
        held = [run["held"] for run in runs if "held" in run]
        seconds = spread([run["seconds"] for run in runs], 2)
        rate = f"{runs[0]['rate']:g}"
        rows.append(
            [task, layer, rate, len(runs), *cells]
            + [spread(held) if held else "", seconds]
        )
    lengths = [f"{int(length):,}" for length in runs[0]["right"]]
    header = ["task", "layer", "rate", "seeds", *lengths, "states that hold"]
    caption = (
        "Share of right answers over the length of the test sequences, and of "
        "states that hold (median, lowest to highest of the seeds)"
    )
    return {caption: record.markdown([*header, "seconds"], rows, words=2)}


OTHERS = {"seeds": 3, "tasks": ("adding", "counting")}
VARIANTS = {
    "": Variant("ResidualRNN", backend="jax"),
    "harder": Variant("Harder events", {"tasks": HARDER}, "jax"),
    "parts": Variant(
        "Without penalty, without margin",
        {"layers": FIXED[1:], "tasks": ("adding", "order of two")}
        | {"seeds": 5},
        "jax",
    ),
    "others": Variant(
        "Other layers",
        {"layers": ("RIN", "IRNN", "GRU", "LSTM"), **OTHERS},
        "jax",
    ),
    "changes": Variant(
        "A penalty on changes",
        {"layers": ("RIN" + CHANGES, "GRU" + CHANGES), **OTHERS},
        "jax",
    ),
    "min_gru": Variant("MinGRU", {"layers": ("MinGRU",), **OTHERS}, "jax"),
}
SMALLEST = {
    "tasks": ("adding", "order of two"),
    "layers": ("ResidualRNN", "GRU" + CHANGES),
    "seeds": 1,
    "tests": {10: 4},
    "samples": 100,
}
