"""With which versions of Python, Keras and the backend do the tests pass?

For each environment of `environments.toml` that has no report in
`runs/versions` yet, uv makes the environment, and the default tier of the
tests runs in it. pip chooses the versions that are not fixed there. Stopped
and started again, it goes on with the next environment.
"""

import collections
import os
import pathlib
import shutil
import subprocess
import tempfile
import tomllib

from engine import record
from engine import reports

ROOT = record.STUDIES.parent
ENVIRONMENTS = tomllib.loads(
    pathlib.Path(__file__).with_name("environments.toml").read_text()
)
PACKAGES = {"keras": "Keras", "tensorflow": "TensorFlow"}
PACKAGES |= {"jax": "JAX", "numpy": "NumPy"}


def run_tests(name, environment, folder):
    """Writes the report of an environment, and the list of its packages."""
    with tempfile.TemporaryDirectory() as temporary:
        python = f"{temporary}/bin/python"
        uv = shutil.which("uv") or "uv"
        version = environment["python"]
        subprocess.run([uv, "venv", "-p", version, temporary], check=True)
        subprocess.run(
            [uv, "pip", "install", "--python", python]
            + [f"{ROOT}[{environment['backend']},test]"]
            + environment["packages"],
            check=True,
        )
        packages = subprocess.check_output(
            [uv, "pip", "freeze", "--python", python], text=True
        )
        report = folder / f"{name}.new"
        subprocess.run(
            [python, "-m", "pytest", "-n", "2", "-m", "not exhaustive"]
            + [f"--junitxml={report.absolute()}"],
            env={**os.environ, "KERAS_BACKEND": environment["backend"]},
            cwd=ROOT,
        )
    (folder / f"{name}.txt").write_text(packages)
    report.replace(folder / f"{name}.xml")


def summary(name, environment, folder):
    """The versions of an environment, and what its report says."""
    lines = (folder / f"{name}.txt").read_text().splitlines()
    packages = dict(line.split("==") for line in lines if "==" in line)
    outcomes = reports.read(folder / f"{name}.xml")
    kinds = [kind for kind, _ in outcomes.values()]
    skipped = [
        reason.split(": ")[-1]  # the cause, not what could not be imported
        for kind, reason in outcomes.values()
        if kind == "skipped"
    ]
    failed = [test for test, (kind, _) in outcomes.items() if kind == "failed"]
    return {
        "python": environment["python"],
        "versions": {key: packages.get(key, "") for key in PACKAGES},
        "passed": kinds.count("passed"),
        "skipped": collections.Counter(sorted(skipped)),
        "failed": sorted(failed),
    }


def measure(folder=reports.RUNS / "versions"):
    folder.mkdir(parents=True, exist_ok=True)
    for name, environment in ENVIRONMENTS.items():
        if not (folder / f"{name}.xml").exists():
            run_tests(name, environment, folder)
    rows = [summary(*item, folder) for item in ENVIRONMENTS.items()]
    return {"rows": rows}


def tables(results):
    columns = {"Python": "{python}"}
    columns |= {name: f"{{versions[{key}]}}" for key, name in PACKAGES.items()}
    columns |= {
        "passed": "{passed}",
        "failed": lambda row: str(len(row["failed"])),
        "skipped": lambda row: str(sum(row["skipped"].values())),
    }
    return {
        "Tests of the default tier": record.table(columns, results["rows"]),
        "Why tests were skipped": skipped_table(results["rows"]),
    }


def skipped_table(rows):
    """How many tests were skipped in each environment, by the reason."""
    names = [
        f"{row['versions']['keras']}{', JAX' if row['versions']['jax'] else ''}"
        for row in rows
    ]
    reasons = dict.fromkeys(reason for row in rows for reason in row["skipped"])
    lines = [
        [reason, *(str(row["skipped"].get(reason, "")) for row in rows)]
        for reason in reasons
    ]
    return record.markdown(["skipped, by Keras and backend", *names], lines)
