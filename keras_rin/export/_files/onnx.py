"""The step of a model as an ONNX file."""

import os
import pathlib
from collections.abc import Sequence

import keras

from keras_rin.export._files.step_file import check_dtypes
from keras_rin.export._files.step_file import check_names
from keras_rin.export._files.step_file import check_path
from keras_rin.export._files.step_file import refusal
from keras_rin.export._files.step_file import state_bytes
from keras_rin.export._files.step_file import write_described
from keras_rin.export._files.streaming_file import StreamingFile
from keras_rin.export._step.streaming_step import streaming_step

OPSET = 15
NEW = "new_"
DTYPES = ("float32", "float16", "float64")


def export_onnx(
    model: keras.Model,
    path: str | os.PathLike,
    *,
    stepwise: Sequence[type] = (),
) -> StreamingFile:
    """Writes one time step of a model as an ONNX file, on TensorFlow.

    The step is that of `keras_rin.export.streaming_step`. ONNX has one set of
    names for inputs and outputs, so a new state is called `new_` and the name
    of the state; a JSON file beside it lists them
    [in order](../saving.md#onnx-of-one-step).

    Args:
        model: As for `keras_rin.export.streaming_step`.
        path: The file to write, `*.onnx`.
        stepwise: As for `keras_rin.export.streaming_step`. Defaults to `()`.

    Returns:
        A `StreamingFile`, which prints what was written.

    Raises:
        ValueError: The path has another ending, the backend is not TensorFlow,
            `streaming_step` refuses the model, or ONNX lacks a name, a dtype
            or an operation of it.
        ImportError: `tf2onnx` is not installed.
        OSError: A file cannot be written. What was there is unchanged.
    """
    path = pathlib.Path(path)
    check_path("ONNX", path, ".onnx")
    import onnx
    import tf2onnx

    step = streaming_step(model, stepwise)
    new_names = {name: f"{NEW}{name}" for name in step.output} | {"y": "y"}
    check_names("ONNX", list(step.input), r"[\w.-]*", new_names.values())
    content, captured = _convert(step, new_names, tf2onnx)
    _hold_constants(content, captured, onnx)
    try:
        onnx.checker.check_model(content)
    except onnx.checker.ValidationError as error:
        advice = "choose other layers and activations, or another format"
        raise refusal("ONNX", advice, error) from error
    tensors = {new_names[name]: y for name, y in step.output.items()}
    content_bytes = content.SerializeToString()
    name = write_described(
        path,
        content_bytes,
        "The ONNX file",
        _entries(content.graph.input, step.input),
        _entries(content.graph.output, tensors),
        NEW,
        format="onnx",
        opset=OPSET,
    )
    inputs = ", ".join(value.name for value in content.graph.input)
    text = f"step of {inputs}, in opset {OPSET}, described in {name}"
    return StreamingFile(path, text, len(content_bytes), state_bytes(step))


def _convert(step, names, tf2onnx):
    """The model in ONNX, and {name: tensor} of what it reads as constants."""
    import tensorflow as tf

    specs = {
        name: tf.TensorSpec(tensor.shape, tensor.dtype, name=name)
        for name, tensor in step.input.items()
    }

    # tf2onnx would confuse a layer with an argument of its name: none is `y`.
    @tf.function(input_signature=[specs])
    def one_step(y):
        outputs = step(y, training=False)
        return {names[name]: tensor for name, tensor in outputs.items()}

    traced = one_step.get_concrete_function()
    check_dtypes("ONNX", traced.graph, DTYPES)
    content, _ = tf2onnx.convert.from_function(one_step, [specs], OPSET)
    captured = traced.captured_inputs
    placeholders = traced.inputs[len(traced.inputs) - len(captured) :]
    return content, {
        placeholder.name: tensor
        for placeholder, tensor in zip(placeholders, captured, strict=True)
        if tensor.dtype != tf.resource
    }


def _hold_constants(content, captured, onnx):
    """Stores tensors that tf2onnx takes for inputs, such as a mean."""
    for value in list(content.graph.input):
        if value.name in captured:
            array = captured[value.name].numpy()
            constant = onnx.numpy_helper.from_array(array, value.name)
            content.graph.initializer.append(constant)
            content.graph.input.remove(value)


def _entries(values, tensors):
    entries = []
    for value in values:
        tensor = tensors[value.name]
        dtype = keras.backend.standardize_dtype(tensor.dtype)
        shape = list(tensor.shape)
        entries.append({"name": value.name, "shape": shape, "dtype": dtype})
    return entries
