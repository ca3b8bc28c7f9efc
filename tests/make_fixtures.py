"""Writes small models with everything that can stand in a file.

    python tests/make_fixtures.py

Run once for a release, on TensorFlow: the files go to tests/fixtures/VERSION,
each model beside an input and what it answered. What is there stays as it is,
for it has to load ever after.
"""

import pathlib

import keras
import numpy as np
from keras import layers

import keras_rin
from keras_rin.constraints import Orthogonal
from keras_rin.initializers import Chain
from keras_rin.initializers import ChainIdentity
from keras_rin.initializers import FeedbackChain
from keras_rin.initializers import Offset
from keras_rin.initializers import PartialIdentity
from keras_rin.initializers import PerGate
from keras_rin.initializers import Ramp
from keras_rin.initializers import SmallVarianceNormal
from keras_rin.layers import RIN
from keras_rin.layers import DeepTransitionRINCell
from keras_rin.layers import LinearResidual
from keras_rin.layers import NoisyRNN
from keras_rin.layers import ResidualDense
from keras_rin.layers import ResidualDenseStack
from keras_rin.layers import RINCell
from keras_rin.models import residual_convnet
from keras_rin.regularizers import IdentityOffsetL2

FOLDER = pathlib.Path(__file__).parent / "fixtures"
SEQUENCE, VECTOR, IMAGE = (None, 3), (4,), (4, 4, 2)


def of(shape, *above):
    return keras.Sequential([keras.Input(shape), *above])


def compiled(optimizer, shape, *above):
    model = of(shape, *above)
    model.compile(optimizer, "mse")
    optimizer.build(model.trainable_variables)
    return model


MODELS = {
    "recurrent": lambda: of(
        SEQUENCE,
        RIN(
            4,
            activation="tanh",
            recurrent_initializer=ChainIdentity(0.9, -0.5),
            recurrent_constraint=Orthogonal(offset=True),
            return_sequences=True,
            dropout=0.1,
        ),
        layers.Bidirectional(
            RIN(
                3,
                recurrent_initializer=Offset(FeedbackChain(0.9, 0.1)),
                return_sequences=True,
            )
        ),
        layers.RNN([RINCell(3), RINCell(2)], return_sequences=True),
        layers.SimpleRNN(
            4,
            recurrent_initializer=Chain(0.9),
            recurrent_regularizer=IdentityOffsetL2(0.1),
            return_sequences=True,
        ),
        layers.LSTM(
            4, recurrent_initializer=PerGate([Ramp(), Ramp(), Chain(), Ramp()])
        ),
    ),
    "partial_identity": lambda: compiled(
        keras.optimizers.Adam(0.003),
        SEQUENCE,
        RIN(4, recurrent_initializer=Offset(PartialIdentity())),
    ),
    "deep_transition": lambda: of(
        SEQUENCE,
        layers.RNN(DeepTransitionRINCell(4, bias_initializer="random_normal")),
    ),
    "noisy": lambda: of(SEQUENCE, NoisyRNN(RINCell(4), stddev=0.0)),
    "residual": lambda: of(
        VECTOR,
        LinearResidual(kernel_initializer=SmallVarianceNormal()),
        ResidualDense(3, kernel_initializer=SmallVarianceNormal()),
        ResidualDenseStack(3, depth=2),
    ),
    "convnet": lambda: residual_convnet(
        IMAGE,
        num_classes=2,
        stem_filters=2,
        filters=(2, 3),
        blocks=1,
        use_bias=True,
    ),
}


def main():
    folder = FOLDER / keras_rin.__version__
    folder.mkdir(parents=True, exist_ok=True)
    for name, make in MODELS.items():
        file = folder / f"{name}.keras"
        if file.exists():
            print(f"{file} is there and stays.")
            continue
        keras.utils.set_random_seed(0)
        model = make()
        shape = [size or 5 for size in model.input_shape[1:]]
        x = np.random.default_rng(0).normal(size=(2, *shape))
        model.save(file)
        y = model.predict(x, verbose=0)
        np.savez(file.with_suffix(".npz"), x=x, y=y)
        print(f"{file}: {file.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
