"""Files of one time step, in the interpreters that run them, against Keras."""

import functools
import json
import os
import sys

import keras
import numpy as np
import pytest
from keras import layers
from test_export import ON_TENSORFLOW
from test_export import WRITES
from test_export import run_alone
from test_streaming_step import MARKS
from test_streaming_step import MODELS
from test_streaming_step import some_input

from keras_rin import _files
from keras_rin.export import export_streaming
from keras_rin.export import streaming_step
from keras_rin.layers import RIN
from keras_rin.layers import NoisyRNN
from keras_rin.layers import RINCell

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


def assert_near(y, model, x, weights, states):
    expected = model.predict(x[None], verbose=0)[0]
    tolerance = TOLERANCES[weights, states] * np.abs(expected).max()
    np.testing.assert_allclose(y, expected, atol=tolerance, rtol=0)


def described(path):
    return json.loads(path.with_name(f"{path.name}.json").read_text())


def run_by_order(description, x, set_input, invoke, get_output):
    """The outputs of an interpreter that knows no names."""
    inputs, outputs = description["inputs"], description["outputs"]
    order = {entry["name"]: at for at, entry in enumerate(inputs)}
    for entry in inputs:
        if "initial" in entry:
            value = np.full(entry["shape"], entry["initial"], entry["dtype"])
            set_input(order[entry["name"]], value)
    y = []
    for values in x:
        set_input(order["x"], values[None])
        invoke()
        results = [get_output(at) for at in range(len(outputs))]
        for entry, value in zip(outputs, results, strict=True):
            if entry["name"] == "y":
                y.append(value[0])
            else:
                set_input(order[entry["next"]], value)
    return np.stack(y)


@ON_TENSORFLOW
@EACH_TYPE
def test_a_step_alone_in_litert(layer, weights, states, litert_file):
    from ai_edge_litert.interpreter import Interpreter

    model, x, path = litert_file(layer, weights, states)
    interpreter = Interpreter(str(path))
    assert list(interpreter.get_signature_list()) == ["step"]
    interpreter.allocate_tensors()
    inputs, outputs = (
        [details["index"] for details in tensors]
        for tensors in (
            interpreter.get_input_details(),
            interpreter.get_output_details(),
        )
    )
    y = run_by_order(
        described(path),
        x,
        lambda at, value: interpreter.set_tensor(inputs[at], value),
        interpreter.invoke,
        lambda at: interpreter.get_tensor(outputs[at]),
    )
    assert_near(y, model, x, weights, states)


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
    y = run_by_order(
        described(path),
        x,
        lambda at, value: interpreter.set_input(value, at),
        interpreter.invoke,
        interpreter.get_output,
    )
    assert_near(y, model, x, weights, states)


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
    assert_near(np.stack(y), model, x, "int8", dtype)


@WRITES
@pytest.mark.one_backend
def test_a_saved_model_of_the_step_alone(tmp_path):
    import tensorflow as tf

    path = tmp_path / "saved"
    export_streaming(network("RIN"), path, verbose=False, step_only=True)
    served = tf.saved_model.load(path)
    assert hasattr(served, "step") and not hasattr(served, "serve")


@ON_TENSORFLOW
def test_a_litert_file_with_serve_has_no_description(tmp_path):
    path = tmp_path / "streaming.tflite"
    model = keras.Sequential([keras.Input((None, 2)), RIN(3)])
    export_streaming(model, path, "litert", verbose=False, weights="float16")
    assert [p.name for p in tmp_path.iterdir()] == [path.name]


ONNX_STEP = """
sys.modules["tensorflow"] = None
import json
import onnxruntime
session = onnxruntime.InferenceSession(path)
names = [output.name for output in session.get_outputs()]
description = json.load(open(path + ".json"))
assert names == [entry["name"] for entry in description["outputs"]]
dtypes = {entry["name"]: entry["dtype"] for entry in description["inputs"]}
assert [i.name for i in session.get_inputs()] == list(dtypes)
x = numpy.load(files[0])
state = {
    entry["name"]: numpy.zeros([len(x), *entry["shape"][1:]], entry["dtype"])
    for entry in description["inputs"]
    if entry["name"] != "x"
}
answers = []
for t in range(x.shape[1]):
    inputs = {"x": x[:, t].astype(dtypes["x"]), **state}
    outputs = dict(zip(names, session.run(names, inputs)))
    answers.append(outputs.pop("y"))
    state = {name: outputs["new_" + name] for name in state}
numpy.save(files[0] + ".step.npy", numpy.stack(answers, axis=1))
"""
IN_ONNX = [
    pytest.param(
        name,
        marks=[
            *([pytest.mark.exhaustive] if name != "in a model" else []),
            *([MARKS[name]] if name == "masked graph" else []),
        ],
    )
    for name in MODELS
]


def streamed_by_onnx(model, folder, x):
    path = folder / "step.onnx"
    export_streaming(model, path, "onnx", verbose=False)
    return run_alone(ONNX_STEP, path, x)["0.npy.step"]


@ON_TENSORFLOW
@pytest.mark.parametrize("name", IN_ONNX)
def test_a_step_alone_as_onnx(name, rng, tmp_path):
    model = MODELS[name]()
    x = some_input(rng, model, batch=2, time=6)
    expected = model.predict(x, batch_size=2, verbose=0)
    y = streamed_by_onnx(model, tmp_path, x)
    y = y if y.ndim == expected.ndim else y[:, -1]
    np.testing.assert_allclose(y, expected, rtol=1e-4, atol=1e-5)


@ON_TENSORFLOW
@pytest.mark.exhaustive
@pytest.mark.runtime
def test_a_normalization_as_onnx(rng, tmp_path):
    """Its mean is no weight, and tf2onnx takes it for an input."""
    model, x = network("RIN"), sensor_values(rng)
    y = streamed_by_onnx(model, tmp_path, x[None])[0]
    assert_near(y, model, x, "float32", "float32")


@ON_TENSORFLOW
def test_the_onnx_file_states_its_opset(tmp_path, capfd):
    import onnx

    model = keras.Sequential([keras.Input((None, 2)), RIN(3, name="r-1")])
    path = tmp_path / "step.onnx"
    export_streaming(model, path, "onnx")
    opsets = {o.domain: o.version for o in onnx.load(path).opset_import}
    assert opsets[""] == described(path)["opset"] == 15
    assert "step of r-1, x, in opset 15, des" in capfd.readouterr().out
    step = streaming_step(model)
    state = step({"x": np.ones((1, 2)), "r-1": np.zeros((1, 3))})
    assert set(state) == {"y", "r-1"}


def named(*names):
    model = keras.Sequential([keras.Input((None, 2))])
    for name in names:
        model.add(RIN(2, return_sequences=True, name=name))
    return model


@ON_TENSORFLOW
@pytest.mark.parametrize(
    ("names", "path", "message"),
    [
        (["rin", "new_rin"], "step.onnx", "'new_rin' is the name of a new st"),
        (["r\u00fcn"], "step.onnx", "named 'r\u00fcn'"),
        (["rin"], "step.tflite", "must end in .onnx"),
        (["x"], "step.onnx", "none of them x or y"),
    ],
)
def test_names_that_clash_in_onnx_are_refused(names, path, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        export_streaming(named(*names), tmp_path / path, "onnx", verbose=False)
    assert not list(tmp_path.iterdir())


@ON_TENSORFLOW
def test_what_onnx_does_not_hold_is_refused(tmp_path):
    class LogGamma(layers.Layer):
        def call(self, x):
            import tensorflow as tf

            return tf.raw_ops.Lgamma(x=x)

    model = keras.Sequential([keras.Input((None, 2)), RIN(2), LogGamma()])
    with pytest.raises(ValueError, match="tf2onnx cannot convert"):
        export_streaming(model, tmp_path / "m.onnx", "onnx", verbose=False)
    assert not list(tmp_path.iterdir())


@ON_TENSORFLOW
def test_onnx_without_tf2onnx_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "tf2onnx", None)
    with pytest.raises(ImportError, match="pip install tf2onnx"):
        export_streaming(named("rin"), tmp_path / "m.onnx", "onnx")
    assert not list(tmp_path.iterdir())


@pytest.mark.one_backend
@pytest.mark.parametrize("name", ["m.onnx", "m.tflite"])
def test_a_step_that_does_not_exist_is_refused(name, tmp_path):
    """As onnx and tflite, like in the other formats."""
    backwards = keras.Sequential(
        [keras.Input((None, 2)), layers.Bidirectional(RIN(2, name="rin"))]
    )
    noisy = keras.Sequential(
        [keras.Input((None, 2)), NoisyRNN(RINCell(2), 0.1)]
    )
    format = {"m.onnx": "onnx", "m.tflite": "litert"}[name]
    for model in (backwards, noisy):
        with pytest.raises(ValueError, match="cannot run step by step"):
            export_streaming(model, tmp_path / name, format, verbose=False)
    assert not list(tmp_path.iterdir())


def constant(**values):
    return lambda: [{name: np.full(*value) for name, value in values.items()}]


ONES = {"x": ((1, 2), 1.0), "rin": ((1, 2), 1.0)}
DATASETS = {
    "states at 0": (
        constant(**ONES | {"rin": ((1, 2), 0.0)}),
        "'rin', which is always 0",
    ),
    "not finite": (constant(**ONES | {"x": ((1, 2), np.nan)}), "'x' with"),
    "no state": (constant(x=ONES["x"]), "must yield dictionaries"),
    "other shape": (
        constant(**ONES | {"rin": ((1, 3), 1.0)}),
        r"must yield dictionaries.*\(1, 3\)",
    ),
    "list": (lambda: [[np.ones((1, 2))]], "must yield dictionaries"),
    "no samples": (lambda: [], "no samples"),
    "no function": ([constant(**ONES)()[0]], "must be a function"),
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
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"weights": "int4"}, "`weights` must be one of"),
        ({"states": "float16"}, "`states` must be one of"),
        ({"states": "int16"}, "states='int16' needs weights='int8'"),
        ({"states": "int16", "weights": "int8"}, "a `representative_dataset`"),
        (
            {"weights": "int8", "optimizations": []},
            "`weights` sets the attribute 'optimizations'",
        ),
    ],
)
def test_types_that_litert_lacks_are_refused(options, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        export_streaming(
            named("rin"), tmp_path / "m.tflite", "litert", **options
        )
    assert not list(tmp_path.iterdir())


@ON_TENSORFLOW
@pytest.mark.parametrize("format", ["onnx", "tf_saved_model", "c"])
def test_types_of_litert_are_refused_elsewhere(format, tmp_path):
    for options in ({"weights": "float16"}, {"states": "int8"}):
        with pytest.raises(ValueError, match=f"in the format '{format}'"):
            export_streaming(named("rin"), tmp_path / "m", format, **options)
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
