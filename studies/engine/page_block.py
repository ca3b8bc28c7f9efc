"""The Python block of a page, run as it stands with another seed."""

import json
import os
import pathlib
import re
import resource
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).parents[2]


def code_of(page, seed, replaced=()):
    """The first block of a page, with a seed in place of 0 and other changes.

    A text that is to be replaced and is not there is an error.
    """
    text = (ROOT / page).read_text()
    code = re.findall(r"^```python\n(.*?)^```$", text, re.M | re.S)[0]
    seeds = {"seed(0)": f"seed({seed})", "rng(0)": f"rng({seed})"}
    for before, after in (seeds | dict(replaced)).items():
        if before not in code:
            raise ValueError(f"The block of {page} has no {before}.")
        code = code.replace(before, after)
    return code


def run(code, backend):
    """What the last line of the output is as JSON, and seconds of processor."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "KERAS_BACKEND": backend, "MPLBACKEND": "agg"},
            cwd=folder,
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    printed = json.loads(done.stdout.splitlines()[-1])
    return printed, after.ru_utime - before.ru_utime
