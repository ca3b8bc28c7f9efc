"""The text of a C header, of what the operations of a model have added."""

import re

import keras

from keras_rin import _files
from keras_rin import _version
from keras_rin.export._c.functions import c_template


def write_header(
    program, model, path, inputs, outputs, notes="", after="", **parts
):
    """Writes the header.

    The parts are texts: `x` and `y` say what these are, `notes` more, and C
    stands `before` and `after` the step.
    """
    text = c_template("header.c").substitute(
        name=program.prefix,
        private=program.private,
        model=repr(plain(model.name)),
        version=_version.__version__,
        keras=keras.__version__,
        backend=keras.backend.backend(),
        inputs=inputs,
        outputs=outputs,
        weights="float32" if program.weights == "float32" else "int8",
        x_type=program.x_type,
        y_type=program.y_type,
        flash=f"{program.flash_bytes:,}",
        ram=f"{program.state_bytes:,}",
        stack=f"{program.stack_bytes:,}",
        states="\n".join(
            f"    {program.x_type} {name}[{size}];{program.notes.get(name, '')}"
            for name, size in program.states
        ),
        constants="\n\n".join(program.constants),
        functions="".join(program.functions.values()),
        memory="\n".join(
            f"    {c_type} {name}[{size}]; /* working memory */"
            for c_type, name, size in program.memory
        ),
        step="\n".join(program.statements),
        notes=notes,
        after=after,
        **parts,
    )
    with _files.replacing(path, "The C header") as new:
        new.write_text(text, encoding="ascii")


def plain(text):
    """Text without what has a meaning in a comment of C, such as trigraphs."""
    return re.sub(r"[^\w .,:-]", "_", text, flags=re.ASCII)
