"""`python -m keras_rin` is the command `keras-rin`, after loading Keras."""

import sys

from keras_rin_command import run

if __name__ == "__main__":
    sys.exit(run())
