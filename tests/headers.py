"""C headers: models of them, compilers, and what a header in integers reads."""

import re

import keras
import numpy as np
from keras import layers
from step_files import ARM
from step_files import M4F
from step_files import run

from keras_rin.export import export_c
from keras_rin.layers import RIN
from keras_rin.layers import MinGRU
from keras_rin.layers import RateRNN
from keras_rin.layers import StreamFeatures

STRICT = ["-pedantic", "-Wall", "-Wextra", "-Werror", "-ffreestanding"]
COMPILERS = {
    "gcc": "gcc -std=c99",
    "g++": "g++ -std=c++17",
    "clang": "clang -std=c99",
    "clang++": "clang++ -std=c++17 -x c++",
    "m0plus": f"{ARM}m0plus",
    "m4": M4F,
    "avr": "avr-gcc -std=c99 -mmcu=atmega328p",
    "avr, C++": "avr-g++ -std=c++17 -mmcu=atmega328p",
    "riscv": "riscv64-unknown-elf-gcc -std=c99 -march=rv32imac -mabi=ilp32",
}


def chain(*layers_, shape=(None, 2), dtype="float32"):
    return keras.Sequential([keras.Input(shape, dtype=dtype), *layers_])


def header(model, folder, name="rin", **options):
    path = folder / f"{name}.h"
    export_c(model, path, **options)
    return path


USE = """
#include "PREFIX.h"
#ifdef PREFIX_output_scale /* a header in integers */
#define PREFIX_TYPES(x, y) const int16_t x[], int32_t y[]
#else
#define PREFIX_TYPES(x, y) const float x[], float y[]
#endif
extern PREFIX_state PREFIX_stream;
PREFIX_state PREFIX_stream;
void PREFIX_call(PREFIX_TYPES(x, y));
void PREFIX_call(PREFIX_TYPES(x, y))
{
    PREFIX_reset(&PREFIX_stream);
    PREFIX_step(&PREFIX_stream, x, y);
}
"""


def compile_object(folder, command, *prefixes, before="", after=""):
    """Compiles headers with a state of each and calls of its functions."""
    source = folder / "headers.c"
    uses = "".join(USE.replace("PREFIX", prefix) for prefix in prefixes)
    source.write_text(before + uses + after)
    program, *options = command.split()
    command = [program, "-O2", *options, *STRICT, "-c", source]
    run([*command, "-o", folder / "headers.o"])


SANITIZED = ["gcc", "-std=c99", "-fsanitize=undefined", "-DNDEBUG"]
SANITIZED += ["-fno-sanitize-recover"]
SHRINKING = keras.initializers.Identity(-0.1)


def counts(rng, streams=4, steps=400, features=6):
    """What a sensor with an offset counts: slow waves and noise."""
    time = np.arange(steps)[:, None] / rng.integers(5, 50, features)
    waves = np.sin(time + rng.normal(size=(streams, 1, features)))
    x = 300 * waves + 100 * rng.normal(size=(streams, steps, features))
    return np.round(x + np.linspace(-4_000, 12_000, features)).astype("int16")


def rin(units=12, activation="relu", **options):
    options.setdefault("recurrent_initializer", SHRINKING)
    return RIN(units, activation, return_sequences=True, **options)


def rnn(layer, *args):
    return layer(*args, return_sequences=True)


MODELS = {
    "RIN": lambda: [rin(), layers.Dense(7)],
    "RIN tanh": lambda: [rin(activation="tanh"), layers.Dense(7)],
    "SimpleRNN": lambda: [rnn(layers.SimpleRNN, 8), layers.Dense(7, "relu")],
    "IRNN": lambda: [
        layers.SimpleRNN(
            8, "relu", recurrent_initializer=keras.initializers.Identity(0.9)
        ),
        layers.Dense(7, "softmax"),
    ],
    "in a row": lambda: [
        rin(5),
        layers.Rescaling(0.5, offset=0.1),
        layers.Dense(6),
        layers.ReLU(),
        layers.BatchNormalization(),
        rin(4, "sigmoid", use_bias=False),
    ],
    "GRU": lambda: [rnn(layers.GRU, 7), layers.Dense(7, use_bias=False)],
    "GRU, reset first": lambda: [
        layers.Dense(6, "tanh"),
        layers.GRU(7, reset_after=False, return_sequences=True),
    ],
    "LSTM": lambda: [rnn(layers.LSTM, 7), layers.Dropout(0.1), layers.Dense(7)],
    "MinGRU": lambda: [rnn(MinGRU, 16), layers.Dense(7)],
    "RateRNN": lambda: [
        RateRNN(6, tau=5.0, return_sequences=True),
        layers.Dense(7),
    ],
    "features": lambda: [
        layers.Rescaling(-1.0),
        StreamFeatures(8),
        layers.Rescaling(0.5, offset=0.1),
        rin(9),
        layers.Dense(7),
    ],
    "MinGRU in a row": lambda: [
        rnn(MinGRU, 6, "tanh"),
        rnn(MinGRU, 5, "relu"),
        layers.Dense(7),
    ],
}


def model_of(above, x):
    normalization = layers.Normalization()
    normalization.adapt(x)
    model = keras.Sequential(
        [keras.Input((None, x.shape[2])), normalization, *above]
    )
    for weight in model.weights[3:]:
        if "recurrent" in weight.name:
            continue
        noise = 0.05 * np.random.default_rng(0).normal(size=weight.shape)
        weight.assign(weight + noise)
    return model


def integer_header(model, path, calibration):
    return export_c(model, path, "integer", calibration)


def scale_of(path):
    return float(re.search(r"output_scale (\S+)", path.read_text())[1])


def extremes(steps, features=6):
    low, high = np.full((2, steps, features), [[[-32768]], [[32767]]])
    both = np.where(np.arange(steps)[:, None] % 2, low, high)
    by_feature = np.where(np.arange(features) % 2, low, high)
    return np.stack([low, high, both, by_feature]).astype("int16")


def constants(path):
    matches = re.findall(
        r"_private_(\w+)\[\d+\] \w+_PLACE = {([^}]+)}", path.read_text()
    )
    return {
        name: np.array(values.split(","), "int64") for name, values in matches
    }


def within(bits, values):
    limits = np.iinfo(f"int{bits}")
    assert values.min() >= limits.min and values.max() <= limits.max
    return values


def product(weights, name, x):
    """Of x (streams, columns): the sums of rows, halved and rounded."""
    shifts = weights[f"{name}_shifts"]
    sums = within(32, x @ weights[name].reshape(len(shifts), -1).T)
    halved = np.floor(np.ldexp(sums.astype(float), -1 - shifts) + 0.5)
    return within(32, halved.astype("int64"))
