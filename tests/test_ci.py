"""Where CI=true, a runtime that is missing stops `.ci/run`."""

import os
import pathlib
import shutil
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[1]
SETTINGS = ROOT / ".ci" / "settings"

pytestmark = [
    pytest.mark.one_backend,
    pytest.mark.skipif(
        not (SETTINGS.exists() and shutil.which("bash")),
        reason="a copy of the source has .ci",
    ),
]


@pytest.mark.parametrize(
    "ci, listed, status",
    [("true", False, 1), ("true", True, 0), ("", False, 0)],
)
def test_a_missing_runtime_fails_in_ci_unless_a_reason_is_given(
    ci, listed, status, tmp_path
):
    script = f"""
source {SETTINGS}
RUNTIMES="sh:dash no-such-program:none" MODULES="json no_such_module"
MAY_BE_MISSING="
no-such-program: a reason
{"no_such_module: another" if listed else ""}
"
require_runtimes {sys.executable} || exit 1
report_what_was_not_run
"""
    names = "CI", "TFDS_DATA_DIR", "BABI_DIR"
    environment = {k: v for k, v in os.environ.items() if k not in names}
    done = subprocess.run(
        ["bash", "-euc", script],
        cwd=tmp_path,
        env={**environment, **({"CI": ci} if ci else {})},
        capture_output=True,
        text=True,
    )
    assert done.returncode == status
    if status:
        assert "CI=true, and no_such_module is missing" in done.stderr
    else:
        missing = "no-such-program no_such_module TFDS_DATA_DIR BABI_DIR"
        assert done.stdout == f"NOT RUN: the tests that need {missing}\n"


@pytest.mark.parametrize("name", ["run", "weekly", "settings"])
def test_ci_names_no_path_outside_the_repository(name):
    lines = (ROOT / ".ci" / name).read_text().splitlines()
    outside = "$PWD/..", "../../", "/home", "~"
    code = [line for line in lines if not line.startswith(("#", "cd "))]
    assert not [line for line in code if any(at in line for at in outside)]
