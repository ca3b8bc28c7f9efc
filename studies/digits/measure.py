"""How accurate are five layers on digits read pixel by pixel?

Each layer has 100 units and reads the 8 x 8 pixels of a handwritten digit one
at a time; this is the table of `examples/sequential_images.py`. All layers have
the same optimizer (Adam at 0.001, gradients clipped to norm 1, 40 epochs), for
convenience: it is no fair comparison. [pixels](../pixels/README.md) compares
layers at their own best learning rates. The weights with the highest validation
accuracy are evaluated on 360 test images: median (lowest to highest) of three
seeds.

- *RIN* draws its offset from a normal distribution of standard deviation 0.001
  and its input kernel from Keras's default.
- *RIN paper* draws the input kernel with standard deviation 0.001 as well, as
  Hu et al. 2018 do, at a learning rate a thousand times theirs.
- *RIN chain* has chain initialization of the effective recurrent matrix.
"""

import itertools
import time

import keras
import numpy as np
from tqdm import tqdm

from engine import record
from engine import training
from engine.data import load_images
from engine.measurement import groups
from engine.measurement import learning_curves
from engine.measurement import spread
from keras_rin.callbacks import RestoreOnNaN
from keras_rin.initializers import Chain
from keras_rin.initializers import Offset
from keras_rin.layers import RIN
from keras_rin.tasks import sequential_pixels

BATCH = 32
LAYERS = {
    "RIN": RIN,
    "RIN paper": lambda units: RIN(
        units, kernel_initializer=keras.initializers.RandomNormal(0, 0.001)
    ),
    "RIN chain": lambda units: RIN(
        units, recurrent_initializer=Offset(Chain(1.0))
    ),
    "SimpleRNN": keras.layers.SimpleRNN,
    "LSTM": keras.layers.LSTM,
}


def measure(units=100, epochs=40, seeds=range(3), layers=tuple(LAYERS)):
    splits = [
        (sequential_pixels.generate(x), y) for x, y in load_images("digits")
    ]
    baseline = sequential_pixels.chance_accuracy(splits[2][1])
    cases = list(itertools.product(seeds, layers))
    runs = [train(*case, splits, units, epochs) for case in tqdm(cases)]
    return {"baseline": baseline, "runs": runs}


def draw(results):
    """Learning curves: median and range over three seeds."""
    name, baseline = "accuracy, validation data", results["baseline"]
    return learning_curves(results["runs"], name, baseline)


def train(seed, name, splits, units, epochs):
    keras.utils.set_random_seed(seed)
    train, validation, test = splits
    model = build(name, units)
    ends = []
    clock = keras.callbacks.LambdaCallback(
        on_epoch_end=lambda *_: ends.append(time.perf_counter())
    )
    best = training.keep_best("val_accuracy", epochs, "max")
    history = model.fit(
        training.batches(train, BATCH, seed, epochs),
        steps_per_epoch=-(-len(train[1]) // BATCH),
        epochs=epochs,
        shuffle=False,
        validation_data=validation,
        validation_batch_size=BATCH,
        callbacks=[RestoreOnNaN(), best, clock],
        verbose=0,
    ).history
    return {
        "layer": name,
        "seed": seed,
        "parameters": model.count_params(),
        "score": model.evaluate(*test, BATCH, verbose=0)[1],
        "validation": history["val_accuracy"],
        # The first epoch compiles.
        "seconds_per_epoch": float(np.median(np.diff(ends))),
    }


def build(name, units):
    model = keras.Sequential(
        [keras.Input((None, 1)), LAYERS[name](units), keras.layers.Dense(10)]
    )
    model.compile(
        keras.optimizers.Adam(0.001, clipnorm=1.0),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
    )
    return model


def tables(results):
    rows = []
    for layer, runs in groups(results["runs"], "layer").items():
        scores = spread([run["score"] for run in runs])
        seconds = spread([run["seconds_per_epoch"] for run in runs])
        rows.append([layer, f"{runs[0]['parameters']:,}", scores, seconds])
    baseline = f"{results['baseline']:.3g}"
    rows.append(["most frequent class", "0", baseline, ""])
    header = ["layer", "parameters", "accuracy", "seconds an epoch"]
    return {"Test set": record.markdown(header, rows)}


PICTURES = {"learning_curves.svg": draw}
SMALLEST = {"units": 2, "epochs": 2, "seeds": (0,), "layers": ("RIN",)}
