"""How large is a model in each export format, and how accurate?

A trained model is exported in every supported format, and each file is run in
its own interpreter on test images, which it reads one pixel per step. The
difference is that from `predict`, over its largest value. `python
examples/sequential_images.py` trains the model.
"""

import pathlib
import tempfile

import keras
import numpy as np
import onnxruntime
import tensorflow as tf
from ai_edge_litert.interpreter import Interpreter
from tqdm import tqdm

from engine import exported
from engine import record
from engine.data import load_images
from keras_rin.export import export_litert
from keras_rin.layers import RIN
from keras_rin.tasks import sequential_pixels

MODEL = record.STUDIES.parent / "runs" / "sequential_images" / "RIN.keras"
BUILTINS = [tf.lite.OpsSet.TFLITE_BUILTINS]
SMALLER = {"optimizations": [tf.lite.Optimize.DEFAULT]}


def keras_file(model, path, calibration):
    model.save(path)
    loaded = keras.models.load_model(path)
    return lambda x: loaded.predict(x, verbose=0)


def saved_model(model, path, calibration):
    model.export(path, verbose=False)
    served = tf.saved_model.load(path)
    return lambda x: served.serve(x).numpy()


def onnx(model, path, calibration):
    model.export(path, format="onnx", verbose=False)
    session = onnxruntime.InferenceSession(path)
    name = session.get_inputs()[0].name
    return lambda x: session.run(None, {name: x})[0]


def litert(types=(), **converter):
    def export(model, path, calibration):
        x = keras.InputSpec("float32", (1, *calibration.shape[1:]))
        target = {"supported_ops": BUILTINS, "supported_types": list(types)}
        options = {"input_signature": [x], "target_spec": target, **converter}
        model.export(path, format="litert", verbose=False, **options)
        serve = Interpreter(str(path)).get_signature_runner()
        (name,) = serve.get_input_details()

        def predict(sequence):
            (y,) = serve(**{name: sequence[None]}).values()
            return y[0]

        return lambda x: np.stack([predict(sequence) for sequence in x])

    return export


def litert_step(arithmetic):
    """The export of single steps, in integers."""

    def export(model, path, calibration):
        options = {"arithmetic": arithmetic, "calibration": calibration[::10]}
        export_litert(model, path, **options)
        run, zeros = exported.litert_step(path)

        def predict(sequence):
            return exported.stream(run, zeros, sequence)[0][-1]

        return lambda x: np.stack([predict(sequence) for sequence in x])

    return export


FORMATS = {
    "Keras": (keras_file, ".keras"),
    "SavedModel": (saved_model, ""),
    "ONNX": (onnx, ".onnx"),
    "LiteRT": (litert(), ".tflite"),
    "LiteRT, float16 weights": (litert([tf.float16], **SMALLER), ".tflite"),
    "LiteRT, int8 weights": (litert(**SMALLER), ".tflite"),
    "LiteRT, one step, int16 states": (litert_step("integer16"), ".tflite"),
    "LiteRT, one step, int8 states": (litert_step("integer8"), ".tflite"),
}


def measure_formats(model, calibration, x, labels):
    expected = model.predict(x, verbose=0)
    records = []
    with tempfile.TemporaryDirectory() as folder:
        for name, (export, suffix) in tqdm(FORMATS.items()):
            path = pathlib.Path(folder, name + suffix)
            logits = export(model, path, calibration)(x)
            difference = np.abs(logits - expected).max()
            difference /= np.abs(expected).max()
            run = {"format": name, "bytes": exported.file_bytes(path)}
            run["accuracy"] = float((logits.argmax(1) == labels).mean())
            records.append(run | {"difference": float(difference)})
    return records


def measure(model=MODEL, images=1_000):
    train, _, test = load_images("digits")
    x, labels = sequential_pixels.generate(test[0][:images]), test[1][:images]
    model = load_model(model)
    calibration = sequential_pixels.generate(train[0][:100])
    return {
        "parameters": model.count_params(),
        "images": len(x),
        "records": measure_formats(model, calibration, x, labels),
    }


def load_model(path):
    """The model of a file; an untrained one if there is none, for a test.

    All states at 0 would abort LiteRT's interpreter of int16 states.
    """
    if path is not None:
        return keras.models.load_model(path)
    rin = RIN(4, kernel_initializer="ones")
    return keras.Sequential(
        [keras.Input((None, 1)), rin, keras.layers.Dense(10)]
    )


def tables(results):
    columns = {
        "format": "{format}",
        "kB": "{kilobytes:.0f}",
        "accuracy": "{accuracy:.3f}",
        "max. relative difference": "{difference:.0e}",
    }
    rows = [{**r, "kilobytes": r["bytes"] / 1000} for r in results["records"]]
    caption = f"{results['parameters']:,} parameters, "
    caption += f"{results['images']:,} test images"
    return {caption: record.table(columns, rows).replace("0e+00", "    0")}


SMALLEST = {"model": None, "images": 2}
