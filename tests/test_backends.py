"""The table of the backends says what pytest said."""

import pathlib
import re
import subprocess
import sys

import pytest

from tests.reports import backends

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
"""
FILES = sorted(pathlib.Path(__file__).parent.glob("test_*.py"))


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """What pytest writes of a few tests of tasks."""
    tmp_path = tmp_path_factory.mktemp("report")
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "test_adding.py").write_text(TESTS)
    command = [sys.executable, "-m", "pytest", "--junitxml=report.xml"]
    subprocess.run(command, cwd=tmp_path, capture_output=True)
    return tmp_path / "report.xml"


def test_it_counts_what_pytest_counted(report):
    assert backends.count(report) == {
        "tasks": {
            "passed": 2,
            "failed": ["test_adding.test_three", "test_adding.test_four"],
            "skipped": {"no cluster": 1, "no disk": 1},
        }
    }


def test_a_run_may_be_in_parts(report, tmp_path):
    text = report.read_text().replace("test_one", "test_seven")
    (tmp_path / "more.xml").write_text(text)
    more = backends.count(report, tmp_path / "more.xml")["tasks"]
    once = backends.count(report)["tasks"]
    assert more == {**once, "passed": once["passed"] + 1}


def test_a_skipped_test_has_its_reason_below_the_table(report):
    elsewhere = {"passed": 0, "failed": [], "skipped": {"no disk": 3}}
    runs = {
        "tensorflow": {},
        "jax": backends.count(report),
        "torch": {"tasks": elsewhere},
    }
    (table,) = backends.tables({"runs": runs}).values()
    assert re.sub(" +", " ", table).splitlines()[2:] == [
        "| tasks | not run | 2, 2 failed, 2 skipped (1), (2) | 3 skipped (2) |",
        "",
        "1. no cluster",
        "2. no disk",
    ]


def test_what_ran_on_one_backend_is_said_to_be_not_repeated(report, tmp_path):
    text = report.read_text().replace("test_one", "test_seven")
    (tmp_path / "more.xml").write_text(text)
    both = [report, tmp_path / "more.xml"]
    assert backends.count_missing(both, [report]) == {"tasks": 1}
    assert not backends.count_missing([report], both)
    run = {"tasks": {"passed": 0, "failed": [], "skipped": {}}}
    run["tasks"]["not repeated"] = 4
    (table,) = backends.tables({"runs": {"jax": run}}).values()
    assert "| 4 not repeated |" in table


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_file_of_tests_is_of_an_area(path):
    names = [f"{path.stem}.test_any[SavedModel]", f"{path.stem}.test_[ONNX]"]
    assert all(backends.area_of(name) in backends.AREAS for name in names)


def test_a_test_of_no_area_is_refused():
    with pytest.raises(ValueError, match="test_new.test_one"):
        backends.area_of("test_new.test_one")
