"""Kills a training again and again: does it go on as if nothing had been?

    python examples/kill_and_resume.py

One training runs to its end. Another is killed after a step, in the middle of
a file, before it opens or renames one, and at random moments. Then the disk is
full, and the directory may not be written to. After each fault the state of
training on disk is compared with that of the first training after as many
epochs, bit for bit, and the second goes on as with `--resume`.
"""

import itertools
import shutil

import faults
import killed_training
import numpy as np
import outputs
from absl import app
from absl import flags
from absl import logging
from tqdm import tqdm

FLAGS = flags.FLAGS


def happen(name, fault, witness, folder):
    """Lets a fault happen; returns its record."""
    code, error = killed_training.run(folder, fault)
    if code == 0:
        raise RuntimeError(f"The training ended before this: {name}.")
    epoch, same = killed_training.compare(witness, folder)
    return {
        "fault": name,
        "signal": max(0, -code),
        "error": error,
        "epoch": epoch,
        "same": same,
    }


def _last(cases, times):
    """The last so many faults of each kind."""
    kinds = itertools.groupby(cases, key=lambda case: case[0])
    return [case for _, group in kinds for case in list(group)[-times:]]


def tables(record):
    rows = []
    for name, group in itertools.groupby(
        record["faults"], key=lambda fault: fault["fault"]
    ):
        group = list(group)
        died = all(fault["signal"] for fault in group)
        named = all("models/dense-0." in fault["error"] for fault in group)
        ending = "dies" if died else "stops" + ", names the file" * named
        same = sum(fault["same"] for fault in group)
        rows.append([name, ending, f"{same} of {len(group)}"])
    rows.append(["none: on to the end", "", f"{record['end_same']} of 1"])
    header = ["what happens", "the training", "state as if never killed"]
    return {"table.md": outputs.markdown(header, rows)}


def main(argv):
    del argv
    logging.set_verbosity(logging.ERROR)
    FLAGS.resume, FLAGS.smoke = True, False
    for name, value in (("epochs", 70), ("units", 8)):
        FLAGS.set_default(name, value)
    output = outputs.prepare(FLAGS.output)
    witness, folder = output / "never_killed", output / "killed"
    for path in (witness, folder):
        shutil.rmtree(path, ignore_errors=True)
        path.mkdir()
    killed_training.run(witness, killed_training.keep_each_epoch)
    cases = _last(faults.each(np.random.default_rng(0)), FLAGS.times)
    records = [happen(*case, witness, folder) for case in tqdm(cases)]
    (folder / "models").chmod(0o755)
    killed_training.run(folder)
    end = killed_training.compare(witness, folder)
    same = end == (FLAGS.epochs, True)
    record = {
        "tables": "kill_and_resume",
        "faults": records,
        "end_same": int(same and killed_training.same_best(witness, folder)),
    }
    outputs.write(output, record, tables)


if __name__ == "__main__":
    flags.DEFINE_string("output", "runs/kill_and_resume", "Where to write.")
    flags.DEFINE_integer("times", 5, "Faults of each kind.", 1, 5)
    app.run(main)
