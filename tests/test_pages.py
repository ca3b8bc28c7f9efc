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
    (tmp_path / page.name).write_text(shortened(TEXTS[page]))
    document = Document.parse(
        str(tmp_path / page.name), PythonCodeBlockParser()
    )
    for example in document.examples():
        example.evaluate()


def shortened(text):
    """The page, with less training: two updates where it has a ladder."""
    text = re.sub(r"^epochs = \d+ ", "epochs = 50 ", text, flags=re.M)
    rungs = r"(ladder = \[.*\n)(?:    \(\d+, \d+, \de-\d\),\n)+"
    text, ladders = re.subn(rungs, r"\1    (16, 2, 1e-3),\n", text)
    tests = re.compile(r"^for steps in [\d, ]+:$", re.M)
    return tests.sub("for steps in 16, 32:", text) if ladders else text


def test_the_recipe_is_the_same_on_all_pages():
    recipes = {
        page.name: block
        for page, text in TEXTS.items()
        for block in re.findall(r"```python\n(.*?)```", text, re.S)
        if "ladder = [" in block
    }
    assert set(recipes) == {"README.md", "index.md", "long_sequences.md"}
    assert len(set(recipes.values())) == 1


@pytest.mark.parametrize("command", COMMANDS)
def test_the_program_of_a_command_has_its_flags(command):
    program = (ROOT / command.split()[0]).read_text()
    known = re.findall(r'DEFINE_\w+\(\s*"(\w+)"', program)
    known += [f"no{name}" for name in known]
    assert set(re.findall(r"--(\w+)", command)) <= set(known)


QUESTIONS = TEXTS[ROOT / "docs" / "questions.md"]
KERAS_MESSAGES = {"Could not locate class 'RIN'"}


@pytest.mark.parametrize(
    "message",
    sorted(set(re.findall(r'^### "(.*)"$', QUESTIONS, re.M)) - KERAS_MESSAGES),
)
def test_a_message_that_is_explained_is_one_of_the_package(message):
    sources = sorted(ROOT.glob("keras_rin/**/*.py"))
    texts = "\n".join(source.read_text() for source in sources)
    in_one_line = re.sub(r'"\s*\n\s*f?["\']', "", texts)
    assert message in in_one_line
