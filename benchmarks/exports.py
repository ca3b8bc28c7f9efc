"""File size and accuracy of a model in each export format.

    python examples/sequential_images.py
    python -m benchmarks.exports

    python examples/sequential_images.py --dataset=mnist --rows
    python -m benchmarks.exports --dataset=mnist --rows

Exports a trained model in every supported format, runs each file in its own
interpreter on test images, and writes sizes, accuracies and differences from
`predict` to OUTPUT. The model is one of `examples/sequential_images.py`; pass
the --dataset and --rows of its training.
"""

import pathlib
import tempfile

import keras
import numpy as np
import onnxruntime
import tensorflow as tf
from absl import app
from absl import flags
from ai_edge_litert.interpreter import Interpreter
from tqdm import tqdm

from benchmarks import measuring
from experiments import data
from experiments import results
from keras_rin.export import export_streaming
from keras_rin.export import streaming_step
from keras_rin.layers import RIN
from keras_rin.tasks import sequential_pixels

FLAGS = flags.FLAGS
OPS = tf.lite.OpsSet
SMALLER = {"optimizations": [tf.lite.Optimize.DEFAULT]}


def as_keras_file(model, path, calibration):
    model.save(path)
    loaded = keras.models.load_model(path)
    return lambda x: loaded.predict(x, verbose=0)


def as_saved_model(model, path, calibration):
    model.export(path, verbose=False)
    served = tf.saved_model.load(path)
    return lambda x: served.serve(x).numpy()


def as_onnx(model, path, calibration):
    model.export(path, format="onnx", verbose=False)
    session = onnxruntime.InferenceSession(path)
    name = session.get_inputs()[0].name
    return lambda x: session.run(None, {name: x})[0]


def as_litert(types=(), **converter):
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

        def answer(one):
            (y,) = serve(**{name: one[None]}).values()
            return y[0]

        return lambda x: np.stack([answer(one) for one in x])

    return export


def as_a_step(activations):
    def export(model, path, calibration):
        step = streaming_step(model)
        start = at_rest(step, len(calibration))
        del start["x"]
        export_streaming(
            model,
            path,
            "litert",
            verbose=False,
            representative_dataset=lambda: recorded(step, start, calibration),
            target_spec=tf.lite.TargetSpec(supported_ops=[activations]),
            **SMALLER,
        )
        run = Interpreter(str(path)).get_signature_runner("step")

        def answer(one):
            state = {name: zeros[:1] for name, zeros in start.items()}
            for x in one:
                state = run(x=x[None], **state)
                y = state.pop("y")
            return y[0]

        return lambda x: np.stack([answer(one) for one in x])

    return export


def at_rest(step, rows):
    """Inputs and states of a step, all 0."""
    return {
        name: np.zeros((rows, *one.shape[1:]), "float32")
        for name, one in step.input.items()
    }


def recorded(step, state, x):
    """A tenth of the inputs and states of a step on sequences."""
    for t in range(x.shape[1]):
        inputs = {"x": x[:, t], **state}
        for row in range(0, len(x), 10):
            yield {name: one[[row]] for name, one in inputs.items()}
        answers = step.predict_on_batch(inputs)
        state = {name: answers[name] for name in state}


FORMATS = {
    "Keras": (as_keras_file, "model.keras"),
    "SavedModel": (as_saved_model, "saved_model"),
    "ONNX": (as_onnx, "model.onnx"),
    "LiteRT": (as_litert(), "model.tflite"),
    "LiteRT, float16 weights": (
        as_litert([tf.float16], **SMALLER),
        "float16.tflite",
    ),
    "LiteRT, int8 weights": (as_litert(**SMALLER), "int8_weights.tflite"),
    "LiteRT, one step, int16 states": (
        as_a_step(
            OPS.EXPERIMENTAL_TFLITE_BUILTINS_ACTIVATIONS_INT16_WEIGHTS_INT8
        ),
        "int16_step.tflite",
    ),
    "LiteRT, one step, int8 states": (
        as_a_step(OPS.TFLITE_BUILTINS_INT8),
        "int8_step.tflite",
    ),
}


def size(path):
    files = path.rglob("*") if path.is_dir() else [path]
    return sum(file.stat().st_size for file in files)


def measured(model, calibration, x, labels):
    expected = model.predict(x, verbose=0)
    records = []
    with tempfile.TemporaryDirectory() as folder:
        for name, (export, file) in tqdm(FORMATS.items()):
            path = pathlib.Path(folder) / file
            answers = export(model, path, calibration)(x)
            difference = np.abs(answers - expected).max()
            records.append(
                {
                    "format": name,
                    "bytes": size(path),
                    "accuracy": float((answers.argmax(1) == labels).mean()),
                    "difference": float(difference / np.abs(expected).max()),
                }
            )
    return records


def tables(record):
    header = ["format", "kB", "accuracy", "max. relative difference"]
    rows = [
        [
            r["format"],
            f"{r['bytes'] / 1000:.0f}",
            f"{r['accuracy']:.3f}",
            f"{r['difference']:.0e}" if r["difference"] else "0",
        ]
        for r in record["records"]
    ]
    return {"table.md": results.markdown(header, rows)}


def sequences(images):
    if FLAGS.rows:  # a row of the image in the place of a pixel
        images = images.reshape(*images.shape[:2], 1, -1)
    return sequential_pixels.generate(images)


def load_model(features, classes):
    if FLAGS.smoke:
        # All states at 0 would abort LiteRT's interpreter of int16 states.
        alive = RIN(4, kernel_initializer="ones")
        return keras.Sequential(
            [keras.Input((None, features)), alive, keras.layers.Dense(classes)]
        )
    try:
        return keras.models.load_model(FLAGS.model)
    except ValueError as error:
        raise app.UsageError(f"--model={FLAGS.model}: {error}") from error


def measure():
    train, _, test = data.load_images(FLAGS.dataset)
    images, labels = (
        part[: 2 if FLAGS.smoke else FLAGS.images] for part in test
    )
    calibration, x = map(sequences, (train[0][:100], images))
    model = load_model(x.shape[-1], int(train[1].max()) + 1)
    return {
        "parameters": model.count_params(),
        "images": len(images),
        "records": measured(model, calibration, x, labels),
    }


if __name__ == "__main__":
    best, names = "runs/sequential_images/best_rin.keras", ["digits", "mnist"]
    flags.DEFINE_string("model", best, "Keras file of the model.")
    flags.DEFINE_enum("dataset", "digits", names, "What it classifies.")
    flags.DEFINE_bool("rows", False, "The model reads row by row.")
    flags.DEFINE_integer("images", 1_000, "Largest number of test images.", 1)
    measuring.main(__file__, measure, tables)
