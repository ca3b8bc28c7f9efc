"""Peak memory of a training step.

    python -m benchmarks.peak_memory

Each layer trains in a process of its own, because the peak of a process never
falls. The growth of the peak over that of the built model goes to
OUTPUT/results.json and table.md. glibc is set to return freed memory; otherwise
it keeps up to twice the memory in use, by chance.
"""

import concurrent.futures
import multiprocessing
import os
import resource

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
    """MiB that three training steps add to the peak of this process."""
    warm = contenders.installed()[name]((1, 2, size[2], size[3]), True)
    warm()
    step = contenders.installed()[name](size, True)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(3):
        step()
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return (after - before) / 1024


def in_a_process(name, size):
    os.environ |= {"MALLOC_ARENA_MAX": "1", "MALLOC_MMAP_THRESHOLD_": "65536"}
    spawn = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(1, spawn) as pool:
        return pool.submit(growth, name, size).result()


def measure():
    sizes = [(2, 5, 1, 3)] if FLAGS.smoke else SIZES
    cases = [(name, size) for size in sizes for name in NAMES]
    records = [
        {"contender": name, "size": size, "mib": in_a_process(name, size)}
        for name, size in tqdm(cases)
    ]
    return {"records": records}


def tables(record):
    sizes = {}
    for r in record["records"]:
        row = sizes.setdefault(contenders.shape(r["size"]), {})
        row[r["contender"]] = f"{r['mib']:.0f}"
    rows = [[size, *row.values()] for size, row in sizes.items()]
    (row, *_) = sizes.values()
    header = [contenders.SHAPE, *(f"{layer}, MiB" for layer in row)]
    return {"table.md": results.markdown(header, rows)}


if __name__ == "__main__":
    measuring.main(__file__, measure, tables)
