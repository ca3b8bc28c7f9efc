"""Makes notebooks of pages whose code is one script.

A hook of mkdocs. A notebook is a file of the site beside its page, which links
to it below its heading; the page is the only source.
"""

import json
import re

from mkdocs.structure.files import File

PAGES = "tutorial", "long_sequences", "dynamics"
CODE = re.compile(r"^```python\n(.*?)^```$", re.M | re.S)
HIDDEN = re.compile(r"^<!--.*?-->\n?", re.M | re.S)
IMAGE = re.compile(r"^!\[.*\]\(.*\)$", re.M)
LINK = re.compile(r"\[([^]]+)\]\((?!https:)[^)]*\)")  # to a page of the site
INSTALL = "%pip install 'keras_rin[tensorflow,examples] @ git+{}'"


def on_files(files, config):
    for name in PAGES:
        page = files.get_file_from_path(f"{name}.md")
        text = notebook(page.content_string, config.repo_url)
        files.append(File.generated(config, f"{name}.ipynb", content=text))
    return files


def on_page_markdown(markdown, page, **kwargs):
    del kwargs
    name = page.file.src_uri.removesuffix(".md")
    if name not in PAGES:
        return markdown
    heading, _, rest = markdown.partition("\n")
    link = f"This page is also a [notebook]({name}.ipynb)."
    return f"{heading}\n\n{link}\n{rest}"


def notebook(markdown, repository):
    """The page as the text of a notebook: its prose, and its code to run."""
    parts = CODE.split(HIDDEN.sub("", markdown))
    cells = []
    for number, part in enumerate(parts):
        if number % 2:
            cells.append(code_cell(part.rstrip("\n")))
        elif prose := LINK.sub(r"\1", IMAGE.sub("", part)).strip():
            cells.append(
                {"cell_type": "markdown", "metadata": {}, "source": prose}
            )
    if repository:
        cells.insert(1, code_cell(INSTALL.format(repository)))
    kernel = {"name": "python3", "display_name": "Python 3"}
    return json.dumps(
        {
            "cells": cells,
            "metadata": {"kernelspec": kernel},
            "nbformat": 4,
            "nbformat_minor": 4,
        }
    )


def code_cell(source):
    return {
        "cell_type": "code",
        "execution_count": None,
        "metadata": {},
        "outputs": [],
        "source": source,
    }
