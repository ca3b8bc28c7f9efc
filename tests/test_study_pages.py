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


def broken_links(page):
    """The relative links of a page to files that do not exist."""
    targets = LINK.findall(CODE.sub("", page.read_text()))
    paths = [target.split("#")[0] for target in targets if ":" not in target]
    return [path for path in paths if not (page.parent / path).exists()]


def wrong_citations(page):
    """The citations of a page whose figure its study does not have."""
    return [
        (figure, study, title)
        for figure, study, title in CITATION.findall(page.read_text())
        if not has_cell((page.parent / study).read_text(), figure, title)
    ]


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
    assert not broken_links(page)
    assert not wrong_citations(page)
    without = re.compile(r"\[\d(?:[^]a-z]|to|of)*\]\(\S*studies/[^)\s]*\)")
    assert not without.search(page.read_text()), "cite a row"


TABLE = """
| model | rate |      loss (range) |
|:------|-----:|------------------:|
| RIN   | 0.01 |  0.5 (0.1 to 0.9) |
| RIN   |  0.1 | 10.5 (9.1 to 9.9) |
| a; b  |      |                 1 |
"""


@pytest.mark.parametrize(
    "figure, title, found",
    [
        ("0.5 (0.1 to 0.9)", "RIN; 0.01", True),
        ("0.5", "RIN", True),
        ("1", "a; b", True),
        ("0.5 (0.1 to 0.8)", "RIN; 0.01", False),
        ("0.5", "RIN; 0.1", False),
        ("0.01", "RIN; 0.01", False),
        ("0.", "RIN", False),
        ("0.5", "IRNN", False),
    ],
)
def test_a_figure_is_looked_for_in_its_row(figure, title, found):
    assert has_cell(TABLE, figure, title) is found
