"""Links between the pages and the studies, and the figures that they cite.

A citation is a link to a study with a title: `[23](../studies/exports/README.md
"LiteRT, int8 weights")`. Its text stands in a cell of the study's tables, in a
row that has the title as a cell, or each part of it between semicolons.
"""

import pathlib
import re
import shutil
import subprocess
import sys

import pytest

from docs import study_pages

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


@pytest.mark.parametrize(
    "page", PAGES, ids=lambda page: str(page.relative_to(ROOT))
)
def test_the_links_of_a_page_lead_to_files(page):
    assert not broken_links(page)


@pytest.mark.parametrize(
    "page",
    [page for page in PAGES if CITATION.search(page.read_text())],
    ids=lambda page: str(page.relative_to(ROOT)),
)
def test_a_cited_figure_is_that_of_its_study(page):
    assert not wrong_citations(page)


@pytest.mark.parametrize(
    "page", PAGES, ids=lambda page: str(page.relative_to(ROOT))
)
def test_a_figure_that_links_to_a_study_cites_a_row(page):
    assert not re.findall(
        r"\[\d(?:[^]a-z]|to|of)*\]\(\S*studies/[^)\s]*\)", page.read_text()
    )


def test_a_broken_link_is_found(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        'A [page](page.md#part), a [figure](no.md "x"), [site](https://a.b) '
        "and `[code](none.md)`."
    )
    assert broken_links(page) == ["no.md"]


TABLE = """
| model | rate |      loss (range) |
|:------|-----:|------------------:|
| RIN   | 0.01 |  0.5 (0.1 to 0.9) |
| RIN   |  0.1 | 10.5 (9.1 to 9.9) |
| a; b  |      |                 1 |
"""


@pytest.mark.parametrize(
    "figure, title",
    [
        ("0.5 (0.1 to 0.9)", "RIN; 0.01"),
        ("0.5", "RIN"),
        ("0.01", "RIN"),
        ("1", "a; b"),
    ],
)
def test_a_figure_of_a_row_is_found(figure, title):
    assert has_cell(TABLE, figure, title)


@pytest.mark.parametrize(
    "figure, title",
    [
        ("0.5 (0.1 to 0.8)", "RIN; 0.01"),
        ("0.5 (0.1 to 0.9)", "RIN; 0.1"),
        ("0.5", "RIN; 0.1"),
        ("0.01", "RIN; 0.01"),
        ("0.", "RIN"),
        ("0.0", "RIN"),
        ("0.5", "IRNN"),
        ("1", "RIN; a; b"),
    ],
)
def test_a_figure_of_another_row_is_not(figure, title):
    assert not has_cell(TABLE, figure, title)


@pytest.mark.parametrize(
    "page, link, on_the_site",
    [
        ("a.md", "../studies/x/README.md", "studies/x/README.md"),
        ("a.md", "../studies/README.md#part", "studies/README.md#part"),
        ("a.md", "../studies/x/models.png", "studies/x/models.png"),
        ("a.md", "b.md", "b.md"),
        ("a.md", "#part", "#part"),
        ("a.md", "https://a.b/studies/x", "https://a.b/studies/x"),
        ("api/a.md", "../../studies/x/README.md", "../studies/x/README.md"),
        ("studies/x/README.md", "../../docs/a.md", "../../a.md"),
        ("studies/x/README.md", "../../docs/a.md#part", "../../a.md#part"),
        ("studies/x/README.md", "../y/README.md", "../y/README.md"),
        ("studies/x/README.md", "models.png", "models.png"),
        ("studies/README.md", "../docs/a.md", "../a.md"),
        ("studies/README.md", "x/README.md", "x/README.md"),
    ],
)
def test_a_link_leads_to_the_same_page_on_the_site(page, link, on_the_site):
    text = f'A [link]({link} "1; 2") and ![a picture]({link}).'
    site = text.replace(link, on_the_site)
    assert study_pages.with_site_links(text, page) == site


def test_the_navigation_has_the_studies_in_two_groups(tmp_path):
    for name in ("b/protocol.toml", "b/README.md", "a/README.md", "c/x.py"):
        path = tmp_path / "studies" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    assert study_pages.studies_navigation(tmp_path) == [
        "studies/README.md",
        {"Trained models": ["studies/b/README.md"]},
        {"Other measurements": ["studies/a/README.md"]},
    ]


def built_site(folder, guide, study):
    """A strict build of a site with one guide and one study."""
    (folder / "docs").mkdir()
    (folder / "studies" / "adding").mkdir(parents=True)
    shutil.copy(study_pages.__file__, folder / "docs")
    (folder / "mkdocs.yml").write_text(
        "site_name: a\nuse_directory_urls: false\n"
        "nav: [index.md]\nhooks: [docs/study_pages.py]\n"
        "exclude_docs: '*.py'\n"
    )
    (folder / "docs" / "index.md").write_text(guide)
    (folder / "studies" / "README.md").write_text("[a](adding/README.md)")
    (folder / "studies" / "adding" / "README.md").write_text(study)
    (folder / "studies" / "adding" / "models.png").write_bytes(b"")
    return subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict"],
        cwd=folder,
        capture_output=True,
        text=True,
    )


def test_a_site_has_the_studies(tmp_path):
    guide = "[study](../studies/adding/README.md#result)"
    study = "# Adding\n## Result\n[guide](../../docs/index.md) ![](models.png)"
    build = built_site(tmp_path, guide, study)
    assert build.returncode == 0, build.stderr
    site = tmp_path / "site"
    index = (site / "index.html").read_text()
    page = site / "studies" / "adding" / "index.html"
    assert 'href="studies/adding/index.html#result"' in index
    assert 'href="../../index.html"' in page.read_text()
    assert (page.parent / "models.png").exists()


@pytest.mark.parametrize(
    "guide, study",
    [
        ("[study](../studies/clipping/README.md)", "# Adding"),
        ("![](../studies/adding/none.png)", "# Adding"),
        ("a guide", "[guide](../../docs/none.md)"),
    ],
)
def test_a_broken_link_stops_the_build(tmp_path, guide, study):
    build = built_site(tmp_path, guide, study)
    assert build.returncode != 0
    assert "not found" in build.stderr
