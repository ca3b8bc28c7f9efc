"""A model of sequences as a C header."""

import os
import pathlib

import keras
from numpy.typing import ArrayLike

from keras_rin.export._c.float_header import write_c_header
from keras_rin.export._c.header import Header
from keras_rin.export._c.integer_header import write_integer_header
from keras_rin.export._files.step_file import check_arithmetic

ARITHMETIC = "float32", "int8", "integer"


def export_c(
    model: keras.Model,
    path: str | os.PathLike,
    arithmetic: str = "float32",
    calibration: "ArrayLike | None" = None,
) -> Header:
    """Writes one time step of a model as a C header, and returns it.

    The header needs no library but, for some activations, `math.h`, and
    allocates nothing; see [on a small device](../small_device.md).

    Args:
        model: A chain of [these layers](../small_device.md#layers-in-c).
        path: The header to write, `*.h`, whose stem begins its names.
        arithmetic: String, `"float32"`, `"int8"` for weights of 8 bits and
            other numbers in floats, or `"integer"` for weights of 8 bits,
            hidden states of 16 and no floats at all. Defaults to `"float32"`.
        calibration: Array `(sequences, steps, features)` of what a sensor
            counts: whole numbers from -32768 to 32767, which give the ranges
            of a header in integers. Defaults to `None`.

    Returns:
        The `keras_rin.export.Header`.

    Raises:
        ValueError: The path, an option or the calibration is not as above, or
            a layer has no such form: the error has the reason.
        OSError: The file cannot be written. What was there is unchanged.

    Example:

    >>> model = keras.Sequential(
    ...     [keras.Input((None, 2)), keras_rin.layers.RIN(4, name="rin")]
    ... )
    >>> path = path.with_name("rin.h")
    >>> header = keras_rin.export.export_c(model, path)
    >>> header.weight_bytes, header.state_bytes
    (112, 16)
    """
    path = pathlib.Path(path)
    check_arithmetic(arithmetic, ARITHMETIC, calibration)
    if arithmetic == "integer":
        write_integer_header(model, path, calibration)
    else:
        write_c_header(model, path, weights=arithmetic)
    return Header(path)
