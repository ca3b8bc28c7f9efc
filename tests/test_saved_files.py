"""What was written once loads ever after, and a broken config is refused."""

import copy
import json
import os
import pathlib
import tempfile
import zipfile

import keras
import numpy as np
import pytest
from cases import keras_before
from public_objects import OBJECTS
from references import assert_same
from test_public_names import CLASSES
from test_public_names import make

pytestmark = pytest.mark.one_backend

FIXTURES = sorted(
    (pathlib.Path(__file__).parent / "fixtures").glob("*/*.keras")
)
LAMBDA = {
    "class_name": "__lambda__",
    "config": {"value": "4wEAAAAAAAAA", "defaults": None, "closure": None},
}
# It would leave a file if it were run.
MARK = pathlib.Path(tempfile.gettempdir()) / f"keras_rin_{os.getpid()}"
TOUCH = {"command": f"touch {MARK}"}
JUNK = [
    "no such thing",
    LAMBDA,
    {"module": "os", "class_name": "system", "config": TOUCH},
    *(None, "../../../etc/passwd", -1, 0, 1e300, float("nan"), 10**30),
    *([], [[1], [2, 3]], {}, True),
]


def model_of_a_release(file):
    metadata = json.loads(zipfile.ZipFile(file).read("metadata.json"))
    try:
        return keras.models.load_model(file)
    except (TypeError, ValueError):
        if not keras_before(metadata["keras_version"]):
            raise
        pytest.skip("an older Keras need not read files of a newer one")


@pytest.mark.parametrize(
    "file", FIXTURES, ids=lambda file: f"{file.parent.name}-{file.stem}"
)
def test_a_file_of_a_release_still_answers_the_same(file):
    model = model_of_a_release(file)  # skipped before a file is opened
    with np.load(file.with_suffix(".npz")) as data:
        assert_same(model(data["x"]), data["y"], rtol=1e-4)


def test_every_class_is_in_a_file_of_each_release():
    """The layers, and the initializers that their configs name."""
    for folder in {file.parent for file in FIXTURES}:
        text = "".join(
            zipfile.ZipFile(file).read("config.json").decode()
            for file in folder.glob("*.keras")
        )
        missing = [
            name
            for name in CLASSES
            if f'"keras_rin>{OBJECTS[name].__name__}"' not in text
        ]
        assert not missing


def config_of(item):
    return keras.saving.serialize_keras_object(make(item))


def broken_configs(name):
    """The config of a class with another value of one of its keys."""
    good = config_of(OBJECTS[name])
    for key, value in good["config"].items():
        for junk in junk_for(key, value):
            broken = copy.deepcopy(good)
            broken["config"][key] = junk
            yield broken


def junk_for(key, value):
    """All of it for what the class itself reads, some for what Keras does."""
    if key == "dtype":  # Keras itself says AttributeError of an object
        return JUNK[:1]
    return JUNK[:3] if isinstance(value, dict | bool) else JUNK


@pytest.mark.parametrize("name", CLASSES)
def test_a_broken_config_is_refused_or_what_it_says(name):
    configs = list(broken_configs(name))
    assert configs
    for broken in configs:
        try:
            loaded = keras.saving.deserialize_keras_object(
                copy.deepcopy(broken)
            )
        except (ValueError, TypeError, OverflowError) as error:
            assert str(error), broken
            continue
        config = keras.saving.serialize_keras_object(loaded)
        # Keras takes the cell of an RNN out of the config that it is given.
        again = keras.saving.deserialize_keras_object(copy.deepcopy(config))
        again = keras.saving.serialize_keras_object(again)
        assert json.dumps(again) == json.dumps(config), broken
    assert not MARK.exists()
