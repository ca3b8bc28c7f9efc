"""Feeds a trained network one pixel at a time, as a device would.

    python examples/sequential_images.py
    python examples/stream_pixels.py

Writes the network of the first line as a LiteRT file that takes single steps,
runs it pixel by pixel over test images with the LiteRT interpreter, and prints
how long a step takes, and how often the answer is right, step after step. Any
RIN that `examples/sequential_images.py` trained will do: --model, --dataset.
"""

import time

import image_data
import keras
import numpy as np
import outputs
from absl import app
from absl import flags
from absl import logging
from ai_edge_litert.interpreter import Interpreter
from tqdm import tqdm

from keras_rin.export import export_streaming
from keras_rin.tasks import sequential_pixels

PERCENTILES = [50, 90, 99, 99.9]

FLAGS = flags.FLAGS


def load_step(path):
    """The step in a file, and the state to begin with."""
    step = Interpreter(str(path)).get_signature_runner("step")
    start = {
        name: np.zeros(details["shape"], details["dtype"])
        for name, details in step.get_input_details().items()
        if name != "x"
    }
    return step, start


def stream(step, start, sequence):
    """The answer after each pixel, and the microseconds each one took."""
    state, answers, microseconds = start, [], []
    for x in sequence:
        before = time.perf_counter()
        state = step(x=x[None], **state)
        microseconds.append(1e6 * (time.perf_counter() - before))
        answers.append(int(state.pop("y").argmax()))
    return answers, microseconds


def tables(record):
    latency = [f"{value:.0f}" for value in record["percentiles"]]
    header = ["pixels", *(f"{p} % below, µs" for p in PERCENTILES)]
    pixels = f"{record['images'] * len(record['right']):,}"
    steps = len(record["right"])
    shown = [round(steps * quarter / 4) for quarter in (1, 2, 3, 4)]
    right = [f"{record['right'][step - 1]:.3f}" for step in shown]
    return {
        "latency.md": outputs.markdown(header, [[pixels, *latency]]),
        "accuracy.md": outputs.markdown(
            ["after", *(f"{step} pixels" for step in shown)],
            [["right", *right]],
        ),
    }


def main(argv):
    del argv
    logging.set_verbosity(logging.ERROR)
    output = outputs.prepare(FLAGS.output)
    try:
        model = keras.models.load_model(FLAGS.model)
    except ValueError as error:
        raise app.UsageError(f"--model={FLAGS.model}: {error}") from error
    _, _, (images, labels) = image_data.load(FLAGS.dataset, FLAGS.data_dir)
    images, labels = images[: FLAGS.images], labels[: FLAGS.images]
    export_streaming(model, output / "streaming.tflite", format="litert")
    step, start = load_step(output / "streaming.tflite")
    sequences = sequential_pixels.generate(images)
    runs = [stream(step, start, sequence) for sequence in tqdm(sequences)]
    answers, microseconds = (np.array(part) for part in zip(*runs, strict=True))
    record = {
        "tables": "stream_pixels",
        "images": len(images),
        "percentiles": np.percentile(microseconds, PERCENTILES).tolist(),
        "right": (answers == labels[:, None]).mean(axis=0).tolist(),
    }
    outputs.write(output, record, tables)


if __name__ == "__main__":
    flags.DEFINE_string("output", "runs/stream_pixels", "Where to write.")
    flags.DEFINE_string(
        "model", "runs/sequential_images/best_rin.keras", "What to run."
    )
    flags.DEFINE_enum("dataset", "digits", image_data.NAMES, "What to feed it.")
    flags.DEFINE_string("data_dir", None, "Where TFDS finds prepared data.")
    flags.DEFINE_integer("images", 1_000, "To feed it, at most.", 1)
    app.run(main)
