"""When a RIN uses the fused recurrence, and what prevents it."""

import keras

from keras_rin import _recurrence
from keras_rin._backends import keras_predicts
from keras_rin.layers._rin_cell import RINCell


def uses_fused_recurrence(layer, x, training):
    """Whether a call of a RIN runs the fused recurrence."""
    if not layer.fused or unsupported_options(layer, training):
        return False
    is_tensorflow = keras.backend.backend() == "tensorflow"
    if layer.fused is True or training or not is_tensorflow:
        return True
    # Elsewhere TensorFlow may be tracing the graph for an export.
    return keras_predicts(x, *(weight.value for weight in layer.weights))


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
