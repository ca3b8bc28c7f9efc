"""Copies the tables of docs/results into the pages that show them.

A page marks the place with `<!-- table: docs/results/NAME/table.md -->` and
`<!-- end -->`.
"""

import pathlib
import re

ROOT = pathlib.Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
PLACE = re.compile(r"(<!-- table: (\S+) -->\n).*?(<!-- end -->)", re.DOTALL)


def with_tables(text):
    def insert(match):
        start, name, end = match.groups()
        return start + (ROOT / name).read_text().strip() + "\n" + end

    return PLACE.sub(insert, text)


def main():
    for page in PAGES:
        page.write_text(with_tables(page.read_text()))


if __name__ == "__main__":
    main()
