"""What pytest's reports (`--junitxml`) say."""

import xml.etree.ElementTree as ET


def read(*paths):
    """{test: (outcome, why)} of reports; the last one counts of a test in two.

    An outcome is "passed", "failed" or "skipped". A test is named as by
    pytest, `test_adding.test_the_sum[3]`.
    """
    found = {}
    for path in paths:
        for case in ET.parse(path).iter("testcase"):
            name = f"{case.get('classname')}.{case.get('name')}"
            found[name.removeprefix("tests.")] = _outcome(case)
    return found


def _outcome(case):
    for tag, outcome in (
        ("skipped", "skipped"),
        ("failure", "failed"),
        ("error", "failed"),
    ):
        reason = case.find(tag)
        if reason is not None:
            return outcome, reason.get("message")
    return "passed", None
