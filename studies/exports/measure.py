"""How large is a model in each export format, and how accurate?

A trained model is exported in every supported format, and each file is run in
its own interpreter on test images. The difference is that from `predict`, over
its largest value. `python examples/sequential_images.py` trains the model, and
`python examples/sequential_images.py --dataset=mnist --rows
--output=runs/mnist_rows` that of MNIST.
"""

import pathlib
import tempfile

import keras
import numpy as np
import onnxruntime
import tensorflow as tf
from ai_edge_litert.interpreter import Interpreter
from tqdm import tqdm

from engine import record
from engine.data import load_images
from engine.measurement import Variant
from keras_rin.export import export_streaming
from keras_rin.export import streaming_step
from keras_rin.layers import RIN
from keras_rin.tasks import sequential_pixels

RUNS = record.STUDIES.parent / "runs"
OPS = tf.lite.OpsSet
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
        model.export(
            path,
            format="litert",
            verbose=False,
            input_signature=[
                keras.InputSpec("float32", (1, *calibration.shape[1:]))
            ],
            target_spec={
                "supported_ops": [OPS.TFLITE_BUILTINS],
                "supported_types": list(types),
            },
            **converter,
        )
        serve = Interpreter(str(path)).get_signature_runner()
        (name,) = serve.get_input_details()

        def predict(sequence):
            (y,) = serve(**{name: sequence[None]}).values()
            return y[0]

        return lambda x: np.stack([predict(sequence) for sequence in x])

    return export


def litert_step(activations):
    """The export of single steps, with states of the type of activations."""

    def export(model, path, calibration):
        step = streaming_step(model)
        zeros = zero_inputs(step, len(calibration))
        del zeros["x"]
        export_streaming(
            model,
            path,
            "litert",
            verbose=False,
            representative_dataset=lambda: recorded(step, zeros, calibration),
            target_spec=tf.lite.TargetSpec(supported_ops=[activations]),
            **SMALLER,
        )
        run = Interpreter(str(path)).get_signature_runner("step")

        def predict(sequence):
            state = {name: values[:1] for name, values in zeros.items()}
            for x in sequence:
                state = run(x=x[None], **state)
                y = state.pop("y")
            return y[0]

        return lambda x: np.stack([predict(sequence) for sequence in x])

    return export


def zero_inputs(step, batch):
    """Inputs and states of a step, all 0."""
    return {
        name: np.zeros((batch, *tensor.shape[1:]), "float32")
        for name, tensor in step.input.items()
    }


def recorded(step, state, x):
    """A tenth of the inputs and states of a step on sequences."""
    for t in range(x.shape[1]):
        inputs = {"x": x[:, t], **state}
        for row in range(0, len(x), 10):
            yield {name: values[[row]] for name, values in inputs.items()}
        outputs = step.predict_on_batch(inputs)
        state = {name: outputs[name] for name in state}


FORMATS = {
    "Keras": (keras_file, "model.keras"),
    "SavedModel": (saved_model, "saved_model"),
    "ONNX": (onnx, "model.onnx"),
    "LiteRT": (litert(), "model.tflite"),
    "LiteRT, float16 weights": (
        litert([tf.float16], **SMALLER),
        "float16.tflite",
    ),
    "LiteRT, int8 weights": (litert(**SMALLER), "int8_weights.tflite"),
    "LiteRT, one step, int16 states": (
        litert_step(
            OPS.EXPERIMENTAL_TFLITE_BUILTINS_ACTIVATIONS_INT16_WEIGHTS_INT8
        ),
        "int16_step.tflite",
    ),
    "LiteRT, one step, int8 states": (
        litert_step(OPS.TFLITE_BUILTINS_INT8),
        "int8_step.tflite",
    ),
}


def file_bytes(path):
    files = path.rglob("*") if path.is_dir() else [path]
    return sum(file.stat().st_size for file in files)


def measure_formats(model, calibration, x, labels):
    expected = model.predict(x, verbose=0)
    records = []
    with tempfile.TemporaryDirectory() as folder:
        for name, (export, file) in tqdm(FORMATS.items()):
            path = pathlib.Path(folder) / file
            logits = export(model, path, calibration)(x)
            difference = np.abs(logits - expected).max()
            records.append(
                {
                    "format": name,
                    "bytes": file_bytes(path),
                    "accuracy": float((logits.argmax(1) == labels).mean()),
                    "difference": float(difference / np.abs(expected).max()),
                }
            )
    return records


def untrained(features, classes):
    # All states at 0 would abort LiteRT's interpreter of int16 states.
    rin = RIN(4, kernel_initializer="ones")
    return keras.Sequential(
        [keras.Input((None, features)), rin, keras.layers.Dense(classes)]
    )


def measure(
    dataset="digits",
    model=RUNS / "sequential_images" / "best_rin.keras",
    rows=False,
    images=1_000,
):
    train, _, test = load_images(dataset)

    def sequences(images):
        if rows:  # a row of the image in the place of a pixel
            images = images.reshape(*images.shape[:2], 1, -1)
        return sequential_pixels.generate(images)

    x, labels = sequences(test[0][:images]), test[1][:images]
    classes = int(train[1].max()) + 1
    if model:
        model = keras.models.load_model(model)
    else:
        model = untrained(x.shape[-1], classes)
    calibration = sequences(train[0][:100])
    return {
        "parameters": model.count_params(),
        "images": len(x),
        "records": measure_formats(model, calibration, x, labels),
    }


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


VARIANTS = {
    "": Variant("Digits, one pixel per step"),
    "mnist": Variant(
        "MNIST, one row per step",
        {"dataset": "mnist", "rows": True}
        | {"model": RUNS / "mnist_rows" / "best_rin.keras"},
    ),
}
SMALLEST = {"model": None, "images": 2}
