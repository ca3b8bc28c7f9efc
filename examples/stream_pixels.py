"""Runs a trained model one pixel at a time, as on a device.

    python sequential_images.py
    python stream_pixels.py

Exports the best RIN of the first command as a LiteRT file that takes single
time steps, runs the file pixel by pixel over test images, and writes how long
a step takes and how often the prediction is right, step after step.
"""

import json
import os
import pathlib
import platform
import shlex
import sys
import time
from importlib.metadata import version

import keras
import numpy as np
from absl import app
from absl import flags
from absl import logging
from ai_edge_litert.interpreter import Interpreter
from sklearn.datasets import load_digits
from tabulate import tabulate
from tqdm import tqdm

from keras_rin.export import export_streaming
from keras_rin.tasks import sequential_pixels

PERCENTILES = [50, 90, 99, 99.9]

FLAGS = flags.FLAGS


def load():
    """The test images and labels of sequential_images.py."""
    data = load_digits()
    order = np.random.default_rng(0).permutation(len(data.target))[:360]
    return data.images[order] / 16, data.target[order]


def stream(step, sequence):
    """The prediction after each pixel, and the microseconds of each step."""
    state = {
        name: np.zeros(details["shape"], details["dtype"])
        for name, details in step.get_input_details().items()
        if name != "x"
    }
    predictions, microseconds = [], []
    for x in sequence:
        begin = time.perf_counter()
        state = step(x=x[None], **state)
        microseconds.append(1e6 * (time.perf_counter() - begin))
        predictions.append(int(state.pop("y").argmax()))
    return predictions, microseconds


def tables(record):
    """{file: table in Markdown}: latency, and accuracy along the sequence."""
    steps = len(record["right"])
    latency = [f"{record['images'] * steps:,}"]
    latency += [f"{value:.0f}" for value in record["percentiles"]]
    shown = [round(steps * quarter / 4) for quarter in (1, 2, 3, 4)]
    accuracy = [f"{record['right'][step - 1]:.3f}" for step in shown]
    header = ["pixels", *(f"p{p}, µs" for p in PERCENTILES)]
    after = ["after", *(f"{step} pixels" for step in shown)]
    plain = {"tablefmt": "github", "disable_numparse": True}
    return {
        "latency.md": tabulate([latency], header, **plain),
        "accuracy.md": tabulate([["accuracy", *accuracy]], after, **plain),
    }


def main(argv):
    if argv[1:]:
        raise app.UsageError(f"Flags begin with --. Received: {argv[1:]}")
    logging.set_verbosity(logging.ERROR)
    folder = pathlib.Path(FLAGS.output)
    folder.mkdir(parents=True, exist_ok=True)
    images, labels = (part[: FLAGS.images] for part in load())
    model = keras.models.load_model(FLAGS.model)
    export_streaming(model, folder / "streaming.tflite", format="litert")
    interpreter = Interpreter(str(folder / "streaming.tflite"))
    step = interpreter.get_signature_runner("step")
    sequences = sequential_pixels.generate(images)
    runs = [stream(step, sequence) for sequence in tqdm(sequences)]
    predictions, microseconds = np.array(runs).swapaxes(0, 1)
    command = os.path.relpath(__file__), *sys.argv[1:]
    packages = "keras-rin", "keras", "ai-edge-litert"
    record = {
        "tables": "examples.stream_pixels",
        "command": shlex.join(["python", *command]),
        "machine": f"{platform.machine()}, {os.cpu_count()} CPUs",
        "versions": {name: version(name) for name in packages},
        "images": len(images),
        "percentiles": np.percentile(microseconds, PERCENTILES).tolist(),
        "right": (predictions == labels[:, None]).mean(axis=0).tolist(),
    }
    (folder / "results.new").write_text(json.dumps(record) + "\n")
    os.replace(folder / "results.new", folder / "results.json")
    for file, table in tables(record).items():
        (folder / file).write_text(table + "\n")
        print(f"\n{folder / file}\n\n{table}")


if __name__ == "__main__":
    best = "runs/sequential_images/best_rin.keras"
    flags.DEFINE_string("output", "runs/stream_pixels", "Folder to write to.")
    flags.DEFINE_string("model", best, "The .keras file to run.")
    flags.DEFINE_integer("images", 360, "Images to run, at most.", 1)
    flags.register_validator("output", str.strip, "Name a folder.")
    app.run(main)
