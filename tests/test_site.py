"""What hooks add to the site: summaries, notebooks, the address."""

import json
import os
import pathlib
import re
import subprocess
import sys
import types

import pytest

import keras_rin
from docs import api_summaries
from docs import notebooks
from docs import study_pages

pytestmark = pytest.mark.one_backend

DOCS = pathlib.Path(__file__).parents[1] / "docs"
API = sorted((DOCS / "api").glob("*.md"))


def page_of(uri):
    return types.SimpleNamespace(
        file=types.SimpleNamespace(src_uri=uri), meta={}
    )


@pytest.mark.parametrize("path", API, ids=lambda path: path.stem)
def test_every_name_of_the_api_has_a_summary(path):
    names = re.findall(r"^::: (\S+)$", path.read_text(), re.M)
    page = page_of(f"api/{path.name}")
    rows = api_summaries.on_page_markdown(path.read_text(), page).split("\n")
    for name in names if len(names) > 1 else []:
        (row,) = [row for row in rows if f"](#{name})" in row]
        value = keras_rin
        for part in name.split(".")[1:]:
            value = getattr(value, part)
        first = value.__doc__.strip().splitlines()[0]
        assert row.endswith(f"| {first} |")


def made(name, address=""):
    """The code and the prose of the notebook of a page or an example."""
    if name in notebooks.EXAMPLES:
        cells = notebooks.example_cells(name)
    else:
        cells = notebooks.page_cells((DOCS / f"{name}.md").read_text())
    cells = json.loads(notebooks.notebook(cells, address))["cells"]
    return [
        [c["source"] for c in cells if c["cell_type"] == kind]
        for kind in ("code", "markdown")
    ]


@pytest.mark.parametrize("name", notebooks.PAGES)
def test_a_notebook_has_the_code_of_its_page(name):
    text = (DOCS / f"{name}.md").read_text()
    code, prose = made(name)
    blocks = re.findall(r"^```python\n(.*?)\n```$", text, re.M | re.S)
    assert len(code) == len(blocks) + 1 > 1
    for cell, block in zip(code[1:], blocks, strict=True):
        figures = re.findall(r"(\w+)\.savefig", block)
        assert cell == "\n".join([block, *figures])
    assert not re.search(r"invisible|\.md|\.svg", "\n".join(prose))


@pytest.mark.parametrize("name", notebooks.EXAMPLES)
def test_a_notebook_has_the_code_of_its_example(name):
    program = (DOCS.parent / "examples" / f"{name}.py").read_text()
    code, prose = made(name)
    lines = "\n".join(code[1:-2]).split()
    expected = program.replace("app.run(main)", "").split('"""', 2)
    before, _, after = expected[2].partition('if __name__ == "__main__":')
    assert lines == (before + after).split()
    assert expected[1] in prose[0]


LESS = {  # {text: text with less work}
    "count=400": "count=10",
    'FLAGS(["fixed_points"])': 'FLAGS(["", "--network=GRU", "--updates=2"])',
}


@pytest.mark.exhaustive
def test_the_notebook_of_an_example_runs(tmp_path):
    code = "\n\n\n".join(made("fixed_points")[0])
    for text, less in LESS.items():
        assert text in code
        code = code.replace(text, less)
    # A kernel of Jupyter would install a hundred files for these cells, which
    # are for IPython only.
    cells = [c for c in code.split("\n\n\n") if not re.match("%|from IPy", c)]
    run = "import json, sys\nfor c in json.load(sys.stdin): exec(c, globals())"
    finished = subprocess.run(
        [sys.executable, "-c", run],
        input=json.dumps(cells),
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(DOCS.parent)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert re.search(r"\| +stable fixed points ", finished.stdout)
    picture = tmp_path / "runs" / "fixed_points" / "fixed_points.png"
    assert picture.stat().st_size > 10_000


def test_a_notebook_installs_from_the_address():
    first = made("tutorial", "https://a.b/c")[0][0]
    assert first.split("\n")[0].endswith("git+https://a.b/c'")


@pytest.mark.parametrize(
    "address, path",
    [
        ("", None),
        ("https://a.b/c/d", None),
        ("https://github.com/a/b-c.d", "a/b-c.d"),
        ("https://github.com/a/b.git", "a/b"),
    ],
)
@pytest.mark.parametrize("name", ["tutorial", "examples"])
def test_a_button_opens_the_notebook_in_colab(name, address, path):
    config = types.SimpleNamespace(repo_url=address, remote_branch="gh-pages")
    text = (DOCS / f"{name}.md").read_text()
    page = page_of(f"{name}.md")
    text = notebooks.on_page_markdown(text, page, config)
    names = notebooks.EXAMPLES if name == "examples" else [name]
    for notebook in names:
        assert f"also a [notebook]({notebook}.ipynb)." in text
    buttons = re.findall(r'class="md-button" href="([^"]+)"', text)
    assert buttons == [
        f"https://colab.research.google.com/github/{path}/blob/gh-pages/"
        f"{notebook}.ipynb"
        for notebook in names
        if path
    ]


def test_the_address_is_set_in_one_place():
    config = types.SimpleNamespace(repo_url="https://a.b/c")
    page, text = page_of("index.md"), "In a copy of the source:"
    linked = study_pages.on_page_markdown(text, page, config)
    assert linked == "In [a copy of the source](https://a.b/c):"


def test_a_search_lists_guides_before_studies():
    config = types.SimpleNamespace(repo_url="")
    guide, study = page_of("choosing.md"), page_of("studies/adding/README.md")
    for page in guide, study:
        study_pages.on_page_markdown("", page, config)
    assert "search" not in guide.meta
    assert study.meta["search"]["boost"] < 1
