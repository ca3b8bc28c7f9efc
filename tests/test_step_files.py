"""Files of one time step, in the interpreters that run them, against Keras."""

import itertools
import json
import os
import pathlib

import keras
import numpy as np
import pytest
from keras import layers
from step_files import assert_near
from step_files import described
from step_files import write_and_run
from test_export import ON_TENSORFLOW
from test_streaming_step import MARKS
from test_streaming_step import MODELS
from test_streaming_step import blocks_of
from test_streaming_step import some_input

from keras_rin.export import export_streaming
from keras_rin.export import streaming_step
from keras_rin.layers import RIN

pytestmark = [ON_TENSORFLOW, pytest.mark.one_backend]
PATHS = {
    "c": "rin.h",
    "litert": "step.tflite",
    "onnx": "step.onnx",
    "tf_saved_model": "streaming",
}


@pytest.mark.parametrize(
    ("dtype", "tolerance"),
    [("int8", 0.1), pytest.param("int16", 0.02, marks=pytest.mark.exhaustive)],
)
def test_the_scales_of_a_litert_file_of_integers(
    dtype, tolerance, rng, tmp_path
):
    """Those along sequences, with which an application computes the codes."""
    import tensorflow as tf

    memory = layers.GRU(8, return_sequences=True, name="memory")
    model = keras.Sequential([keras.Input((None, 3)), memory])
    x = rng.normal(size=(2, 30, 3)).astype("float32")
    step = streaming_step(model)

    def samples():
        for sequence in x:
            memory = np.zeros((1, 8), "float32")
            for values in sequence:
                inputs = {"x": values[None], "memory": memory}
                yield inputs
                memory = step.predict_on_batch(inputs)["memory"]

    descriptions = []
    options = dict.fromkeys(
        ["inference_input_type", "inference_output_type"], getattr(tf, dtype)
    )
    options |= {"weights": "int8", "states": dtype}
    for dataset in (x, samples):
        options["representative_dataset"] = dataset
        y = write_and_run(model, "litert", tmp_path, x, **options)
        assert_near(y, model, x, tolerance)
        descriptions.append(described(tmp_path / PATHS["litert"]))
    assert descriptions[0] == descriptions[1]
    entry = next(e for e in descriptions[0]["inputs"] if e["name"] == "memory")
    assert entry["dtype"] == dtype and entry["initial"] == entry["zero_point"]


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
        export_streaming(make(), tmp_path / PATHS[format], format, **options)
    assert not list(tmp_path.iterdir())


def rin():
    return named("rin")


def data(x=1.0, rin=1.0):
    """One sample of the model above."""
    return lambda: [{"x": np.full((1, 2), x), "rin": np.full((1, 2), rin)}]


@pytest.mark.parametrize(
    ("states", "make", "dataset", "message"),
    [
        ("int16", lambda: above(layers.Dense(2, "elu")), None, "op: 'ELU'"),
        ("int16", of_tokens, None, "states='int16', where .*ExpandDims"),
        (
            "int8",
            lambda: above(layers.Activation("celu"), activation="sigmoid"),
            None,
            "more than half along",
        ),
        ("int16", rin, data(rin=0.0), "1 samples, where 'rin' is always 0"),
        ("int16", rin, data(x=np.nan), "'x' is always 0 or not finite"),
        ("int16", rin, lambda: [], "0 samples"),
    ],
)
def test_a_model_or_data_without_scales_is_refused(
    states, make, dataset, message, rng, tmp_path
):
    model = make()
    if dataset is None:
        dataset = some_input(rng, model, 2, 30)
    options = {"weights": "int8", "states": states}
    options["representative_dataset"] = dataset
    path = tmp_path / PATHS["litert"]
    with pytest.raises(ValueError, match=message):
        export_streaming(model, path, "litert", False, **options)
    assert not list(tmp_path.iterdir())


def test_a_saved_model_needs_neither_keras_nor_the_package(
    run_script, tmp_path
):
    model = above(layers.Dense(2))
    export_streaming(model, tmp_path / "folder", verbose=False)
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

    def write(units, folder=tmp_path):
        options = {} if format == "c" else {"step_only": True}
        model = above(layers.Dense(units))
        export_streaming(model, folder / name, format, False, **options)

    def contents():
        paths = tmp_path.rglob("*")
        return {path: path.is_file() and path.read_bytes() for path in paths}

    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="cannot be written"):
        write(2, tmp_path / "file")
    write(2)
    before = contents()

    def full(*args):
        raise OSError(28, "No space left on device")

    for fault in ((os, "fsync"), (pathlib.Path, "replace")):
        with monkeypatch.context() as patch:
            patch.setattr(*fault, full)
            with pytest.raises(OSError, match="No space left.*is unchanged"):
                write(3)
        assert contents() == before
    description = tmp_path / f"{name}.json"
    if description.exists():
        description.unlink()
        description.mkdir()
        with pytest.raises(OSError, match="not a regular file.*json"):
            write(3)
        assert (tmp_path / name).read_bytes() == before[tmp_path / name]


def test_a_file_takes_the_place_of_a_file_alone(tmp_path):
    """Of a symbolic link, that of its target, which need not exist."""
    target, link = tmp_path / "disk" / "rin.h", tmp_path / "rin.h"
    link.symlink_to(target)
    for units in (2, 3):
        export_streaming(above(layers.Dense(units)), link, "c", False)
        assert link.is_symlink() and f"outputs = {units} " in target.read_text()
    for name, make in (("folder.h", os.mkdir), ("pipe.h", os.mkfifo)):
        make(tmp_path / name)
        with pytest.raises(OSError, match="not a regular file") as error:
            export_streaming(named("rin"), tmp_path / name, "c", False)
        assert error.value.filename == str(tmp_path / name)
        assert not (tmp_path / name).is_file()
