"""A file of one time step, and a JSON file beside it that describes it."""

import json
import pathlib

import keras

from keras_rin import _files
from keras_rin import _version


def write_described(
    path, content, what, inputs, outputs, prefix="", **description
):
    """Writes a file and its description, or neither; returns the latter's name.

    `inputs` and `outputs` are lists of dictionaries in the order of the file,
    `what` is for error messages, `prefix` begins the name of a new state, and
    `description` is what else to write, in `.json` behind the name of the file.
    """
    for entry in inputs:
        if entry["name"] != "x":
            entry["initial"] = entry.get("zero_point", 0)
    for entry in outputs:
        if entry["name"] != "y":
            entry["next"] = entry["name"].removeprefix(prefix)
    path = pathlib.Path(path)
    versions = {"keras_rin": _version.__version__, "keras": keras.__version__}
    description = {"file": path.name, **description, "inputs": inputs}
    description |= {"outputs": outputs, "made by": versions}
    text = json.dumps(description, indent=2)
    described = path.with_name(f"{path.name}.json")
    with _files.replacing_all([path, described], what) as (new, new_described):
        new.write_bytes(content)
        new_described.write_text(text + "\n", encoding="utf-8")
    return described.name
