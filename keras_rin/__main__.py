"""`python -m keras_rin` is the command `keras-rin`."""

import logging
import os
import sys

from keras_rin.recordings._command import main


def run():
    # TensorFlow logs to file descriptor 2. Python's messages get their own.
    sys.stderr = open(os.dup(2), "w", buffering=1, closefd=False)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    logging.getLogger("tensorflow").setLevel("ERROR")
    return main()


if __name__ == "__main__":
    sys.exit(run())
