"""Files of one time step, in the interpreters that run them, against Keras."""

import os

import keras
import numpy as np
import pytest
from keras import layers
from step_files import assert_near
from step_files import described
from step_files import run_by_description
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

pytestmark = [ON_TENSORFLOW, pytest.mark.one_backend]
PATHS = {
    "c": "rin.h",
    "litert": "step.tflite",
    "onnx": "step.onnx",
    "tf_saved_model": "streaming",
}
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
IN_RUNTIME = {
    ("LSTM", "int8", "int16"): [],
    ("RIN", "float32", "float32"): [pytest.mark.exhaustive],
    ("RIN", "int8", "int16"): [pytest.mark.exhaustive],
}


def marks_of(case):
    if case in IN_RUNTIME:
        return [pytest.mark.runtime, *IN_RUNTIME[case]]
    return pytest.mark.exhaustive


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


def sensor_values(rng, streams=1, steps=STEPS):
    x = rng.normal(size=(streams, steps, 3)) * [1.0, 2.0, 1.0] + [1, 0, 2]
    return x.astype("float32")


@pytest.mark.parametrize(
    ("layer", "weights", "states"),
    [
        pytest.param(layer, *types, marks=marks_of((layer, *types)))
        for layer in LAYERS
        for types in TOLERANCES
    ],
)
def test_a_step_alone_in_litert_and_for_microcontrollers(
    layer, weights, states, rng, tmp_path
):
    model, x = network(layer), sensor_values(rng)
    options = {} if states == "float32" else {"representative_dataset": x}
    options |= {"weights": weights, "states": states}
    y = write_and_run(model, "litert", tmp_path, x, **options)
    assert_near(y, model, x, TOLERANCES[weights, states])
    reason = "the wheel tflite-micro is not installed"
    pytest.importorskip("tflite_micro", reason=reason)
    from tflite_micro.python.tflite_micro import runtime

    path = tmp_path / PATHS["litert"]

    def load():
        return runtime.Interpreter.from_file(str(path), arena_size=100_000)

    if states == "float32" and weights != "float32":
        with pytest.raises(RuntimeError, match="failed to allocate"):
            load()
        return
    interpreter = load()
    y = run_by_description(
        described(path),
        x[0],
        lambda at, value: interpreter.set_input(value, at),
        interpreter.invoke,
        interpreter.get_output,
    )
    assert_near(y[None], model, x, TOLERANCES[weights, states])


@pytest.mark.exhaustive
@pytest.mark.parametrize("dtype", ["int16", "int8"])
def test_the_scales_of_a_litert_file_of_integers(dtype, rng, tmp_path):
    """An application that stores states as the file does needs them."""
    import tensorflow as tf

    model, x = network("GRU"), sensor_values(rng)
    options = dict.fromkeys(
        ["inference_input_type", "inference_output_type"], getattr(tf, dtype)
    )
    options |= {"weights": "int8", "states": dtype, "representative_dataset": x}
    y = write_and_run(model, "litert", tmp_path, x, **options)
    assert_near(y, model, x, TOLERANCES["int8", dtype])
    inputs = described(tmp_path / PATHS["litert"])["inputs"]
    (memory,) = (entry for entry in inputs if entry["name"] == "memory")
    assert memory["dtype"] == dtype
    assert memory["initial"] == memory["zero_point"]


def test_scales_are_those_along_the_sequences_of_an_array(rng, tmp_path):
    import tensorflow as tf

    model, x = network("GRU"), sensor_values(rng, streams=2, steps=30)
    step = streaming_step(model)

    def samples():
        for sequence in x:
            memory = np.zeros((1, 40), "float32")
            for values in sequence:
                inputs = {"x": values[None], "memory": memory}
                yield inputs
                memory = step.predict_on_batch(inputs)["memory"]

    path, descriptions = tmp_path / PATHS["litert"], []
    options = dict.fromkeys(
        ["inference_input_type", "inference_output_type"], tf.int16
    )
    options |= {"weights": "int8", "states": "int16"}
    for dataset in (x, samples):
        options["representative_dataset"] = dataset
        export_streaming(model, path, "litert", False, **options)
        descriptions.append(described(path))
    assert descriptions[0] == descriptions[1]


GRAPHS = [
    pytest.param(
        format,
        name,
        marks=[
            *([] if name == default else [pytest.mark.exhaustive]),
            *([MARKS[name]] if name == "masked graph" else []),
        ],
    )
    for format, default in (
        ("litert", "stacked cells last"),
        ("onnx", "in a model"),
    )
    for name in MODELS
    if name != "of a fixed batch"  # the interpreter gets one sequence
    and (format, name) != ("onnx", "of residual layers")  # has a stack
]


@pytest.mark.parametrize(("format", "name"), GRAPHS)
def test_a_graph_is_a_file(format, name, rng, tmp_path):
    """Which is run by the order in its description alone."""
    model = MODELS[name]()
    x = some_input(rng, model, batch=2, time=6)
    y = write_and_run(model, format, tmp_path, x)
    assert_near(y, model, x, 1e-4)


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
    ("onnx", in_dtype("bfloat16"), "'rin\\w*' has no .*in bfloat16; copy"),
    ("litert", in_dtype("float16"), "'rin\\w*' has no .*in float16; copy"),
    ("litert", in_dtype("float64"), "'rin\\w*' has no .*in float64; copy"),
    (
        "litert",
        lambda: above(layers.Dense(2, dtype="mixed_bfloat16", name="top")),
        "'top'.*bfloat16",
    ),
    ("onnx", lambda: above(Digamma(name="mine")), "'mine'.*'Digamma'"),
    ("litert", lambda: above(Digamma(name="mine")), "'mine'.*'Digamma'"),
    (
        "onnx",
        lambda: above(ResidualDenseStack(2, depth=2, name="deep")),
        "'deep'.*'while'",
    ),
]


@pytest.mark.parametrize(("format", "make", "message"), REFUSED)
def test_what_a_format_lacks_is_refused(format, make, message, tmp_path):
    options = {"stepwise": (Digamma,)}
    with pytest.raises(ValueError, match=message):
        export_streaming(make(), tmp_path / PATHS[format], format, **options)
    assert not list(tmp_path.iterdir())


def data(x=1.0, rin=1.0):
    """One sample of a model `named("rin")`."""
    return lambda: [{"x": np.full((1, 2), x), "rin": np.full((1, 2), rin)}]


# States, a model, data and the message.
IN_INTEGERS = {
    "operation": (
        "int16",
        lambda: above(layers.Dense(2, "elu")),
        None,
        "has no form of ELU",
    ),
    "tokens": ("int16", of_tokens, None, "has no form of .*ExpandDims"),
    "always 0": (
        "int8",
        lambda: above(layers.Activation("celu"), activation="sigmoid"),
        None,
        "more than half along",
    ),
    **{
        name: ("int16", lambda: named("rin"), dataset, message)
        for name, dataset, message in (
            (
                "states at 0",
                data(rin=0.0),
                "1 samples, where 'rin' is always 0",
            ),
            (
                "not finite",
                data(x=np.nan),
                "'x' is always 0 or not finite",
            ),
            ("no samples", lambda: [], "0 samples"),
        )
    },
}


@pytest.mark.parametrize("case", IN_INTEGERS)
def test_a_model_or_data_without_scales_is_refused(case, rng, tmp_path):
    states, make, dataset, message = IN_INTEGERS[case]
    model = make()
    if dataset is None:
        dataset = some_input(rng, model, 2, 30)
    options = {"weights": "int8", "states": states}
    options["representative_dataset"] = dataset
    path = tmp_path / PATHS["litert"]
    with pytest.raises(ValueError, match=message):
        export_streaming(model, path, "litert", False, **options)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("format", PATHS)
def test_a_step_that_cannot_be_written_is_not_half_written(
    format, tmp_path, monkeypatch
):
    name = PATHS[format]

    def write(folder=tmp_path):
        options = {} if format == "c" else {"step_only": True}
        export_streaming(named("rin"), folder / name, format, False, **options)

    def contents():
        files = (p for p in tmp_path.rglob("*") if p.is_file())
        return {path: path.read_bytes() for path in files}

    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="cannot be written"):
        write(tmp_path / "file")
    write()
    before = contents()

    def full(*args):
        raise OSError(28, "No space left on device")

    is_folder = format == "tf_saved_model"
    monkeypatch.setattr(
        *((_files, "_move") if is_folder else (os, "fsync")), full
    )
    with pytest.raises(OSError, match="No space left.*is unchanged"):
        write()
    assert contents() == before and len(before) > 1
    description = tmp_path / f"{name}.json"
    if description.exists():
        description.unlink()
        description.mkdir()
        with pytest.raises(OSError, match="description cannot be written"):
            write()
        assert (tmp_path / name).read_bytes() == before[tmp_path / name]
