"""The uncompiled Keras model of a run, from its settings."""

import keras

from experiments import layers
from keras_rin.layers import ResidualDenseStack
from keras_rin.models import residual_convnet

HYPERPARAMETERS = {"layer", "units", "layers", "hidden", "noise"}
HYPERPARAMETERS |= {"chain_gain", "identity_gain", "strength", "scaled"}
HYPERPARAMETERS |= {"initializer", "read_out", "blocks", "width"}  # images
HYPERPARAMETERS |= {"neurons", "depth"}  # a stack of dense residual units


def build(settings, data, own=None):
    """The model; `own` are the layers of its protocol."""
    if settings["task"] == "babi":
        return answers_questions(settings, data, own)
    if settings["task"] == "images":
        kind = convolutional if "blocks" in settings else dense
        return kind(settings, data)
    return recurrent(settings, data, own)


def recurrent(settings, data, own):
    """One recurrent layer, or `layers` of them, and a linear read-out.

    With `hidden`, a layer of that many ReLU units comes before the read-out.
    """
    count = settings.get("layers", 1)
    model = keras.Sequential([keras.Input((None, data.splits[0][0].shape[-1]))])
    for number in range(1, count + 1):
        every_step = data.every_step or number < count
        options = {"return_sequences": True} if every_step else {}
        model.add(layers.build(settings, own, **options))
    if hidden := settings.get("hidden"):
        model.add(keras.layers.Dense(hidden, "relu"))
    model.add(keras.layers.Dense(data.answers))
    if settings.get("scaled"):
        # Loss and gradient at update 0 then do not depend on the length.
        kernel, read_out = model.layers[0].cell.kernel, model.layers[-1].kernel
        kernel.assign(kernel / settings["length"] ** 0.5)
        read_out.assign(read_out / settings["length"])
    return model


def answers_questions(settings, data, own):
    """The network of Hu et al., 2018, for bAbI.

    One recurrent layer reads the story, a second the question, a third both; a
    softmax names one word. How the third reads two outputs is not spelled out
    in the paper. Here it reads the story's, step by step, with the last of the
    question beside each.
    """
    words, steps = data.answers, data.splits[0][0]["story"].shape[1]
    story = keras.Input((steps,), dtype="int32", name="story")
    question = keras.Input((None,), dtype="int32", name="question")
    embed = keras.layers.Embedding(words, 200, mask_zero=True)
    told = layers.build(settings, own, return_sequences=True)(embed(story))
    asked = layers.build(settings, own)(embed(question))
    asked = keras.layers.RepeatVector(steps)(asked)
    both = keras.layers.Concatenate()([told, asked])
    # Beside a part without a mask, Concatenate loses the mask of the other.
    answer = layers.build(settings, own)(both, mask=embed.compute_mask(story))
    answer = keras.layers.Dense(words, "softmax")(answer)
    return keras.Model({"story": story, "question": question}, answer)


def convolutional(settings, data):
    """`residual_convnet` on small images, its read-out fixed or trained."""
    initializer, width = settings["initializer"], settings.get("width", 8)
    model = residual_convnet(
        data.splits[0][0].shape[1:],
        data.answers,
        stem_filters=width,
        filters=(width, 2 * width, 4 * width),
        blocks=settings["blocks"],
        kernel_initializer=(
            None if initializer == "small variance" else initializer
        ),
    )
    if settings["read_out"] == "fixed":
        return model
    mean = model.get_layer("mean").output
    return keras.Model(model.inputs, keras.layers.Dense(data.answers)(mean))


def dense(settings, data):
    """A stack of `depth` residual units with `neurons` hidden units in all."""
    units = settings["neurons"] // settings["depth"]
    return keras.Sequential(
        [
            keras.Input(data.splits[0][0].shape[1:]),
            keras.layers.Flatten(),
            ResidualDenseStack(units, depth=settings["depth"]),
            keras.layers.Dense(data.answers),
        ]
    )
