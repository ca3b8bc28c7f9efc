"""Formulas of the pages become MathML."""

import pathlib
import re
import xml.etree.ElementTree as ElementTree

import markdown
import pytest

from docs import mathematics

pytestmark = pytest.mark.one_backend

ROOT = pathlib.Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
CODE = re.compile(r"^```.*?^```$|^    .*?$", re.M | re.S)
LATEX = {
    page: re.findall(
        r"^\$\$\n.*?\n\$\$$|\$(?=\S)[^$`\n]*(?<=\S)\$",
        CODE.sub("", page.read_text()),
        re.M | re.S,
    )
    for page in PAGES
}
PAGES_WITH_FORMULAS = [page for page, formulas in LATEX.items() if formulas]


def rendered(text):
    """The HTML of Markdown, made as the site makes it."""
    html = markdown.markdown(
        text,
        extensions=["pymdownx.arithmatex", "pymdownx.superfences", "tables"],
        extension_configs={"pymdownx.arithmatex": {"generic": True}},
    )
    return mathematics.on_page_content(html, page=None)


@pytest.mark.parametrize(
    "page", PAGES_WITH_FORMULAS, ids=lambda page: page.stem
)
def test_every_formula_of_a_page_is_set(page):
    text = CODE.sub("", page.read_text())
    html = rendered(text)
    formulas = re.findall("<math.*?</math>", html, re.S)
    assert len(formulas) == len(LATEX[page])
    assert "arithmatex" not in re.sub(
        r'<(span|div) class="arithmatex"><math', "", html
    ), "a formula that the hook does not find"
    for formula in formulas:
        tree = ElementTree.fromstring(formula)
        assert "\\" not in "".join(tree.itertext()), "an unknown command"


def test_package_indexes_do_not_set_formulas():
    assert "README.md" not in {page.name for page in PAGES_WITH_FORMULAS}


@pytest.mark.parametrize(
    "text",
    [
        "It costs $5 or $6 a month.",
        "The price is 5 $, or 6 $ elsewhere.",
        "`$PATH` and `$HOME` are variables, `echo $a$b` a command.",
        "```bash\nfor b in $all; do echo $b; done\n```",
        "    head=$(hostname) port=$((1 + 2))",
        "Escaped: \\$x\\$.",
    ],
)
def test_other_dollar_signs_stay(text):
    html = rendered(text)
    assert "<math" not in html and html.count("$") == text.count("$")


@pytest.mark.parametrize(
    "text, symbols",
    [
        ("$h_t = h_{t-1} V$ and $U$.", ["ht=ht−1V", "U"]),
        ("($U = V - I$), with **$V$**", ["U=V−I", "V"]),
        ("| a | b |\n|---|---|\n| $d I$ | `$x$` |", ["dI"]),
        ("between $a^*$ and $b^*$", ["a*", "b*"]),
    ],
)
def test_formulas_in_a_line_are_set(text, symbols):
    formulas = re.findall("<math.*?</math>", rendered(text))
    trees = map(ElementTree.fromstring, formulas)
    assert ["".join(tree.itertext()) for tree in trees] == symbols


def test_a_fraction_is_a_fraction_and_text_stays():
    content = 'a <span class="arithmatex">\\(\\frac{1}{k &lt; n}\\)</span> b'
    html = mathematics.on_page_content(content)
    assert html.startswith('a <span class="arithmatex"><math')
    assert html.endswith("</math></span> b")
    assert "<mfrac><mrow><mn>1</mn></mrow>" in html
    assert "&#x0003C;" in html or "&lt;" in html
