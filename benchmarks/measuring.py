"""What the benchmarks share: their flags, timing in turns, and the results."""

import math
import pathlib
import time

from absl import app
from absl import flags
from absl import logging

from experiments import results

FLAGS = flags.FLAGS


def main(file, measure, tables):
    """Runs a benchmark: `measure` returns the record, `tables` shows it."""
    name = pathlib.Path(file).stem
    flags.DEFINE_string(
        "output", f"docs/results/{name}", "Directory of results and tables."
    )
    flags.DEFINE_bool("smoke", False, "Check with one tiny size.")

    def run(argv):
        del argv
        logging.set_verbosity(logging.ERROR)
        output = results.prepare(FLAGS.output)
        record = {"tables": f"benchmarks.{name}", **measure()}
        results.write(output, record, tables)

    app.run(run)


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
