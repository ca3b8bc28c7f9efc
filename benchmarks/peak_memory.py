"""Peak memory of a training step.

    python -m benchmarks.peak_memory

Each layer trains in processes of its own. What three training steps need above
the memory of the built model goes to OUTPUT/results.json and table.md. Linux
tells both, the memory in use and its peak, and glibc is set to return freed
memory; otherwise it keeps up to twice the memory in use, by chance.
"""

import concurrent.futures
import multiprocessing
import os
import pathlib
import re
import statistics

from absl import flags
from tqdm import tqdm

from benchmarks import contenders
from benchmarks import measuring
from experiments import results

FLAGS = flags.FLAGS

# batch, time, features, units; batch 1 shows what does not grow with the batch
SIZES = [
    (1, 784, 1, 100),
    (32, 784, 1, 100),
    (1, 200, 64, 256),
    (128, 200, 64, 256),
    (128, 784, 64, 256),
]
NAMES = ["RIN", "RIN, XLA", "SimpleRNN", "SimpleRNN, XLA", "LSTM"]


def growth(name, size):
    """MiB that three training steps need above the memory in use."""
    warm = contenders.installed()[name]((1, 2, size[2], size[3]), True)
    warm()
    step = contenders.installed()[name](size, True)
    pathlib.Path("/proc/self/clear_refs").write_text("5")  # forget the peak
    before = mebibytes("VmRSS")
    for _ in range(3):
        step()
    return mebibytes("VmHWM") - before


def mebibytes(what):
    """Memory of this process as the Linux kernel tells it."""
    status = pathlib.Path("/proc/self/status").read_text()
    return int(re.search(rf"{what}:\s+(\d+) kB", status)[1]) / 1024


def in_a_process(name, size):
    os.environ |= {"MALLOC_ARENA_MAX": "1", "MALLOC_MMAP_THRESHOLD_": "65536"}
    spawn = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(1, spawn) as pool:
        return pool.submit(growth, name, size).result()


def measure():
    sizes = [(2, 5, 1, 3)] if FLAGS.smoke else SIZES
    cases = [(name, size) for size in sizes for name in NAMES]
    records = [
        {
            "contender": name,
            "size": size,
            "mib": [in_a_process(name, size) for _ in range(FLAGS.repeats)],
        }
        for name, size in tqdm(cases)
    ]
    return {"records": records}


def tables(record):
    sizes = {}
    for r in record["records"]:
        row = sizes.setdefault(contenders.shape(r["size"]), {})
        mib = r["mib"]
        median, spread = f"{statistics.median(mib):.0f}", ""
        if len(mib) > 1:
            spread = f" ({min(mib):.0f} to {max(mib):.0f})"
        row[r["contender"]] = median + spread
    rows = [[size, *row.values()] for size, row in sizes.items()]
    (row, *_) = sizes.values()
    header = [contenders.SHAPE, *(f"{layer}, MiB" for layer in row)]
    return {"table.md": results.markdown(header, rows)}


if __name__ == "__main__":
    flags.DEFINE_integer("repeats", 1, "Processes per cell.", lower_bound=1)
    measuring.main(__file__, measure, tables)
