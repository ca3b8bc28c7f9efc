"""Pytest's reports, as `--junitxml` writes them."""

import pathlib
import xml.etree.ElementTree as ET

from engine import record

RUNS = record.STUDIES.parent / "runs"  # where .ci/run lets pytest write


def read(*paths):
    """{test: (outcome, reason)}; of a test in two reports the last counts.

    An outcome is "passed", "failed" or "skipped". A test has the name that
    pytest gives it, `test_adding.test_the_sum[3]`.
    """
    outcomes = {}
    for path in paths:
        for case in ET.parse(path).iter("testcase"):
            name = f"{case.get('classname')}.{case.get('name')}"
            # The class name of a file that is skipped as a whole is empty.
            outcomes[name.lstrip(".").removeprefix("tests.")] = _outcome(case)
    return outcomes


def _outcome(case):
    outcomes = {"skipped": "skipped", "failure": "failed", "error": "failed"}
    for tag, outcome in outcomes.items():
        element = case.find(tag)
        if element is not None:
            return outcome, element.get("message")
    return "passed", None


def of_backend(backend, folder=RUNS / "backends"):
    """The reports of a backend, such as those of the two tiers of tests."""
    paths = sorted(pathlib.Path(folder).glob(f"{backend}*.xml"))
    if not paths and backend == "tensorflow":
        raise FileNotFoundError(f"There is no {folder}/tensorflow.xml.")
    return paths
