"""Models of one step, and models that have none."""

import keras
import pytest
from cases import needs_keras
from keras import layers
from keras import ops

from keras_rin.export import streaming_step
from keras_rin.initializers import Offset
from keras_rin.layers import RIN
from keras_rin.layers import LinearResidual
from keras_rin.layers import NoisyRNN
from keras_rin.layers import RateRNN
from keras_rin.layers import ResidualDense
from keras_rin.layers import RINCell

FEATURES = 3


def rin(units, **kwargs):
    return RIN(units, recurrent_initializer=Offset("orthogonal"), **kwargs)


def stack(*above, **options):
    inputs = keras.Input((options.pop("time", None), FEATURES), **options)
    return keras.Sequential([inputs, *above])


def graph(function, **options):
    """A model of a function of its input; one of tokens if it is `int32`."""
    shape = (None,) if options else (None, FEATURES)
    x = keras.Input(shape, **options)
    return keras.Model(x, function(x))


def tokens(function):
    return lambda: graph(function, dtype="int32")


def embedded(x):
    return layers.Embedding(3, 4, mask_zero=True)(x)


def sequences(units=4, **options):
    return rin(units, return_sequences=True, **options)


def of_residual_layers(x):
    """Of merging layers too, each of which keeps a mask."""
    h = LinearResidual("he_normal")(embedded(x))
    h = layers.Add()([h, layers.GRU(4, return_sequences=True)(h)])
    h = ResidualDense(2, "tanh")(h)
    return sequences(3)(h)


def masked_graph(x):
    h = embedded(x)
    h = layers.Add()([h, layers.Dense(4)(h)])
    h = layers.Concatenate()([h, layers.Dropout(0.5)(h)])
    return layers.LSTM(3)(sequences()(h))


def masked(*above, time=None):
    embedding = layers.Embedding(3, 4, mask_zero=True)
    inputs = keras.Input((time,), dtype="int32")
    return keras.Sequential([inputs, embedding, *above])


def before_a_model():
    """A model above the last output, where no steps are."""
    above = keras.Sequential([keras.Input((4,)), layers.Dense(2)])
    return stack(rin(4), above, layers.Reshape((2, 1)), layers.Flatten())


def of_images():
    return keras.Sequential(
        [
            keras.Input((None, 4, 3, 2)),
            layers.ConvLSTM2D(3, 2, return_sequences=True),
            layers.TimeDistributed(layers.Flatten()),
            rin(4),
        ]
    )


def causal(filters, size, **options):
    options = {"bias_initializer": "ones", **options}
    return layers.Conv1D(filters, size, padding="causal", **options)


def strided():
    return stack(
        layers.Normalization(mean=[1.0, -2.0, 0.0], variance=[4.0, 0.25, 1.0]),
        causal(4, 5, strides=3, activation="relu"),
        layers.LayerNormalization(),
        sequences(5),
        layers.Dense(2),
    )


def two_strided():
    """One of them in a model, and one more after the recurrent layer."""
    inner = [keras.Input((None, 4)), layers.Dense(3)]
    inner.append(causal(5, 4, strides=3, use_bias=False))
    first = causal(4, 2, strides=2, activation=layers.ELU())
    return stack(first, keras.Sequential(inner), sequences(3), causal(2, 3))


def side_by_side(x):
    branches = [causal(3, size, strides=2)(x) for size in (2, 5)]
    return rin(3)(layers.Concatenate()(branches))


MODELS = {
    "strided": strided,
    "dilated": lambda: stack(causal(4, 3, dilation_rate=2), layers.GRU(3)),
    "two strided": two_strided,
    "strided branches": lambda: graph(side_by_side),
    "stacked cells last": lambda: stack(
        layers.RNN([layers.LSTMCell(4), RINCell(5)], return_sequences=True)
    ),
    "in a model": lambda: stack(
        stack(
            layers.Dropout(0.5),
            layers.GRU(4, return_sequences=True),
            layers.LayerNormalization(),
        ),
        rin(5),
        layers.Dense(2),
    ),
    "with its state returned": lambda: graph(
        lambda x: layers.GRU(3)(sequences(return_state=True)(x)[0])
    ),
    "before a model": before_a_model,
    "of images": of_images,
    "of residual layers": tokens(of_residual_layers),
    "with dropout": lambda: stack(
        sequences(dropout=0.5, recurrent_dropout=0.5),
        layers.RNN([RINCell(4, dropout=0.5), layers.LSTMCell(3, dropout=0.5)]),
    ),
    "of a fixed batch": lambda: stack(rin(4), batch_size=2),
    "masked, with zeros": lambda: masked(sequences(zero_output_for_mask=True)),
    "masked, unrolled": lambda: masked(rin(4, unroll=True), time=6),
    "masked where all is 0": lambda: stack(layers.Masking(), sequences()),
    "masked graph": tokens(masked_graph),
    "with a mask of its own": tokens(
        lambda x: sequences()(
            layers.Embedding(3, 4)(x), mask=ops.not_equal(x, 1)
        )
    ),
}


def some_input(rng, model, batch, time):
    shape = (batch, time, *model.inputs[0].shape[2:])
    if model.inputs[0].dtype == "int32":
        return rng.integers(2, size=shape).astype("int32")
    x = rng.normal(size=shape).astype("float32")
    x[:, ::4] = 0  # what a mask leaves out
    return x


def blocks_of(model, x):
    """The samples of each step: as many as the strides take."""
    shape = streaming_step(model).input["x"].shape[1:]
    return x.reshape(len(x), -1, *shape)


MARKS = {
    "in a model": pytest.mark.each_backend,
    "strided": pytest.mark.each_backend,
    "two strided": pytest.mark.each_backend,
    "masked, with zeros": pytest.mark.each_backend,
    "masked graph": needs_keras("3.12", "Concatenate has no masks"),
    "with a mask of its own": pytest.mark.each_backend,
    "with dropout": pytest.mark.each_backend,
}


def called_with(**kwargs):
    x = keras.Input((5, FEATURES))
    return keras.Model(x, rin(4)(x, **kwargs))


class OutputOfItsOwn(RINCell):
    def call(self, inputs, states, training=False):
        h, states = super().call(inputs, states, training)
        return 2 * h, states


class Twice(keras.Sequential):
    def call(self, x, training=None, mask=None):
        return 2 * super().call(x, training, mask)


class TwiceTheInput(layers.SimpleRNN):
    def call(self, sequences, initial_state=None, mask=None, training=False):
        return super().call(2 * sequences, initial_state, mask, training)


class FromOne(RINCell):
    def get_initial_state(self, batch_size=None):
        return [ops.ones((batch_size, self.units))]


def used_twice(make):
    layer = make()
    return stack(layer, layers.Dense(FEATURES), layer, rin(2))


# By words of the error.
WITHOUT_STEPS = {
    "it processes the sequence backwards": lambda: stack(
        rin(4, go_backwards=True)
    ),
    "stateful=False": lambda: stack(rin(4, stateful=True), batch_size=2),
    "may not be one of its states": lambda: stack(
        layers.Masking(), layers.RNN(OutputOfItsOwn(4))
    ),
    "'early'.*all strides": lambda: stack(
        sequences(name="early"), causal(3, 4, strides=2), rin(2)
    ),
    "more than call its cell": lambda: stack(TwiceTheInput(4)),
    "the `call` of Keras": lambda: Twice(
        [keras.Input((None, FEATURES)), rin(4)]
    ),
    "Twice, as it is used": lambda: stack(
        Twice([keras.Input((None, FEATURES)), rin(4)])
    ),
    "is given an initial state": lambda: called_with(
        initial_state=ops.ones((1, 4))
    ),
    "a constant": lambda: called_with(
        mask=ops.convert_to_tensor([[True, False, True, False, True]])
    ),
    "rin.*training=True": lambda: called_with(training=True),
    "dropout.*training=True": lambda: graph(
        lambda x: rin(4)(layers.Dropout(0.5)(x, training=True))
    ),
    "sequential.*used twice": lambda: used_twice(
        lambda: stack(sequences(FEATURES))
    ),
    "rin.*used twice": lambda: used_twice(lambda: sequences(FEATURES)),
    "NoisyRNN may do more": lambda: stack(NoisyRNN(RINCell(4))),
    "adds noise in inference": lambda: stack(
        RateRNN(4, 5.0, noise=0.1, inference_noise=True)
    ),
    "initial state is not 0": lambda: stack(layers.RNN(FromOne(4))),
    "'x'.*must have names": lambda: stack(rin(4, name="x")),
    "a recurrent layer": lambda: stack(layers.Dense(3)),
    "is built": lambda: keras.Sequential([rin(4)]),
    "one input and one": lambda: graph(lambda x: [rin(4)(x), rin(4)(x)]),
}
