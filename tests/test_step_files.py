"""Files of one time step, in the interpreters that run them, against Keras."""

import functools
import json
import os
import sys

import keras
import numpy as np
import pytest
from keras import layers
from step_files import assert_near
from step_files import described
from step_files import run_by_description
from step_files import run_litert
from step_files import write_and_run
from test_export import ON_TENSORFLOW
from test_streaming_step import MARKS
from test_streaming_step import MODELS
from test_streaming_step import some_input

from keras_rin import _files
from keras_rin.export import export_streaming
from keras_rin.export import streaming_step
from keras_rin.layers import RIN
from keras_rin.layers import ResidualDenseStack

STEPS = 200
# Of the largest output, after any of the 200 steps.
TOLERANCES = {
    ("float32", "float32"): 1e-5,
    ("float16", "float32"): 2e-3,
    ("int8", "float32"): 2e-2,
    ("int8", "int16"): 2e-2,
    ("int8", "int8"): 1e-1,
}
LAYERS = {"RIN": RIN, "GRU": layers.GRU, "LSTM": layers.LSTM}
RUNTIME, EXHAUSTIVE = pytest.mark.runtime, pytest.mark.exhaustive
MARKS_OF_TYPES = {
    ("LSTM", "int8", "int16"): RUNTIME,
    ("RIN", "float32", "float32"): [RUNTIME, EXHAUSTIVE],
    ("RIN", "int8", "int16"): [RUNTIME, EXHAUSTIVE],
}
EACH_TYPE = pytest.mark.parametrize(
    ("layer", "weights", "states"),
    [
        pytest.param(
            layer,
            *types,
            marks=MARKS_OF_TYPES.get((layer, *types), EXHAUSTIVE),
            id="-".join([layer, *types]),
        )
        for layer in LAYERS
        for types in TOLERANCES
    ],
)


def network(layer):
    """Of raw inputs, whose states fade, as those of a trained network do."""
    keras.utils.set_random_seed(1)
    options = {}
    if layer == "RIN":
        options["recurrent_initializer"] = keras.initializers.Identity(-0.1)
    return keras.Sequential(
        [
            keras.Input((None, 3)),
            layers.Normalization(mean=[1.0, 0.0, 2.0], variance=[1.0, 4.0, 1]),
            LAYERS[layer](40, return_sequences=True, name="memory", **options),
            layers.Dense(2),
        ]
    )


def sensor_values(rng, steps=STEPS):
    x = rng.normal(size=(steps, 3)) * [1.0, 2.0, 1.0] + [1.0, 0.0, 2.0]
    return x.astype("float32")


def zero_states(step):
    return {
        name: np.zeros((1, *tensor.shape[1:]), "float32")
        for name, tensor in step.input.items()
        if name != "x"
    }


def samples_along(model, x):
    """A representative data set: the inputs and states along a sequence."""
    step = streaming_step(model)

    def samples():
        state = zero_states(step)
        for values in x:
            inputs = {"x": values[None], **state}
            yield inputs
            state = step.predict_on_batch(inputs)
            state.pop("y")

    return samples


def write_litert(model, path, weights, states, x, **options):
    if states != "float32":
        options["representative_dataset"] = samples_along(model, x)
    export_streaming(
        model,
        path,
        "litert",
        verbose=False,
        weights=weights,
        states=states,
        step_only=True,
        **options,
    )


@pytest.fixture(scope="module")
def litert_file(tmp_path_factory):
    """Model, inputs and file, for all interpreters that run it."""

    @functools.cache
    def write(layer, weights, states):
        model, x = network(layer), sensor_values(np.random.default_rng(0))
        path = tmp_path_factory.mktemp("litert") / "step.tflite"
        write_litert(model, path, weights, states, x)
        return model, x, path

    return write


@ON_TENSORFLOW
@EACH_TYPE
def test_a_step_alone_in_litert(layer, weights, states, litert_file):
    model, x, path = litert_file(layer, weights, states)
    y = run_litert(path, x)
    assert_near(y[None], model, x[None], TOLERANCES[weights, states])


@ON_TENSORFLOW
@EACH_TYPE
def test_a_step_alone_in_litert_for_microcontrollers(
    layer, weights, states, litert_file
):
    reason = "the wheel tflite-micro is not installed"
    pytest.importorskip("tflite_micro", reason=reason)
    from tflite_micro.python.tflite_micro import runtime

    model, x, path = litert_file(layer, weights, states)

    def load():
        return runtime.Interpreter.from_file(str(path), arena_size=100_000)

    if states == "float32" and weights != "float32":
        with pytest.raises(RuntimeError, match="failed to allocate"):
            load()
        return
    interpreter = load()
    y = run_by_description(
        described(path),
        x,
        lambda at, value: interpreter.set_input(value, at),
        interpreter.invoke,
        interpreter.get_output,
    )
    assert_near(y[None], model, x[None], TOLERANCES[weights, states])


@ON_TENSORFLOW
@pytest.mark.exhaustive
@pytest.mark.parametrize("dtype", ["int16", "int8"])
def test_the_scales_of_a_litert_file_of_integers(dtype, rng, tmp_path):
    """An application that stores states as the file does needs them."""
    import tensorflow as tf
    from ai_edge_litert.interpreter import Interpreter

    model, x = network("GRU"), sensor_values(rng)
    path, dtypes = tmp_path / "step.tflite", getattr(tf, dtype)
    options = dict.fromkeys(
        ["inference_input_type", "inference_output_type"], dtypes
    )
    write_litert(model, path, "int8", dtype, x, **options)
    description = described(path)
    by_name = {entry["name"]: entry for entry in description["inputs"]}
    outputs = {entry["name"]: entry for entry in description["outputs"]}
    step = Interpreter(str(path)).get_signature_runner("step")

    def codes(value, entry):
        limits = np.iinfo(entry["dtype"])
        value = np.round(value / entry["scale"]) + entry["zero_point"]
        return np.clip(value, limits.min, limits.max).astype(entry["dtype"])

    def values(code, entry):
        return entry["scale"] * (code.astype("float32") - entry["zero_point"])

    initial = by_name["memory"]["initial"]
    assert initial == by_name["memory"]["zero_point"]
    memory, y = np.full((1, 40), initial, dtype), []
    for row in x:
        inputs = {"x": codes(row[None], by_name["x"]), "memory": memory}
        new = step(**inputs)
        y.append(values(new["y"], outputs["y"])[0])
        memory = values(new["memory"], outputs["memory"])
        memory = codes(memory, by_name["memory"])
    tolerance = TOLERANCES["int8", dtype]
    assert_near(np.stack(y)[None], model, x[None], tolerance)


GRAPHS = [
    pytest.param(
        format,
        name,
        marks=[
            *([] if name in default else [pytest.mark.exhaustive]),
            *([MARKS[name]] if name == "masked graph" else []),
        ],
    )
    for format, default in {
        "litert": ("stacked cells last",),
        "onnx": ("in a model",),
    }.items()
    for name in MODELS
    if name != "of a fixed batch"  # the interpreter gets one sequence
    and (format, name) != ("onnx", "of residual layers")  # has a stack
]


@ON_TENSORFLOW
@pytest.mark.one_backend
@pytest.mark.parametrize(("format", "name"), GRAPHS)
def test_a_graph_is_a_file(format, name, rng, tmp_path):
    """Which is run by the order in its description alone."""
    model = MODELS[name]()
    x = some_input(rng, model, batch=2, time=6)
    y = write_and_run(model, format, tmp_path, x)
    assert_near(y, model, x, 1e-4)


@ON_TENSORFLOW
def test_the_onnx_file_states_its_opset(tmp_path, capfd):
    import onnx

    path = tmp_path / "step.onnx"
    export_streaming(named("r-1"), path, "onnx")
    opsets = {o.domain: o.version for o in onnx.load(path).opset_import}
    assert opsets[""] == described(path)["opset"] == 15
    assert "step of r-1, x, in opset 15, des" in capfd.readouterr().out


def named(*names):
    model = keras.Sequential([keras.Input((None, 2))])
    for name in names:
        model.add(RIN(2, return_sequences=True, name=name))
    return model


PATHS = {"onnx": "step.onnx", "litert": "step.tflite"}
SUPPORTED_NAMES = {
    "onnx": ["inputs", "class", "r.1"],
    "litert": ["y_0", "serve"],
}
REFUSED_NAMES = {
    "onnx": [["rin", "new_rin"], ["r\u00fcn"], ["_r"], ["rin", "RIN"]],
    "litert": [["my-rin"], ["class"], ["self"], ["_r"], ["rin", "RIN"]],
}


@ON_TENSORFLOW
@pytest.mark.parametrize("format", PATHS)
def test_names_that_a_format_holds(format, rng, tmp_path):
    model = named(*SUPPORTED_NAMES[format])
    x = rng.normal(size=(1, 5, 2)).astype("float32")
    assert_near(write_and_run(model, format, tmp_path, x), model, x)


@ON_TENSORFLOW
@pytest.mark.parametrize(
    ("format", "names"),
    [(format, n) for format, names in REFUSED_NAMES.items() for n in names],
)
def test_names_that_a_format_cannot_hold_are_refused(format, names, tmp_path):
    with pytest.raises(ValueError, match="rename the layer.*Received"):
        export_streaming(named(*names), tmp_path / PATHS[format], format)
    assert not list(tmp_path.iterdir())


class Digamma(layers.Layer):
    def call(self, x):
        import tensorflow as tf

        return tf.raw_ops.Digamma(x=x)


def above(layer, **options):
    return keras.Sequential([keras.Input((None, 2)), RIN(2, **options), layer])


DTYPES = {
    ("onnx", "bfloat16"): "'rin\\w*' has no form in ONNX.* in bfloat16",
    ("onnx", "float16"): None,
    ("litert", "float16"): "'rin\\w*' has no form in LiteRT.* in float16",
    ("litert", "float64"): "'rin\\w*' has no form in LiteRT.* in float64",
}


@ON_TENSORFLOW
@pytest.mark.parametrize("case", DTYPES, ids="-".join)
def test_a_dtype_is_supported_or_refused(case, rng, tmp_path):
    format, dtype = case
    model = above(layers.Dense(2, dtype="float32"), dtype=dtype)
    x = rng.normal(size=(1, 5, 2)).astype("float32")
    if DTYPES[case] is None:
        y = write_and_run(model, format, tmp_path, x)
        assert_near(y, model, x, 1e-2)
    else:
        with pytest.raises(ValueError, match=f"{DTYPES[case]}.*copy the weigh"):
            write_and_run(model, format, tmp_path, x)
        assert not list(tmp_path.iterdir())


@ON_TENSORFLOW
@pytest.mark.parametrize(
    ("format", "layer", "reason"),
    [
        ("onnx", lambda: Digamma(name="mine"), "'mine'.*'Digamma'"),
        ("litert", lambda: Digamma(name="mine"), "'mine'.*'Digamma'"),
        ("onnx", lambda: layers.Dense(2, "gelu", name="top"), "'top'.*'Erfc'"),
        (
            "onnx",
            lambda: ResidualDenseStack(2, depth=2, name="deep"),
            "'deep'.*'while'",
        ),
        (
            "litert",
            lambda: layers.Dense(2, dtype="mixed_bfloat16", name="top"),
            "'top'.*bfloat16",
        ),
    ],
)
def test_a_layer_that_a_format_lacks_is_refused(
    format, layer, reason, tmp_path
):
    with pytest.raises(ValueError, match=reason):
        export_streaming(above(layer()), tmp_path / PATHS[format], format)
    assert not list(tmp_path.iterdir())


def of_tokens():
    inputs = keras.Input((None,), dtype="int32")
    return keras.Sequential([inputs, layers.Embedding(6, 3), RIN(2)])


IN_INTEGERS = {
    "operation": (
        "int16",
        lambda: above(layers.Dense(2, "elu")),
        "has no form of ELU",
    ),
    "tokens": ("int16", of_tokens, "has no form of .*ExpandDims"),
    "always 0": (
        "int8",
        lambda: above(layers.Activation("celu"), activation="sigmoid"),
        "differ from those of the model by more than half",
    ),
}


@ON_TENSORFLOW
@pytest.mark.parametrize("case", IN_INTEGERS)
def test_what_litert_does_not_compute_in_integers_is_refused(
    case, rng, tmp_path
):
    states, make, message = IN_INTEGERS[case]
    options = {"weights": "int8", "states": states}
    model = make()
    options["representative_dataset"] = some_input(rng, model, 2, 30)
    with pytest.raises(ValueError, match=f"{states}.*{message}"):
        export_streaming(
            model, tmp_path / PATHS["litert"], "litert", False, **options
        )
    assert not list(tmp_path.iterdir())


@ON_TENSORFLOW
def test_onnx_without_tf2onnx_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "tf2onnx", None)
    with pytest.raises(ImportError, match="pip install tf2onnx"):
        export_streaming(named("rin"), tmp_path / "m.onnx", "onnx")
    assert not list(tmp_path.iterdir())


def constant(**values):
    return lambda: [{name: np.full(*value) for name, value in values.items()}]


ONES = {"x": ((1, 2), 1.0), "rin": ((1, 2), 1.0)}
DATASETS = {
    "states at 0": (
        constant(**ONES | {"rin": ((1, 2), 0.0)}),
        "1 samples, where 'rin' is always 0",
    ),
    "not finite": (
        constant(**ONES | {"x": ((1, 2), np.nan)}),
        "'x' is always 0 or not finite",
    ),
    "no state": (constant(x=ONES["x"]), "must yield dictionaries"),
    "other shape": (
        constant(**ONES | {"rin": ((1, 3), 1.0)}),
        r"must yield dictionaries.*\(1, 3\)",
    ),
    "list": (lambda: [[np.ones((1, 2))]], "must yield dictionaries"),
    "no samples": (lambda: [], "0 samples"),
    "sequences of 3 features": (np.ones((2, 5, 3)), "must yield dictionaries"),
}


@ON_TENSORFLOW
def test_scales_are_those_along_the_sequences_of_an_array(tmp_path):
    import tensorflow as tf

    model = network("GRU")
    x = np.stack([sensor_values(np.random.default_rng(n), 30) for n in (0, 1)])

    def function():
        return [*samples_along(model, x[0])(), *samples_along(model, x[1])()]

    descriptions = []
    for dataset in (x, function):
        export_streaming(
            model,
            tmp_path / "m.tflite",
            "litert",
            verbose=False,
            weights="int8",
            states="int16",
            representative_dataset=dataset,
            inference_input_type=tf.int16,
            inference_output_type=tf.int16,
        )
        text = (tmp_path / "m.tflite.json").read_text()
        descriptions.append(json.loads(text))
    assert descriptions[0] == descriptions[1]


@ON_TENSORFLOW
@pytest.mark.parametrize("case", DATASETS)
def test_a_dataset_without_scales_is_refused_for_litert(case, tmp_path):
    dataset, message = DATASETS[case]
    with pytest.raises(ValueError, match=message):
        export_streaming(
            named("rin"),
            tmp_path / "m.tflite",
            "litert",
            weights="int8",
            states="int16",
            representative_dataset=dataset,
        )
    assert not list(tmp_path.iterdir())


@ON_TENSORFLOW
@pytest.mark.one_backend
@pytest.mark.parametrize(
    ("format", "name"),
    [
        ("litert", "step.tflite"),
        ("onnx", "step.onnx"),
        ("tf_saved_model", "streaming"),
    ],
)
def test_a_step_that_cannot_be_written_is_not_half_written(
    format, name, tmp_path, monkeypatch
):
    def write():
        export_streaming(
            named("rin"), tmp_path / name, format, False, step_only=True
        )

    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="cannot be written"):
        export_streaming(named("rin"), tmp_path / "file" / name, format, False)
    is_folder = format == "tf_saved_model"
    blocked = tmp_path / (f"{name}/saved_model.pb" if is_folder else name)
    write()
    before = {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()}

    def full(*args):
        raise OSError(28, "No space left on device")

    broken = (_files, "_move") if is_folder else (os, "fsync")
    monkeypatch.setattr(*broken, full)
    with pytest.raises(OSError, match="No space left.*is unchanged"):
        write()
    after = {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()}
    assert after == before and blocked in before
    if not is_folder:
        (tmp_path / f"{name}.json").unlink()
        (tmp_path / f"{name}.json").mkdir()
        with pytest.raises(OSError, match="description cannot be written"):
            write()
        assert blocked.read_bytes() == before[blocked]
