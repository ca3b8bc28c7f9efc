"""Which tests pass with which versions of Python, Keras and the backend.

    python -m tests.reports.versions
    python -m tests.reports.versions --only=keras-3.6

For each row of versions.toml that has no report in RUNS yet, makes an
environment with uv, runs the default tier of the tests, and removes the
environment. Writes to OUTPUT the table of all rows
that have a report. Stopped and started again, it goes on with the next row.
"""

import collections
import os
import pathlib
import shutil
import subprocess
import tempfile
import tomllib

from absl import app
from absl import flags

from experiments import results
from tests.reports import reports

FLAGS = flags.FLAGS
ROOT = pathlib.Path(__file__).parents[2]
ROWS = tomllib.loads(pathlib.Path(__file__).with_suffix(".toml").read_text())
REPORTS = ROOT / "runs" / "versions"  # of pytest
SHOWN = ["keras", "tensorflow", "jax", "numpy"]


def run(name, row, runs):
    """Makes the environment of a row, and its report and list of packages."""
    with tempfile.TemporaryDirectory() as folder:
        python = f"{folder}/bin/python"
        uv = shutil.which("uv") or "uv"
        subprocess.run([uv, "venv", "-p", row["python"], folder], check=True)
        install = [uv, "pip", "install", "--python", python]
        wanted = [f"{ROOT}[{row['backend']},test]", *row["packages"]]
        subprocess.run([*install, *wanted], check=True)
        freeze = [uv, "pip", "freeze", "--python", python]
        packages = subprocess.check_output(freeze, text=True)
        report = runs / f"{name}.new"
        subprocess.run(
            [python, "-m", "pytest", "-n", "2", "-m", "not exhaustive"]
            + [f"--junitxml={report.absolute()}"],
            env={**os.environ, "KERAS_BACKEND": row["backend"]},
            cwd=ROOT,
        )
    (runs / f"{name}.txt").write_text(packages)
    report.replace(runs / f"{name}.xml")


def summary(name, row, runs):
    """The record of one row: its versions, and what its report says."""
    lines = (runs / f"{name}.txt").read_text().splitlines()
    packages = dict(line.split("==") for line in lines if "==" in line)
    outcomes = reports.read(runs / f"{name}.xml")
    kinds = [kind for kind, _ in outcomes.values()]
    skipped = [
        why.split(": ")[-1]  # the cause, not what could not be imported
        for kind, why in outcomes.values()
        if kind == "skipped"
    ]
    failed = [name for name, (kind, _) in outcomes.items() if kind == "failed"]
    return {
        "python": row["python"],
        "versions": {key: packages.get(key, "") for key in SHOWN},
        "passed": kinds.count("passed"),
        "skipped": collections.Counter(sorted(skipped)),
        "failed": sorted(failed),
    }


def tables(record):
    rows = [
        [row["python"], *(row["versions"][key] for key in SHOWN)]
        + [str(row["passed"]), str(len(row["failed"]))]
        + [str(sum(row["skipped"].values()))]
        for row in record["rows"]
    ]
    header = ["Python", "Keras", "TensorFlow", "JAX", "NumPy"]
    header += ["passed", "failed", "skipped"]
    return {
        "table.md": results.markdown(header, rows),
        "skipped.md": _skipped(record["rows"]),
    }


def _skipped(rows):
    """How many tests were skipped in each row, by the reason."""
    names = [
        f"{row['versions']['keras']}{', JAX' if row['versions']['jax'] else ''}"
        for row in rows
    ]
    reasons = dict.fromkeys(why for row in rows for why in row["skipped"])
    lines = [
        [why, *(str(row["skipped"].get(why, "")) for row in rows)]
        for why in reasons
    ]
    header = ["skipped, by Keras and backend", *names]
    return results.markdown(header, lines)


def main(argv):
    if argv[1:]:
        raise app.UsageError(f"Flags begin with --. Received: {argv[1:]}")
    output, runs = results.prepare(FLAGS.output), results.prepare(REPORTS)
    for name, row in ROWS.items():
        if FLAGS.only in ("", name) and not (runs / f"{name}.xml").exists():
            run(name, row, runs)
    done = {n: row for n, row in ROWS.items() if (runs / f"{n}.xml").exists()}
    rows = [summary(name, row, runs) for name, row in done.items()]
    record = {"tables": "tests.reports.versions", "rows": rows}
    results.write(output, record, tables)


if __name__ == "__main__":
    flags.DEFINE_string(
        "output", "docs/results/versions", "Directory of results and tables."
    )
    flags.DEFINE_enum("only", "", ["", *ROWS], "Name of the one row to run.")
    flags.register_validator("output", str.strip, "Name a directory.")
    app.run(main)
