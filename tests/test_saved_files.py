"""What was written once loads ever after, and a broken config is refused."""

import copy
import json
import os
import pathlib
import tempfile
import zipfile

import keras
import make_fixtures
import numpy as np
import pytest
from cases import keras_before
from public_objects import CLASSES
from public_objects import OBJECTS
from public_objects import make
from references import assert_same

import keras_rin

pytestmark = pytest.mark.one_backend

FIXTURES = sorted(make_fixtures.FOLDER.glob("*/*.keras"))
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


# What make_fixtures.py printed for a release: no line is ever changed.
DIGESTS = {
    "0.1.0": "0e72084fe546a043af6ed930407880ed764dc567e0c39cb54be24b887339066a",
}
UNMARKED = r"of keras_rin 0\.1\.0.*write `\w+\.unmarked_is_offset = True`"
OPTIMIZER = r"of keras_rin 0\.1\.0.*compile it with `keras\.optimizers\.Adam`"
# {file of a release: how it is refused}; every other one loads.
REFUSED = {
    "0.1.0/deep_transition": UNMARKED,
    "0.1.0/noisy": UNMARKED,
    "0.1.0/partial_identity": OPTIMIZER,
    "0.1.0/recurrent": UNMARKED,
    "0.1.0/residual": UNMARKED,
}


def model_of_a_release(file, **options):
    metadata = json.loads(zipfile.ZipFile(file).read("metadata.json"))
    try:
        return keras.models.load_model(file, **options)
    except (TypeError, ValueError):
        if not keras_before(metadata["keras_version"]):
            raise
        pytest.skip("an older Keras need not read files of a newer one")


def test_the_files_of_a_release_are_never_changed():
    folders = {folder.name: folder for folder in make_fixtures.FOLDER.iterdir()}
    digests = {name: make_fixtures.digest(at) for name, at in folders.items()}
    assert digests == DIGESTS


@pytest.fixture
def offsets_without_a_mark(monkeypatch):
    for layer in (keras_rin.layers.RINCell, keras_rin.layers.LinearResidual):
        monkeypatch.setattr(layer, "unmarked_is_offset", True)


def name_of(file):
    return f"{file.parent.name}/{file.stem}"


FILES = pytest.mark.parametrize("file", FIXTURES, ids=name_of)


@FILES
def test_a_file_of_a_release_loads_or_names_what_to_do(file):
    if name_of(file) not in REFUSED:
        assert_same_outputs(file)
        return
    with pytest.raises(ValueError, match=REFUSED[name_of(file)]):
        model_of_a_release(file)


@FILES
def test_a_file_of_a_release_loads_as_its_error_says(
    file, offsets_without_a_mark
):
    assert_same_outputs(file, compile=False)


def assert_same_outputs(file, **options):
    model = model_of_a_release(file, **options)
    with np.load(file.with_suffix(".npz")) as data:
        assert_same(model(data["x"]), data["y"], rtol=1e-4)


def test_the_next_release_has_files_of_every_class(tmp_path):
    """The layers, and the initializers that their configs name."""
    make_fixtures.main(tmp_path / "next")
    files = sorted(tmp_path.glob("next/*.keras"))
    text = "".join(
        zipfile.ZipFile(file).read("config.json").decode() for file in files
    )
    missing = [
        name
        for name in CLASSES
        if f'"keras_rin>{OBJECTS[name].__name__}"' not in text
    ]
    assert not missing
    for file in files:
        assert_same_outputs(file)


def broken_configs(name):
    """The config of a class with another value of one of its keys."""
    good = keras.saving.serialize_keras_object(make(OBJECTS[name]))
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
