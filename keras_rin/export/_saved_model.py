"""A model of sequences as a SavedModel."""

import keras

from keras_rin import _files
from keras_rin.export._serve import add_serve
from keras_rin.export._serve import check_serve
from keras_rin.export._serve import specs


def write_saved_model(model, step, path, step_only):
    """Writes the folder; returns a text, and the bytes of its files."""
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
    inputs = f"step of {', '.join(step.input)}"
    return inputs if step_only else f"serve(x), and {inputs}", file_bytes
