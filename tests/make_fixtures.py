"""Writes small models with everything that can stand in a file.

    python tests/make_fixtures.py

Run once for a release, on TensorFlow: the files go to tests/fixtures/VERSION,
each model beside an input and what it answered, and the public names to
tests/names/VERSION.txt. The last line printed goes into
tests/test_saved_files.py: the folder is never changed again, for every later
version has to load it.
"""

import hashlib
import pathlib
import sys

import keras
import numpy as np
from public_objects import OBJECTS

import keras_rin
from keras_rin import initializers
from keras_rin import layers

FOLDER = pathlib.Path(__file__).parent / "fixtures"
NAMES = pathlib.Path(__file__).parent / "names"
SEQUENCE, VECTOR, IMAGE = (None, 3), (4,), (4, 4, 2)


def sequential(shape, *above):
    return keras.Sequential([keras.Input(shape), *above])


def recurrent():
    rin = layers.RIN(
        4,
        activation="tanh",
        recurrent_initializer=initializers.ChainIdentity(0.9, -0.5),
        recurrent_constraint=keras_rin.constraints.Orthogonal(offset=True),
        return_sequences=True,
        dropout=0.1,
    )
    feedback = initializers.Offset(initializers.FeedbackChain(0.9, 0.1))
    both = layers.RIN(3, recurrent_initializer=feedback, return_sequences=True)
    cells = [layers.RINCell(3), layers.RINCell(2)]
    simple_rnn = keras.layers.SimpleRNN(
        4,
        recurrent_initializer=initializers.Chain(0.9),
        recurrent_regularizer=keras_rin.regularizers.IdentityOffsetL2(0.1),
        return_sequences=True,
    )
    gates = [initializers.Ramp() for _ in "ifco"]
    gates[2] = initializers.Chain()
    lstm = keras.layers.LSTM(
        4, recurrent_initializer=initializers.PerGate(gates)
    )
    both = keras.layers.Bidirectional(both)
    cells = keras.layers.RNN(cells, return_sequences=True)
    return sequential(SEQUENCE, rin, both, cells, simple_rnn, lstm)


def partial_identity():
    identity = initializers.Offset(initializers.PartialIdentity())
    model = sequential(SEQUENCE, layers.RIN(4, recurrent_initializer=identity))
    optimizer = keras.optimizers.Adam(0.003)
    model.compile(optimizer, "mse")
    optimizer.build(model.trainable_variables)
    return model


def deep_transition():
    cell = layers.DeepTransitionRINCell(4, bias_initializer="random_normal")
    return sequential(SEQUENCE, keras.layers.RNN(cell))


def min_gru():
    options = {"gate_bias": -1, "dropout": 0.1, "return_sequences": True}
    options["kernel_initializer"] = initializers.OneUnitInput(0.5, unit=1)
    chain = initializers.Chain(0.5, circular=True)
    aligned = initializers.AlignedInput(chain, gain=2.0)
    cell = keras.layers.RNN(layers.MinGRUCell(3, "tanh"))
    rin = layers.RIN(4, return_sequences=True, kernel_initializer=aligned)
    return sequential(SEQUENCE, layers.MinGRU(4, **options), rin, cell)


def residual_rnn():
    options = {"penalty": 0.1, "margin": 0.2, "return_sequences": True}
    cell = keras.layers.RNN(layers.ResidualRNNCell(3, 5))
    residual = layers.ResidualRNN(4, 6, **options)
    return sequential(SEQUENCE, layers.StreamFeatures(4), residual, cell)


def noisy():
    return sequential(SEQUENCE, layers.NoisyRNN(layers.RINCell(4), stddev=0.0))


def rate():
    options = {"noise": 0.1, "return_sequences": True}
    low_rank = layers.RateRNN(4, tau=5.0, rank=2, **options)
    cell = keras.layers.RNN(layers.RateRNNCell(3, tau=2.0))
    return sequential(SEQUENCE, keras_rin.recordings.OwnScale(), low_rank, cell)


def residual():
    small = initializers.SmallVarianceNormal
    return sequential(
        VECTOR,
        layers.LinearResidual(kernel_initializer=small()),
        layers.ResidualDense(3, kernel_initializer=small()),
        layers.ResidualDense(3, scale="rezero"),
    )


def convnet():
    sizes = {"stem_filters": 2, "filters": (2, 3), "blocks": 1}
    return keras_rin.models.residual_convnet(
        IMAGE, num_classes=2, use_bias=True, **sizes
    )


MODELS = (
    *(recurrent, partial_identity, deep_transition, min_gru, residual_rnn),
    *(noisy, rate, residual, convnet),
)


def digest(folder):
    """The SHA-256 of names and contents of the files of a folder."""
    sums = hashlib.sha256()
    for file in sorted(folder.iterdir()):
        content = hashlib.sha256(file.read_bytes()).hexdigest()
        sums.update(f"{content}  {file.name}\n".encode())
    return sums.hexdigest()


def main(folder):
    folder.mkdir(parents=True)
    for make in MODELS:
        file = folder / f"{make.__name__}.keras"
        keras.utils.set_random_seed(0)
        model = make()
        shape = [size or 5 for size in model.input_shape[1:]]
        x = np.random.default_rng(0).normal(size=(2, *shape))
        model.save(file)
        y = model.predict(x, verbose=0)
        np.savez(file.with_suffix(".npz"), x=x, y=y)
        print(f"{file}: {file.stat().st_size:,} bytes")
    print(f'    "{folder.name}": "{digest(folder)}",')


if __name__ == "__main__":
    if ".dev" in keras_rin.__version__:
        sys.exit(f"{keras_rin.__version__} is not the version of a release")
    main(FOLDER / keras_rin.__version__)
    names = [name.removeprefix("keras_rin.") for name in OBJECTS]
    text = "\n".join(sorted(names)) + "\n"
    (NAMES / f"{keras_rin.__version__}.txt").write_text(text)
