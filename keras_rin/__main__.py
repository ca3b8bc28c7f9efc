"""`python -m keras_rin` is the command `keras-rin`."""

import sys

from keras_rin.recordings._command import main

if __name__ == "__main__":
    sys.exit(main())
