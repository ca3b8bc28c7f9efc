"""Files of a step, run in their runtimes as an application runs them."""

import importlib.util
import json
import pathlib
import shutil
import subprocess

import keras
import numpy as np
import pytest
from cases import needs_keras

from keras_rin import export

BACKEND = keras.backend.backend()
ON_TENSORFLOW = pytest.mark.skipif(
    BACKEND != "tensorflow",
    reason="Keras exports to LiteRT and ONNX from TensorFlow",
)
NEEDS_ONNX = needs_keras("3.8", "this Keras cannot export to ONNX")
WRITES = pytest.mark.skipif(
    BACKEND == "torch" or not importlib.util.find_spec("tensorflow"),
    reason="Keras 3.15 cannot export an RNN from Torch or without TensorFlow",
)
BOARD = pathlib.Path(__file__).with_name("board")
ON_BOARD = [BOARD / "boot.c", "-T", BOARD / "cortex_m.ld"]
ON_BOARD += ["--specs=rdimon.specs"]
ARM = "arm-none-eabi-gcc -std=c99 -mthumb -mcpu=cortex-"
M4F = f"{ARM}m4 -mfloat-abi=hard -mfpu=fpv4-sp-d16"
QEMU = "qemu-system-arm -M mps2-an386 -nographic -semihosting -kernel"


def run(command, **options):
    """The output of a program, without which the test is skipped."""
    if not shutil.which(command[0]):
        pytest.skip(f"needs {command[0]}")
    done = subprocess.run(
        command, stdout=subprocess.PIPE, check=True, **options
    )
    return done.stdout.decode()


def described(path):
    return json.loads(path.with_name(f"{path.name}.json").read_text())


def run_by_description(description, x, set_input, invoke, get_output):
    """The outputs of an interpreter that knows no names, along x (time, ...).

    It gets nothing but the order of inputs and outputs.
    """
    inputs = {entry["name"]: entry for entry in description["inputs"]}
    outputs, order = description["outputs"], list(inputs)
    assert len({entry["name"] for entry in outputs}) == len(outputs)
    for name, entry in inputs.items():
        if "initial" in entry:
            value = np.full(entry["shape"], entry["initial"], entry["dtype"])
            set_input(order.index(name), value)
    y = []
    for values in x:
        set_input(order.index("x"), values[None])
        invoke()
        results = [get_output(at) for at in range(len(outputs))]
        taken = {"x"}
        for entry, value in zip(outputs, results, strict=True):
            if entry["name"] == "y":
                y.append(value[0])
            else:
                name = entry["next"]
                set_input(order.index(name), value)
                taken.add(name)
        assert taken == set(order)
    return np.stack(y)


def load_saved_model(path):
    import tensorflow as tf

    served = tf.saved_model.load(path)
    return served.serve, lambda inputs: served.step(inputs)


def load_onnx(path):
    import onnxruntime

    session = onnxruntime.InferenceSession(str(path))
    name = session.get_inputs()[0].name
    return lambda x: session.run(None, {name: x})[0], None


def load_litert(path):
    from ai_edge_litert.interpreter import Interpreter

    interpreter = Interpreter(str(path))
    serve = interpreter.get_signature_runner("serve")
    step = interpreter.get_signature_runner("step")
    return lambda x: serve(x=x)["y"], lambda inputs: step(**inputs)


# Of a file, the function of whole sequences and that of a step.
LOAD = {
    "tf_saved_model": load_saved_model,
    "onnx": load_onnx,
    "litert": load_litert,
}


def run_litert(path, x):
    """The outputs for x (time, ...), of a file of the step alone."""
    from ai_edge_litert.interpreter import Interpreter

    interpreter = Interpreter(str(path))
    assert list(interpreter.get_signature_list()) == ["step"]
    interpreter.allocate_tensors()
    inputs = interpreter.get_input_details()
    outputs = interpreter.get_output_details()
    return run_by_description(
        described(path),
        x,
        lambda at, value: interpreter.set_tensor(inputs[at]["index"], value),
        interpreter.invoke,
        lambda at: interpreter.get_tensor(outputs[at]["index"]),
    )


def run_micro(path, x):
    """The outputs for x (streams, time, ...) on a microcontroller."""
    reason = "the wheel tflite-micro is not installed"
    pytest.importorskip("tflite_micro", reason=reason)
    from tflite_micro.python.tflite_micro import runtime

    interpreter = runtime.Interpreter.from_file(str(path), arena_size=200_000)
    y = [
        run_by_description(
            described(path),
            row,
            lambda at, value: interpreter.set_input(value, at),
            interpreter.invoke,
            interpreter.get_output,
        )
        for row in x
    ]
    return np.stack(y)


def run_onnx(path, x):
    """The outputs for x (time, ...)."""
    import onnx
    import onnxruntime

    session = onnxruntime.InferenceSession(str(path))
    names = [value.name for value in session.get_inputs()]
    description = described(path)
    opsets = {o.domain: o.version for o in onnx.load(path).opset_import}
    assert opsets[""] == description["opset"]
    assert names == [entry["name"] for entry in description["inputs"]]
    values, results = {}, []
    for entry in description["inputs"] + description["outputs"]:
        entry["shape"] = [size or 1 for size in entry["shape"]]

    def invoke():
        results[:] = session.run(None, values)

    return run_by_description(
        description,
        x,
        lambda at, value: values.update({names[at]: value}),
        invoke,
        lambda at: results[at],
    )


def run_saved_model(path, x):
    """The outputs for x (streams, time, ...)."""
    import tensorflow as tf

    served = tf.saved_model.load(path)
    (specs,), _ = served.step.concrete_functions[0].structured_input_signature
    state = {
        name: np.zeros((len(x), *spec.shape[1:]), spec.dtype.as_numpy_dtype)
        for name, spec in specs.items()
        if name != "x"
    }
    y = []
    for t in range(x.shape[1]):
        state = served.step({"x": x[:, t], **state})
        y.append(state.pop("y"))
    return np.stack(y, axis=1)


def run_c(path, x, compiler=("gcc", "-std=c99"), options=(), emulator=()):
    """The outputs for x (streams, time, ...), of two passes over x.

    In integers, where those of a header are.
    """
    in_integers = "int32_t y[]" in path.read_text()
    types = ("int16", "int32") if in_integers else ("float32", "float32")
    folder, (streams, steps) = path.parent, x.shape[:2]
    command = [*compiler, "-O2", "-I", folder, "-o", folder / "stream"]
    command += [f"-DSTREAMS={streams}", f"-DSTEPS={steps}"]
    run([*command, BOARD / "stream.c", *options, "-lm"])
    x = np.concatenate([x, x], axis=1).swapaxes(0, 1).astype(types[0])
    x.tofile(folder / "x.bin")
    run([*emulator, folder / "stream"], cwd=folder, timeout=300)
    y = np.fromfile(folder / "y.bin", types[1])
    return y.reshape(2, steps, streams, -1).swapaxes(1, 2)


WRITERS = {
    "c": export.export_c,
    "litert": export.export_litert,
    "onnx": export.export_onnx,
    "tf_saved_model": export.export_saved_model,
}


PATHS = {
    "c": "rin.h",
    "litert": "step.tflite",
    "onnx": "step.onnx",
    "tf_saved_model": "streaming",
}


def write(model, path, format="c", **options):
    """Writes a file of a format, and returns what the function does."""
    return WRITERS[format](model, path, **options)


def write_and_run(model, format, folder, x, **options):
    """The outputs of a file for x (streams, time, ...)."""
    path = folder / PATHS[format]
    if format in ("tf_saved_model", "litert"):
        options["step_only"] = True
    write(model, path, format, **options)
    if format == "c":
        first, second = run_c(path, x)
        np.testing.assert_array_equal(first, second)
        return first
    if format == "tf_saved_model":
        return run_saved_model(path, x)
    run = {"litert": run_litert, "onnx": run_onnx}[format]
    return np.stack([run(path, row) for row in x])


def assert_exported_serves(model, *shapes, format, folder):
    """A file of Keras's own export gives what the model gives."""
    model.predict(np.ones(shapes[0]), verbose=0)  # Keras's ONNX wants that
    path = folder / ("model.onnx" if format == "onnx" else "model")
    model.export(path, format=format, verbose=False)
    serve, _ = LOAD[format](path)
    for shape in shapes:
        x = np.random.default_rng(0).normal(size=shape).astype("float32")
        x[:, 1:2] = 0.0  # what a mask leaves out
        expected = model.predict(x, verbose=0)
        np.testing.assert_allclose(serve(x), expected, rtol=1e-4, atol=1e-5)
        assert np.ptp(expected) > 0


def assert_near(y, model, x, tolerance=1e-5):
    """y (streams, time, ...) is the output of the model at each step."""
    expected = model.predict(x, batch_size=len(x), verbose=0)
    if y.ndim > expected.ndim:  # the last output
        y = y[:, -1]
    tolerance *= max(np.abs(expected).max(), 0.01)
    np.testing.assert_allclose(y, expected, atol=tolerance, rtol=0)


def round_weights(model):
    """Sets the weights to those that int8 codes in C stand for."""
    weights = []
    for weight in model.weights:
        value = keras.ops.convert_to_numpy(weight)
        if "kernel" in weight.name or "embeddings" in weight.name:
            axes = tuple(range(value.ndim - 1))
            axis = 1 if "embeddings" in weight.name else axes
            scale = np.abs(value).max(axis=axis, keepdims=True) / 127
            value = np.round(value / np.where(scale > 0, scale, 1)) * scale
        weights.append(value)
    model.set_weights(weights)
