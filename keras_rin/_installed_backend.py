"""What has to happen before Keras is imported, which takes seconds."""

import importlib.util
import os
import pathlib
import sys


def choose_backend():
    """Sets `KERAS_BACKEND` to "jax", unless there is a choice or no need."""
    is_installed = importlib.util.find_spec
    if "keras" not in sys.modules and not os.environ.get("KERAS_BACKEND"):
        if not is_installed("tensorflow") and is_installed("jax"):
            os.environ["KERAS_BACKEND"] = "jax"


def announce_command():
    """The command says that it began, and shows no log of TensorFlow."""
    is_script = pathlib.Path(*sys.argv[:1]).stem == "keras-rin"
    if is_script or "-m keras_rin" in " ".join(sys.orig_argv):
        print("keras-rin: loading Keras", flush=True)
        # TensorFlow logs to file descriptor 2. Python's messages get their own.
        sys.stderr = open(os.dup(2), "w", buffering=1, closefd=False)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)


choose_backend()
announce_command()
