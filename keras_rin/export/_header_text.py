"""The text of a C header, of what the operations of a model have added."""

import re

import keras

from keras_rin import _files
from keras_rin import _version

_HEADER = """\
/*
One time step of the Keras model {model!r}, in C99 and C++.

Made by keras_rin {version} with Keras {keras} on {backend}.

x[{inputs}]: {x}.
y[{outputs}]: {y}. It must not overlap x.
{notes}
Within a namespace of C++, include its headers before the namespace.

Flash: {flash:,} bytes for the {weights} weights, and the code.
RAM: {ram:,} bytes for each {name}_state; {stack:,} bytes of stack in a step.

Example:

    #include "{name}.h"
    static {name}_state state;
    static {x_type} x[{name}_inputs];
    static {y_type} y[{name}_outputs];
    {name}_reset(&state);
    while (read_input(x)) {{ {name}_step(&state, x, y); use_output(y); }}
*/

#ifndef {private}_H
#define {private}_H
{before}
enum {{ {name}_inputs = {inputs}, {name}_outputs = {outputs} }};

/* The hidden states: one for each stream. */
typedef struct {{
{states}
}} {name}_state;

{constants}
{functions}
/* Sets the hidden states to 0, as before the first step of a sequence. */
static inline void {name}_reset({name}_state *state)
{{
{reset}
}}

/* Reads one time step x, updates the hidden states and writes y. */
static inline void {name}_step({name}_state *state, const {x_type} x[],
        {y_type} y[])
{{
{memory}
{step}
}}
{after}
#endif
"""


def write_header(
    program, model, path, inputs, outputs, notes="", after="", **parts
):
    """Writes the header; returns a name, bytes of weights and of states.

    The parts are texts: `x` and `y` say what these are, `notes` more, and C
    stands `before` and `after` the step.
    """
    program.use("zero")
    text = _HEADER.format(
        name=program.prefix,
        private=program.private,
        model=plain(model.name),
        version=_version.__version__,
        keras=keras.__version__,
        backend=keras.backend.backend(),
        inputs=inputs,
        outputs=outputs,
        weights="float32" if program.weights == "float32" else "int8",
        x_type=program.x_type,
        y_type=program.y_type,
        flash=program.flash_bytes,
        ram=program.state_bytes,
        stack=program.stack_bytes,
        states="\n".join(
            f"    {program.x_type} {name}[{size}];{program.notes.get(name, '')}"
            for name, size in program.states
        ),
        constants="\n\n".join(program.constants),
        functions="".join(program.functions.values()),
        reset="\n".join(
            f"    {program.private}_zero(state->{name}, {size});"
            for name, size in program.states
        ),
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
    return f"{path.stem}_step", program.flash_bytes, program.state_bytes


def plain(text):
    """Text without what has a meaning in a comment of C, such as trigraphs."""
    return re.sub(r"[^\w .,:-]", "_", text, flags=re.ASCII)
