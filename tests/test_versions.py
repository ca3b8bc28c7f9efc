"""The table of versions says what the reports and package lists said."""

import re

from tests.reports import versions
from tests.test_version import PROJECT

REPORT = """<testsuites><testsuite>
<testcase classname="tests.test_a" name="test_one"/>
<testcase classname="tests.test_a" name="test_two">
<failure message="1"/></testcase>
<testcase classname="tests.test_a" name="test_three">
<error message="2"/></testcase>
<testcase classname="tests.test_a" name="test_four">
<skipped message="3"/></testcase>
</testsuite></testsuites>"""


def test_a_row_is_what_was_installed_and_what_passed(tmp_path):
    (tmp_path / "one.xml").write_text(REPORT)
    (tmp_path / "one.txt").write_text(
        "-e file:///here\nkeras==3.6.0\njax==0.4\n"
    )
    row = {"python": "3.11", "backend": "jax", "packages": []}
    found = versions.summary("one", row, tmp_path)
    assert found["failed"] == ["test_a.test_three", "test_a.test_two"]
    shown = versions.tables({"rows": [found]})
    cells = {
        file: [cell.strip() for cell in table.splitlines()[-1].split("|")]
        for file, table in shown.items()
    }
    assert cells["table.md"][1:-1] == [
        *("3.11", "3.6.0", "", "0.4", "", "1", "2", "1")
    ]
    assert cells["skipped.md"][1:-1] == ["3", "1"]


def test_the_ends_of_every_range_are_tried():
    tried = [p for row in versions.ROWS.values() for p in row["packages"]]
    extras = PROJECT["optional-dependencies"]
    for wanted in (*PROJECT["dependencies"], *extras["tensorflow"]):
        name, oldest = re.match(r"(\w+)>=([\d.]+)", wanted).groups()
        if name in ("keras", "tensorflow"):
            assert any(p.startswith(f"{name}=={oldest}.") for p in tried)
    pythons = {row["python"] for row in versions.ROWS.values()}
    marked = {c.split(" :: ")[-1] for c in PROJECT["classifiers"] if "3." in c}
    assert pythons == marked
