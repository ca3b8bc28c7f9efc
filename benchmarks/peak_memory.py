"""Peak memory of a training step.

    python -m benchmarks.peak_memory

Each layer trains in processes of its own. What three training steps need above
the memory of the built model goes to OUTPUT/results.json and table.md.
"""

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
    return measuring.growth(lambda: [step() for _ in range(3)])


def measure():
    sizes, names = SIZES, NAMES
    if FLAGS.smoke:
        sizes, names = [(2, 5, 1, 3)], ["RIN, XLA"]
    cases = [(name, size) for size in sizes for name in names]
    records = [
        {
            "contender": name,
            "size": size,
            "mib": [
                measuring.alone(
                    growth, name, size, environment=measuring.RETURNS_MEMORY
                )
                for _ in range(FLAGS.repeats)
            ],
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
