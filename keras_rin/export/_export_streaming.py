"""Models of sequences, in files that also take one time step."""

import os
import tempfile
from collections.abc import Sequence
from typing import Any

import keras

from keras_rin import _files
from keras_rin.export._c_header import write_c_header
from keras_rin.export._streaming_step import streaming_step

FORMATS = ("tf_saved_model", "litert", "c")
WEIGHTS = ("float32", "int8")


def export_streaming(
    model: keras.Model,
    path: str | os.PathLike,
    format: str = "tf_saved_model",
    verbose: bool = True,
    stepwise: Sequence[type] = (),
    weights: str = "float32",
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
        path: The folder to write or, for LiteRT and C, the file, `*.tflite` or
            `*.h`.
        format: String, `"tf_saved_model"`, `"c"` or, on TensorFlow,
            `"litert"`. Defaults to `"tf_saved_model"`.
        verbose: Boolean, whether to say what was written. Defaults to `True`.
        stepwise: As for `keras_rin.export.streaming_step`. Defaults to `()`.
        weights: String, the type of the matrices in C: `"float32"`, or
            `"int8"`, 8-bit codes with a float32 scale for each unit (in an
            `Embedding`, each token). A code is off by at most 1 / 254 of the
            largest weight of its unit. Defaults to `"float32"`.
        **converter: For LiteRT, attributes of `tf.lite.TFLiteConverter`, such
            as `optimizations=[tf.lite.Optimize.DEFAULT]`. With a
            `representative_dataset`, of dictionaries as `step` takes them,
            `step` is written alone: TensorFlow 2.21 cannot quantize the
            activations of a loop.

    Raises:
        ValueError: If the format is none of these, if LiteRT is wanted from
            another backend, in another file or with a layer whose name it
            cannot hold, if the converter has no such attribute, or for what
            `keras_rin.export.streaming_step` refuses; for C, if a layer has no
            form in C, if a weight is not a finite float32, if the stem is no
            identifier or a keyword of C or C++, or for other `weights`.
        OSError: If a LiteRT file or a C header cannot be written. The file
            that was there is unchanged.

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
            f"`format` must be one of {FORMATS}. Received: format={format!r}"
        )
    _check_options(format, weights, converter)
    step = streaming_step(model, stepwise)
    contents = f"serve(x), and step of {', '.join(step.input)}"
    if format == "c":
        contents = write_c_header(model, path, weights)
    elif format == "litert":
        _write_litert(model, step, str(path), converter)
    else:
        _write_saved_model(model, step, path)
    if verbose:
        print(f"Wrote {path}: {contents}.")


def _check_options(format, weights, converter):
    types = WEIGHTS if format == "c" else WEIGHTS[:1]
    if weights not in types:
        raise ValueError(
            f"`weights` must be one of {types} in the format {format!r}. "
            f"Received: weights={weights!r}"
        )
    if converter and format != "litert":
        raise ValueError(
            f"Only format='litert' has a converter. Received: {converter}"
        )


def _write_saved_model(model, step, path):
    archive = keras.export.ExportArchive()
    archive.track(model)
    archive.add_endpoint(
        "serve",
        lambda x: model(x, training=False),
        input_signature=[_specs(model.inputs[0])],
    )
    archive.add_endpoint(
        "step",
        lambda inputs: step(inputs, training=False),
        input_signature=[_specs(step.input)],
    )
    archive.write_out(path, verbose=False)


def _write_litert(model, step, path, attributes):
    _check_litert(step, path)
    import tensorflow as tf

    @tf.function
    def one_step(**inputs):
        return step(inputs, training=False)

    @tf.function
    def serve(x):
        return {"y": model(x, training=False)}

    step_specs = _specs(step.input, batch=1)
    signatures = {"step": one_step.get_concrete_function(**step_specs)}
    if "representative_dataset" not in attributes:
        serve_specs = _specs({"x": model.inputs[0]}, batch=1)
        signatures["serve"] = serve.get_concrete_function(**serve_specs)
    module = tf.Module()
    module.variables_of_model = [v.value for v in model.variables]
    with tempfile.TemporaryDirectory() as folder:
        tf.saved_model.save(module, folder, signatures=signatures)
        content = _convert(folder, list(signatures), attributes)
    with _files.replacing(path, "The LiteRT file") as new:
        new.write_bytes(content)


def _check_litert(step, path):
    if keras.backend.backend() != "tensorflow" or not path.endswith(".tflite"):
        raise ValueError(
            "LiteRT needs the TensorFlow backend and a path ending in .tflite. "
            f"Received: path={path!r} on {keras.backend.backend()}"
        )
    for name in step.input:
        if not (name.isascii() and name.isidentifier()) or name == "self":
            raise ValueError(
                "LiteRT needs recurrent layers with names of letters, digits "
                f"and underscores. Received: a layer named {name!r}"
            )


def _convert(folder, signature_keys, attributes):
    """The bytes of the LiteRT file of a SavedModel."""
    import tensorflow as tf

    converter = tf.lite.TFLiteConverter.from_saved_model(
        folder, signature_keys=signature_keys
    )
    converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS]
    converter.experimental_enable_resource_variables = True
    for name, value in attributes.items():
        if not hasattr(converter, name):
            raise ValueError(f"A LiteRT converter has no attribute {name!r}.")
        setattr(converter, name, value)
    return converter.convert()


def _specs(inputs, batch=None):
    """The specs with which TensorFlow traces a function of these inputs."""
    import tensorflow as tf

    def spec(tensor):
        shape = (batch or tensor.shape[0], *tensor.shape[1:])
        return tf.TensorSpec(shape, tensor.dtype)

    return keras.tree.map_structure(spec, inputs)
