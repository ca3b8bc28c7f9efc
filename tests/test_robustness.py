"""The table of injected faults names tests that exist, and counts them."""

import pathlib
import re

import pytest

from tests.reports import robustness

TESTS = pathlib.Path(__file__).parent
DEFINED = {
    name
    for path in TESTS.glob("test_*.py")
    for name in re.findall(r"^def (test_\w+)", path.read_text(), re.M)
}
NAMED = [
    test
    for rows in robustness.ROWS.values()
    for row in rows
    for test in row["tests"]
]


@pytest.mark.parametrize("name", NAMED)
def test_a_test_that_is_named_exists(name):
    assert name in DEFINED


def test_no_test_is_counted_twice():
    assert len(NAMED) == len(set(NAMED))


def test_cases_are_counted_if_they_passed(tmp_path):
    path = tmp_path / "tensorflow.xml"
    path.write_text(
        "<testsuites><testsuite>"
        "<testcase name='test_a[1]'/><testcase name='test_a[2-x]'/>"
        "<testcase name='test_a[3]'><failure/></testcase>"
        "<testcase name='test_b'><skipped/></testcase>"
        "<testcase name='test_c'><error/></testcase>"
        "</testsuite></testsuites>"
    )
    assert robustness.cases([path, path]) == {"test_a": 2}
