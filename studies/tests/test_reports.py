"""What studies count in reports is what pytest reported."""

import re
import subprocess
import sys
import tomllib

import pytest
from absl import app
from backends import measure as backends
from robustness import measure as robustness
from versions import measure as versions

from engine import record
from engine import reports

TESTS = """
import pytest
def test_one(): pass
def test_two(): pass
def test_three(): assert False
@pytest.fixture
def broken(): raise OSError
def test_four(broken): pass
@pytest.mark.skip(reason="no cluster")
def test_five(): pass
def test_six(): pytest.skip("no disk")
@pytest.mark.parametrize("n", [1, 2.5])
def test_seven(n): pass
"""
PROJECT = tomllib.loads((record.STUDIES.parent / "pyproject.toml").read_text())[
    "project"
]


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """What pytest writes of a few tests of tasks."""
    folder = tmp_path_factory.mktemp("report")
    (folder / "pytest.ini").write_text("[pytest]\n")
    (folder / "test_tasks.py").write_text(TESTS)
    command = [sys.executable, "-m", "pytest", "--junitxml=tensorflow.xml"]
    subprocess.run(command, cwd=folder, capture_output=True)
    return folder / "tensorflow.xml"


@pytest.fixture
def more(report, tmp_path):
    """A report of the same tests, one of which has another name."""
    text = report.read_text().replace("test_one", "test_other")
    (tmp_path / "more.xml").write_text(text)
    return tmp_path / "more.xml"


def test_the_last_outcome_of_a_test_counts(report, tmp_path):
    later = tmp_path / "later.xml"
    later.write_text(
        '<testsuite><testcase classname="tests.test_tasks" name="test_one">'
        '<skipped message="full"/></testcase></testsuite>'
    )
    outcomes = reports.read(report, later)
    assert outcomes["test_tasks.test_one"] == ("skipped", "full")
    assert outcomes["test_tasks.test_seven[2.5]"] == ("passed", None)
    assert outcomes["test_tasks.test_three"][0] == "failed"


def test_areas_have_what_pytest_counted(report, more):
    counts = {
        "passed": 4,
        "failed": ["test_tasks.test_three", "test_tasks.test_four"],
        "skipped": {"no cluster": 1, "no disk": 1},
    }
    assert backends.count(report) == {"tasks": counts}
    assert backends.count(report, more) == {"tasks": {**counts, "passed": 5}}
    with pytest.raises(ValueError, match="test_new.test_one"):
        backends.area_of("test_new.test_one")


def test_what_ran_on_one_backend_alone_is_not_repeated(report, more):
    assert backends.count_missing([report, more], [report]) == {"tasks": 1}
    assert not backends.count_missing([report], [report, more])
    results, _ = backends.measure(report.parent)
    runs = {**results["runs"], "jax": backends.count(report), "torch": {}}
    runs["jax"]["tasks"]["not repeated"] = 4
    runs["torch"]["tasks"] = {**backends.NO_TESTS, "skipped": {"no disk": 3}}
    (table,) = backends.tables({"runs": runs}).values()
    counts = "4, 2 failed, 2 skipped (1), (2)"
    assert re.sub(" +", " ", table).splitlines()[2:] == [
        f"| tasks | {counts} | {counts}, 4 not repeated | 3 skipped (2) |",
        "",
        "1. no cluster",
        "2. no disk",
    ]


def test_a_fault_names_tests_that_exist_and_each_once():
    folders = record.STUDIES.parent / "tests", record.STUDIES / "tests"
    defined = {
        name
        for folder in folders
        for path in folder.glob("test_*.py")
        for name in re.findall(r"^def (test_\w+)", path.read_text(), re.M)
    }
    named = robustness.named_tests()
    assert set(named) <= defined
    assert len(named) == len(set(named))


def test_cases_of_faults_are_counted_if_they_passed(report, monkeypatch):
    assert robustness.count_passed([report, report]) == {
        "test_one": 1,
        "test_two": 1,
        "test_seven": 2,
    }
    faults = {"a": {"tests": ["test_seven"]}, "b": {"tests": ["test_three"]}}
    monkeypatch.setattr(robustness, "FAULTS", {"files": faults})
    with pytest.raises(app.UsageError, match="passed: test_three$"):
        robustness.measure(report.parent)
    del faults["b"]
    results, _ = robustness.measure(report.parent)
    assert results == {"passed": {"test_seven": 2}}


def test_an_environment_has_what_was_installed_and_passed(report):
    report.with_suffix(".txt").write_text(
        "-e file:///here\nkeras==3.6.0\njax==0.4\n"
    )
    environment = {"python": "3.11", "backend": "jax", "packages": []}
    row = versions.summary("tensorflow", environment, report.parent)
    assert row["failed"] == ["test_tasks.test_four", "test_tasks.test_three"]
    cells = [
        [cell.strip() for cell in table.splitlines()[-1].split("|")[1:-1]]
        for table in versions.tables({"rows": [row]}).values()
    ]
    assert cells[0] == ["3.11", "3.6.0", "", "0.4", "", "4", "2", "2"]
    assert cells[1] == ["no disk", "1"]


def test_the_ends_of_every_range_are_tried():
    environments = versions.ENVIRONMENTS.values()
    tried = [package for row in environments for package in row["packages"]]
    extras = PROJECT["optional-dependencies"]
    for wanted in (*PROJECT["dependencies"], *extras["tensorflow"]):
        name, oldest = re.match(r"(\w+)>=([\d.]+)", wanted).groups()
        if name in ("keras", "tensorflow"):
            prefix = f"{name}=={oldest}."
            assert any(package.startswith(prefix) for package in tried)
    marked = {c.split(" :: ")[-1] for c in PROJECT["classifiers"] if "3." in c}
    assert {row["python"] for row in environments} == marked
