"""What hooks add to the site: summaries, notebooks, the address."""

import json
import pathlib
import re
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


@pytest.mark.parametrize("name", notebooks.PAGES)
def test_a_notebook_has_the_code_of_its_page(name):
    text = (DOCS / f"{name}.md").read_text()
    cells = json.loads(notebooks.notebook(text, ""))["cells"]
    code = [c["source"] for c in cells if c["cell_type"] == "code"]
    blocks = re.findall(r"^```python\n(.*?)\n```$", text, re.M | re.S)
    assert code == blocks and code
    prose = "\n".join(
        c["source"] for c in cells if c["cell_type"] == "markdown"
    )
    assert "invisible" not in prose and ".md" not in prose


def test_a_notebook_installs_from_the_address():
    cells = json.loads(notebooks.notebook("# A\n", "https://a.b/c"))["cells"]
    assert cells[1]["source"].endswith("git+https://a.b/c'")


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
