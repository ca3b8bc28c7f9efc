"""Files of one time step, in the interpreters that run them, against Keras."""

import itertools
import json
import os
import pathlib

import keras
import numpy as np
import pytest
from keras import layers
from models import MARKS
from models import MODELS
from models import blocks_of
from models import some_input
from step_files import ON_TENSORFLOW
from step_files import PATHS
from step_files import assert_near
from step_files import write
from step_files import write_and_run

from keras_rin.export import export_c
from keras_rin.export import export_litert
from keras_rin.export import export_saved_model
from keras_rin.layers import RIN

pytestmark = [ON_TENSORFLOW, pytest.mark.one_backend]
DEFAULT = [("litert", "stacked cells last"), ("onnx", "in a model")]
GRAPHS = [
    pytest.param(
        *case,
        marks=[
            *([] if case in DEFAULT else [pytest.mark.exhaustive]),
            *([MARKS[case[1]]] if case[1] == "masked graph" else []),
        ],
    )
    for case in itertools.product(("litert", "onnx"), MODELS)
    if case[1] != "of a fixed batch"  # the interpreter gets one sequence
    and case != ("onnx", "of residual layers")  # has a stack
]


@pytest.mark.parametrize(("format", "name"), GRAPHS)
def test_a_graph_is_a_file(format, name, rng, tmp_path):
    """Which is run by the order in its description alone."""
    model = MODELS[name]()
    x = some_input(rng, model, batch=2, time=model.inputs[0].shape[1] or 12)
    y = write_and_run(model, format, tmp_path, blocks_of(model, x))
    assert_near(y, model, x, 1e-4)


def named(*names):
    model = keras.Sequential([keras.Input((None, 2))])
    for name in names:
        model.add(RIN(2, return_sequences=True, name=name))
    return model


def above(layer, **options):
    return keras.Sequential([keras.Input((None, 2)), RIN(2, **options), layer])


@pytest.mark.parametrize(
    ("format", "make", "tolerance"),
    [
        ("onnx", lambda: named("inputs", "class", "r.1"), 1e-5),
        ("litert", lambda: named("y_0", "serve"), 1e-5),
        ("onnx", lambda: above(layers.Dense(2), dtype="float16"), 1e-2),
    ],
)
def test_names_and_dtypes_that_a_format_holds(
    format, make, tolerance, rng, tmp_path
):
    model = make()
    x = rng.normal(size=(1, 5, 2)).astype("float32")
    y = write_and_run(model, format, tmp_path, x)
    assert_near(y, model, x, tolerance)


class Digamma(layers.Layer):
    def call(self, x):
        import tensorflow as tf

        return tf.raw_ops.Digamma(x=x)


def in_dtype(dtype):
    return lambda: above(layers.Dense(2, dtype="float32"), dtype=dtype)


def of_tokens():
    inputs = keras.Input((None,), dtype="int32")
    return keras.Sequential([inputs, layers.Embedding(6, 3), RIN(2)])


NAMES = {
    "onnx": [["rin", "new_rin"], ["r\u00fcn"], ["_r"], ["rin", "RIN"]],
    "litert": [["my-rin"], ["class"], ["self"], ["_r"], ["rin", "RIN"]],
}
REFUSED = [
    *(
        (format, lambda n=names: named(*n), "rename the layer.*Received")
        for format in NAMES
        for names in NAMES[format]
    ),
    ("onnx", in_dtype("bfloat16"), "copy the weights.*rin.*in bfloat16"),
    ("litert", in_dtype("float16"), "copy the weights.*rin.*in float16"),
    ("litert", in_dtype("float64"), "copy the weights.*rin.*in float64"),
    (
        "litert",
        lambda: above(layers.Dense(2, dtype="mixed_bfloat16", name="top")),
        "/top.*bfloat16",
    ),
    ("onnx", lambda: above(Digamma(name="mine")), "mine.*Digamma"),
    ("litert", lambda: above(Digamma(name="mine")), "Digamma.*mine"),
]


@pytest.mark.parametrize(("format", "make", "message"), REFUSED)
def test_what_a_format_lacks_is_refused(format, make, message, tmp_path):
    options = {"stepwise": (Digamma,)}
    with pytest.raises(ValueError, match=message):
        write(make(), tmp_path / PATHS[format], format, **options)
    assert not list(tmp_path.iterdir())


X = np.ones((1, 5, 2))


def rin():
    model = named("rin")
    model.set_weights([np.eye(2), np.zeros((2, 2)), np.zeros(2)])
    return model


@pytest.mark.parametrize(
    ("arithmetic", "make", "dataset", "message"),
    [
        (
            "integer16",
            lambda: above(layers.Dense(2, "elu")),
            None,
            "op: 'ELU'",
        ),
        ("integer16", of_tokens, None, "'integer16', where .*ExpandDims"),
        (
            "integer8",
            lambda: above(layers.Activation("celu"), activation="sigmoid"),
            None,
            "more than half along",
        ),
        ("integer16", rin, -X, "along which 'rin' is always 0"),
        ("integer16", rin, np.nan * X, "'x' is always 0 or not finite"),
        ("integer16", rin, X[0], "an array of shape .5, 2"),
    ],
)
def test_a_model_or_data_without_scales_is_refused(
    arithmetic, make, dataset, message, rng, tmp_path
):
    model = make()
    if dataset is None:
        dataset = some_input(rng, model, 2, 30)
    path = tmp_path / PATHS["litert"]
    with pytest.raises(ValueError, match=message):
        export_litert(model, path, arithmetic=arithmetic, calibration=dataset)
    assert not list(tmp_path.iterdir())


def test_a_saved_model_needs_neither_keras_nor_the_package(
    run_script, tmp_path
):
    model = above(layers.Dense(2))
    export_saved_model(model, tmp_path / "folder")
    printed = run_script(
        """
import sys
sys.modules["keras_rin"] = sys.modules["keras"] = None  # cannot be imported
import numpy, tensorflow
served = tensorflow.saved_model.load(sys.argv[1])
print(served.serve(numpy.ones((1, 5, 2), "float32")).numpy().tolist())
""",
        tmp_path / "folder",
    )
    assert_near(np.array(json.loads(printed)), model, np.ones((1, 5, 2)))


@pytest.mark.parametrize("format", PATHS)
def test_a_step_that_cannot_be_written_is_not_half_written(
    format, tmp_path, monkeypatch
):
    """`test_files.py` has every call that may fail."""
    name = PATHS[format]

    def write_step(units, folder=tmp_path):
        options = {} if format in ("c", "onnx") else {"step_only": True}
        model = above(layers.Dense(units))
        write(model, folder / name, format, **options)

    def contents():
        paths = tmp_path.rglob("*")
        return {path: path.is_file() and path.read_bytes() for path in paths}

    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="cannot be written"):
        write_step(2, tmp_path / "file")
    write_step(2)
    before = contents()

    def full(*args):
        raise OSError(28, "No space left on device")

    for fault in ((os, "fsync"), (pathlib.Path, "replace")):
        with monkeypatch.context() as patch:
            patch.setattr(*fault, full)
            with pytest.raises(OSError, match="No space left.*is unchanged"):
                write_step(3)
        assert contents() == before
    description = tmp_path / f"{name}.json"
    if description.exists():
        description.unlink()
        description.mkdir()
        with pytest.raises(OSError, match="not a regular file.*json"):
            write_step(3)
        assert (tmp_path / name).read_bytes() == before[tmp_path / name]


def test_a_file_takes_the_place_of_a_file_alone(tmp_path):
    """Of a symbolic link, that of its target, which need not exist."""
    target, link = tmp_path / "disk" / "rin.h", tmp_path / "rin.h"
    link.symlink_to(target)
    for units in (2, 3):
        export_c(above(layers.Dense(units)), link)
        assert link.is_symlink() and f"outputs = {units} " in target.read_text()
    for name, make in (("folder.h", os.mkdir), ("pipe.h", os.mkfifo)):
        make(tmp_path / name)
        with pytest.raises(OSError, match="not a regular file") as error:
            export_c(named("rin"), tmp_path / name)
        assert error.value.filename == str(tmp_path / name)
        assert not (tmp_path / name).is_file()
