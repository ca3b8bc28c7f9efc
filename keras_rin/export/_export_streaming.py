"""Models of sequences, in files that also take one time step."""

import os
from collections.abc import Sequence
from typing import Any

import keras

from keras_rin import _files
from keras_rin.export import _litert
from keras_rin.export._c_header import write_c_header
from keras_rin.export._onnx import write_onnx
from keras_rin.export._streaming_step import streaming_step

# The types of weights, and of hidden states, in each format.
FORMATS = {
    "tf_saved_model": (("float32",), ("float32",)),
    "litert": (_litert.WEIGHTS, _litert.STATES),
    "onnx": (("float32",), ("float32",)),
    "c": (("float32", "int8"), ("float32",)),
}


def export_streaming(
    model: keras.Model,
    path: str | os.PathLike,
    format: str = "tf_saved_model",
    verbose: bool = True,
    stepwise: Sequence[type] = (),
    weights: str = "float32",
    states: str = "float32",
    step_only: bool = False,
    **converter: Any,
) -> None:
    """Writes a model that answers to whole sequences and to single steps.

    The file needs neither keras_rin nor Keras where it is used. A SavedModel
    has two endpoints, LiteRT two signatures:

    - `serve`: x of shape `(batch, time, ...)`; what `model.predict` gives;
    - `step`: a dictionary of `x`, of shape `(batch, ...)`, one time step, and
      of the states of the recurrent layers by name, to begin with zeros.
      Returns a dictionary of `y`, the answer after this step, and the new
      states, as `keras_rin.export.streaming_step` does.

    Sequences have any length if the model was made with an open one,
    `keras.Input((None, features))`. The batch is of any size in a SavedModel,
    of one sequence in LiteRT, which has operations of its own for the loop
    only then.

    With `step_only=True` the file has the step alone. A LiteRT file then has
    one graph, which the interpreter of a microcontroller runs. Such an
    interpreter knows inputs and outputs by their order, so a JSON file beside
    it, `step.tflite.json`, lists them in this order with names, shapes, types,
    the scales of integers, the initial value of each state, and the input that
    takes each new state.

    With `format="onnx"` the file has the step alone, in opset 15, and a JSON
    file beside it as well. As ONNX has one set of names, the new state of a
    layer `rin` is the output `new_rin`.

    With `format="c"` the file is a C header of the step alone, for a device
    without an operating system: C99 and C++, without allocation, with the
    weights as constants and `math.h` only for functions such as `tanhf`. All
    names begin with the stem of the path. `rin.h` declares, `static inline`,

    - `rin_state`, the hidden states of one stream, in float32;
    - `rin_reset(rin_state *)`, which sets them to 0;
    - `rin_step(rin_state *, const float x[], float y[])`, which reads one time
      step x, `rin_inputs` values, and writes the output y, `rin_outputs`
      values. A token of an `Embedding` is one value.

    It computes in float32, whatever the dtype policy, and y differs from that
    of Keras by rounding errors. Which layers have a form in C:
    [the list](../small_device.md#layers-in-c).

    Args:
        model: As for `keras_rin.export.streaming_step`; for C, a chain of
            layers whose time steps are vectors or tokens.
        path: The folder to write or, for the other formats, the file,
            `*.tflite`, `*.onnx` or `*.h`.
        format: String, `"tf_saved_model"`, `"c"` or, on TensorFlow,
            `"litert"` or `"onnx"`, which needs `pip install tf2onnx`. Defaults
            to `"tf_saved_model"`.
        verbose: Boolean, whether to say what was written. Defaults to `True`.
        stepwise: As for `keras_rin.export.streaming_step`. Defaults to `()`.
        weights: String, the type of the matrices in C and LiteRT: `"float32"`;
            `"float16"`, in LiteRT; or `"int8"`, 8-bit codes with a float32
            scale for each unit (in an `Embedding` in C, each token). A code is
            off by at most 1 / 254 of the largest weight of its unit. Defaults
            to `"float32"`.
        states: String, the type of the hidden states and of all computations in
            LiteRT: `"float32"`, or `"int16"` or `"int8"`, which need
            `weights="int8"` and a `representative_dataset`. Inputs and outputs
            of the file stay in float32. Defaults to `"float32"`.
        step_only: Boolean, whether a SavedModel or LiteRT file has the step
            alone; the other formats always do. Defaults to `False`.
        **converter: For LiteRT, attributes of `tf.lite.TFLiteConverter`, such
            as `inference_input_type=tf.int8`. A `representative_dataset` is an
            array `(samples, time, ...)` of sequences of your data, along which
            the step runs, or a function that returns dictionaries as `step`
            takes them; the file then has the step alone, because TensorFlow
            2.21 cannot quantize the activations of a loop.

    Raises:
        ValueError:

            - the format, or `weights` or `states` in it, is none of these;
            - `streaming_step` refuses the model, or the format has no form for
              a layer, a name or a dtype;
            - the backend or the ending of the path is not that of the format,
              or the stem of a header is not as above;
            - a weight in C is not a finite float32;
            - a `representative_dataset` has no samples, other names or shapes
              than the step, or inputs or states that are not finite or always
              0, for which the 16-bit interpreter would abort.
        ImportError: The package that writes the format is not installed.
        OSError: A file cannot be written. What was there is unchanged.

    Example:

    >>> model = keras.Sequential(
    ...     [keras.Input((None, 2)), keras_rin.layers.RIN(4, name="rin")]
    ... )
    >>> keras_rin.export.export_streaming(model, path, verbose=False)
    >>> (path / "saved_model.pb").exists()
    True
    >>> keras_rin.export.export_streaming(model, path / "rin.h", format="c")
    ... # doctest: +ELLIPSIS
    Wrote ...rin.h: rin_step, 112 bytes of weights and 16 bytes of RAM ...
    """
    if format not in FORMATS:
        raise ValueError(
            f"`format` must be one of {tuple(FORMATS)}. "
            f"Received: format={format!r}"
        )
    _check_options(format, weights, states, converter)
    step = streaming_step(model, stepwise)
    if format == "c":
        contents = write_c_header(model, path, weights)
    elif format == "onnx":
        contents = write_onnx(model, step, path)
    elif format == "litert":
        contents = _litert.write_litert(
            model, step, str(path), weights, states, step_only, converter
        )
    else:
        contents = _write_saved_model(model, step, path, step_only)
    if verbose:
        print(f"Wrote {path}: {contents}.")


def _check_options(format, weights, states, converter):
    options = {"weights": weights, "states": states}
    for (name, value), types in zip(
        options.items(), FORMATS[format], strict=True
    ):
        if value not in types:
            raise ValueError(
                f"`{name}` must be one of {types} in the format {format!r}. "
                f"Received: {name}={value!r}"
            )
    if converter and format != "litert":
        raise ValueError(
            f"Only format='litert' has a converter. Received: {converter}"
        )


def _write_saved_model(model, step, path, step_only):
    archive = keras.export.ExportArchive()
    archive.track(model)
    if not step_only:
        archive.add_endpoint(
            "serve",
            lambda x: model(x, training=False),
            input_signature=[_litert.specs(model.inputs[0])],
        )
    archive.add_endpoint(
        "step",
        lambda inputs: step(inputs, training=False),
        input_signature=[_litert.specs(step.input)],
    )
    with _files.filling(path, "The SavedModel") as new:
        archive.write_out(new, verbose=False)
    inputs = f"step of {', '.join(step.input)}"
    return inputs if step_only else f"serve(x), and {inputs}"
