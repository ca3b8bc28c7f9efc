"""What a comparison of a C header with its model says."""

import typing

import keras
import numpy as np

from keras_rin.export._step.checks import steps_at_once

LARGE_SHARE = 0.1  # of the range of outputs: here rounding becomes an error


class _Comparison(typing.NamedTuple):
    difference: float
    agreement: float


class HeaderCheck(_Comparison):
    """A pair of numbers, which prints as sentences.

    Attributes:
        difference: The largest absolute difference of an output, rounding
            included.
        agreement: The share of outputs whose largest value is that of the same
            class.
        share: The largest difference as a share of the outputs' range.
        trend: The agreement of the last tenth of the steps minus that of the
            first tenth, of a model that answers at each step; else `None`. A
            header that drifts in a long stream has one below 0.
        saturated: Of a header in integers, the share of hidden states at the
            end of their range; else `None`.
        outside: Of a header in integers, the share of steps that leave the
            range of the calibration; else `None`.
    """

    share: float
    trend: float | None = None
    saturated: float | None = None
    outside: float | None = None

    def __str__(self):
        lines = [
            f"{self.agreement:.2%} of the answers are the model's: the number "
            "for classes.",
            f"An output differs by at most {self.difference:.3g}, "
            f"{self.share:.2%} of the outputs' range: the number for values.",
        ]
        if self.trend is not None:
            lines.append(
                "From the first tenth of the steps to the last these change "
                f"by {self.trend:+.2%}."
            )
        if self.saturated is not None:
            lines.append(f"{self.saturated:.2%} of the states are saturated.")
        if self.outside:
            lines.append(
                f"Warning: {self.outside:.2%} of the steps leave the range of "
                "the calibration; calibrate with a stream like this one."
            )
        if self.saturated is not None and self.share > LARGE_SHARE:
            lines.append(
                "Warning: the header in integers is unlike the model. If its "
                "states hold small increments for long, use "
                '`arithmetic="int8"`.'
            )
        return "\n".join(lines)


def checked(program, model, x) -> HeaderCheck:
    """Compares the outputs of a `HeaderProgram` with those of a model."""
    x, samples = np.asarray(x), steps_at_once(model)
    shape = x.shape
    x = x[:, : x.shape[1] // samples * samples]
    if not x.size:
        raise ValueError(
            f"`x` must have sequences of at least {samples} time steps. "
            f"Received: x of shape {shape}"
        )
    (expected,) = keras.tree.flatten(model.predict(x, verbose=0))
    y, states = program.outputs_and_states(x)
    y = y if y.ndim == expected.ndim else y[:, -1]
    is_equal = y.argmax(axis=-1) == expected.argmax(axis=-1)
    difference = float(abs(y - expected).max())
    check = HeaderCheck(difference, float(is_equal.mean()))
    if y.ndim > 2:
        tenth = -(-y.shape[1] // 10)
        last, first = is_equal[:, -tenth:], is_equal[:, :tenth]
        check.trend = float(last.mean() - first.mean())
    check.share = difference / (float(np.ptp(expected)) or 1.0)
    if program.in_integers:
        check.saturated = _saturated(program.state_fields, states)
        low, high = program.calibration
        check.outside = float(((x < low) | (x > high)).any(axis=-1).mean())
    return check


def _saturated(fields, states):
    """The share of states at the end of their range, if they have one."""
    may_saturate = np.repeat(
        ["saturates" in note for _, note in fields],
        [int(size) for size, _ in fields],
    )
    values = np.frombuffer(states, "int16").reshape(-1, len(may_saturate))
    is_at_end = abs(values[:, may_saturate].astype("int32")) >= 32767
    return float(is_at_end.mean()) if is_at_end.size else 0.0
