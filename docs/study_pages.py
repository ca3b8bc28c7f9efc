"""Adds README.md and the studies' pages and pictures to the site.

A hook of mkdocs. README.md, the first page, lies above `docs/` in the
repository and `studies/` beside it, and both are among its pages on the site.
So their links change there: one that works on a code host works on the site as
well.
"""

import pathlib
import posixpath
import re

from mkdocs.structure.files import File

ROOT = pathlib.Path(__file__).parents[1]
RECORDS = "changelog.md", "claims.md", "architecture.md", "releasing.md"
LINK = re.compile(r"(\]\()([^)\s#]+)")
NOT_ON_THE_SITE = re.compile(r"\[([^]]+)\]\(CONTRIBUTING\.md\)")


def on_config(config):
    config.nav.insert(-1, {"Studies": studies_navigation(ROOT)})
    return config


def studies_navigation(root):
    """The pages of the studies: those with a protocol, then the others."""
    with_protocol, others = [], []
    for page in sorted((root / "studies").glob("[a-z]*/README.md")):
        trained = any(page.parent.glob("protocol*.toml"))
        group = with_protocol if trained else others
        group.append(page.relative_to(root).as_posix())
    return [
        "studies/README.md",
        {"Trained models": with_protocol},
        {"Other measurements": others},
    ]


def study_files(root):
    """The pages of the studies and the files beside them."""
    pages = sorted((root / "studies").glob("[a-z]*/README.md"))
    files = [path for page in pages for path in sorted(page.parent.iterdir())]
    return [
        path.relative_to(root).as_posix()
        for path in [root / "studies" / "README.md", *files]
        if path.is_file()
    ]


def on_files(files, config):
    first = first_page((ROOT / "README.md").read_text())
    files.append(File.generated(config, "index.md", content=first))
    for path in study_files(ROOT):
        files.append(
            File.generated(config, path, abs_src_path=str(ROOT / path))
        )
    return files


def first_page(readme):
    """README.md with its links as they are on the site."""
    text = NOT_ON_THE_SITE.sub(r"\1", readme)
    text = text.replace("](CHANGELOG.md", "](docs/changelog.md")
    return text.replace("](docs/", "](")


def on_page_markdown(markdown, page, config, **kwargs):
    del kwargs
    if not is_guide(page.file.src_uri):  # guides first in a search
        page.meta["search"] = {"boost": 0.2}
    if config.repo_url:
        source = f"[a copy of the source]({config.repo_url})"
        markdown = markdown.replace("a copy of the source", source)
    return with_site_links(markdown, page.file.src_uri)


def is_guide(page):
    return not page.startswith("studies/") and page not in RECORDS


def with_site_links(markdown, page):
    """The page with relative links as they are on the site."""
    source = page if page.startswith("studies/") else f"docs/{page}"

    def link(match):
        target = posixpath.normpath(
            posixpath.join(posixpath.dirname(source), match[2])
        )
        crosses = target.startswith("studies/") != source.startswith("studies/")
        if ":" in match[2] or not crosses:
            return match[0]
        target = target.removeprefix("docs/")
        return match[1] + posixpath.relpath(target, posixpath.dirname(page))

    return LINK.sub(link, markdown)
