import json

import pytest

from docs import insert_tables


@pytest.mark.parametrize(
    "page", insert_tables.PAGES, ids=lambda page: page.name
)
def test_the_tables_shown_are_those_of_the_results(page):
    text = page.read_text()
    assert insert_tables.with_tables(text) == text, (
        "run python docs/insert_tables.py"
    )


RESULTS = sorted(
    (insert_tables.ROOT / "docs" / "results").glob("*/results.json")
)


@pytest.mark.parametrize("path", RESULTS, ids=lambda path: path.parent.name)
def test_a_table_holds_what_its_records_say(path):
    record = json.loads(path.read_text())
    module = pytest.importorskip(record["tables"])
    tables = module.tables(record)
    for name, table in tables.items():
        assert (path.parent / name).read_text().strip() == table.strip()
