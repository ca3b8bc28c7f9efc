"""Makes notebooks of pages whose code is one script, and of examples.

A hook of mkdocs. A notebook is a file of the site, beside the page that links
to it; page or program is the only source.
"""

import json
import pathlib
import re
import textwrap

from mkdocs.structure.files import File

ROOT = pathlib.Path(__file__).parents[1]
PAGES = "tutorial", "long_sequences", "dynamics"
EXAMPLES = "adding_problem", "fixed_points"
CODE = re.compile(r"^```python\n(.*?)^```$", re.M | re.S)
HIDDEN = re.compile(r"^<!--.*?-->\n?", re.M | re.S)
IMAGE = re.compile(r"^!\[.*\]\(.*\)$", re.M)
LINK = re.compile(r"\[([^]]+)\]\((?!https:)[^)]*\)")  # to a page of the site
FIGURE = re.compile(r"(\w+)\.savefig\(")
COMMAND = re.compile(
    rf"^    python examples/({'|'.join(EXAMPLES)})\.py\n(?!    )", re.M
)
INSTALL = "%pip install 'keras_rin[tensorflow,examples] @ git+{}'"
COLAB = "https://colab.research.google.com/github"
GITHUB = re.compile(r"https://github\.com/([\w.-]+/[\w.-]+?)(?:\.git)?/?$")
SHOW = """\
from IPython.display import Image
from IPython.display import display

for picture in sorted(pathlib.Path(FLAGS.output).glob("*.png")):
    display(Image(picture))"""


def on_files(files, config):
    notebooks = {
        name: page_cells(files.get_file_from_path(f"{name}.md").content_string)
        for name in PAGES
    }
    notebooks |= {name: example_cells(name) for name in EXAMPLES}
    for name, cells in notebooks.items():
        text = notebook(cells, config.repo_url)
        files.append(File.generated(config, f"{name}.ipynb", content=text))
    return files


def on_page_markdown(markdown, page, config, **kwargs):
    del kwargs
    name = page.file.src_uri.removesuffix(".md")
    if name == "examples":
        return COMMAND.sub(
            lambda match: (
                match[0] + f"\nThis example is {links(match[1], config)}\n"
            ),
            markdown,
        )
    if name not in PAGES:
        return markdown
    heading, _, rest = markdown.partition("\n")
    return f"{heading}\n\nThis page is {links(name, config)}\n{rest}"


def links(name, config):
    """A link to the notebook and, if the repository is on GitHub, a button.

    Colab opens notebooks of a repository. Those of the site are on the branch
    to which `mkdocs gh-deploy` pushes it.
    """
    text = f"also a [notebook]({name}.ipynb)."
    if repository := GITHUB.match(config.repo_url or ""):
        path = f"{repository[1]}/blob/{config.remote_branch}/{name}.ipynb"
        button = f'<a class="md-button" href="{COLAB}/{path}">Open in Colab</a>'
        text += f"\n\n{button}"
    return text


def page_cells(markdown):
    """The cells of a page: its prose, and its code to run."""
    cells = []
    for number, part in enumerate(CODE.split(HIDDEN.sub("", markdown))):
        if number % 2:
            figures = FIGURE.findall(part)  # the last line of a cell is shown
            cells.append(code_cell("\n".join([part.rstrip("\n"), *figures])))
        elif prose := LINK.sub(r"\1", IMAGE.sub("", part)).strip():
            cells.append(prose_cell(prose))
    return cells


def example_cells(name):
    """The cells of an example: docstring, functions, flags, and the run."""
    source = (ROOT / "examples" / f"{name}.py").read_text()
    _, docstring, code = source.split('"""', 2)
    code, _, flags = code.partition('\nif __name__ == "__main__":\n')
    flags = textwrap.dedent(flags).replace("app.run(main)", "").strip()
    return [
        prose_cell(f"# {name.replace('_', ' ').capitalize()}\n\n{docstring}"),
        *(code_cell(part) for part in code.strip().split("\n\n\n")),
        prose_cell("The flags of the program, with their defaults:"),
        code_cell(flags),
        prose_cell("Add flags to this list as on a command line:"),
        code_cell(f'FLAGS(["{name}"])\nmain([])'),
        code_cell(SHOW),
    ]


def notebook(cells, repository):
    """Cells as the text of a notebook, which installs the package first."""
    # A figure that is not one of pyplot is shown by this magic.
    setup = ["%matplotlib inline"]
    if repository:
        setup.insert(0, INSTALL.format(repository))
    kernel = {"name": "python3", "display_name": "Python 3"}
    return json.dumps(
        {
            "cells": [cells[0], code_cell("\n".join(setup)), *cells[1:]],
            "metadata": {"kernelspec": kernel},
            "nbformat": 4,
            "nbformat_minor": 4,
        }
    )


def prose_cell(source):
    return {"cell_type": "markdown", "metadata": {}, "source": source}


def code_cell(source):
    return {
        "cell_type": "code",
        "execution_count": None,
        "metadata": {},
        "outputs": [],
        "source": source,
    }
