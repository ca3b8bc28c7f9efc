"""Which tests pass on which backend?

The reports of `.ci/run` and `.ci/weekly` in `runs/backends`, and that of

    KERAS_BACKEND=torch pytest -n 2 --junitxml=runs/backends/torch.xml \\
        -m "each_backend or not (one_backend or exhaustive)"

are counted: how many tests of each file passed, and why others were skipped.
Tests that do not depend on the backend run on TensorFlow alone. A backend
without a report is left out. On a machine with a GPU, the tests of layers,
recurrence and some diagnostics ran on JAX, with products in float32: by default
XLA computes them with fewer bits. Their stored counts are of groups of files.

    KERAS_BACKEND=jax JAX_DEFAULT_MATMUL_PRECISION=highest pytest \\
        -m "each_backend or not (one_backend or exhaustive)" \\
        --junitxml=runs/backends/gpu.xml
"""

from engine import record
from engine import reports
from engine.measurement import Variant

BACKENDS = ["tensorflow", "jax", "torch"]
VARIANTS = {
    "": Variant("On CPUs"),
    "gpu": Variant("JAX on a GPU", {"backends": ["gpu"]}, "jax"),
}


def count(paths):
    """Passed, failed and skipped tests of reports, by file."""
    files = {}
    for name, (outcome, reason) in reports.read(*paths).items():
        file = name.split(".")[0].removeprefix("test_")
        new = {"passed": 0, "failed": [], "skipped": {}}
        counts = files.setdefault(file, new)
        if outcome == "passed":
            counts["passed"] += 1
        elif outcome == "failed":
            counts["failed"].append(name)
        else:
            skipped = counts["skipped"]
            skipped[reason] = skipped.get(reason, 0) + 1
    return files


def measure(backends=BACKENDS, folder=reports.RUNS / "backends"):
    paths = {name: reports.of_backend(name, folder) for name in backends}
    return {
        "runs": {name: count(files) for name, files in paths.items() if files}
    }


def tables(results):
    runs, notes = results["runs"], {}
    files = sorted({file for run in runs.values() for file in run})
    rows = [
        [file, *(cell(run.get(file), notes) for run in runs.values())]
        for file in files
    ]
    table = record.markdown(["tests", *runs], rows)
    reasons = [f"{number}. {reason}\n" for reason, number in notes.items()]
    return {"Tests that passed": "\n".join([table, "".join(reasons)])}


def cell(counts, notes):
    """The counts of a table's cell; notes number the reasons of skipped."""
    if counts is None:
        return ""
    skipped = counts["skipped"]
    parts = [str(counts["passed"])] * (counts["passed"] > 0)
    parts += [f"{len(counts['failed'])} failed"] * bool(counts["failed"])
    if skipped:
        numbers = [
            notes.setdefault(reason, len(notes) + 1) for reason in skipped
        ]
        marks = ", ".join(f"({number})" for number in sorted(numbers))
        parts.append(f"{sum(skipped.values())} skipped {marks}")
    return ", ".join(parts)
