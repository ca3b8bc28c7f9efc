"""A file of one time step, and a JSON file beside it that describes it."""

import json
import pathlib

import keras

from keras_rin import _files
from keras_rin import _version


def write_described(path, content, description, what):
    """Writes both files, or neither.

    Args:
        path: The file; the description has `.json` behind its name.
        content: Bytes of the file.
        description: Dictionary of the format and the signature.
        what: String, what the file is, for error messages.

    Returns:
        The name of the description.
    """
    path = pathlib.Path(path)
    described = path.with_name(f"{path.name}.json")
    text = json.dumps({"file": path.name} | description | _made_by(), indent=2)
    with (
        _files.replacing(described, "The description") as new_described,
        _files.replacing(path, what) as new,
    ):
        new.write_bytes(content)
        new_described.write_text(text + "\n", encoding="utf-8")
    return described.name


def _made_by():
    return {
        "made by": {
            "keras_rin": _version.__version__,
            "keras": keras.__version__,
        }
    }
