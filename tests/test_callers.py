"""A warning names the line of the user, however Keras came to it."""

import functools
import inspect
import warnings

import pytest

from keras_rin import _callers

pytestmark = pytest.mark.one_backend


def function_of(module, function):
    """A function of a module of that name, which calls `function`."""
    names = {"__name__": module, "function": function}
    exec("def call(): return function()", names)
    return names["call"]


def warning_function():
    """A function of the package, which warns."""
    names = {
        "__name__": "keras_rin.layers._rin_cell",
        "warn": warnings.warn,
        "stacklevel": _callers.stacklevel,
    }
    exec("def call(): warn('text', stacklevel=stacklevel())", names)
    return names["call"]


@pytest.mark.parametrize(
    "modules",
    [
        [],
        ["keras_rin"],
        ["keras_rin.layers._rin", "keras.src.layers.layer"],
        ["keras.src.layers.layer"] * 7,
    ],
    ids=len,
)
def test_frames_of_keras_and_of_the_package_are_passed_over(modules):
    call = warning_function()
    for module in modules:
        call = function_of(module, call)
    with pytest.warns(UserWarning) as caught:
        line = inspect.currentframe().f_lineno + 1
        call()
    assert (caught[0].filename, caught[0].lineno) == (__file__, line)


@pytest.mark.parametrize("module", ["keras_rin_of_a_user", "kerastuner", ""])
def test_other_modules_are_those_of_the_user(module):
    inner = function_of("keras.src.layers.layer", _callers.stacklevel)
    assert function_of("keras_rin", function_of(module, inner))() == 2


def test_without_a_user_every_frame_is_passed_over(monkeypatch):
    monkeypatch.setattr(_callers, "_package", lambda frame: "keras")
    assert _callers.stacklevel() == len(inspect.stack()) + 1


def test_a_function_that_runs_is_found():
    def outer(inner):
        return inner()

    def running():
        return _callers.is_running(outer)

    @functools.wraps(outer)
    def wrapper(inner):
        return outer(inner)

    assert outer(running) and not running()
    assert outer(lambda: _callers.is_running(wrapper))
