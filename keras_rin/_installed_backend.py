"""Keras runs on JAX where its default, TensorFlow, is not installed."""

import importlib.util
import os
import sys


def choose_backend():
    """Sets `KERAS_BACKEND` to "jax", unless there is a choice or no need."""
    is_installed = importlib.util.find_spec
    if "keras" not in sys.modules and not os.environ.get("KERAS_BACKEND"):
        if not is_installed("tensorflow") and is_installed("jax"):
            os.environ["KERAS_BACKEND"] = "jax"


choose_backend()
