"""Puts a table of names, each with one line, on top of each page of the API.

A hook of mkdocs. The line is the first one of the docstring.
"""

import functools
import pathlib
import re

import griffe

ROOT = pathlib.Path(__file__).parents[1]
NAME = re.compile(r"^::: (\S+)$", re.M)


def on_page_markdown(markdown, page, **kwargs):
    del kwargs
    names = NAME.findall(markdown)
    if not page.file.src_uri.startswith("api/") or len(names) < 2:
        return markdown
    return NAME.sub(f"{_escaped(table(names))}\n\n\\g<0>", markdown, count=1)


def table(names):
    """A row for each name: a link to its entry, and its summary."""
    rows = [
        f"| [`{_short(name)}`](#{name}) | {summary(name)} |" for name in names
    ]
    return "\n".join(["| name | |", "|---|---|", *rows])


def summary(name):
    """The first line of the docstring of an object."""
    docstring = _package()[name.removeprefix("keras_rin.")].docstring
    return docstring.value.partition("\n")[0].replace("|", r"\|")


def _short(name):
    """Without the package and its module: `adding.generate`, `RIN`."""
    parts = name.split(".")[1:]
    return ".".join(parts[1:] or parts)


def _escaped(text):
    return text.replace("\\", "\\\\")


@functools.cache
def _package():
    return griffe.load("keras_rin", search_paths=[ROOT])
