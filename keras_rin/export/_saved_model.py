"""A model of sequences as a SavedModel."""

import keras

from keras_rin import _files
from keras_rin.export._serve import add_serve
from keras_rin.export._serve import check_serve
from keras_rin.export._serve import specs
from keras_rin.export._step_file import state_bytes
from keras_rin.export._streaming_step import streaming_step


def write_saved_model(model, path, options):
    """Writes the folder; returns a text, and bytes of files and of states."""
    step = streaming_step(model, options.stepwise)
    archive = keras.export.ExportArchive()
    archive.track(model)
    if not options.step_only:
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
    if not options.step_only:
        contents = f"serve(x), and {contents}"
    return contents, file_bytes, state_bytes(step)
