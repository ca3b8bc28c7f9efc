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
COMMAND = re.compile(r"\bpython (examples/(?:\\\n|[^`\n])*)")
COMMANDS = sorted(set(COMMAND.findall("\n".join(TEXTS.values()))))


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
    document = Document.parse(str(file), PythonCodeBlockParser())
    for example in document.examples():
        example.evaluate()
    shown = re.findall(r"^```text\n(.*?)^```$", text, re.M | re.S)
    shown, printed = "".join(shown), capsys.readouterr().out
    shown, printed = shown.splitlines(), printed.splitlines()
    results = [line for line in printed if words(line) in map(words, shown)]
    if shortened(text) == text:  # another processor rounds otherwise
        assert numbers(results) == pytest.approx(numbers(shown), rel=0.3)
    assert set(map(words, results)) == set(map(words, shown))


def shortened(text):
    """The page, with less to train and to test where that takes long."""
    text = re.sub(r"^updates = \d+$", "updates = 2", text, flags=re.M)
    rungs = r"(ladder = \[.*\n)(?:    \(\d+, \d+, \d+, \de-\d\),\n)+"
    text, ladders = re.subn(rungs, r"\1    (16, 2, 2, 1e-3),\n", text)
    text = text.replace("samples=10_000", "samples=100")
    text = text.replace("[200, 10_000, 100_000, 1_000_000]", "[16, 32]")
    tests = re.compile(r"^for steps in [\d, ]+:$", re.M)
    return tests.sub("for steps in 16, 32:", text) if ladders else text


@pytest.mark.parametrize("command", COMMANDS)
def test_the_program_of_a_command_has_its_flags(command):
    program = (ROOT / command.split()[0]).read_text()
    known = re.findall(r'DEFINE_\w+\(\s*"(\w+)"', program)
    known += [f"no{name}" for name in known]
    assert set(re.findall(r"--(\w+)", command)) <= set(known)


def test_messages_that_are_explained_are_those_of_the_package():
    questions = TEXTS[ROOT / "docs" / "questions.md"]
    messages = set(re.findall(r'^### "(.*)"$', questions, re.M))
    sources = "\n".join(p.read_text() for p in ROOT.glob("keras_rin/**/*.py"))
    sources = re.sub(r'"\s*\n\s*f?["\']', "", sources)  # in one line
    others = {message for message in messages if message not in sources}
    assert others == {"Could not locate class 'RIN'"}  # of Keras


def test_the_pictures_of_the_pages_are_drawn(tmp_path, monkeypatch):
    """Without those whose code a page has, which runs above, but for one."""
    pytest.importorskip("matplotlib")
    from docs import pictures

    monkeypatch.setattr(pictures, "FOLDER", tmp_path)
    of_pages = {"dynamics", "reach", "tutorial"}
    for name in of_pages:
        monkeypatch.delitem(pictures.PICTURES, name)
    draw_cube = functools.partial(pictures.draw_cube, updates=2)
    monkeypatch.setitem(pictures.PICTURES, "cube", draw_cube)
    pictures.main([])
    names = {path.stem for path in tmp_path.iterdir()}
    of_several = {"accuracy", "eigenvalues", "gradient_norms"}
    of_several |= {"gradients", "rates"}
    shown = re.findall(
        r"\](?:\(|\(docs/)pictures/(\w+)\.svg\)", "".join(TEXTS.values())
    )
    of_one = of_pages - {"dynamics", "tutorial"}
    assert names | of_one | of_several == set(shown)
