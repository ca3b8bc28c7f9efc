"""Hands mkdocstrings what it expects: Google's docstring sections.

Keras writes `Call arguments:` beside `Args:`, and `Example:` with the code
below it, not indented. `Returns:` and `Reference:` hold plain text, and a line
that is a formula becomes code.
"""

import re
import textwrap

import griffe

FORMULA = re.compile(  # of one line or two, without a full stop
    r"(?<=\n\n)(?!>>>)\S[^\n]* (?:=|<=|>=|<-) [^\n]*(?:\n\S[^\n]*)?"
    r"(?<![.:,;])(?=\n\n)"
)
EXAMPLE = re.compile(r"^Example:\n\n((?:.+(?:\n|$))+)", re.M)
TEXT = re.compile(r"^(Returns|Reference):\n((?: {4}.*(?:\n|$)|\n)+)", re.M)


def as_google(text):
    text = FORMULA.sub(lambda match: textwrap.indent(match[0], "    "), text)
    text = text.replace("\nArgs:\n", "\nArgs: Arguments:\n")
    text = text.replace("\nCall arguments:\n", "\nArgs: Call arguments:\n")
    text = EXAMPLE.sub(_indented, text)
    return TEXT.sub(_plain, text)


def _indented(section):
    return "Examples: Example:\n" + textwrap.indent(section[1], "    ")


def _plain(section):
    return f"**{section[1]}:**\n\n{textwrap.dedent(section[2])}"


class KerasSections(griffe.Extension):
    def on_instance(self, *, obj, **kwargs):
        if obj.docstring:
            obj.docstring.value = as_google(obj.docstring.value)
