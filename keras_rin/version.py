"""The version of this package, and those of Keras that it runs on."""

import keras

__version__ = "0.1.0"
OLDEST_KERAS, KERAS_BEYOND = "3.6", "4.0"


def check_keras(found):
    """Raises an ImportError if Keras `found`, a version, is not supported."""
    if not number(OLDEST_KERAS) <= number(found) < number(KERAS_BEYOND):
        raise ImportError(
            f"keras_rin {__version__} supports Keras >= {OLDEST_KERAS}, "
            f"< {KERAS_BEYOND}. Found: Keras {found}"
        )


def number(version):
    """(3, 15) of "3.15.1"."""
    return tuple(int(part) for part in version.split(".")[:2])


check_keras(keras.__version__)
