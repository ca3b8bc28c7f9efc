"""Hands mkdocstrings the docstring sections of Keras as Google's.

Keras writes `Call arguments:` beside `Args:`, and `Example:` with the code
below it, not indented. A line that is a formula becomes code.
"""

import re
import textwrap

import griffe

FORMULA = re.compile(r"(?<=\n\n)(\S[^\n]* = [^\n]*[^\n.:,;])(?=\n\n)")
EXAMPLE = re.compile(r"^Example:\n\n((?:(?:>>>|\.\.\. )?.+\n?)+)", re.MULTILINE)


def as_google(text):
    text = FORMULA.sub(r"    \1", text)
    text = text.replace("\nCall arguments:\n", "\nArgs: Call arguments\n")
    return EXAMPLE.sub(
        lambda match: "Examples:\n" + textwrap.indent(match[1], "    "), text
    )


class KerasSections(griffe.Extension):
    def on_instance(self, *, obj, **kwargs):
        if obj.docstring:
            obj.docstring.value = as_google(obj.docstring.value)
