"""Which faults were tried, and what happens now?

The faults could make the package return wrong results silently, lose a file,
or raise an unhelpful error. Each was seen to do harm before the code was
changed, or was planted again afterwards. `faults.toml` names the tests that
inject them. A case is a test that passed on TensorFlow; a case of a property
test (hypothesis) is many random examples. The cases are counted in reports of
pytest; tests of which no report says anything keep the number that is stored:

    pytest -n 2 --junitxml=runs/backends/tensorflow.xml
    pytest -n 2 -m exhaustive --junitxml=runs/backends/tensorflow_exhaustive.xml
    INTERRUPTS=10 pytest -n 2 -m exhaustive tests/test_interrupts.py \\
        --junitxml=runs/backends/tensorflow_interrupts.xml
    INTERRUPTS=20 pytest -n 2 -m exhaustive tests/test_kills.py \\
        --junitxml=runs/backends/tensorflow_kills.xml
"""

import collections
import pathlib
import tomllib

from engine import record
from engine import reports

FOLDER = pathlib.Path(__file__).parent
FAULTS = tomllib.loads((FOLDER / "faults.toml").read_text())
REMOVED = "*"  # begins the name of a removed test


def named_tests():
    """The tests of all faults, each as often as it is named."""
    return [
        test
        for faults in FAULTS.values()
        for _, *tests in faults.values()
        for test in tests
        if not test.startswith(REMOVED)
    ]


def count_passed(paths):
    """{test function: how many of its cases passed} of pytest's reports."""
    return collections.Counter(
        test.split("[")[0].split(".")[-1]
        for test, (outcome, _) in reports.read(*paths).items()
        if outcome == "passed"
    )


def measure(folder=reports.RUNS / "backends"):
    paths = reports.of_backend("tensorflow", folder)
    stored = record.read(FOLDER / "results.json") or {"passed": {}}
    passed = collections.Counter(stored["passed"] | count_passed(paths))
    tests = sorted(named_tests())
    if missing := [test for test in tests if not passed[test]]:
        raise ValueError(f"No case of these passed: {', '.join(missing)}")
    return {"passed": {test: passed[test] for test in tests}}


def tables(results):
    """{caption: table}, one for each part of the package."""
    header = ["what was tried", "cases", "what happens"]
    captions = {}
    for part, faults in FAULTS.items():
        rows = []
        for tried, (result, *tests) in faults.items():
            tests = (test.removeprefix(REMOVED) for test in tests)
            cases = sum(results["passed"].get(test, 0) for test in tests)
            rows.append([tried, cases, result])
        captions[part] = record.markdown(header, rows, words=3)
    return captions
