"""From the name of a layer in a protocol to the Keras layer.

`layers.toml`, or a table `layers` of the protocol's own, holds the class and
the config of each. "$name" in a config stands for a hyperparameter of the run.
"""

import pathlib
import tomllib

import keras

import keras_rin  # noqa: F401  registers its classes

LAYERS = tomllib.loads(pathlib.Path(__file__).with_suffix(".toml").read_text())


@keras.saving.register_keras_serializable(package="experiments")
class IdentityAndNoise(keras.initializers.Initializer):
    """The initialization of a RIN, for a layer that stores V."""

    def __call__(self, shape, dtype=None):
        noise = keras.random.normal(shape, stddev=0.001, dtype=dtype)
        return noise + keras.ops.eye(shape[0], dtype=dtype)


def build(settings, own=None, **arguments):
    """The layer `settings["layer"]`; `own` are the protocol's own layers."""
    config = _filled({**LAYERS, **(own or {})}[settings["layer"]], settings)
    name = config.pop("class_name")
    if "cell" not in config:
        config["units"] = settings["units"]
    layer = keras.saving.get_registered_object(name)
    if layer is None:
        layer = getattr(keras.layers, name)
    return layer.from_config({**config, **arguments})


def _filled(config, settings):
    """A copy in which "$name" is the value of a hyperparameter."""
    if isinstance(config, dict):
        return {key: _filled(value, settings) for key, value in config.items()}
    if isinstance(config, list):
        return [_filled(value, settings) for value in config]
    if isinstance(config, str) and config.startswith("$"):
        return settings[config[1:]]
    return config
