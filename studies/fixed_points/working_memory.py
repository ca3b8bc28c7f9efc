"""What do three networks remember a stimulus with, seed by seed?

The program `examples/working_memory.py` trains a RIN, a SimpleRNN and a RateRNN
on delays of 10 to 20 steps. *Correct* is the share of right answers in 1,000
new trials with such delays, *after 100 steps* in 60 trials with that delay,
whose fixed points are counted. A guess between match and no match is right in
half of the trials, a network that gives neither answer in none. A cell has the
median (lowest to highest) of five seeds.
"""

import io
import os
import subprocess
import sys
import tempfile

import pandas as pd
from tqdm import tqdm

from engine import record
from engine.measurement import groups
from engine.measurement import spread

EXAMPLE = record.STUDIES.parent / "examples" / "working_memory.py"
COLUMNS = ["correct", "after 100 steps", "stable", "unstable"]


def measure(seeds=range(5), updates=3_000):
    runs = []
    for seed in tqdm(seeds):
        runs += rows_of_the_example(seed, updates)
    return {"runs": runs}


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
    return [{"seed": seed} | row for row in table.to_dict("records")]


def tables(results):
    rows = [
        [name, *(spread([run[key] for run in runs]) for key in COLUMNS)]
        for name, runs in groups(results["runs"], "layer").items()
    ]
    return {"Five seeds": record.markdown(["layer", *COLUMNS], rows)}


SMALLEST = {"seeds": (0,), "updates": 2}
