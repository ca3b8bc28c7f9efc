"""How saved weights tell an offset from an effective matrix.

A layer that stores the offset U and the layer of Keras that stores V = U + I
have weights of the same shapes, which Keras numbers: within a wrapper it would
load either as the other. Files of this package have a marker beside the
weights. It is one entry more than the layer of Keras expects, which therefore
refuses such a file.
"""

import re
import warnings
from typing import NamedTuple

import keras
import numpy as np

from keras_rin import _callers

MARKER = "is_offset"


class Counterpart(NamedTuple):
    """The layer of Keras whose weights have the same shapes.

    The names are those that Keras derives from the classes.
    """

    keras_class: str
    keras_layer_name: str
    offset_layer_name: str
    weight: str  # The attribute is U in one layer and V in the other.
    conversion: str  # The advice for a file of the layer of Keras.


def mark(store):
    """Marks the weights that a layer saves as those of an offset."""
    store[MARKER] = np.ones(1, "int32")


def checked_offset_weights(layer, store, counterpart):
    """The weights in a file; ValueError if they are not of an offset.

    A file without a marker is of the layer of Keras or of an earlier version
    of this package. The name of the layer, which Keras writes into HDF5, says
    which, or else that `keras.saving.load_model` builds the layer from the
    config beside the weights. Where neither is so, the user is warned.
    """
    entries = {key: store[key] for key in store.keys()}
    is_marked = entries.pop(MARKER, None) is not None
    if is_marked or counterpart is None:
        return entries
    keras_class, keras_name, offset_name, weight, conversion = counterpart
    if not entries and layer.weights:
        raise ValueError(
            f"The file has no weights of {layer.name}, a "
            f"{type(layer).__name__}, in this place of the model. If it has "
            f"those of a {keras_class}, they are of the effective matrix. "
            f"{conversion}"
        )
    name = _saved_layer_name(store)
    if _is_default_name(name, keras_name):
        raise ValueError(
            f"The `{weight}` of {keras_class} is the effective matrix, that of "
            f"{layer.name}, a {type(layer).__name__}, its offset from the "
            f"identity. {conversion} Received: weights named {name!r}"
        )
    is_offset = _is_default_name(name, offset_name) or _callers.is_running(
        keras.saving.load_model
    )
    if entries and not is_offset:
        warnings.warn(
            f"The file does not say whether the `{weight}` of {layer.name} is "
            f"an offset from the identity, as in {type(layer).__name__}, or "
            f"the effective matrix, as in {keras_class}. It is loaded as an "
            "offset; if it is one, save the weights anew and this warning "
            f"ends. Otherwise they are wrong now. {conversion}",
            stacklevel=_callers.stacklevel(),
        )
    return entries


def _saved_layer_name(store):
    """The name of the layer that was saved, `None` if it is not known.

    The store that Keras passes shows the weights alone. The name is in the
    group of HDF5 around them, under an attribute that differs by version:
    where neither is found, the user is warned instead.
    """
    group = getattr(store, "_h5_entry_group", getattr(store, "group", None))
    return getattr(group, "attrs", {}).get("name")


def _is_default_name(name, base):
    """Whether Keras gives a layer this name, `base` or `base_1` and so on."""
    return bool(name) and re.fullmatch(rf"{base}(_\d+)?", name) is not None
