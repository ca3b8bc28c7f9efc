"""What the pages show works: the code of each is one script."""

import functools
import pathlib
import re

import pytest
from sybil.document import Document
from sybil.parsers.markdown import PythonCodeBlockParser

pytestmark = pytest.mark.one_backend

ROOT = pathlib.Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
TEXTS = {page: page.read_text() for page in PAGES}
NUMBER = re.compile(r"\d+(?:\.\d+)?")
COMMANDS = sorted(
    command.replace("\\\n", "")
    for command in set(
        re.findall(
            r"\bpython (examples/(?:\\\n|[^`\n])*)",
            "\n".join(TEXTS.values()),
        )
    )
)


def results_shown(text):
    """The lines that a page shows as what its code prints."""
    blocks = re.findall(r"^```text\n(.*?)^```$", text, re.M | re.S)
    return "".join(blocks).splitlines()


def words(line):
    return NUMBER.sub("0", line)


def numbers(lines):
    return list(map(float, NUMBER.findall(" ".join(lines))))


@pytest.mark.parametrize(
    "page",
    [page for page, text in TEXTS.items() if "```python" in text],
    ids=lambda page: page.name,
)
def test_the_code_of_a_page_runs(page, tmp_path, monkeypatch, capsys):
    """It prints what the page shows, other numbers if it trains for less."""
    text = TEXTS[page]
    file = tmp_path / page.name
    if "import tensorflow" in text:
        pytest.importorskip("tensorflow")
    monkeypatch.chdir(tmp_path)
    file.write_text(shortened(text))
    for example in Document.parse(
        str(file), PythonCodeBlockParser()
    ).examples():
        example.evaluate()
    shown, printed = results_shown(text), capsys.readouterr().out.splitlines()
    results = [line for line in printed if words(line) in map(words, shown)]
    if shortened(text) == text:  # another processor rounds otherwise
        assert numbers(results) == pytest.approx(numbers(shown), rel=0.3)
    assert set(map(words, results)) == set(map(words, shown))


def shortened(text):
    """The page, with two updates where it has a ladder."""
    rungs = r"(ladder = \[.*\n)(?:    \(\d+, \d+, \de-\d\),\n)+"
    text, ladders = re.subn(rungs, r"\1    (16, 2, 1e-3),\n", text)
    tests = re.compile(r"^for steps in [\d, ]+:$", re.M)
    return tests.sub("for steps in 16, 32:", text) if ladders else text


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


def test_each_fault_of_the_page_names_a_test():
    page = TEXTS[ROOT / "docs" / "robustness.md"]
    named = re.findall(r"^\|.*\| `(\w+)` \|$", page, re.M)
    assert len(named) == len(re.findall(r"^\| [^|]", page, re.M)) - 5
    tests = "".join(path.read_text() for path in ROOT.glob("tests/test_*.py"))
    assert set(named) <= set(re.findall(r"^def (test_\w+)", tests, re.M))


def test_the_pictures_of_the_pages_are_drawn(tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    from docs import pictures

    monkeypatch.setattr(pictures, "FOLDER", tmp_path)
    monkeypatch.delitem(pictures.PICTURES, "tutorial")
    draw_cube = functools.partial(pictures.draw_cube, updates=2)
    monkeypatch.setitem(pictures.PICTURES, "cube", draw_cube)
    pictures.main([])
    names = {path.name for path in tmp_path.iterdir()}
    of_tutorial = {"accuracy.svg", "eigenvalues.svg", "gradient_norms.svg"}
    shown = re.findall(
        r"\](?:\(|\(docs/)pictures/(\w+\.svg)\)", "".join(TEXTS.values())
    )
    assert names | of_tutorial == set(shown)
