"""Where the results of commands are stored, and how."""

import json
import pathlib

from examples import outputs

RESULTS = pathlib.Path(__file__).parents[2] / "docs" / "results"


def read(folder):
    """The results of a folder, None where there are none yet."""
    path = folder / "results.json"
    return json.loads(path.read_text()) if path.exists() else None


def save(folder, record):
    """Writes them anew, or leaves what is there if it is cut off."""
    text = json.dumps({**outputs.made_by(), **record}, indent=0)
    outputs.save_text(text + "\n", folder / "results.json")
