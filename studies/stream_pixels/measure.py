"""How long does a trained model take for one pixel, as on a device?

A LiteRT file that takes single time steps runs over the 360 test images of
`examples/sequential_images.py`, whose best RIN it is. The first table has
percentiles of the time of a step, in microseconds; the second how often the
prediction is right, step after step.
"""

import numpy as np
from exports.measure import DIGITS
from tqdm import tqdm

from engine import exported
from engine import record
from engine.data import load_images
from keras_rin.tasks import sequential_pixels

PERCENTILES = [50, 90, 99, 99.9]


def measure(model=DIGITS, images=360):
    model = exported.load_model(model, 1, 10)
    *_, (x, labels) = load_images("digits")
    sequences = sequential_pixels.generate(x[:images])
    with exported.streaming_file(model, "step.tflite", format="litert") as path:
        step = exported.litert_step(path)
    runs = [exported.stream(*step, sequence) for sequence in tqdm(sequences)]
    outputs, microseconds = map(np.array, zip(*runs, strict=True))
    right = outputs.argmax(axis=-1) == labels[:images, None]
    return {
        "images": len(sequences),
        "percentiles": np.percentile(microseconds, PERCENTILES).tolist(),
        "right": right.mean(axis=0).tolist(),
    }


def tables(results):
    steps = len(results["right"])
    times = [f"{results['images'] * steps:,}"]
    times += [f"{value:.0f}" for value in results["percentiles"]]
    quarters = [round(steps * n / 4) for n in (1, 2, 3, 4)]
    accuracy = [f"{results['right'][step - 1]:.3f}" for step in quarters]
    return {
        "Time of a step": record.markdown(
            ["pixels", *(f"p{p}, µs" for p in PERCENTILES)], [times]
        ),
        "Accuracy along the sequence": record.markdown(
            ["after", *(f"{step} pixels" for step in quarters)],
            [["accuracy", *accuracy]],
        ),
    }


SMALLEST = {"model": None, "images": 3}
