"""Links between the pages and the studies, and the figures that they cite.

A citation is a link to a study with a title: `[23](../studies/exports/README.md
"LiteRT, int8 weights")`. Its text stands in a cell of the study's tables, in a
row that has the title as a cell, or each part of it between semicolons.
"""

import pathlib
import re

import pytest

pytestmark = pytest.mark.one_backend

ROOT = pathlib.Path(__file__).parents[1]
PAGES = [
    ROOT / "README.md",
    *sorted(ROOT.glob("docs/**/*.md")),
    ROOT / "studies" / "README.md",
    *sorted(ROOT.glob("studies/[a-z]*/README.md")),
]
CODE = re.compile(r"^```.*?^```$|`[^`\n]*`", re.M | re.S)
LINK = re.compile(r"\]\(([^)\s]+)(?:\s+\"[^\"]*\")?\)")
CITATION = re.compile(
    r"\[([^]]+)\]\(([^)\s]*studies/\w+/README\.md)\s+\"([^\"]+)\"\)"
)


def has_cell(study, figure, title):
    """Whether a table has the figure in a row with the cells of the title."""
    whole = re.compile(rf"(?<![\d.]){re.escape(figure)}(?![\d.]*\d)")
    for line in study.splitlines():
        cells = [cell.strip() for cell in line.split("|")[1:-1]]
        labels = [title] if title in cells else title.split("; ")
        others = [cell for cell in cells if cell not in labels]
        if set(labels) <= set(cells) and any(map(whole.search, others)):
            return True
    return False


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.parent.name)
def test_links_lead_to_files_and_cited_figures_are_those_of_studies(page):
    text = page.read_text()
    for target in LINK.findall(CODE.sub("", text)):
        path = page.parent / target.split("#")[0]
        assert ":" in target or path.exists(), target
    for figure, study, title in CITATION.findall(text):
        study = (page.parent / study).read_text()
        assert has_cell(study, figure, title), (figure, title)
    without = re.compile(r"\[\d(?:[^]a-z]|to|of)*\]\(\S*studies/[^)\s]*\)")
    assert not without.search(text), "cite a row"


TABLE = """
| RIN  | 0.01 |  0.5 (0.1 to 0.9) |
| RIN  |  0.1 | 10.5 (9.1 to 9.9) |
| a; b |      |                 1 |
"""


@pytest.mark.parametrize("figure", ["0.5 (0.1 to 0.9)", "0.5", "10.5"])
def test_a_figure_is_looked_for_in_its_row(figure):
    assert has_cell(TABLE, figure, "RIN") and has_cell(TABLE, "1", "a; b")
    assert has_cell(TABLE, figure, "RIN; 0.01") == (figure != "10.5")
    assert not has_cell(TABLE, "0", "RIN")
    assert not has_cell(TABLE, figure, "IRNN")
