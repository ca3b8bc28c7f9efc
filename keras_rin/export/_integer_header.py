"""A model of sequences as a C header that computes in integers alone."""

import textwrap

import keras
import numpy as np

from keras_rin import _files
from keras_rin import _version
from keras_rin.export._c_functions import INTEGER_FUNCTIONS
from keras_rin.export._c_functions import functions_of
from keras_rin.export._c_header import chain_operations
from keras_rin.export._c_header import plain
from keras_rin.export._c_header import prefix_of
from keras_rin.export._c_program import Program
from keras_rin.export._integer_steps import joined_operations
from keras_rin.export._integer_steps import write_operations

_HEADER = """\
/*
One time step of the Keras model {model!r} in integers, in C99 and C++.

Made by keras_rin {version} with Keras {keras} on {backend}.

x[{inputs}]: one step of the input, as the sensor counts.
y[{outputs}]: {y} after this step, where 1 is {name}_output_scale.
{name}_answer(y): the largest of them.

The counts of the calibration, from
{low}
to
{high}

Within a namespace of C++, include stdint.h before the namespace, and for an
AVR avr/pgmspace.h.

Flash: {flash:,} bytes for the int8 weights, and the code.
RAM: {ram:,} bytes for each {name}_state; {stack:,} bytes of stack in a step.

Example:

    #include "{name}.h"
    static {name}_state state;
    static int16_t x[{name}_inputs];
    static int32_t y[{name}_outputs];
    {name}_reset(&state);
    while (read_input(x)) {{
        {name}_step(&state, x, y);
        use_answer({name}_answer(y));
    }}
*/

#ifndef {private}_H
#define {private}_H
#include <stdint.h>
#ifdef __AVR__
#include <avr/pgmspace.h>
#define {private}_PLACE PROGMEM
#else
#define {private}_PLACE
#endif

enum {{ {name}_inputs = {inputs}, {name}_outputs = {outputs} }};

/* What 1 in y stands for, for the computer that compares. */
#define {name}_output_scale {scale!r}

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
static inline void {name}_step({name}_state *state, const int16_t x[],
        int32_t y[])
{{
{buffers}{step}
}}

/* The index of the largest of the outputs. */
static inline int {name}_answer(const int32_t y[])
{{
    int largest = 0;
    for (int i = 1; i < {name}_outputs; i++)
        largest = y[i] > y[largest] ? i : largest;
    return largest;
}}

#endif
"""


class IntegerProgram(Program):
    """One time step in C, in integers."""

    def __init__(self, prefix):
        super().__init__(prefix, "integers")
        self.sum_count = 0
        self.notes: list[str] = []

    def use(self, function):
        self.functions |= functions_of(
            function, self.private, INTEGER_FUNCTIONS
        )

    def comment(self, text):
        self.write(f"/* {plain(text)} */")

    @property
    def phase(self):
        """A state that each step changes, from 0 to 255."""
        if not any(name == "phase" for name, _ in self.states):
            self.call("advance", self.state_of("phase", 1, 0, True))
        return "*state->phase"

    def sums(self, size):
        """Working memory of 32 bits, which no other operation reads."""
        self.sum_count = max(size, self.sum_count)
        return "z"

    def state_of(self, name, size, exponent, is_within_1=False):
        """A new state of zeros, with its unit in the comment."""
        range_ = "" if is_within_1 else ", and saturates"
        self.notes.append(f"{2.0**-exponent:g} is 1{range_}")
        return self.state(name, size)

    def integers(self, bits, name, values):
        """The name of new constants; they fit the bits."""
        literals = [str(int(value)) for value in np.ravel(values)]
        self.use(f"read_int{bits}")
        constant = self._constant(f"int{bits}_t", name, literals, bits // 8)
        place = f" {self.private}_PLACE = {{"
        self.constants[-1] = self.constants[-1].replace(" = {", place, 1)
        return constant

    @property
    def state_bytes(self):
        return super().state_bytes // 2

    @property
    def stack_bytes(self):
        return 4 * self.sum_count + 2 * sum(self.buffers.values())


def write_integer_header(model, path, calibration):
    """Writes the header; returns a name, bytes of weights and of states."""
    program = IntegerProgram(prefix_of(path))
    operations, has_softmax = joined_operations(chain_operations(model)[0])
    counts = _counts(model, calibration)
    y = write_operations(program, operations, counts)
    text = _header(model, program, counts, y, has_softmax)
    with _files.replacing(path, "The C header") as new:
        new.write_text(text, encoding="ascii")
    return f"{path.stem}_step", program.flash_bytes, program.state_bytes


def _counts(model, calibration):
    """The calibration in float64, or an error that says what it must be."""
    features = model.inputs[0].shape[2]
    x = np.asarray(calibration)
    problem: str | None = f"{x.dtype} of shape {x.shape}"
    is_array = x.ndim == 3 and x.size and x.shape[2] == features
    if calibration is None:
        problem = None
    elif not is_array or x.dtype.kind not in "iuf":
        pass
    elif not np.isfinite(x).all():
        problem = "values that are not finite"
    elif np.any(x != np.round(x)) or x.min() < -32768 or x.max() > 32767:
        problem = f"values from {x.min()} to {x.max()}"
        problem += ", not all whole" if np.any(x != np.round(x)) else ""
    elif x.min() == x.max():
        problem = f"{x.min()} alone"
    else:
        return x.astype("float64")
    raise ValueError(
        '`states="int16"` in C needs `calibration`, an array (sequences, '
        f"steps, {features}) of what a sensor counts: different whole numbers "
        "from -32768 to 32767. Let the model begin with Normalization or "
        f"Rescaling of them. Received: calibration={problem}"
    )


def _header(model, program, counts, y, has_softmax):
    program.use("zero")
    low, high = (
        [int(value) for value in limit(counts, axis=(0, 1))]
        for limit in (np.min, np.max)
    )
    buffers = {"int32_t": {"z": program.sum_count}, "int16_t": program.buffers}
    return _HEADER.format(
        name=program.prefix,
        private=program.private,
        model=plain(model.name),
        version=_version.__version__,
        keras=keras.__version__,
        backend=keras.backend.backend(),
        y="what softmax reads" if has_softmax else "the model's output",
        low=_filled(low),
        high=_filled(high),
        scale=2.0 ** int(y.exponent),
        flash=program.flash_bytes,
        ram=program.state_bytes,
        stack=program.stack_bytes,
        inputs=counts.shape[2],
        outputs=y.size,
        states="\n".join(
            f"    int16_t {name}[{size}]; /* {note} */"
            for (name, size), note in zip(
                program.states, program.notes, strict=True
            )
        ),
        constants="\n\n".join(program.constants),
        functions="".join(program.functions.values()),
        reset="\n".join(
            f"    {program.private}_zero(state->{name}, {size});"
            for name, size in program.states
        ),
        buffers="".join(
            f"    {c_type} {name}[{size}]; /* working memory */\n"
            for c_type, sizes in buffers.items()
            for name, size in sizes.items()
            if size
        ),
        step="\n".join(program.statements),
    )


def _filled(counts):
    return textwrap.fill(", ".join(map(str, counts)), 76, initial_indent="  ")
