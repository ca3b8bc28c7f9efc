"""Sets formulas of the pages as MathML, which browsers show by themselves.

A hook of mkdocs: `pymdownx.arithmatex` finds the LaTeX, `$...$` in a line and
`$$...$$` around lines, and latex2mathml turns it into MathML, so that no page
needs a script. Dollar signs in code and beside spaces, as of prices, stay.
"""

import html
import re

from latex2mathml import converter

FORMULA = re.compile(
    r'<(span|div) class="arithmatex">\\[([](.*?)\\[)\]]</\1>', re.DOTALL
)


def on_page_content(content, **kwargs):
    del kwargs
    return FORMULA.sub(_mathml, content)


def _mathml(match):
    element, latex = match.groups()
    display = "block" if element == "div" else "inline"
    mathml = converter.convert(html.unescape(latex).strip(), display=display)
    # The theme lets a formula scroll in this element on a narrow screen.
    return f'<{element} class="arithmatex">{mathml}</{element}>'
