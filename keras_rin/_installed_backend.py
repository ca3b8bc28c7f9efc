"""What has to happen before Keras is imported, which takes seconds."""

import importlib
import importlib.util
import os
import sys


def choose_backend():
    """Sets `KERAS_BACKEND` to "jax", unless there is a choice or no need."""
    is_installed = importlib.util.find_spec
    if "keras" not in sys.modules and not os.environ.get("KERAS_BACKEND"):
        if not is_installed("tensorflow") and is_installed("jax"):
            os.environ["KERAS_BACKEND"] = "jax"


def load_package():
    """Loads Keras and the package where the command postponed it, and says so.

    See `keras_rin_command`. Anywhere else the package is loaded already.
    """
    package = sys.modules["keras_rin"]
    if not hasattr(package, "__version__"):
        print("keras-rin: loading Keras", flush=True)
        importlib.reload(package)


choose_backend()
