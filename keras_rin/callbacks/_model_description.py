"""Descriptions of compiled models, and their differences."""

import json
import re

import keras

# These keys depend on where an object was created or on its input data.
LEFT_OUT = {
    "build_config",
    "build_input_shape",
    "compile_config",
    "module",
    "shared_object_id",
}


def describe(model):
    """Config, variables, loss and optimizer of a model, as JSON values.

    Numbers that end names count by their order alone: `rin_3` and `rin_4` are
    described as `rin` and `rin_1` are. A model or layer that Keras cannot
    serialize is described by its class, and by its `layers` where it has
    some. What may change on the way is left out: a learning rate that is a
    number, metrics, how `fit` compiles; and so is the code of a lambda, which
    holds the number of its line.
    """
    described = {
        "keras": keras.__version__,
        "model": _config_with_layers(model),
        "variables": [
            {"path": v.path, "dtype": v.dtype, "shape": list(v.shape)}
            for v in model.variables
        ],
    }
    if model.optimizer is not None:
        described["rates"] = rates(model.optimizer.variables)
        described["loss"] = _config(model.loss)
        described["optimizer"] = _config(model.optimizer)
    text = json.dumps(described, default=_class_of)
    described = _pruned(json.loads(text))
    return _renamed(described, _ranks(set(_names(described))))


def model_differences(saved, now):
    """Where two descriptions differ, see `differences`.

    Between versions of Keras configs may gain and lose keys: then only those
    that both have are compared.
    """
    all_keys = saved.get("keras") == now["keras"]
    ignored = {"keras": "", "rates": ""}
    return differences({**saved, **ignored}, {**now, **ignored}, all_keys)


def differences(saved, now, all_keys=True):
    """Where two JSON values differ: `model.config.units: 3, now 4`."""
    return [
        f"{place[1:]}: {_abbreviate(old)}, now {_abbreviate(new)}"
        for place, old, new in _value_changes("", saved, now, all_keys)
    ]


def rates(variables):
    """The learning rates among variables, as numbers."""
    return [
        float(keras.ops.convert_to_numpy(v))
        for v in variables
        if v.name == "learning_rate"
    ]


def _config_with_layers(layer):
    config = _config(layer)
    inner = getattr(layer, "layers", None)
    if "layers" not in config["config"] and isinstance(inner, list | tuple):
        config["layers"] = [_config_with_layers(layer) for layer in inner]
    return config


def _config(value):
    try:
        return keras.saving.serialize_keras_object(value)
    except Exception:  # whatever a get_config of somebody's own may raise
        name = {"name": value.name} if hasattr(value, "name") else {}
        return {"class_name": type(value).__name__, "config": name}


def _class_of(value):
    """Stands for what is no JSON; a repr may hold an address in memory."""
    return f"<{type(value).__name__}>"


def _pruned(value):
    """JSON without what may change on the way."""
    if isinstance(value, list):
        return [_pruned(item) for item in value]
    if not isinstance(value, dict):
        return value
    if value.get("class_name") == "__lambda__":
        return {"class_name": "__lambda__"}
    return {
        key: _pruned(item)
        for key, item in value.items()
        if key not in LEFT_OUT
        and (key != "learning_rate" or isinstance(item, dict))
    }


def _names(value):
    """All names of layers and of other objects, and the parts of all paths."""
    if isinstance(value, list):
        for item in value:
            yield from _names(item)
    elif isinstance(value, dict):
        for key, item in value.items():
            if key in ("name", "path") and isinstance(item, str):
                yield from item.split("/")
            else:
                yield from _names(item)


def _ranks(names):
    """For each name what it is called where numbers count by their order."""
    groups: dict[str, list] = {}
    for name in names:
        base, _, number = name.rpartition("_")
        if not (base and re.fullmatch(r"\d+", number)):
            base, number = name, "0"
        groups.setdefault(base, []).append((int(number), name))
    return {
        name: f"{base}#{rank}" if rank else base
        for base, group in groups.items()
        for rank, (_, name) in enumerate(sorted(group))
    }


def _renamed(value, names):
    if isinstance(value, list):
        return [_renamed(item, names) for item in value]
    if isinstance(value, str):
        parts = value.split("/")
        return "/".join(names.get(part, part) for part in parts)
    if not isinstance(value, dict):
        return value
    return {key: _renamed(item, names) for key, item in value.items()}


def _value_changes(place, old, new, all_keys):
    """(place, value, value) wherever two JSON values are not the same."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key in {**old, **new}:
            if all_keys or (key in old and key in new):
                pair = (old.get(key), new.get(key))
                yield from _value_changes(f"{place}.{key}", *pair, all_keys)
    elif (
        isinstance(old, list) and isinstance(new, list) and len(old) == len(new)
    ):
        for index, pair in enumerate(zip(old, new, strict=True)):
            yield from _value_changes(f"{place}[{index}]", *pair, all_keys)
    elif json.dumps(old) != json.dumps(new):  # by which NaN is NaN
        yield place, old, new


def _abbreviate(value):
    text = json.dumps(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
