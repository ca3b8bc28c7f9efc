"""The version of this package, and those of Keras that it runs on."""

import keras

__version__ = "0.1.0"
# On JAX, older versions hand weights to callbacks whose memory is in use again.
OLDEST_KERAS = {"tensorflow": "3.6", "jax": "3.10"}
KERAS_BEYOND = "4.0"


def check_keras(keras_version, backend):
    """Raises an ImportError if this version of Keras is not supported."""
    oldest = OLDEST_KERAS.get(backend, OLDEST_KERAS["tensorflow"])
    if not number(oldest) <= number(keras_version) < number(KERAS_BEYOND):
        raise ImportError(
            f"keras_rin {__version__} supports Keras >= {oldest}, "
            f"< {KERAS_BEYOND} on {backend}. Found: Keras {keras_version}"
        )


def number(version):
    """(3, 15) of "3.15.1"."""
    return tuple(int(part) for part in version.split(".")[:2])


check_keras(keras.__version__, keras.config.backend())
