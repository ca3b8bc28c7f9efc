"""Makes notebooks of the pages whose code is one script.

A hook of mkdocs: jupytext makes a file of the site, which the page links to.
"""

import pathlib
import re

import jupytext
from mkdocs.structure.files import File

ROOT = pathlib.Path(__file__).parents[1]
PAGES = "tutorial", "long_sequences", "dynamics"
HIDDEN = re.compile(r"^<!--.*?-->\n|^!\[.*?\]\(.*?\)$", re.M | re.S)
LINK = re.compile(r"\[([^]]+)\]\((?!https:)[^)]*\)")  # to a page of the site
CODE = re.compile(r"^```python\n(.*?)^```$", re.M | re.S)
FIGURE = re.compile(r"(\w+)\.savefig\(")
INSTALL = "%pip install 'keras_rin[tensorflow,examples] @ git+{}'\n"
COLAB = "https://colab.research.google.com/github"
GITHUB = re.compile(r"https://github\.com/([\w.-]+/[\w.-]+?)(?:\.git)?/?$")


def on_files(files, config):
    for name in PAGES:
        page = files.get_file_from_path(f"{name}.md").content_string
        text = notebook(page, config.repo_url)
        files.append(File.generated(config, f"{name}.ipynb", content=text))
    return files


def on_page_markdown(markdown, page, config, **kwargs):
    del kwargs
    name = page.file.src_uri.removesuffix(".md")
    if name not in PAGES:
        return markdown
    heading, _, rest = markdown.partition("\n")
    return f"{heading}\n\n{links(name, config)}\n{rest}"


def links(name, config):
    """A link to the notebook, and to Colab if the repository is on GitHub.

    Colab opens notebooks of a repository. Those of the site are on the branch
    to which `mkdocs gh-deploy` pushes it.
    """
    text = f"This page is also a [notebook]({name}.ipynb)"
    if repository := GITHUB.match(config.repo_url or ""):
        path = f"{repository[1]}/blob/{config.remote_branch}/{name}.ipynb"
        text += f" ([open in Colab]({COLAB}/{path}))"
    return text + "."


def notebook(page, repository):
    """The text of a notebook, which installs the package first."""
    # The last line of a cell is shown: a figure that is not one of pyplot.
    text = CODE.sub(_with_figures, LINK.sub(r"\1", HIDDEN.sub("", page)))
    setup = INSTALL.format(repository) if repository else ""
    setup = f"```python\n{setup}%matplotlib inline\n```\n\n```python"
    text = text.replace("```python", setup, 1)
    text = text.replace("```bash", "```")  # which would be a cell, to run
    return jupytext.writes(jupytext.reads(text, "md"), "ipynb")


def _with_figures(match):
    figures = "".join(f"{name}\n" for name in FIGURE.findall(match[1]))
    return f"```python\n{match[1]}{figures}```"
