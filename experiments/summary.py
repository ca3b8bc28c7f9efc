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
    return (
        f"`RIN` trains {ms['SimpleRNN'] / ms['RIN']:.1f} times faster than "
        f"`SimpleRNN` and {ms['LSTM'] / ms['RIN']:.1f} times faster than "
        f"`LSTM` (batch {size[0]}, {size[1]} steps, {size[3]} units each, "
        f"TensorFlow on a CPU)"
    )


def _adding(length=1_000, rate=0.003, longest=5_000):
    """With the code of docs/long_sequences.md, at its learning rate."""
    runs = [
        run
        for run in results.read(RESULTS / "claims" / "adding_long")["runs"]
        if (run["length"], run["learning_rate"]) == (length, rate)
    ]
    (longer,) = (
        outcome.best
        for model, outcome in verdicts.Study(
            protocols.read(protocols.FOLDER / "adding_longer.toml"),
            results.read(RESULTS / "claims" / "adding_longer"),
        ).outcomes.items()
        if {("layer", runs[0]["layer"]), ("length", longest)} <= set(model)
    )
    (solved, loss), (solved_longer, loss_longer) = map(_solved, (runs, longer))
    return (
        f"`RIN` with {runs[0]['units']} units solves the adding problem over "
        f"{length:,} steps with {solved} (median loss {loss} of a constant "
        f"predictor's); trained on {longer[0]['train_length']} steps, it "
        f"solves {longest:,} with {solved_longer} ({loss_longer})"
    )


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
        f"int8 weights (accuracy {small['accuracy']:.1%} instead of "
        f"{plain['accuracy']:.1%})"
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
