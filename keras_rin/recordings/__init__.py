"""Which recurrent layer suits your recordings: read, compare, deploy.

The functions need `pip install "keras-rin[recordings]"`; the command
`keras-rin` calls them with its flags as arguments.
"""

import importlib
import typing

from keras_rin.recordings._own_scale import OwnScale

if typing.TYPE_CHECKING:
    from keras_rin.recordings._compare import Comparison
    from keras_rin.recordings._compare import compare
    from keras_rin.recordings._read import Recordings
    from keras_rin.recordings._read import read
    from keras_rin.recordings._stream import Stream
    from keras_rin.recordings._stream import train_stream

__all__ = [
    "Comparison",
    "OwnScale",
    "Recordings",
    "Stream",
    "compare",
    "read",
    "train_stream",
]


def __getattr__(name):
    """Imports pandas and others on first use, which not everybody has."""
    files = {
        "Recordings": "_read",
        "Stream": "_stream",
        "Comparison": "_compare",
    }
    files |= {"train_stream": "_stream", "read": "_read", "compare": "_compare"}
    if name not in files:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        module = importlib.import_module(f"{__name__}.{files[name]}")
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"keras_rin.recordings needs {error.name}: "
            'pip install "keras-rin[recordings]"',
            name=error.name,
        ) from error
    return getattr(module, name)
