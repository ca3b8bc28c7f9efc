"""Does one time step give the same in every runtime?

A RIN of 64 units is trained as in [endless
stream](#endless-stream), *pairs, all steps*, at a learning rate of
0.01, with seed 0. Each format of `export_streaming` runs in its own interpreter
or compiler, one step after another along one stream of 20 test recordings,
2,000 steps. The difference is that from Keras's outputs of the whole stream,
over the largest of them. The program needs `gcc` and, for its rows, the wheel
`tflite-micro`; a runtime that refuses a file has no accuracy.
"""

import importlib.util
import json

import numpy as np
import onnxruntime
from ai_edge_litert.interpreter import Interpreter
from devices import endless_stream

from engine import exported
from engine import record

TRAINING, RATE = "pairs, all steps", 0.01


def measure(units=64, seed=0, epochs=endless_stream.EPOCHS, length=20):
    case = "RIN", units, TRAINING, RATE, -1, seed, epochs
    model, _ = endless_stream.train(*case)
    (x_train, _), test = endless_stream.recordings()
    joined = x_train[::12].reshape(1, -1, x_train.shape[-1])
    rng = np.random.default_rng(0)
    x, labels = endless_stream.streams_of(*test, 1, length, rng)
    labels = np.repeat(labels[0], endless_stream.STEPS)
    expected, rows = model.predict(x, verbose=0)[0], []
    for label, (file, options) in FILES.items():
        if "states" in options:
            options = {**options, "representative_dataset": joined}
        with exported.streaming_file(model, file, **options) as path:
            for runtime, run in RUNTIMES[path.suffix].items():
                row = {"file": label, "runtime": runtime}
                row["bytes"] = exported.file_bytes(path)
                try:
                    y = run(path, x[0])
                except RuntimeError as error:  # it refuses the file
                    print(f"{label}: {error}")
                else:
                    difference = np.abs(y - expected).max()
                    difference /= np.abs(expected).max()
                    row["accuracy"] = accuracy(y, labels)
                    row["difference"] = float(difference)
                rows.append(row)
    keras_accuracy = accuracy(expected, labels)
    return {"keras": keras_accuracy, "steps": len(labels), "rows": rows}


def accuracy(y, labels):
    return float((y.argmax(axis=-1) == labels).mean())


def litert_file(**options):
    return "step.tflite", {"format": "litert", "step_only": True, **options}


def c_file(**options):
    return "rin.h", {"format": "c", **options}


INT8 = {"weights": "int8"}
FILES = {
    "SavedModel": ("saved_model", {}),
    "ONNX": ("step.onnx", {"format": "onnx"}),
    "LiteRT": litert_file(),
    "LiteRT, float16 weights": litert_file(weights="float16"),
    "LiteRT, int8 weights": litert_file(**INT8),
    "LiteRT, int8 weights, int16 states": litert_file(**INT8, states="int16"),
    "LiteRT, int8 weights, int8 states": litert_file(**INT8, states="int8"),
    "C header": c_file(),
    "C header, int8 weights": c_file(**INT8),
}


def in_tensorflow(path, x):
    return exported.stream(*exported.saved_model_step(path), x)[0]


def in_onnxruntime(path, x):
    session = onnxruntime.InferenceSession(path)
    names = [value.name for value in session.get_inputs()]

    def run(values):
        return session.run(None, dict(zip(names, values, strict=True)))

    return by_order(path, x, run)


def in_litert(path, x):
    interpreter = Interpreter(str(path))
    interpreter.allocate_tensors()

    def run(values):
        inputs = interpreter.get_input_details()
        for tensor, value in zip(inputs, values, strict=True):
            interpreter.set_tensor(tensor["index"], value)
        interpreter.invoke()
        outputs = interpreter.get_output_details()
        return [interpreter.get_tensor(tensor["index"]) for tensor in outputs]

    return by_order(path, x, run)


def in_tflite_micro(path, x):
    from tflite_micro.python.tflite_micro import runtime

    interpreter = runtime.Interpreter.from_file(str(path), arena_size=100_000)

    def run(values):
        for number, value in enumerate(values):
            interpreter.set_input(value, number)
        interpreter.invoke()
        # An input may be stored where an output was.
        return [interpreter.get_output(number) for number in range(len(values))]

    return by_order(path, x, run)


def by_order(path, x, run):
    """Outputs along x, by the order in the JSON file beside the file.

    A step has as many outputs as inputs: the states, and x and y.
    """
    text = path.with_name(f"{path.name}.json").read_text()
    description, y = json.loads(text), []
    values = {
        entry["name"]: np.full(
            [size or 1 for size in entry["shape"]],
            entry.get("initial", 0),
            entry["dtype"],
        )
        for entry in description["inputs"]
    }
    for x_t in x:
        values["x"] = x_t[None]
        results = run(list(values.values()))
        for entry, value in zip(description["outputs"], results, strict=True):
            if entry["name"] == "y":
                y.append(value[0])
            else:
                values[entry["next"]] = value
    return np.stack(y)


def in_gcc(path, x):
    return exported.c_program(path, 1)(x[None], False)[0]


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
