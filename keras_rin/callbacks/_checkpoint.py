"""The state of a training, and the file that holds it.

The file is an archive of NumPy (`.npz`), with the entries

- `epoch`: how many epochs have ended;
- `arr_0`, `arr_1`, ...: the variables, in their order;
- `history`, `model` and `settings`: JSON, as bytes. In the history, an array
  is an object with the number of its entry and its dtype;
- `log_0`, `log_1`, ...: the arrays of the history, if any;
- `torch`: the state of Torch's random generator, on that backend.
"""

import dataclasses
import io
import json
import pathlib
import warnings

import keras
import numpy as np

from keras_rin import _callers
from keras_rin import _files

TEXTS = ("history", "model", "settings")
ARRAY = "__array__"  # key of the number of an entry, in the history


@dataclasses.dataclass
class Checkpoint:
    """The content of a checkpoint file."""

    epoch: int
    history: dict  # of lists, one for each log
    model: dict  # see model_description
    settings: dict
    arrays: list  # of the variables
    generator: np.ndarray | None = None  # Torch's


def write(path, checkpoint):
    logged, refused = [], []

    def reference(value):
        array = _as_array(value)
        if array is None:
            refused.append(type(value).__name__)
            return None
        logged.append(array)
        return {ARRAY: len(logged) - 1, "dtype": array.dtype.name}

    texts = {
        name: json.dumps(
            getattr(checkpoint, name), default=reference, skipkeys=True
        )
        for name in TEXTS
    }
    for kind in refused:
        warnings.warn(
            f"A log of type {kind} cannot be kept in {path}. A training that "
            "is resumed has None there.",
            stacklevel=_callers.stacklevel(),
        )
    entries: dict = {f"log_{i}": array for i, array in enumerate(logged)}
    if checkpoint.generator is not None:
        entries["torch"] = checkpoint.generator
    entries |= {name: np.bytes_(text) for name, text in texts.items()}
    entries["epoch"] = np.asarray(checkpoint.epoch)
    with _files.replacing(path, "The checkpoint") as new:
        with new.open("wb") as file:
            np.savez(file, *checkpoint.arrays, **entries)


def _as_array(value):
    """The value as an array; `None` if NumPy has no numeric array of it."""
    if keras.ops.is_tensor(value):
        value = keras.ops.convert_to_numpy(value)
    try:
        array = np.asarray(value)
    except ValueError:  # of rows that are not of one length
        return None
    return None if array.dtype.hasobject else array


def read(path):
    """The checkpoint in a file, None where there is no file.

    Raises:
        OSError: If the file cannot be read, or is a folder.
        ValueError: If it is no state of a training.
    """
    try:
        content = pathlib.Path(path).read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise OSError(
            error.errno,
            f"The checkpoint cannot be read ({error})",
            str(path),
        ) from error
    try:
        return _parse(content)
    except Exception as error:  # zipfile, zlib and json raise many kinds
        raise ValueError(
            f"{path} cannot be read as a checkpoint ({error}). "
            "Delete it to start from the beginning."
        ) from error


def _parse(content):
    entries = _entries(content)
    missing = [name for name in ("epoch", *TEXTS) if name not in entries]
    if missing:
        raise ValueError(f"it has no {', '.join(missing)}")
    epoch = entries.pop("epoch")
    if epoch.shape or epoch.dtype.kind not in "iu" or epoch < 0:
        raise ValueError(f"its epoch is {epoch}, not a number of epochs")
    texts = {name: json.loads(entries.pop(name).item()) for name in TEXTS}
    for name, text in texts.items():
        if not isinstance(text, dict):
            raise ValueError(f"its {name} is a {type(text).__name__}")
    logged = [entries.pop(name) for name in list(entries) if name[:4] == "log_"]
    texts["history"] = _insert_arrays(texts["history"], logged)
    _check_history(texts["history"], epoch)
    generator = entries.pop("torch", None)
    arrays = [entries[f"arr_{i}"] for i in range(len(entries))]
    return Checkpoint(int(epoch), **texts, arrays=arrays, generator=generator)


def _entries(content):
    file = np.load(io.BytesIO(content))
    if not isinstance(file, np.lib.npyio.NpzFile):
        raise ValueError("it contains one array")
    with file:
        try:
            return dict(file)
        except ValueError as error:
            if "pickle" in str(error):
                raise ValueError("it contains Python objects") from error
            raise


def _insert_arrays(value, logged):
    if isinstance(value, list):
        return [_insert_arrays(item, logged) for item in value]
    if not isinstance(value, dict):
        return value
    if ARRAY in value:
        # The dtype is named, because NumPy's files do not support bfloat16.
        return logged[value[ARRAY]].view(np.dtype(value["dtype"]))[()]
    return {key: _insert_arrays(item, logged) for key, item in value.items()}


def _check_history(history, epoch):
    for name, values in history.items():
        if not isinstance(values, list) or len(values) > epoch:
            raise ValueError(
                f"its history of {name} is not a list of at most {epoch} "
                "values, one an epoch"
            )
