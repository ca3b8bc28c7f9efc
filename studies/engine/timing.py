"""Time and memory of calls."""

import concurrent.futures
import math
import multiprocessing
import os
import pathlib
import re
import time

# With these glibc returns freed memory at once, which takes time; by default
# it keeps up to twice the memory in use, by chance.
RETURNS_MEMORY = {"MALLOC_ARENA_MAX": "1", "MALLOC_MMAP_THRESHOLD_": "65536"}


def milliseconds(step):
    start = time.perf_counter()
    step()
    return 1e3 * (time.perf_counter() - start)


def in_turns(steps, repeats, seconds=math.inf):
    """{name: milliseconds of each call} of functions that take turns.

    After `seconds` no further turn begins, but three turns are made.
    """
    times = {name: [] for name in steps}
    end = time.perf_counter() + seconds
    for turn in range(repeats):
        if turn >= 3 and time.perf_counter() > end:
            break
        for name, step in steps.items():
            times[name].append(milliseconds(step))
    return times


def in_new_process(function, *arguments):
    """What a function returns in a process of its own."""
    os.environ |= RETURNS_MEMORY  # of this process it was read long ago
    spawn = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(1, spawn) as pool:
        return pool.submit(function, *arguments).result()


def peak_growth(call):
    """MiB that a call needs at most above the memory in use before, on Linux.

    An earlier peak does not hide it, because the kernel is told to forget it.
    """
    pathlib.Path("/proc/self/clear_refs").write_text("5")
    before = _mebibytes("VmRSS")
    call()
    return _mebibytes("VmHWM") - before


def _mebibytes(field):
    status = pathlib.Path("/proc/self/status").read_text()
    return int(re.search(rf"{field}:\s+(\d+) kB", status)[1]) / 1024
