"""What can happen to a process that trains, made to happen to this one."""

import itertools
import os
import resource
import signal
import sys
import threading
from functools import partial

import comparison


def none():
    pass


def die():
    os.kill(os.getpid(), signal.SIGKILL)


def after_step(number):
    """Dies after this step of its training."""
    steps = itertools.count(1)

    class Dying(comparison.EpochTimer):
        def on_train_batch_end(self, batch, logs=None):
            if next(steps) == number:
                die()

    comparison.EpochTimer = Dying


def at_random(seconds):
    """Dies so long after its first step, whatever it does then."""
    timer = threading.Timer(seconds, die)
    timer.daemon = True

    class Dying(comparison.EpochTimer):
        def on_train_batch_end(self, batch, logs=None):
            if timer.ident is None:
                timer.start()

    comparison.EpochTimer = Dying


def at_file(number, then=die):
    """Dies as it opens a file to write or renames one, at this of them."""
    times = itertools.count(1)

    def hook(event, arguments):
        writes = event == "open" and "w" in (arguments[1] or "")
        if writes or event == "os.rename":
            if "models" in str(arguments[0]) and next(times) == number:
                then()

    sys.addaudithook(hook)


def within_file(number, size):
    """Dies in the middle of this file, or a later one, after so many bytes."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    at_file(number, lambda: full_disk(size))


def full_disk(size):
    """No file gets longer than this: the system refuses, Python raises."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


def read_only():
    os.chmod("models", 0o555)
    if os.geteuid() == 0:  # whom modes do not bind
        os.seteuid(65534)


def each(rng):
    """Name and fault, 20 times a kill and some that an error comes of."""
    for step in (1, 2, 3, 4, 8):
        yield "killed after a step", partial(after_step, step)
    middle = "killed in the middle of a file"
    for number, size in ((1, 100), (3, 100), (3, 9_000), (5, 3_000), (7, 1)):
        yield middle, partial(within_file, number, size)
    for number in (2, 4, 5, 7, 10):
        yield (
            "killed before a file is opened or renamed",
            partial(at_file, number),
        )
    for seconds in rng.uniform(0, 0.6, 5):
        yield "killed at a random moment", partial(at_random, seconds)
    for size in (100, 9_000):
        yield "disk full", partial(full_disk, size)
    yield "directory read-only", read_only
