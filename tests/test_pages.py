"""What the pages show works: the code of each is one script."""

import pathlib
import re

import pytest
from sybil.document import Document
from sybil.parsers.markdown import PythonCodeBlockParser

pytestmark = pytest.mark.one_backend

ROOT = pathlib.Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
TEXTS = {page: page.read_text() for page in PAGES}
COMMANDS = sorted(
    command.replace("\\\n", "")
    for command in set(
        re.findall(
            r"\bpython (examples/(?:\\\n|[^`\n])*)",
            "\n".join(TEXTS.values()),
        )
    )
)


@pytest.mark.parametrize(
    "page",
    [page for page, text in TEXTS.items() if "```python" in text],
    ids=lambda page: page.name,
)
def test_the_code_of_a_page_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    if "import tensorflow" in TEXTS[page]:
        pytest.importorskip("tensorflow")
    document = Document.parse(str(page), PythonCodeBlockParser())
    for example in document.examples():
        example.evaluate()


@pytest.mark.parametrize("command", COMMANDS)
def test_the_program_of_a_command_has_its_flags(command):
    program = (ROOT / command.split()[0]).read_text()
    known = re.findall(r'DEFINE_\w+\(\s*"(\w+)"', program)
    known += [f"no{name}" for name in known]
    assert set(re.findall(r"--(\w+)", command)) <= set(known)
