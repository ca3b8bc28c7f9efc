"""A model of sequences as a SavedModel."""

import os
import pathlib
from collections.abc import Sequence

import keras

from keras_rin import _files
from keras_rin.export._files.serve import add_serve
from keras_rin.export._files.serve import check_serve
from keras_rin.export._files.serve import specs
from keras_rin.export._files.step_file import state_bytes
from keras_rin.export._files.streaming_file import StreamingFile
from keras_rin.export._step.streaming_step import streaming_step

OTHERS = {
    ".h": "export_c",
    ".onnx": "export_onnx",
    ".tflite": "export_litert",
}


def export_saved_model(
    model: keras.Model,
    path: str | os.PathLike,
    *,
    stepwise: Sequence[type] = (),
    step_only: bool = False,
) -> StreamingFile:
    """Writes a SavedModel that answers to whole sequences and to single steps.

    The folder needs neither keras_rin nor Keras where it is used. `serve` gives
    what `model.predict` gives for x of shape `(batch, time, ...)`; `step` is
    one time step, as of `keras_rin.export.streaming_step`.

    Args:
        model: As for `keras_rin.export.streaming_step`.
        path: The folder to write.
        stepwise: As for `keras_rin.export.streaming_step`. Defaults to `()`.
        step_only: Boolean, whether to write the step alone. Defaults to
            `False`.

    Returns:
        A `StreamingFile`, which prints what was written.

    Raises:
        ValueError: The path has the ending of another format, `streaming_step`
            refuses the model, or `serve` would not answer as the model does.
        OSError: A file cannot be written. What was there is unchanged.

    Example:

    >>> model = keras.Sequential(
    ...     [keras.Input((None, 2)), keras_rin.layers.RIN(4, name="rin")]
    ... )
    >>> folder = path.with_name("streaming")
    >>> written = keras_rin.export.export_saved_model(model, folder)
    >>> written.contents, written.state_bytes
    ('serve(x), and step of x, rin', 16)
    """
    path = pathlib.Path(path)
    if path.suffix in OTHERS:
        raise ValueError(
            f"The ending {path.suffix} is that of another format: call "
            f"`{OTHERS[path.suffix]}`. Received: path={str(path)!r}"
        )
    step = streaming_step(model, stepwise)
    archive = keras.export.ExportArchive()
    archive.track(model)
    if not step_only:
        check_serve(model, add_serve(archive, model))
    archive.add_endpoint(
        "step",
        lambda inputs: step(inputs, training=False),
        input_signature=[specs(step.input)],
    )
    with _files.filling(path, "The SavedModel") as new:
        archive.write_out(new, verbose=False)
        files = [entry for entry in new.rglob("*") if entry.is_file()]
        file_bytes = sum(file.stat().st_size for file in files)
    contents = f"step of {', '.join(step.input)}"
    if not step_only:
        contents = f"serve(x), and {contents}"
    return StreamingFile(path, contents, file_bytes, state_bytes(step))
