"""Who called the package: the line of the user's program."""

import inspect

WITHIN = "keras", "keras_rin"


def stacklevel():
    """The `stacklevel` of a warning that names the user's line.

    Keras calls constructors and callbacks through frames of its own, whose
    number differs by version. `warnings.warn` can leave out files since
    Python 3.12 only.
    """
    frame, level = inspect.currentframe(), 0
    while frame is not None and _package(frame) in WITHIN:
        frame, level = frame.f_back, level + 1
    return level


def _package(frame):
    return frame.f_globals.get("__name__", "").partition(".")[0]


def is_running(function):
    """Whether `function` has been called and has not returned yet."""
    code = inspect.unwrap(function).__code__
    frame = inspect.currentframe()
    while frame is not None and frame.f_code is not code:
        frame = frame.f_back
    return frame is not None
