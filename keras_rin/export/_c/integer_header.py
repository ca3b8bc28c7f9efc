"""A model of sequences as a C header that computes in integers alone."""

import textwrap

import numpy as np

from keras_rin.export._c.float_header import Chain
from keras_rin.export._c.float_header import prefix_of
from keras_rin.export._c.functions import INTEGER_FUNCTIONS
from keras_rin.export._c.functions import c_template
from keras_rin.export._c.functions import functions_of
from keras_rin.export._c.header_text import plain
from keras_rin.export._c.header_text import write_header
from keras_rin.export._c.integer_steps import joined_operations
from keras_rin.export._c.integer_steps import write_operations
from keras_rin.export._c.program import Program

# Increments of a phase: the odd number nearest to the golden ratio of all.
PHASES = {8: ("phase", 157), 15: ("fine_phase", 20_251)}
_NOTES = """
1 in y is {name}_output_scale; {name}_answer(y) is the largest of them.
The counts of the calibration, from
{low}
to
{high}
"""


class IntegerProgram(Program):
    """One time step in C, in integers."""

    x_type, y_type = "int16_t", "int32_t"

    def __init__(self, prefix):
        super().__init__(prefix, "integers")
        self.sum_count = 0

    def use(self, function):
        self.functions |= functions_of(
            function, self.private, INTEGER_FUNCTIONS
        )

    def comment(self, text):
        self.write(f"/* {plain(text)} */")

    def phase(self, bits):
        """A state that each step changes, of 8 or 15 bits."""
        name, increment = PHASES[bits]
        if not any(name == field for field, _ in self.states):
            phase = self.state_of(name, 1, 0, True)
            self.call("advance", phase, increment, 2**bits - 1)
        return f"*state->{name}"

    def sums(self, size):
        """Working memory of 32 bits, which no other operation reads."""
        self.sum_count = max(size, self.sum_count)
        return "z"

    def state_of(self, name, size, exponent, is_within_1=False):
        """A new state of zeros, with its unit in the comment."""
        range_ = "" if is_within_1 else ", and saturates"
        state = self.state(name, size)
        note = f" /* {2.0**-exponent:g} is 1{range_} */"
        self.notes[self.states[-1][0]] = note
        return state

    def integers(self, bits, name, values):
        """The name of new constants; they fit the bits."""
        literals = [str(int(value)) for value in np.ravel(values)]
        self.use(f"read_int{bits}")
        constant = self._constant(f"int{bits}_t", name, literals, bits // 8)
        place = f" {self.private}_PLACE = {{"
        self.constants[-1] = self.constants[-1].replace(" = {", place, 1)
        return constant

    @property
    def memory(self):
        sums = [("int32_t", "z", self.sum_count)] if self.sum_count else []
        return sums + super().memory


def write_integer_header(model, path, calibration):
    """Writes the header, with units from the calibration."""
    program = IntegerProgram(prefix_of(path))
    operations, has_softmax = joined_operations(Chain(model).operations)
    counts = _counts(model, calibration)
    y = write_operations(program, operations, counts)
    low, high = (
        textwrap.fill(", ".join(str(int(value)) for value in limits), 76)
        for limits in (counts.min(axis=(0, 1)), counts.max(axis=(0, 1)))
    )
    names = {"name": program.prefix, "private": program.private}
    scale = 2.0 ** int(y.exponent)
    output = "what softmax reads" if has_softmax else "the model's output"
    write_header(
        program,
        model,
        path,
        counts.shape[2],
        y.size,
        x="one step of the input, as the sensor counts",
        y=f"{output} after this step",
        notes=_NOTES.format(low=low, high=high, **names),
        before=c_template("integer_before.c").substitute(
            scale=repr(scale), **names
        ),
        after=c_template("integer_after.c").substitute(names),
    )


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
        '`arithmetic="integer"` needs `calibration`, an array (sequences, '
        f"steps, {features}) of what a sensor counts: different whole numbers "
        "from -32768 to 32767. Let the model begin with Normalization or "
        f"Rescaling of them. Received: calibration={problem}"
    )
