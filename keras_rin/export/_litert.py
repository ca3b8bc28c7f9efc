"""A model of sequences as a LiteRT file."""

import keyword
import tempfile
import warnings

import keras
import numpy as np

from keras_rin import _files
from keras_rin.export._serve import check_serve
from keras_rin.export._serve import specs
from keras_rin.export._step_file import check_dtypes
from keras_rin.export._step_file import check_names
from keras_rin.export._step_file import refusal
from keras_rin.export._step_file import state_bytes
from keras_rin.export._step_file import write_described
from keras_rin.export._streaming_step import streaming_step

OF_INTERFACE = {"inference_input_type", "inference_output_type"}


def write_litert(model, path, options):
    """Writes the file, a step alone with its description.

    Returns a text, and the bytes of the file and of the states.
    """
    import tensorflow as tf

    step = streaming_step(model, options.stepwise)
    weights, states = options.weights, options.states
    step_only, attributes = options.step_only, options.attributes
    check_names("LiteRT", sorted(step.input), r"\w*", ("self", *keyword.kwlist))
    is_integer = weights == "int8" and "representative_dataset" in attributes
    if states != "float32" and not is_integer:
        raise ValueError(
            f"states={states!r} needs weights='int8' and a "
            "`representative_dataset`. "
            f"Received: weights={weights!r} and {list(attributes)}"
        )
    samples = []
    if "representative_dataset" in attributes:
        samples = _samples(model, step, attributes["representative_dataset"])
        attributes = attributes | {"representative_dataset": lambda: samples}
        step_only = True
    of_types = _attributes_of(weights, states)
    if of_types.keys() & attributes.keys():
        raise ValueError(
            f"`weights` and `states` other than 'float32' set {[*of_types]}. "
            f"Received: weights={weights!r} and {list(attributes)}"
        )
    attributes = of_types | attributes

    @tf.function
    def one_step(**inputs):
        return step(inputs, training=False)

    @tf.function
    def serve(x):
        (y,) = keras.tree.flatten(model(x, training=False))
        return {"y": y}

    traced = one_step.get_concrete_function(**specs(step.input, batch=1))
    signatures = {"step": traced}
    check_dtypes("LiteRT", traced.graph, ("float32",))
    if not step_only:
        inputs = specs({"x": model.inputs[0]}, batch=1)
        signatures["serve"] = serve.get_concrete_function(**inputs)
    module = tf.Module()
    module.variables_of_model = [v.value for v in model.variables]
    with tempfile.TemporaryDirectory() as folder:
        tf.saved_model.save(module, folder, signatures=signatures)
        content = _convert(folder, list(signatures), states, attributes)
    if not step_only:
        run = _interpreter(content).get_signature_runner("serve")
        tolerance = 0.5 if attributes else 1e-3  # of weights that are rounded
        check_serve(model, lambda x: run(x=x)["y"], 1, tolerance)
    if samples and not OF_INTERFACE & attributes.keys():
        _check_outputs(step, samples, content, states)
    inputs = f"step of {', '.join(step.input)}"
    if not step_only:
        with _files.replacing(path, "The LiteRT file") as new:
            new.write_bytes(content)
        return f"serve(x), and {inputs}", len(content), state_bytes(step)
    name = write_described(
        path, content, "The LiteRT file", *_entries(content), format="litert"
    )
    inputs += f", described in {name}"
    return inputs, len(content), state_bytes(step)


def _attributes_of(weights, states):
    """The attributes of the converter for these types."""
    import tensorflow as tf

    if weights == "float32":
        return {}
    operations = {
        "float32": "TFLITE_BUILTINS",
        "int16": "EXPERIMENTAL_TFLITE_BUILTINS_ACTIVATIONS_INT16_WEIGHTS_INT8",
        "int8": "TFLITE_BUILTINS_INT8",
    }
    return {
        "optimizations": [tf.lite.Optimize.DEFAULT],
        "target_spec": tf.lite.TargetSpec(
            supported_ops=[tf.lite.OpsSet[operations[states]]],
            supported_types=[tf.float16] if weights == "float16" else None,
        ),
    }


def _samples(model, step, dataset):
    """The samples of a dataset, from which the scales are computed.

    A dataset is an array of sequences, or yields such arrays, sequences, pairs
    of one of them and a target, or dictionaries as the step takes them.
    """
    samples, rank = [], model.inputs[0].ndim
    for item in dataset() if callable(dataset) else dataset:
        item = item[0] if isinstance(item, tuple) else item
        if isinstance(item, dict):
            samples.append(dict(item))
        else:
            item = np.asarray(item)
            item = item[None] if item.ndim < rank else item
            samples += _along(step, item)
    for name, tensor in step.input.items():
        values = np.array([sample[name] for sample in samples], tensor.dtype)
        if not np.isfinite(values).all() or not values.any():
            raise ValueError(
                "`representative_dataset` must yield finite inputs and hidden "
                "states along sequences, from which the converter computes "
                f"scales. Received: {len(samples)} samples, where {name!r} "
                "is always 0 or not finite"
            )
        for sample, value in zip(samples, values, strict=True):
            sample[name] = value
    return samples


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


def _convert(folder, signature_keys, states, attributes):
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
    try:
        return converter.convert()
    except Exception as error:  # its class is not public
        raise _refusal(states, error) from error


def _check_outputs(step, samples, content, states):
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
            states,
            "the file does not run, or its outputs differ from those of the "
            "model by more than half along the `representative_dataset`",
        )


def _refusal(states, reason):
    advice = "choose other layers and activations, or other `states`"
    return refusal("LiteRT", advice, f"states={states!r}, where {reason}")


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
        entry = {
            "name": names[tensor["index"]].pop(),
            "shape": tensor["shape"].tolist(),
            "dtype": np.dtype(tensor["dtype"]).name,
        }
        scale, zero_point = tensor["quantization"]
        if scale:
            entry |= {"scale": float(scale), "zero_point": int(zero_point)}
        entries.append(entry)
    return entries
