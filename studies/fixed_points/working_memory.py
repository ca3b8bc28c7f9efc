"""How well does a network remember a decision, and what holds it?

The program `examples/working_memory.py` trains a RIN of 24 units and a RateRNN
of 64 units and rank 2, both with ReLU, to hold the sign of noisy evidence for a
delay of 25 to 100 steps. *N steps* is the share of right signs at the end of
500 new trials with that delay, 400 steps being four times as long as any in
training. *Stable* and *unstable* are the fixed points without evidence, and
*proven* in how many networks a search proves that these are all. A cell has the
median (lowest to highest) of five seeds.
"""

import io
import os
import subprocess
import sys
import tempfile

import pandas as pd

from engine import record
from engine.measurement import groups
from engine.measurement import spread
from engine.partial_runs import PartialRuns

EXAMPLE = record.STUDIES.parent / "examples" / "working_memory.py"
DELAYS = ["25 steps", "50 steps", "100 steps", "400 steps"]
COLUMNS = [*DELAYS, "stable", "unstable"]


def measure(partial=None, seeds=range(5), updates=800):
    runs = PartialRuns(partial, ["seed"]).complete(
        [(seed,) for seed in seeds],
        lambda seed: {"rows": rows_of_the_example(seed, updates)},
    )
    return {"runs": [row for run in runs for row in run["rows"]]}


def rows_of_the_example(seed, updates):
    """What the example prints at its end, a dict for each layer."""
    with tempfile.TemporaryDirectory() as folder:
        flags = f"--seed={seed}", f"--updates={updates}", f"--output={folder}"
        printed = subprocess.run(
            [sys.executable, EXAMPLE, *flags],
            check=True,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {"PYTHONPATH": str(record.STUDIES.parent)},
        ).stdout
    lines = [line.strip("| ") for line in printed.splitlines() if "| " in line]
    table = pd.read_csv(
        io.StringIO("\n".join(lines)), sep=r"\s*\|\s*", engine="python"
    )
    no_evidence = [line for line in printed.splitlines() if "no evid" in line]
    proven = ["all of them" in line for line in no_evidence]
    rows = zip(table.to_dict("records"), proven, strict=True)
    return [{"seed": seed, "proven": all_of} | row for row, all_of in rows]


def tables(results):
    rows = []
    for name, runs in groups(results["runs"], "layer").items():
        proven = sum(run["proven"] for run in runs)
        cells = (spread([run[key] for run in runs]) for key in COLUMNS)
        rows.append([name, *cells, f"{proven} of {len(runs)}"])
    header = ["layer", *COLUMNS, "proven"]
    return {"Five seeds": record.markdown(header, rows)}


SMALLEST = {"seeds": (0,), "updates": 2}
