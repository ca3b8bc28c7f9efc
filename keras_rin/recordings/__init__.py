"""Which recurrent layer suits your recordings: read, compare, deploy.

The functions need the packages of the extra `recordings`; the command
`keras-rin` has their arguments as flags.
"""

import importlib
import typing

from keras_rin import _extras
from keras_rin.recordings._recordings import MissingArguments
from keras_rin.recordings._recordings import Recordings

if typing.TYPE_CHECKING:
    from keras_rin.recordings._compare import compare
    from keras_rin.recordings._own_scale import OwnScale
    from keras_rin.recordings._read import read
    from keras_rin.recordings._report import Result
    from keras_rin.recordings._stream import train_stream

__all__ = [
    "MissingArguments",
    "OwnScale",
    "Recordings",
    "Result",
    "compare",
    "read",
    "train_stream",
]
_FILES = {
    "OwnScale": "_own_scale",
    "Result": "_report",
    "compare": "_compare",
    "read": "_read",
    "train_stream": "_stream",
}


def __getattr__(name):
    """Imports Keras, pandas and others on first use."""
    if name not in _FILES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        module = importlib.import_module(f"{__name__}.{_FILES[name]}")
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"keras_rin.recordings needs {error.name}: "
            f"{_extras.install_command('recordings')}",
            name=error.name,
        ) from error
    return getattr(module, name)
