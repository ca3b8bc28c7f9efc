"""The table of results in the README, from stored results.

python -m experiments.summary
"""

import statistics

from experiments import protocols
from experiments import results
from experiments import verdicts
from experiments.results import RESULTS


def table():
    rows = [
        ["speed", _speed()],
        ["long sequences", _adding()],
        ["memory in noise", _decoding()],
        ["one step at a time", _device()],
        ["interrupted training", _kills()],
    ]
    return results.markdown(["", "result"], rows, words=2)


def _speed():
    size = [32, 784, 1, 100]
    ms = {
        record["contender"]: statistics.median(record["ms"])
        for record in results.read(RESULTS / "step_time")["records"]
        if record["size"] == size and record["mode"] == "training"
    }
    times = {name: ms[name] / ms["RIN"] for name in ms}
    return (
        f"a training step of `RIN` is {times['SimpleRNN']:.1f} times as fast "
        f"as one of `SimpleRNN` and {times['LSTM']:.1f} times as fast as one "
        f"of `LSTM`, with Keras's defaults; {times['SimpleRNN, XLA']:.1f} and "
        f"{times['LSTM, XLA']:.1f} times if these are compiled with XLA (batch "
        f"{size[0]}, {size[1]} steps, {size[3]} units each, TensorFlow on a "
        f"CPU)"
    )


def _adding(length=1_000, longest=5_000):
    """With the network of docs/long_sequences.md, at its best rates."""
    runs = _best("adding_long", length)
    longer = _best("adding_longer", longest)
    (solved, loss), (solved_longer, loss_longer) = map(_solved, (runs, longer))
    return (
        f"with normalized inputs, partial identity initialization and a small "
        f"learning rate for U, `RIN` with {runs[0]['units']} units solves the "
        f"adding problem over {length:,} steps with {solved} (median loss "
        f"{loss} of a constant predictor's); trained on "
        f"{longer[0]['train_length']} steps, it solves {longest:,} with "
        f"{solved_longer} ({loss_longer})"
    )


def _best(name, length, layer="RIN, partial identity"):
    """The runs of a layer at its best learning rate."""
    study = verdicts.Study(
        protocols.read(protocols.FOLDER / f"{name}.toml"),
        results.read(RESULTS / "claims" / name),
    )
    (found,) = (
        outcome.best
        for outcome in study.outcomes.values()
        if outcome.best[0].items() >= {"layer": layer, "length": length}.items()
    )
    return found


def _solved(runs):
    """How many seeds, and the median loss, in words."""
    loss = statistics.median(verdicts.normalized(run, "test") for run in runs)
    return f"{verdicts.solved(runs)} of {len(runs)} seeds", f"{loss:.1%}"


def _decoding():
    scores = {}
    for network in results.read(RESULTS / "memory_curves")["networks"]:
        score = network["accuracy"]["linear, noise"]
        scores.setdefault(network["network"], []).append(score)
    chain, orthogonal = (
        statistics.median(scores[name]) for name in ("chain", "orthogonal")
    )
    return (
        f"the first of 100 inputs is decoded from a noisy hidden state with "
        f"R² {chain:.2f} with chain initialization, {orthogonal:.2f} with "
        f"orthogonal (100 linear units)"
    )


def _device():
    found = {
        r["format"]: r for r in results.read(RESULTS / "exports")["records"]
    }
    plain, small = found["LiteRT"], found["LiteRT, int8 weights"]
    median, *_ = results.read(RESULTS / "stream_pixels")["percentiles"]
    return (
        f"median {median:.0f} µs a step on a CPU, from a LiteRT file of "
        f"{plain['bytes'] / 1000:.0f} kB; {small['bytes'] / 1000:.0f} kB with "
        f"int8 weights (accuracy on 360 digits {small['accuracy']:.1%} "
        f"instead of {plain['accuracy']:.1%})"
    )


def _kills():
    passed = results.read(RESULTS / "robustness")["passed"]
    return (
        f"resumes to the same weights, bit for bit, after "
        f"{passed['test_a_killed_training_goes_on_bit_for_bit']} kills "
        f"and disk faults and with {passed['test_resumed_is_uninterrupted']} "
        f"optimizers"
    )


if __name__ == "__main__":
    results.save_text(table(), RESULTS / "summary.md")
