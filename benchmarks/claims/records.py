"""Reads and writes stored results."""

import json
import pathlib

from examples import outputs

RESULTS = pathlib.Path(__file__).parents[2] / "docs" / "results"


def read(folder):
    """The results in a folder, None if there are none yet."""
    path = folder / "results.json"
    return json.loads(path.read_text()) if path.exists() else None


def save(folder, record):
    """Replaces the results, or keeps the old file if interrupted."""
    text = json.dumps({**outputs.made_by(), **record}, indent=0)
    outputs.save_text(text + "\n", folder / "results.json")
