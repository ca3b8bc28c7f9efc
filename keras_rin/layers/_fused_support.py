"""When a RIN uses the fused recurrence, and what prevents it."""

import keras

from keras_rin import _recurrence
from keras_rin.layers._rin_cell import RINCell


def uses_fused_recurrence(layer, training):
    """Whether a call of a RIN runs the fused recurrence."""
    is_tensorflow = keras.backend.backend() == "tensorflow"
    if layer.fused == "auto" and is_tensorflow and not training:
        # TensorFlow may be tracing the graph for an export, and without
        # a gradient the loop of Keras is as fast.
        return False
    return layer.fused and not unsupported_options(layer, training)


def unsupported_options(layer, training=True):
    """The options in use that the fused recurrence does not support."""
    backend, rate = keras.backend.backend(), layer.recurrent_dropout
    activation = getattr(layer.activation, "__name__", layer.activation)
    # A callable of the user may have no hash.
    supported_activations = list(_recurrence.PULLBACKS)
    names = ", ".join(phi.__name__ for phi in supported_activations)
    is_unsupported = {
        f"the backend {backend}": backend not in _recurrence.BACKENDS,
        f"a {type(layer.cell).__name__}": type(layer.cell) is not RINCell,
        f"activation={activation!r} (only {names})": (
            layer.activation not in supported_activations
        ),
        "fused=False": not layer.fused,
        "unroll=True": layer.unroll,
        f"recurrent_dropout={rate}": training and rate,
    }
    return [option for option, value in is_unsupported.items() if value]
