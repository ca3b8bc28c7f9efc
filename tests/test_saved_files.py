"""What was written once loads ever after, and a broken config is refused."""

import copy
import json
import pathlib
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
JUNK = [
    "no such thing",
    LAMBDA,
    None,
    "../../../etc/passwd",
    -1,
    0,
    1e300,
    float("nan"),
    10**30,
    [],
    [[1], [2, 3]],
    {},
    {"class_name": "Lambda", "config": {}},
    True,
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


def broken_configs(name, values_of):
    """The config of a class with another value of one of its keys."""
    good = config_of(OBJECTS[name])
    for key, value in good["config"].items():
        for junk in values_of(OBJECTS[name], key, value):
            broken = copy.deepcopy(good)
            broken["config"][key] = junk
            yield broken


def junk_of(item, key, value):
    """All of it for what the class itself reads, two for what Keras does."""
    if key == "dtype":  # Keras itself says AttributeError of an object
        return JUNK[:1]
    return JUNK[:2] if isinstance(value, dict | bool) else JUNK


@pytest.mark.parametrize("name", CLASSES)
def test_a_broken_config_is_refused_or_what_it_says(name):
    configs = list(broken_configs(name, junk_of))
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


def foreign(mark):
    """Configs that would leave a file if anything of them were run."""
    code = f"open({str(mark)!r}, 'w')"
    for module, name, config in (
        ("os", "system", {"command": f"touch {mark}"}),
        ("os", "system", f"touch {mark}"),
        ("subprocess", "Popen", {"args": ["touch", str(mark)]}),
        ("builtins", "exec", {"source": code}),
        ("keras.layers", "Lambda", {"function": code}),
    ):
        yield {"module": module, "class_name": name, "config": config}


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", CLASSES)
def test_what_a_config_names_of_others_is_never_run(name, tmp_path):
    mark = tmp_path / "mark"
    for broken in broken_configs(name, lambda *_: foreign(mark)):
        try:
            keras.saving.deserialize_keras_object(broken)
        except Exception as error:
            assert str(error) or type(error) is not Exception
    assert not mark.exists()
