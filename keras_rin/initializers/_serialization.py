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
        for name in _arguments(initializer).keys() - config.keys()
        if isinstance(getattr(initializer, name, initializer), PLAIN)
    }
    if added:
        copy = type(initializer).from_config({**config, **added})
        added = {k: v for k, v in added.items() if getattr(copy, k) == v}
    return {**config, **added}


def lost_arguments(initializer):
    """The arguments that even the complete config does not bring back."""
    config = complete_config(initializer) or {}
    return sorted(_arguments(initializer).keys() - config.keys())


def serialize(initializer):
    """`keras.initializers.serialize`, with arguments that it would lose."""
    serialized = keras.initializers.serialize(initializer)
    defaults = _arguments(initializer)
    lost = {
        name: value
        for name, value in (complete_config(initializer) or {}).items()
        if name not in serialized["config"] and value != defaults[name]
    }
    if lost:
        serialized["config"] = {**serialized["config"], **lost}
    return serialized


def with_initializers(layer, config):
    """The config of a layer, with the complete configs of its initializers."""
    names = [name for name in config if name.endswith("_initializer")]
    return config | {name: serialize(getattr(layer, name)) for name in names}


def _arguments(initializer):
    """{argument: its default} of what Keras passes from the config."""
    from_config = getattr(type(initializer), "from_config", None)
    if getattr(from_config, "__func__", None) is not KERAS_FROM_CONFIG:
        return {}  # the class knows what its config means
    parameters = inspect.signature(type(initializer)).parameters.values()
    variadic = inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD
    return {p.name: p.default for p in parameters if p.kind not in variadic}
