"""The public classes and functions of the package, by their names."""

import inspect

import keras

import keras_rin


def public_callables(module):
    """Those of a module, and of the public modules within."""
    for name in module.__all__:
        try:
            item = getattr(module, name)
        except ModuleNotFoundError:  # the extra that it needs
            continue
        if inspect.ismodule(item):
            yield from public_callables(item)
        elif callable(item):
            yield f"{module.__name__}.{name}", item


OBJECTS = dict(public_callables(keras_rin))
CLASSES = [
    name for name, item in OBJECTS.items() if hasattr(item, "get_config")
]


def make(item):
    parameters = inspect.signature(item).parameters.values()
    values = {"cell": keras.layers.GRUCell(3), "recurrent": "zeros"}
    arguments = {
        p.name: values.get(p.name, 3)
        for p in parameters
        if p.kind != p.VAR_KEYWORD and p.default is p.empty
    }
    return item(**arguments)
