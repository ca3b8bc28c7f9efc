"""A model of sequences as a LiteRT file."""

import keyword
import os
import pathlib
import tempfile
import warnings
from collections.abc import Sequence

import keras
import numpy as np
from numpy.typing import ArrayLike

from keras_rin import _files
from keras_rin.export._files.serve import check_serve
from keras_rin.export._files.serve import specs
from keras_rin.export._files.step_file import check_arithmetic
from keras_rin.export._files.step_file import check_dtypes
from keras_rin.export._files.step_file import check_names
from keras_rin.export._files.step_file import check_path
from keras_rin.export._files.step_file import refusal
from keras_rin.export._files.step_file import state_bytes
from keras_rin.export._files.step_file import write_described
from keras_rin.export._files.streaming_file import StreamingFile
from keras_rin.export._step.streaming_step import streaming_step

# The operations of an interpreter.
ARITHMETIC = {
    "float32": "TFLITE_BUILTINS",
    "float16": "TFLITE_BUILTINS",
    "int8": "TFLITE_BUILTINS",
    "integer16": "EXPERIMENTAL_TFLITE_BUILTINS_ACTIVATIONS_INT16_WEIGHTS_INT8",
    "integer8": "TFLITE_BUILTINS_INT8",
}


def export_litert(
    model: keras.Model,
    path: str | os.PathLike,
    *,
    arithmetic: str = "float32",
    calibration: "ArrayLike | None" = None,
    stepwise: Sequence[type] = (),
    step_only: bool = False,
) -> StreamingFile:
    """Writes a model as a LiteRT file, on TensorFlow.

    The file has two signatures of one sequence: `serve` gives what
    `model.predict` gives for x of shape `(1, time, ...)`; `step` is one time
    step, as of `keras_rin.export.streaming_step`. A JSON file lists inputs and
    outputs of a file of the step alone
    [in order](../saving.md#the-step-alone-for-microcontrollers).

    Args:
        model: As for `keras_rin.export.streaming_step`.
        path: The file to write, `*.tflite`.
        arithmetic: String, `"float32"`; `"float16"` or `"int8"` for weights of
            these types and other numbers in floats; `"integer16"` or
            `"integer8"` for weights of 8 bits, hidden states of 16 or 8 and
            the step alone, without floats but for its inputs and outputs.
            Defaults to `"float32"`.
        calibration: Array `(sequences, time, ...)` of your data, from which
            the scales of integers are computed. Defaults to `None`.
        stepwise: As for `keras_rin.export.streaming_step`. Defaults to `()`.
        step_only: Boolean, whether to write the step alone. Defaults to
            `False`.

    Returns:
        A `StreamingFile`, which prints what was written.

    Raises:
        ValueError: The path has another ending, the backend is not TensorFlow,
            `streaming_step` refuses the model, LiteRT lacks a name, a dtype or
            an operation of it, `serve` or the integers would not answer as the
            model does, or a calibration gives no scales.
        OSError: A file cannot be written. What was there is unchanged.
    """
    path = pathlib.Path(path)
    check_path("LiteRT", path, ".tflite")
    check_arithmetic(arithmetic, tuple(ARITHMETIC), calibration)
    step = streaming_step(model, stepwise)
    check_names("LiteRT", sorted(step.input), r"\w*", ("self", *keyword.kwlist))
    samples = []
    if arithmetic.startswith("integer"):
        samples = _samples(model, step, arithmetic, calibration)
        step_only = True
    content = _content(model, step, arithmetic, samples, step_only)
    contents = f"step of {', '.join(step.input)}"
    if step_only:
        entries = _entries(content)
        name = write_described(
            path, content, "The LiteRT file", *entries, format="litert"
        )
        contents = f"{contents}, described in {name}"
    else:
        with _files.replacing(path, "The LiteRT file") as new:
            new.write_bytes(content)
        contents = f"serve(x), and {contents}"
    return StreamingFile(path, contents, len(content), state_bytes(step))


def _content(model, step, arithmetic, samples, step_only):
    """The bytes of the file, which answers as the model does."""
    import tensorflow as tf

    attributes = _attributes_of(arithmetic)
    if samples:
        attributes["representative_dataset"] = lambda: samples
    module = tf.Module()
    module.variables_of_model = [v.value for v in model.variables]
    signatures = _signatures(model, step, step_only)
    with tempfile.TemporaryDirectory() as folder:
        tf.saved_model.save(module, folder, signatures=signatures)
        content = _convert(folder, list(signatures), arithmetic, attributes)
    if not step_only:
        run = _interpreter(content).get_signature_runner("serve")
        tolerance = 0.5 if attributes else 1e-3  # of weights that are rounded
        check_serve(model, lambda x: run(x=x)["y"], 1, tolerance)
    if samples:
        _check_outputs(step, samples, content, arithmetic)
    return content


def _signatures(model, step, step_only):
    """The functions `step` and `serve` of one sequence, traced."""
    import tensorflow as tf

    @tf.function
    def one_step(**inputs):
        return step(inputs, training=False)

    @tf.function
    def serve(x):
        (y,) = keras.tree.flatten(model(x, training=False))
        return {"y": y}

    traced = one_step.get_concrete_function(**specs(step.input, batch=1))
    check_dtypes("LiteRT", traced.graph, ("float32",))
    if step_only:
        return {"step": traced}
    inputs = specs({"x": model.inputs[0]}, batch=1)
    return {"step": traced, "serve": serve.get_concrete_function(**inputs)}


def _attributes_of(arithmetic):
    """The attributes of the converter."""
    import tensorflow as tf

    if arithmetic == "float32":
        return {}
    return {
        "optimizations": [tf.lite.Optimize.DEFAULT],
        "target_spec": tf.lite.TargetSpec(
            supported_ops=[tf.lite.OpsSet[ARITHMETIC[arithmetic]]],
            supported_types=[tf.float16] if arithmetic == "float16" else None,
        ),
    }


def _samples(model, step, arithmetic, calibration):
    """Inputs and states of the step along the calibration."""
    x = np.asarray([] if calibration is None else calibration)
    is_array = x.ndim == len(model.inputs[0].shape) and x.size > 0
    samples = list(_along(step, x)) if is_array else []
    if not samples:
        raise _no_scales(arithmetic, f"an array of shape {x.shape}")
    for name, tensor in step.input.items():
        values = np.array([sample[name] for sample in samples], tensor.dtype)
        if not np.isfinite(values).all() or not values.any():
            reason = f"data along which {name!r} is always 0 or not finite"
            raise _no_scales(arithmetic, reason)
        for sample, value in zip(samples, values, strict=True):
            sample[name] = value
    return samples


def _no_scales(arithmetic, received):
    return ValueError(
        f"arithmetic={arithmetic!r} needs `calibration`, an array (sequences, "
        "time, ...) of your data, from which scales of inputs and hidden "
        f"states are computed. Received: {received}"
    )


def _along(step, sequences):
    """Inputs and states of the step along an array of sequences."""
    states = {
        name: np.zeros((len(sequences), *tensor.shape[1:]), tensor.dtype)
        for name, tensor in step.input.items()
        if name != "x"
    }
    shape = (len(sequences), -1, *step.input["x"].shape[1:])
    for x in np.swapaxes(np.reshape(sequences, shape), 0, 1):
        inputs = {"x": x, **states}
        for row in range(len(x)):
            yield {name: values[[row]] for name, values in inputs.items()}
        states = step.predict_on_batch(inputs)
        states.pop("y")


def _convert(folder, signature_keys, arithmetic, attributes):
    """The bytes of the LiteRT file of a SavedModel."""
    import tensorflow as tf

    converter = tf.lite.TFLiteConverter.from_saved_model(
        folder, signature_keys=signature_keys
    )
    converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS]
    converter.experimental_enable_resource_variables = True
    for name, value in attributes.items():
        setattr(converter, name, value)
    try:
        return converter.convert()
    except Exception as error:  # its class is not public
        raise _refusal(arithmetic, error) from error


def _check_outputs(step, samples, content, arithmetic):
    """Refuses a file of integers that is nothing like the step.

    A value that is always 0 has a scale of almost 0, as has what it is part of.
    """
    expected = [step.predict_on_batch(sample)["y"] for sample in samples]
    try:
        run = _interpreter(content).get_signature_runner("step")
        y = np.stack([run(**sample)["y"] for sample in samples])
    except RuntimeError:  # some scales are too small for it
        y = np.full_like(expected, np.inf)
    if np.linalg.norm(y - expected) > 0.5 * np.linalg.norm(expected):
        raise _refusal(
            arithmetic,
            "the file does not run, or its outputs differ from those of the "
            "model by more than half along the `calibration`",
        )


def _refusal(arithmetic, reason):
    advice = "choose other layers and activations, or another `arithmetic`"
    received = f"arithmetic={arithmetic!r}, where {reason}"
    return refusal("LiteRT", advice, received)


def _interpreter(content):
    import tensorflow as tf

    with warnings.catch_warnings():
        # TensorFlow recommends the package of the interpreter alone.
        warnings.simplefilter("ignore")
        return tf.lite.Interpreter(model_content=content)


def _entries(content):
    """Of the inputs and of the outputs: names, types and scales."""
    interpreter = _interpreter(content)
    runner = interpreter.get_signature_runner("step")
    inputs, outputs = runner.get_input_details(), runner.get_output_details()
    return (
        _in_order(interpreter.get_input_details(), inputs),
        _in_order(interpreter.get_output_details(), outputs),
    )


def _in_order(tensors, by_name):
    """In the order of the graph, where y and a state may be one tensor."""
    names: dict[int, list[str]] = {}
    for name, details in by_name.items():
        names.setdefault(details["index"], []).append(name)
    entries = []
    for tensor in tensors:
        entries.append(
            {
                "name": names[tensor["index"]].pop(),
                "shape": tensor["shape"].tolist(),
                "dtype": np.dtype(tensor["dtype"]).name,
            }
        )
    return entries
