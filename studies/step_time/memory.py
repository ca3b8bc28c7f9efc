"""How much memory does a training step need at most?

Each layer trains in a process of its own. A cell has the memory that three
training steps need above that of the model, which was built and warmed up. At
batch 1 it shows what does not grow with the batch.
"""

import itertools

from tqdm import tqdm

from engine import record
from engine import steps
from engine import timing

# batch, time, features, units
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
    warm_up = steps.makers()[name]((1, 2, size[2], size[3]), True)
    warm_up()
    step = steps.makers()[name](size, True)
    return timing.peak_growth(lambda: [step() for _ in range(3)])


def measure(sizes=SIZES, names=NAMES):
    records = []
    for size, name in tqdm(list(itertools.product(sizes, names))):
        mib = timing.in_new_process(growth, name, size)
        records.append({"contender": name, "size": size, "mib": [mib]})
    return {"records": records}


def tables(results):
    mib = steps.by_size(results["records"], "mib")
    rows = mib.map(lambda of_steps: f"{of_steps[0]:.0f}").itertuples()
    header = [steps.SIZE, *(f"{name}, MiB" for name in mib)]
    return {"Peak memory": record.markdown(header, rows)}


SMALLEST = {"sizes": [(2, 5, 1, 3)], "names": ["SimpleRNN"]}
