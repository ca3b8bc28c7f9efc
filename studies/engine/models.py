"""The uncompiled Keras model of a run, from its options."""

import ast
import functools
import json

import keras

from keras_rin.layers import RIN
from keras_rin.models import residual_convnet

# Entries of configs that say how a layer is called or computed.
NO_NETWORK = (
    "name dtype module registered_name seed fused implementation".split()
)
# The recurrent layers that studies compare, where they name no others.
LAYERS = {
    "RIN": RIN,
    "SimpleRNN": keras.layers.SimpleRNN,
    "GRU": keras.layers.GRU,
    "LSTM": keras.layers.LSTM,
}


@keras.saving.register_keras_serializable(package="engine")
class IdentityAndNoise(keras.initializers.Initializer):
    """The initialization of a RIN, for a layer that stores V."""

    def __call__(self, shape, dtype=None):
        noise = keras.random.normal(shape, stddev=0.001, dtype=dtype)
        return noise + keras.ops.eye(shape[0], dtype=dtype)


def build(setting, data):
    kinds = {"babi": answers_questions, "images": convolutional}
    return kinds.get(setting["task"], recurrent)(setting, data)


def call(text, setting):
    """A layer in words of a protocol, as a config of Keras in JSON."""
    config = _config(ast.parse(text, mode="eval").body, setting)
    if "cell" not in config["config"]:
        config["config"]["units"] = setting["units"]
    return json.dumps(config)


def _config(node, values):
    if isinstance(node, ast.Call):
        if node.args:
            raise ValueError(f"an argument lacks a name: {ast.unparse(node)}")
        name = ast.unparse(node.func)
        if "." not in name:
            name = f"keras_rin.{name}"
        name = name.removeprefix("keras.").replace(".", ">")
        arguments = {k.arg: _config(k.value, values) for k in node.keywords}
        return {"class_name": name, "config": arguments}
    if isinstance(node, ast.List):
        return [_config(element, values) for element in node.elts]
    if isinstance(node, ast.Name):  # of a hyperparameter
        return values[node.id]
    return ast.literal_eval(node)


def layer(call, **arguments):
    """The Keras layer of a call."""
    name, config = json.loads(call).values()
    kind = keras.saving.get_registered_object(name)
    if kind is None:
        kind = getattr(keras.layers, name)
    return kind.from_config(config | arguments)


@functools.cache
def config(call):
    """All that determines a layer, also by default, as JSON."""
    example = layer(call)
    config = {"class_name": type(example).__name__}
    config["config"] = example.get_config()
    return json.dumps(_without_names(config), sort_keys=True)


def _without_names(config):
    """What of a config makes another network, without options that are off."""
    if isinstance(config, (list, tuple)):
        return list(map(_without_names, config))
    if not isinstance(config, dict):
        return config
    values = {
        key: _without_names(value)
        for key, value in config.items()
        if key not in NO_NETWORK
    }
    return {key: value for key, value in values.items() if value}


def recurrent(setting, data):
    """One recurrent layer, or `layers` of them, and a linear read-out.

    With `hidden`, a layer of that many ReLU units comes before the read-out.
    """
    model = keras.Sequential([keras.Input((None, data.splits[0][0].shape[-1]))])
    for number in range(1, setting["layers"] + 1):
        every_step = data.every_step or number < setting["layers"]
        model.add(layer(setting["call"], return_sequences=every_step))
    if setting["hidden"]:
        model.add(keras.layers.Dense(setting["hidden"], "relu"))
    model.add(keras.layers.Dense(data.answers))
    return model


def answers_questions(setting, data):
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
    states = layer(setting["call"], return_sequences=True)(embed(story))
    state = layer(setting["call"])(embed(question))
    repeated = keras.layers.RepeatVector(steps)(state)
    both = keras.layers.Concatenate()([states, repeated])
    # Beside a part without a mask, Concatenate loses the mask of the other.
    answer = layer(setting["call"])(both, mask=embed.compute_mask(story))
    answer = keras.layers.Dense(words, "softmax")(answer)
    return keras.Model({"story": story, "question": question}, answer)


def normalized(layer, x, outputs=1, batch_size=None):
    """A recurrent layer between normalization of x and a linear read-out."""
    normalization = keras.layers.Normalization()
    normalization.adapt(x)
    inputs = keras.Input((None, x.shape[-1]), batch_size)
    read_out = keras.layers.Dense(outputs)
    return keras.Sequential([inputs, normalization, layer, read_out])


def as_many_weights(layer, most_units, features):
    """The largest number of units with at most the weights of a RIN."""
    most = count_weights(RIN, most_units, features)
    units = most_units
    while units > 1 and count_weights(layer, units, features) > most:
        units -= 1
    return units


def count_weights(layer, units, features):
    layer = layer(units)
    layer.build((None, None, features))
    return layer.count_params()


def convolutional(setting, data):
    """`residual_convnet` on small images, its read-out fixed or trained."""
    initializer, width = setting["initializer"], setting["width"]
    model = residual_convnet(
        data.splits[0][0].shape[1:],
        data.answers,
        stem_filters=width,
        filters=(width, 2 * width, 4 * width),
        blocks=setting["blocks"],
        kernel_initializer=(
            None if initializer == "small variance" else initializer
        ),
    )
    if setting["read_out"] == "fixed":
        return model
    mean = model.get_layer("mean").output
    return keras.Model(model.inputs, keras.layers.Dense(data.answers)(mean))
