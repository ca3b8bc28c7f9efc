"""The numbers of the README, from stored results.

python -m benchmarks.summary
"""

import collections
import statistics

from benchmarks.claims import records
from benchmarks.claims import tables
from benchmarks.claims import verdicts
from benchmarks.claims import wanted
from benchmarks.claims.records import RESULTS
from examples import outputs


def table():
    rows = [
        ["claims", _verdicts()],
        ["adding over 1,000 time steps", _long()],
        ["time of a training step", _ratios()],
        ["size of a LiteRT file", _smallest()],
    ]
    return outputs.markdown(["", "measured"], rows, words=2)


def _verdicts():
    counts = collections.Counter(
        verdict
        for name, protocol in wanted.protocols().items()
        for _, verdict, _ in tables.tested(name, protocol, RESULTS / "claims")
    )
    del counts[tables.UNTESTED]
    told = ", ".join(f"{verdict} {n}" for verdict, n in counts.most_common())
    return f"{counts.total()} tested: {told}"


def _long():
    """At the best learning rate of the longest sequences."""
    record = records.read(RESULTS / "claims" / "adding_long")
    contenders = verdicts.outcomes(record["protocol"], record["runs"])
    longest = max(contenders, key=lambda one: dict(one)["length"])
    outcome = contenders[longest]
    solved, count = verdicts.learned(outcome.best), len(outcome.best)
    return (
        f"{solved} of {count} runs of a RIN of 50 units solve it, loss "
        f"{outcome.median:.2g} of the baseline"
    )


def _ratios():
    times = {
        record["contender"]: statistics.median(record["ms"])
        for record in records.read(RESULTS / "step_time")["records"]
        if record["size"] == [32, 784, 1, 100] and record["mode"] == "training"
    }
    told = [
        f"{times['RIN'] / times[name]:.2f} of {name}'s"
        for name in ("SimpleRNN", "LSTM")
    ]
    return ", ".join(told) + ": 32 sequences of 784 steps, 100 units"


def _smallest():
    found = {
        r["format"]: r for r in records.read(RESULTS / "exports")["records"]
    }
    plain, small = found["LiteRT"], found["LiteRT, int8 weights"]
    return (
        f"{plain['bytes'] / 1000:.0f} kB ({plain['accuracy']:.1%} of digits "
        f"right), with int8 weights {small['bytes'] / 1000:.0f} kB "
        f"({small['accuracy']:.1%})"
    )


if __name__ == "__main__":
    outputs.save_text(table(), RESULTS / "summary.md")
