"""What studies count in reports is what pytest reported."""

import re
import subprocess
import sys

import pytest
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


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """What pytest writes of a few tests of tasks."""
    folder = tmp_path_factory.mktemp("report")
    (folder / "pytest.ini").write_text("[pytest]\n")
    (folder / "test_tasks.py").write_text(TESTS)
    whole = "import pytest\npytest.skip('no data', allow_module_level=True)\n"
    (folder / "test_skipped.py").write_text(whole)
    command = [sys.executable, "-m", "pytest", "--junitxml=tensorflow.xml"]
    subprocess.run(command, cwd=folder, capture_output=True)
    return folder / "tensorflow.xml"


def test_backends_have_what_pytest_counted(report, tmp_path):
    """The last outcome of a test counts."""
    text = report.read_text()
    (tmp_path / "tensorflow.xml").write_text(text)
    (tmp_path / "tensorflow_more.xml").write_text(
        text.replace("test_one", "test_other")
    )
    (tmp_path / "jax.xml").write_text(text)
    outcomes = reports.read(report)
    assert outcomes["test_tasks.test_seven[2.5]"] == ("passed", None)
    assert outcomes["test_tasks.test_three"][0] == "failed"
    results = backends.measure(folder=tmp_path)
    (table,) = backends.tables(results).values()
    counts = "2 failed, 2 skipped (2), (3)"
    assert re.sub(" +", " ", table).splitlines()[2:] == [
        "| skipped | 1 skipped (1) | 1 skipped (1) |",
        f"| tasks | 5, {counts} | 4, {counts} |",
        "",
        "1. collection skipped",
        "2. no cluster",
        "3. no disk",
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


def test_an_environment_has_what_was_installed_and_passed(report):
    report.with_suffix(".txt").write_text("-e file:///a\nkeras==3.6.0\n")
    row = versions.summary("tensorflow", {"python": "3.11"}, report.parent)
    assert row["failed"] == ["test_tasks.test_four", "test_tasks.test_three"]
    cells = [
        [cell.strip() for cell in table.splitlines()[-1].split("|")[1:-1]]
        for table in versions.tables({"rows": [row]}).values()
    ]
    assert cells[0] == ["3.11", "3.6.0", "", "", "", "4", "2", "3"]
    assert cells[1] == ["no disk", "1"]
