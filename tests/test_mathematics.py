"""Formulas of the pages become MathML."""

import re
import xml.etree.ElementTree as ElementTree

import pytest

from docs import insert_tables
from docs import mathematics

LATEX = [
    (page, formula)
    for page in insert_tables.PAGES
    for formula in re.findall(
        r"^\$\$\n(.*?)\n\$\$$", page.read_text(), re.M | re.S
    )
]


@pytest.mark.parametrize(
    "page, formula", LATEX, ids=lambda value: getattr(value, "name", "formula")
)
def test_every_formula_of_a_page_is_set(page, formula):
    content = f'<div class="arithmatex">\\[\n{formula}\n\\]</div>'
    made = mathematics.on_page_content(content, page=None)
    (tree,) = ElementTree.fromstring(made)  # in an element that scrolls
    assert tree.tag.endswith("math") and tree.get("display") == "block"
    assert "\\" not in "".join(tree.itertext()), "a command that is unknown"
    assert page.name != "README.md", "other sites do not set it"


def test_a_fraction_is_a_fraction_and_text_stays():
    content = 'a <span class="arithmatex">\\(\\frac{1}{k &lt; n}\\)</span> b'
    made = mathematics.on_page_content(content)
    assert made.startswith('a <span class="arithmatex"><math')
    assert made.endswith("</math></span> b")
    assert "<mfrac><mrow><mn>1</mn></mrow>" in made
    assert "&#x0003C;" in made or "&lt;" in made
