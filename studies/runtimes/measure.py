"""Does one time step give the same in every runtime?

A RIN of 64 units is trained as in [endless
stream](../endless_stream/README.md), *pairs, all steps*, at a learning rate of
0.01, with seed 0. Each format of `export_streaming` runs in its own interpreter
or compiler, one step after another along one stream of 20 test recordings,
2,000 steps. The difference is that from Keras's outputs of the whole stream,
over the largest of them. The program needs `gcc` and, for its rows, the wheel
`tflite-micro`; a runtime that refuses a file has no accuracy.
"""

import importlib.util
import json
import pathlib
import subprocess
import tempfile

import numpy as np
import onnxruntime
import tensorflow as tf
from ai_edge_litert.interpreter import Interpreter
from endless_stream import measure as endless_stream
from exports.measure import file_bytes

from engine import record
from keras_rin.export import export_streaming
from keras_rin.export import streaming_step

TRAINING, RATE = "pairs, all steps", 0.01
PROGRAM = """
#include <stdio.h>
#include "rin.h"
int main(void)
{
    static rin_state state;
    static float x[rin_inputs], y[rin_outputs];
    rin_reset(&state);
    while (fread(x, sizeof x, 1, stdin) == 1) {
        rin_step(&state, x, y);
        fwrite(y, sizeof y, 1, stdout);
    }
    return 0;
}
"""


def measure(units=64, seed=0, epochs=endless_stream.EPOCHS, length=20):
    model, _ = endless_stream.train(
        "RIN", units, TRAINING, RATE, -1, seed, epochs
    )
    (x_train, _), test = endless_stream.recordings()
    rng = np.random.default_rng(0)
    x, labels = endless_stream.streams_of(*test, 1, length, rng)
    labels = np.repeat(labels[0], endless_stream.STEPS)
    expected = model.predict(x, verbose=0)[0]
    files, rows = {}, []
    with tempfile.TemporaryDirectory() as folder:
        for file, (label, options) in FILES.items():
            path = files[file] = pathlib.Path(folder) / file
            export(model, path, x_train[::4], **options)
            for runtime, run in RUNTIMES[path.suffix].items():
                row = {"file": label, "runtime": runtime}
                row["bytes"] = file_bytes(path)
                y = outputs(run, path, x[0])
                if y is not None:
                    right = y.argmax(axis=-1) == labels
                    difference = np.abs(y - expected).max()
                    row["accuracy"] = float(right.mean())
                    row["difference"] = float(
                        difference / np.abs(expected).max()
                    )
                rows.append(row)
    accuracy = float((expected.argmax(axis=-1) == labels).mean())
    return {"keras": accuracy, "steps": len(labels), "rows": rows}


FILES = {
    "saved_model": ("SavedModel", {}),
    "step.onnx": ("ONNX", {"format": "onnx"}),
    "step.tflite": ("LiteRT", {}),
    "float16.tflite": ("LiteRT, float16 weights", {"weights": "float16"}),
    "int8.tflite": ("LiteRT, int8 weights", {"weights": "int8"}),
    "int16_states.tflite": (
        "LiteRT, int8 weights, int16 states",
        {"weights": "int8", "states": "int16"},
    ),
    "int8_states.tflite": (
        "LiteRT, int8 weights, int8 states",
        {"weights": "int8", "states": "int8"},
    ),
    "rin.h": ("C header", {"format": "c"}),
    "int8/rin.h": (
        "C header, int8 weights",
        {"format": "c", "weights": "int8"},
    ),
}


def export(model, path, x, **options):
    if path.suffix == ".tflite":
        options |= {"format": "litert", "step_only": True}
    if "states" in options:
        options["representative_dataset"] = samples_along(model, x)
    path.parent.mkdir(exist_ok=True)
    export_streaming(model, path, verbose=False, **options)


def samples_along(model, x):
    """Inputs and states along joined recordings, of some of the steps."""
    step = streaming_step(model)
    (name,) = set(step.input) - {"x"}
    samples = []
    state = np.zeros((1, *step.input[name].shape[1:]), "float32")
    for values in np.concatenate(x):
        samples.append({"x": values[None], name: state})
        state = step.predict_on_batch(samples[-1])[name]
    return lambda: samples[::3]


def in_tensorflow(path, x):
    served = tf.saved_model.load(path)  # its variables live as long
    step = served.step
    (specs,), _ = step.concrete_functions[0].structured_input_signature
    (name,) = set(specs) - {"x"}
    state, y = tf.zeros((1, specs[name].shape[1])), []
    for values in x:
        new = step({"x": values[None], name: state})
        state = new[name]
        y.append(new["y"][0].numpy())
    return np.stack(y)


def in_onnxruntime(path, x):
    session = onnxruntime.InferenceSession(path)
    names = [output.name for output in session.get_outputs()]
    values = {}

    def invoke():
        values["results"] = session.run(names, values["inputs"])

    values["inputs"] = {}
    inputs = [value.name for value in session.get_inputs()]
    return by_order(
        path,
        x,
        lambda at, value: values["inputs"].update({inputs[at]: value}),
        invoke,
        lambda at: values["results"][at],
    )


def in_litert(path, x):
    interpreter = Interpreter(str(path))
    interpreter.allocate_tensors()
    inputs, outputs = (
        [details["index"] for details in tensors]
        for tensors in (
            interpreter.get_input_details(),
            interpreter.get_output_details(),
        )
    )
    return by_order(
        path,
        x,
        lambda at, value: interpreter.set_tensor(inputs[at], value),
        interpreter.invoke,
        lambda at: interpreter.get_tensor(outputs[at]),
    )


def in_tflite_micro(path, x):
    from tflite_micro.python.tflite_micro import runtime

    interpreter = runtime.Interpreter.from_file(str(path), arena_size=100_000)
    return by_order(
        path,
        x,
        lambda at, value: interpreter.set_input(value, at),
        interpreter.invoke,
        interpreter.get_output,
    )


def by_order(path, x, set_input, invoke, get_output):
    """Outputs along x, by the order in the JSON file beside the file."""
    text = path.with_name(f"{path.name}.json").read_text()
    description, y = json.loads(text), []
    order = {e["name"]: at for at, e in enumerate(description["inputs"])}
    for entry in description["inputs"]:
        shape = [size or 1 for size in entry["shape"]]
        value = np.full(shape, entry.get("initial", 0), entry["dtype"])
        set_input(order[entry["name"]], value)
    for values in x:
        set_input(order["x"], values[None])
        invoke()
        # In tflite-micro an input may be stored where an output was.
        results = [get_output(at) for at in range(len(description["outputs"]))]
        for entry, value in zip(description["outputs"], results, strict=True):
            if entry["name"] == "y":
                y.append(value[0])
            else:
                set_input(order[entry["next"]], value)
    return np.stack(y)


def in_gcc(path, x):
    program = path.with_name("stream")
    program.with_suffix(".c").write_text(PROGRAM)
    command = ["gcc", "-O2", "-std=c99", program.with_suffix(".c")]
    subprocess.run([*command, "-o", program, "-lm"], check=True)
    run = subprocess.run(
        [program], input=x.tobytes(), capture_output=True, check=True
    )
    return np.frombuffer(run.stdout, "float32").reshape(len(x), -1)


def outputs(run, path, x):
    """The outputs of a runtime, None if it refuses the file."""
    try:
        return run(path, x)
    except RuntimeError as error:
        print(f"{path.name}: {error}")
        return None


LITERT = {"LiteRT": in_litert}
if importlib.util.find_spec("tflite_micro"):
    LITERT["tflite-micro"] = in_tflite_micro
RUNTIMES = {
    "": {"TensorFlow": in_tensorflow},
    ".onnx": {"onnxruntime": in_onnxruntime},
    ".tflite": LITERT,
    ".h": {"GCC": in_gcc},
}


def tables(results):
    rows = [["Keras", "Keras", "", f"{results['keras']:.3f}", "0"]]
    for row in results["rows"]:
        cells = [row["file"], row["runtime"], f"{row['bytes'] / 1000:.1f}"]
        if "accuracy" in row:
            cells += [f"{row['accuracy']:.3f}", f"{row['difference']:.0e}"]
        else:
            cells += ["refused", ""]
        rows.append(cells)
    header = ["file", "runtime", "kB", "accuracy", "max. relative difference"]
    caption = f"Accuracy over {results['steps']:,} steps"
    return {caption: record.markdown(header, rows, words=2)}


SMALLEST = {"units": 2, "epochs": 1, "length": 2}
