"""The table of results in the README, from stored results.

python -m benchmarks.summary
"""

import collections
import statistics

from benchmarks.claims import pages
from benchmarks.claims import records
from benchmarks.claims import verdicts
from benchmarks.claims import wanted
from benchmarks.claims.records import RESULTS
from examples import outputs


def table():
    rows = [
        ["claims", _verdicts()],
        ["adding problem, 1,000 time steps", _long()],
        ["training step time", _ratios()],
        ["LiteRT file size", _smallest()],
    ]
    return outputs.markdown(["", "result"], rows, words=2)


def _verdicts():
    counts = collections.Counter(
        verdict
        for name, protocol in wanted.protocols().items()
        for _, verdict, _ in pages.tested(name, protocol, RESULTS / "claims")
    )
    del counts[pages.UNTESTED]
    told = ", ".join(f"{verdict} {n}" for verdict, n in counts.most_common())
    return f"{counts.total()} tested: {told}"


def _long():
    """Of the longest sequences, at the best learning rate."""
    record = records.read(RESULTS / "claims" / "adding_long")
    models = verdicts.outcomes(record["protocol"], record["runs"])
    outcome = models[max(models, key=lambda model: dict(model)["length"])]
    solved, count = verdicts.solved(outcome.best), len(outcome.best)
    return (
        f"RIN with 50 units: {solved} of {count} runs solve it, median loss "
        f"{outcome.median:.2g} of the baseline"
    )


def _ratios():
    times = {
        record["contender"]: statistics.median(record["ms"])
        for record in records.read(RESULTS / "step_time")["records"]
        if record["size"] == [32, 784, 1, 100] and record["mode"] == "training"
    }
    told = [
        f"{times['RIN'] / times[name]:.2f} x {name}"
        for name in ("SimpleRNN", "LSTM")
    ]
    return "RIN: " + ", ".join(told) + " (batch 32, 784 steps, 100 units)"


def _smallest():
    found = {
        r["format"]: r for r in records.read(RESULTS / "exports")["records"]
    }
    plain, small = found["LiteRT"], found["LiteRT, int8 weights"]
    return (
        f"{plain['bytes'] / 1000:.0f} kB (accuracy {plain['accuracy']:.1%} on "
        f"digits), with int8 weights {small['bytes'] / 1000:.0f} kB "
        f"({small['accuracy']:.1%})"
    )


if __name__ == "__main__":
    outputs.save_text(table(), RESULTS / "summary.md")
