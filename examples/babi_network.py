"""The network of the bAbI example, and its data.

The network of Hu et al., 2018: one recurrent layer of 100 units reads the
story, a second the question, a third both; a softmax names one word. How the
third reads two outputs is not spelled out there. Here it reads the story's,
step by step, with the last of the question beside each.
"""

import functools

import keras

from keras_rin.layers import RIN
from keras_rin.tasks import babi


@keras.saving.register_keras_serializable(package="examples")
class IdentityAndNoise(keras.initializers.Initializer):
    """What a RIN starts from, for a layer that stores the effective matrix."""

    def __call__(self, shape, dtype=None):
        noise = keras.random.normal(shape, stddev=0.001, dtype=dtype)
        return noise + keras.ops.eye(shape[0], dtype=dtype)


RELU = functools.partial(keras.layers.SimpleRNN, activation="relu")
LAYERS = {
    "RIN": RIN,
    "IRNN": functools.partial(RELU, recurrent_initializer="identity"),
    "IRNN + noise": functools.partial(
        RELU, recurrent_initializer=IdentityAndNoise
    ),
    "LSTM": keras.layers.LSTM,
}
SMALL = {"class_name": "RandomNormal", "config": {"stddev": 0.001}}


def build_model(
    layer, words, steps, units=100, learning_rate=1e-3, paper_start=False
):
    """The compiled network: `words` counts the empty one, `steps` a story's.

    `paper_start` draws the input kernels of all layers but the LSTM's from
    N(0, 0.001), and starts the LSTM's forget gates without a bias.
    """
    options = {}
    if paper_start and layer == "LSTM":
        options = {"unit_forget_bias": False}
    elif paper_start:
        options = {"kernel_initializer": SMALL}
    recurrent = functools.partial(LAYERS[layer], units, **options)
    story = keras.Input((steps,), dtype="int32", name="story")
    question = keras.Input((None,), dtype="int32", name="question")
    embed = keras.layers.Embedding(words, 200, mask_zero=True)
    told = recurrent(return_sequences=True)(embed(story))
    asked = keras.layers.RepeatVector(steps)(recurrent()(embed(question)))
    both = keras.layers.Concatenate()([told, asked])
    # Beside a part without a mask, Concatenate loses the mask of the other.
    answer = recurrent()(both, mask=embed.compute_mask(story))
    answer = keras.layers.Dense(words, "softmax")(answer)
    model = keras.Model({"story": story, "question": question}, answer)
    optimizer = keras.optimizers.Adam(learning_rate, clipnorm=1.0)
    model.compile(
        optimizer, "sparse_categorical_crossentropy", metrics=["accuracy"]
    )
    return model


def load(folder, task):
    """Returns `(x, y)` to train, validate and test on, and the words.

    The last tenth of the questions to train on is for validation.
    """
    train, test, words = babi.read(folder, task)
    cut = len(train[2]) * 9 // 10
    parts = [a[:cut] for a in train], [a[cut:] for a in train], test
    splits = [({"story": s, "question": q}, answer) for s, q, answer in parts]
    return splits, words
