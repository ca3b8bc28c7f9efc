"""Reports are read as pytest means them."""

from tests.reports import reports

REPORT = """<testsuites><testsuite>
<testcase classname="tests.test_a" name="test_one[1.5]"/>
<testcase classname="test_b" name="test_two"><failure message="no"/></testcase>
<testcase classname="test_b" name="test_two"><skipped message="full"/>
</testcase>
<testcase classname="test_c" name="test_x"><error message="broken"/></testcase>
</testsuite></testsuites>"""


def test_the_last_result_of_a_test_counts(tmp_path):
    (tmp_path / "report.xml").write_text(REPORT)
    assert reports.read(tmp_path / "report.xml") == {
        "test_a.test_one[1.5]": ("passed", None),
        "test_b.test_two": ("skipped", "full"),
        "test_c.test_x": ("failed", "broken"),
    }
