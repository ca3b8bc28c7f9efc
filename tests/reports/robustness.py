"""What was tried to make the package answer wrongly or lose a file.

    pytest -n 2 --junitxml=runs/backends/tensorflow.xml
    pytest -n 2 -m exhaustive --junitxml=runs/backends/tensorflow_exhaustive.xml
    python -m tests.reports.robustness

Writes to OUTPUT a table of faults, the tests that inject them, how many cases
of these passed in the reports, and what happens now. A case of a property test
is many drawn examples. Tests of which no report says anything keep the number
of cases that OUTPUT has.
"""

import collections
import pathlib
import tomllib

from absl import app
from absl import flags

from experiments import results
from tests.reports import reports

FLAGS = flags.FLAGS
REPORTS = pathlib.Path("runs/backends")  # of pytest
ROWS = tomllib.loads(pathlib.Path(__file__).with_suffix(".toml").read_text())


def cases(paths):
    """{test function: how many of its cases passed} of pytest's reports."""
    return collections.Counter(
        test.split("[")[0].split(".")[-1]
        for test, (outcome, _) in reports.read(*paths).items()
        if outcome == "passed"
    )


def tables(record):
    """{file: table}: one for each part of the package."""
    made = {}
    for part, rows in ROWS.items():
        lines = []
        for row in rows:
            passed = sum(record["passed"][test] for test in row["tests"])
            lines.append([row["tried"], str(passed), row["result"]])
        header = ["what was tried", "cases", "what happens"]
        made[f"{part}.md"] = results.markdown(header, lines, words=3)
    return made


def main(argv):
    if argv[1:]:
        raise app.UsageError(f"Flags begin with --. Received: {argv[1:]}")
    paths = sorted(REPORTS.glob("tensorflow*.xml"))
    if not paths:
        raise app.UsageError(f"There is no {REPORTS}/tensorflow.xml")
    output = results.prepare(FLAGS.output)
    before = (results.read(output) or {}).get("passed", {})
    passed = collections.Counter(before | cases(paths))
    named = {
        test for rows in ROWS.values() for row in rows for test in row["tests"]
    }
    missing = sorted(test for test in named if not passed[test])
    if missing:
        raise app.UsageError(f"No case of these passed: {', '.join(missing)}")
    record = {
        "tables": "tests.reports.robustness",
        "passed": {test: passed[test] for test in sorted(named)},
    }
    results.write(output, record, tables)


if __name__ == "__main__":
    flags.DEFINE_string(
        "output", "docs/results/robustness", "Directory of the tables."
    )
    flags.register_validator("output", str.strip, "Name a directory.")
    app.run(main)
