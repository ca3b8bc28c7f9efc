"""The command `keras-rin`, which starts without Keras.

`import keras_rin` imports Keras, which takes seconds, and registers every class
with it. The command reads flags and data first: it imports the modules of the
package that need no Keras, while `keras_rin/__init__.py` is not yet executed.
`keras_rin._installed_backend.load_package` executes it, before a training.
"""

import importlib.util
import logging
import os
import sys


def run() -> int:
    """Runs the command; returns its exit status."""
    hide_tensorflow_log()
    postpone_package()
    from keras_rin.recordings._command import main

    return main()


def hide_tensorflow_log():
    """Leaves file descriptor 2, to which TensorFlow logs, to Python alone."""
    logging.getLogger("tensorflow").setLevel("ERROR")
    if sys.stderr is None:  # it was closed when Python started
        sys.stderr = open(os.devnull, "w")
        return
    sys.stderr = open(os.dup(2), "w", buffering=1, closefd=False)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)


def postpone_package():
    """Makes `keras_rin` importable with its `__init__` not yet executed."""
    spec = importlib.util.find_spec("keras_rin")
    if spec and "keras_rin" not in sys.modules:
        sys.modules["keras_rin"] = importlib.util.module_from_spec(spec)


if __name__ == "__main__":
    sys.exit(run())
