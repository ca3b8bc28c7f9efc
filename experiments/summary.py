"""The table of results in the README, from stored results.

python -m experiments.summary
"""

import collections
import statistics

from experiments import pages
from experiments import protocols
from experiments import results
from experiments import verdicts
from experiments.results import RESULTS

CLAIMS = RESULTS / "claims"


def table():
    rows = [
        ["claims", _verdicts()],
        ["adding problem, 1,000 time steps", _long()],
        ["training step time", _ratios()],
        ["LiteRT file size", _smallest()],
    ]
    return results.markdown(["", "result"], rows, words=2)


def _verdicts():
    counts = collections.Counter(
        verdict
        for name, protocol in protocols.read_all().items()
        for _, verdict, _ in pages.tested(name, protocol, CLAIMS)
    )
    del counts[pages.UNTESTED]
    told = ", ".join(f"{verdict} {n}" for verdict, n in counts.most_common())
    return f"{counts.total()} tested: {told}"


def _long():
    """Of sequences of 1,000 steps, at the best learning rate."""
    record = results.read(CLAIMS / "adding_long")
    models = verdicts.outcomes(record["protocol"], record["runs"])
    (outcome,) = (m for k, m in models.items() if dict(k)["length"] == 1_000)
    solved, count = verdicts.solved(outcome.best), len(outcome.best)
    return (
        f"RIN with 50 units: {solved} of {count} runs solve it, median loss "
        f"{outcome.median:.2g} of the baseline"
    )


def _ratios():
    times = {
        record["contender"]: statistics.median(record["ms"])
        for record in results.read(RESULTS / "step_time")["records"]
        if record["size"] == [32, 784, 1, 100] and record["mode"] == "training"
    }
    told = [
        f"{times['RIN'] / times[name]:.2f} x {name}"
        for name in ("SimpleRNN", "LSTM")
    ]
    return "RIN: " + ", ".join(told) + " (batch 32, 784 steps, 100 units)"


def _smallest():
    found = {
        r["format"]: r for r in results.read(RESULTS / "exports")["records"]
    }
    plain, small = found["LiteRT"], found["LiteRT, int8 weights"]
    return (
        f"{plain['bytes'] / 1000:.0f} kB (accuracy {plain['accuracy']:.1%} on "
        f"digits), with int8 weights {small['bytes'] / 1000:.0f} kB "
        f"({small['accuracy']:.1%})"
    )


if __name__ == "__main__":
    results.save_text(table(), RESULTS / "summary.md")
