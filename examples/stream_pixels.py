"""Runs a trained model one pixel at a time, as on a device.

    python sequential_images.py
    python stream_pixels.py

Exports the best RIN of the first command as a LiteRT file that takes single
time steps, runs the file pixel by pixel over test images, prints how long a
step takes, and draws how often the prediction is right, step after step.
"""

import pathlib
import time

import keras
import numpy as np
from absl import app
from absl import flags
from absl import logging
from ai_edge_litert.interpreter import Interpreter
from matplotlib.figure import Figure
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
    order = order[: FLAGS.images]
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
        start = time.perf_counter()
        state = step(x=x[None], **state)
        microseconds.append(1e6 * (time.perf_counter() - start))
        predictions.append(int(state.pop("y").argmax()))
    return predictions, microseconds


def main(argv):
    if argv[1:]:
        raise app.UsageError(f"Flags begin with --. Received: {argv[1:]}")
    logging.set_verbosity(logging.ERROR)
    folder = pathlib.Path(FLAGS.output)
    folder.mkdir(parents=True, exist_ok=True)
    images, labels = load()
    model = keras.models.load_model(FLAGS.model)
    export_streaming(model, folder / "streaming.tflite", format="litert")
    interpreter = Interpreter(str(folder / "streaming.tflite"))
    step = interpreter.get_signature_runner("step")
    sequences = sequential_pixels.generate(images)
    runs = [stream(step, sequence) for sequence in tqdm(sequences)]
    predictions, microseconds = np.array(runs).swapaxes(0, 1)
    header = ["pixels", *(f"p{p}, µs" for p in PERCENTILES)]
    times = np.percentile(microseconds, PERCENTILES)
    row = [f"{microseconds.size:,}", *(f"{time:.0f}" for time in times)]
    print(tabulate([row], header, "github", disable_numparse=True))
    figure = Figure(layout="constrained")
    axes = figure.subplots()
    axes.plot((predictions == labels[:, None]).mean(axis=0))
    axes.set(xlabel="pixels read", ylabel="accuracy")
    figure.savefig(folder / "accuracy.png", dpi=120)


if __name__ == "__main__":
    best = "runs/sequential_images/best_rin.keras"
    flags.DEFINE_string("output", "runs/stream_pixels", "Folder to write to.")
    flags.DEFINE_string("model", best, "The .keras file to run.")
    flags.DEFINE_integer("images", 360, "Images to run, at most.", 1)
    flags.register_validator("output", str.strip, "Name a folder.")
    app.run(main)
