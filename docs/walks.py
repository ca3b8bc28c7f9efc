"""Counts the files that ten jobs walk through, for the page on architecture.

    python docs/walks.py

A file counts if a function of it is called. Functions of classes that are made
before, and checks of arguments, do not. Writes the table into architecture.md.
"""

import pathlib
import re
import sys
import tempfile

import keras
import numpy as np

import keras_rin
from keras_rin import diagnostics
from keras_rin import export
from keras_rin import recordings
from keras_rin.layers import RIN

PACKAGE = pathlib.Path(keras_rin.__file__).parent
PAGE = pathlib.Path(__file__).with_name("architecture.md")
OF_ALL = {"_arguments.py", "_extras.py"}
HEAD = "| job | files of the package |\n|---|---|\n"


def files(job):
    """The files of the functions that a job calls."""
    codes = set()

    def follow(frame, event, _):
        if event == "call":
            codes.add(frame.f_code)

    sys.setprofile(follow)
    try:
        job()
    finally:
        sys.setprofile(None)
    paths = {
        pathlib.Path(code.co_filename)
        for code in codes
        if code.co_name != "<module>"
    }
    return sorted(
        str(path.relative_to(PACKAGE))
        for path in paths
        if PACKAGE in path.parents and path.name not in OF_ALL
    )


def jobs(folder):
    """Ten jobs by their names."""
    keras.utils.set_random_seed(0)
    x = np.random.default_rng(0).normal(size=(4, 20, 2))
    counts = np.round(100 * x)
    rin = RIN(8, return_sequences=True)
    model = keras.Sequential(
        [keras.Input((None, 2)), rin, keras.layers.Dense(1)]
    )
    model.compile("adam", "mse")
    data = {"x": x.tolist(), "y": [0, 1, 0, 1]}
    return {
        "`model.fit`": lambda: model.fit(x, x[..., :1], verbose=0),
        "`adapt`": lambda: keras_rin.adapt(model, x),
        "`preflight`": lambda: diagnostics.preflight(model, x, x[..., :1]),
        "`lyapunov_spectrum`": lambda: diagnostics.lyapunov_spectrum(rin, x),
        "`fixed_points`": lambda: diagnostics.fixed_points(rin, complete=True),
        "`cycles`": lambda: diagnostics.cycles(rin, 2),
        "`export_saved_model`": lambda: export.export_saved_model(
            model, folder / "saved"
        ),
        "`export_c`": lambda: export.export_c(model, folder / "floats.h"),
        "`export_c` in integers": lambda: export.export_c(
            model, folder / "integers.h", "integer", counts
        ),
        "`recordings.read`": lambda: recordings.read(data, label="y"),
    }


def table():
    with tempfile.TemporaryDirectory() as name:
        walks = {
            name: files(job) for name, job in jobs(pathlib.Path(name)).items()
        }
    for name, walk in walks.items():
        print(name, *walk)
    rows = (f"| {name} | {len(walk)} |\n" for name, walk in walks.items())
    return HEAD + "".join(rows)


if __name__ == "__main__":
    text = PAGE.read_text()
    PAGE.write_text(re.sub(re.escape(HEAD) + r"(\|.*\n)*", table(), text))
