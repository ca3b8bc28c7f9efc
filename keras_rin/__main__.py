"""`python -m keras_rin` is the command `keras-rin`."""

import logging
import sys

from keras_rin.recordings._command import main


def run():
    logging.getLogger("tensorflow").setLevel("ERROR")
    return main()


if __name__ == "__main__":
    sys.exit(run())
