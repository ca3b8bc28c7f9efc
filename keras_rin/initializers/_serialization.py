"""Configs of initializers that bring back their values."""

import inspect

import keras

PLAIN = bool, int, float, str, type(None)
KERAS_FROM_CONFIG = keras.initializers.Initializer.from_config.__func__


def complete_config(initializer):
    """The config of an initializer, with arguments that its class leaves out.

    That of Keras 3.15's `Identity` lacks `gain`: an argument is added if there
    is an attribute of its name. `None` for a function, which has no config.
    """
    if not hasattr(initializer, "get_config"):
        return None
    config = initializer.get_config()
    added = {
        name: getattr(initializer, name)
        for name in _arguments(initializer) - config.keys()
        if isinstance(getattr(initializer, name, initializer), PLAIN)
    }
    if added:
        copy = type(initializer).from_config({**config, **added})
        added = {k: v for k, v in added.items() if getattr(copy, k) == v}
    return {**config, **added}


def lost_arguments(initializer):
    """The arguments that even the complete config does not bring back."""
    return sorted(
        _arguments(initializer) - (complete_config(initializer) or {}).keys()
    )


def serialize(initializer):
    """`keras.initializers.serialize`, with the complete config."""
    serialized = keras.initializers.serialize(initializer)
    if config := complete_config(initializer):
        config |= serialized["config"]  # whose nested objects are serialized
        return {**serialized, "config": config}
    return serialized


def with_initializers(layer, config):
    """The config of a layer, with the complete configs of its initializers."""
    names = [name for name in config if name.endswith("_initializer")]
    return config | {name: serialize(getattr(layer, name)) for name in names}


def _arguments(initializer):
    """Those that Keras passes from the config, of a class that has no other."""
    from_config = getattr(type(initializer), "from_config", None)
    if getattr(from_config, "__func__", None) is not KERAS_FROM_CONFIG:
        return set()
    parameters = inspect.signature(type(initializer)).parameters.values()
    variadic = inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD
    return {p.name for p in parameters if p.kind not in variadic}
