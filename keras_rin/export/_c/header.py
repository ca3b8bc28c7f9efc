"""A C header: run on this computer, compared with its model, measured."""

import os
import pathlib

import keras
import numpy as np
from numpy.typing import ArrayLike

from keras_rin.export._c.cost import Cost
from keras_rin.export._c.cost import cost_of
from keras_rin.export._c.header_check import HeaderCheck
from keras_rin.export._c.header_check import checked
from keras_rin.export._c.header_program import HeaderProgram


class Header:
    """A C header of one time step, on this computer.

    `keras_rin.export.export_c` returns it, and `Header(path)` opens
    one that is there. Its text is read once: it may be moved afterwards.

    Args:
        path: The header, `*.h`.

    Attributes:
        path: `pathlib.Path`, the header.
        weight_bytes: Integer, the bytes of the weights.
        state_bytes: Integer, the bytes of the hidden states of one stream; 4
            more with int8 weights than those of the model.
        in_integers: Boolean, whether it computes in integers alone.

    Raises:
        ValueError: It is no header of keras_rin.
        OSError: There is no such file.

    Example:

    >>> model = keras.Sequential(
    ...     [keras.Input((None, 2)), keras_rin.layers.RIN(4)]
    ... )
    >>> path = path.with_name("rin.h")
    >>> header = keras_rin.export.export_c(model, path)
    >>> difference, agreement = header.compare(model, np.ones((3, 10, 2)))
    >>> difference < 1e-5, agreement
    (True, 1.0)
    >>> keras_rin.export.Header(path).predict(np.ones((3, 10, 2))).shape
    (3, 10, 4)
    """

    def __init__(self, path: str | os.PathLike):
        self.path = pathlib.Path(path)
        text = self.path.read_text("ascii")
        self._program = HeaderProgram(text, path)
        self.weight_bytes = self._program.weight_bytes
        self.state_bytes = self._program.state_bytes
        self.in_integers = self._program.in_integers

    def __repr__(self):
        return f"Header({str(self.path)!r})"

    def __str__(self):
        sizes = f"{self.weight_bytes:,} bytes of weights, "
        return f"{self.path}: {sizes}{self.state_bytes:,} of hidden states"

    def predict(self, x: "ArrayLike") -> np.ndarray:
        """The outputs after each time step, each sequence from states of 0.

        The header is compiled once, with the first of `cc`, `gcc` and `clang`
        that is installed.

        Args:
            x: Array `(batch, time, ...)`, sequences as for `model.predict`; of
                a header in integers, counts. Samples at the end that are fewer
                than a step reads are left out.

        Returns:
            Array `(batch, steps, outputs)`, in the units of the model, whose
            last step is what a model without `return_sequences=True` gives.
            Softmax, which a header in integers leaves out, is computed here.

        Raises:
            ValueError: x has another shape, or no counts.
            OSError: There is no compiler.
        """
        return self._program.outputs_and_states(x)[0]

    def compare(self, model: keras.Model, x: "ArrayLike") -> HeaderCheck:
        """Compares the header with the model that it was made of.

        A model without `return_sequences=True` is compared after the last step
        of each sequence.

        Args:
            model: The model.
            x: As in `predict`.

        Returns:
            A `HeaderCheck`, a pair: the largest absolute difference of an
            output, rounding included, and the share of outputs whose largest
            value is that of the same class. Printed, it says more.

        Raises:
            ValueError: The sequences are shorter than a step, or no counts.
            OSError: There is no compiler.
        """
        return checked(self._program, model, x)

    def cost(self, processor: str = "Cortex-M0+") -> Cost:
        """What it takes of a processor, before it is flashed.

        The header is compiled for it, and run in an emulator, where Debian's
        packages for these are installed.

        Args:
            processor: String, `"Cortex-M0+"`, `"Cortex-M4F"` or the
                `"ATmega328P"` of an Arduino Uno. Defaults to `"Cortex-M0+"`.

        Returns:
            A `Cost`, which prints as a line, with `flash` and `ram` in bytes
            and `per_step`, instructions, or the cycles of an AVR; or with the
            `problem` for which it was not measured.

        Raises:
            ValueError: There is no such processor.
        """
        return cost_of(self._program, processor)
