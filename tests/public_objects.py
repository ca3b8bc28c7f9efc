"""The public classes and functions of the package, by their names."""

import inspect

import keras_rin


def of(module):
    """Those of a module, and of the public modules within."""
    for name in module.__all__:
        item = getattr(module, name)
        if inspect.ismodule(item):
            yield from of(item)
        elif callable(item):
            yield f"{module.__name__}.{name}", item


OBJECTS = dict(of(keras_rin))
