"""Models of sequences, in files that also take one time step."""

import os
import pathlib
import types
import typing
from collections.abc import Sequence
from typing import Any

import keras
from numpy.typing import ArrayLike

from keras_rin.export._c_header import write_c_header
from keras_rin.export._header import Header
from keras_rin.export._integer_header import write_integer_header
from keras_rin.export._litert import write_litert
from keras_rin.export._onnx import write_onnx
from keras_rin.export._saved_model import write_saved_model


class StreamingFile(typing.NamedTuple):
    """What `export_streaming` returns, but for a C header.

    Attributes:
        path: `pathlib.Path`, the file or folder that was written.
        weight_bytes: Integer, the bytes of the file or folder.
        state_bytes: Integer, the bytes of the hidden states of one stream, as
            `streaming_step` takes them.
    """

    path: pathlib.Path
    weight_bytes: int
    state_bytes: int

    def __str__(self):
        sizes = f"{self.weight_bytes:,} bytes, "
        return f"{self.path}: {sizes}{self.state_bytes:,} of hidden states"


def export_streaming(
    model: keras.Model,
    path: str | os.PathLike,
    format: str = "tf_saved_model",
    verbose: bool = True,
    stepwise: Sequence[type] = (),
    weights: str = "float32",
    states: str = "float32",
    step_only: bool = False,
    calibration: "ArrayLike | None" = None,
    **converter: Any,
) -> StreamingFile | Header:
    """Writes a model that answers to whole sequences and to single steps.

    The file needs neither keras_rin nor Keras where it is used. A SavedModel
    has two endpoints, LiteRT two signatures of one sequence: `serve` gives what
    `model.predict` gives for x of shape `(batch, time, ...)`; `step` is one
    time step, as of `keras_rin.export.streaming_step`. An
    [ONNX file](../saving.md#onnx-of-one-step) and a
    [C header](../small_device.md#3-write-the-header) have the step alone. A
    JSON file lists inputs and outputs of an ONNX file, or of a LiteRT file of
    the step, [in order](../saving.md#the-step-alone-for-microcontrollers).

    Args:
        model: As for `keras_rin.export.streaming_step`; for C, a chain of
            [these layers](../small_device.md#layers-in-c).
        path: The folder to write or, for the other formats, the file,
            `*.tflite`, `*.onnx` or `*.h`.
        format: String, `"tf_saved_model"`, `"c"` or, on TensorFlow,
            `"litert"` or `"onnx"`, which needs `pip install tf2onnx`. Defaults
            to `"tf_saved_model"`.
        verbose: Boolean, whether to say what was written. Defaults to `True`.
        stepwise: As for `keras_rin.export.streaming_step`. Defaults to `()`.
        weights: String, the type of the matrices in C and LiteRT: `"float32"`,
            `"int8"` or, in LiteRT, `"float16"`. Defaults to `"float32"`.
        states: String, the type of the hidden states, and of all computations:
            `"float32"`, `"int16"` in C and LiteRT, or `"int8"` in LiteRT.
            Integers need `weights="int8"` and, in C, a `calibration`, in
            LiteRT a `representative_dataset`. Defaults to `"float32"`.
        step_only: Boolean, whether a SavedModel or LiteRT file has the step
            alone. Defaults to `False`.
        calibration: Array `(sequences, steps, features)` of what a sensor
            counts: whole numbers from -32768 to 32767, which give the ranges
            of a C header in integers. Defaults to `None`.
        **converter: For LiteRT, attributes of `tf.lite.TFLiteConverter`. A
            `representative_dataset` is an array `(samples, time, ...)` of
            sequences of your data, or yields sequences, batches of them or
            dictionaries as `step` takes them, as a generator, a function or a
            `tf.data.Dataset`, also of pairs with targets; the file then has
            the step alone.

    Returns:
        A `StreamingFile`: the path and what it takes in bytes; of a C header a
        `Header`.

    Raises:
        ValueError: The format lacks an option, the backend, the ending of the
            path or a form of the model; `streaming_step` refuses the model;
            `serve` would not answer as the model does; a
            `representative_dataset` gives no scales.
        TypeError: The format takes no such argument.
        ImportError: The package that writes the format is not installed.
        OSError: A file cannot be written. What was there is unchanged.

    Example:

    >>> model = keras.Sequential(
    ...     [keras.Input((None, 2)), keras_rin.layers.RIN(4, name="rin")]
    ... )
    >>> folder = keras_rin.export.export_streaming(model, path, verbose=False)
    >>> header = keras_rin.export.export_streaming(
    ...     model, path / "rin.h", format="c"
    ... )  # doctest: +ELLIPSIS
    Wrote ...rin.h: rin_step.
    >>> header.weight_bytes, header.state_bytes
    (112, 16)
    """
    if format not in FORMATS:
        raise ValueError(
            f"`format` must be one of {tuple(FORMATS)}. "
            f"Received: format={format!r}"
        )
    options = types.SimpleNamespace(
        stepwise=stepwise,
        weights=weights,
        states=states,
        step_only=step_only,
        calibration=calibration,
        attributes=converter,
    )
    _check_options(format, str(path), options)
    write = FORMATS[format][0]
    path = pathlib.Path(path)
    contents, weight_bytes, state_bytes = write(model, path, options)
    if verbose:
        print(f"Wrote {path}: {contents}.")
    if format == "c":
        return Header(path)
    return StreamingFile(path, weight_bytes, state_bytes)


def _write_header(model, path, options):
    in_integers = options.states == "int16"
    write = write_integer_header if in_integers else write_c_header
    return write(model, path, options)


# A writer, which returns a text and the bytes of weights and of states; the
# types of both, and the ending of the path.
FORMATS: dict[str, tuple] = {
    "tf_saved_model": (write_saved_model, ("float32",), ("float32",), ""),
    "litert": (
        write_litert,
        ("float32", "float16", "int8"),
        ("float32", "int16", "int8"),
        ".tflite",
    ),
    "onnx": (write_onnx, ("float32",), ("float32",), ".onnx"),
    "c": (_write_header, ("float32", "int8"), ("float32", "int16"), ".h"),
}


def _check_options(format, path, options):
    _, *supported_types, ending = FORMATS[format]
    given = options.weights, options.states
    for name, value, supported in zip(
        ("weights", "states"), given, supported_types, strict=True
    ):
        if value not in supported:
            raise ValueError(
                f"`{name}` must be one of {supported} in the format "
                f"{format!r}. Received: {name}={value!r}"
            )
    if options.attributes and format != "litert":
        raise TypeError(
            f"The format {format!r} has no other options. "
            f"Received: {[*options.attributes]}"
        )
    for other, (*_, reserved) in FORMATS.items():
        is_taken = reserved and path.endswith(reserved)
        if format == "tf_saved_model" and is_taken:
            raise ValueError(
                f"The ending {reserved} is that of the format {other!r}: pass "
                f"format={other!r}. Received: path={path!r}, format={format!r}"
            )
    backend = keras.backend.backend()
    is_right = path.endswith(ending) and backend == "tensorflow"
    if format in ("litert", "onnx") and not is_right:
        raise ValueError(
            f"The format {format!r} needs the TensorFlow backend and a path "
            f"ending in {ending}. Received: path={path!r} on {backend}"
        )
    in_integers = format == "c" and options.states == "int16"
    if in_integers and options.weights != "int8":
        raise ValueError(
            '`states="int16"` in C needs `weights="int8"`. '
            f"Received: weights={options.weights!r}"
        )
    if options.calibration is not None and not in_integers:
        raise ValueError(
            '`calibration` is for `format="c"` with `states="int16"`; LiteRT '
            "takes a `representative_dataset`. Received: an argument"
        )
