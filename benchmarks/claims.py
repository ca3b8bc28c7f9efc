"""Does it hold? Every claim, from a protocol fixed before its runs.

    python -m benchmarks.claims                 # tables, from stored records
    python -m benchmarks.claims --run=core      # first makes the runs missing
    python -m benchmarks.claims --run=core --protocol=adding

A file of benchmarks/protocols says what is trained and what is claimed. Each
run that ends, well or not, is at once in OUTPUT/PROTOCOL/results.json, and is
not made again. Tables of contenders and the table of claims are made of these.
"""

import itertools
import json
import multiprocessing
import os
import pathlib
import signal
import sys
import time
import tomllib
from concurrent import futures

from absl import app
from absl import flags
from tqdm import tqdm

from benchmarks import claim_pictures
from benchmarks import claim_tables
from examples import outputs

FLAGS = flags.FLAGS
PROTOCOLS = pathlib.Path(__file__).parent / "protocols"
DEAF = (signal.SIGINT, signal.SIG_IGN)


def protocols():
    """{name: protocol} of all files."""
    return {
        path.stem: tomllib.loads(path.read_text())
        for path in sorted(PROTOCOLS.glob("*.toml"))
    }


def all_settings(protocol):
    """The settings of each run, seed by seed."""
    for seed, grid in itertools.product(protocol["seeds"], protocol["grid"]):
        for values in itertools.product(*grid.values()):
            chosen = dict(zip(grid, values, strict=True))
            yield {**protocol["fixed"], **chosen, "seed": seed}


def run(protocol, path, jobs):
    """Makes the runs missing in the file at `path`, several at a time."""
    from benchmarks import claim_runs  # TensorFlow takes seconds

    stored = claim_tables.read(path.parent) or {}
    before = stored.get("runs", [])
    missing = [
        settings
        for settings in all_settings(protocol)
        if not any(settings.items() <= run.items() for run in before)
    ]
    if not missing:
        return
    os.environ.setdefault("TF_NUM_INTRAOP_THREADS", "1")  # a core each
    # Not joblib: it starts a worker anew once that has compiled a few networks.
    spawn = multiprocessing.get_context("spawn")
    # Ctrl-C is for the one that stores: runs that have begun are waited for.
    pool = futures.ProcessPoolExecutor(jobs, spawn, signal.signal, DEAF)
    waiting = [pool.submit(claim_runs.run, one) for one in missing]
    began = time.monotonic()

    def store():
        done = [f for f in waiting if f.done() and not f.cancelled()]
        runs = before + [future.result() for future in done]
        took = {"runs": len(done), "seconds": round(time.monotonic() - began)}
        took = [*stored.get("took", []), took]
        save(path, {"protocol": protocol, "took": took, "runs": runs})

    try:
        for _ in tqdm(
            futures.as_completed(waiting),
            path.parent.name,
            len(waiting),
            unit="run",
        ):
            store()
    finally:
        pool.shutdown(cancel_futures=True)
        store()


def save(path, record):
    record = {**outputs.made_by(), "tables": claim_tables.__name__, **record}
    new = path.with_suffix(".new")
    new.write_text(json.dumps(record, indent=0) + "\n")
    new.replace(path)


def main(argv):
    del argv
    output = outputs.prepare(FLAGS.output)
    chosen = {
        name: protocol
        for name, protocol in protocols().items()
        if name in (FLAGS.protocol or [name])
    }
    try:
        for name, protocol in chosen.items():
            if protocol["tier"] in FLAGS.run:
                folder = outputs.prepare(output / name)
                run(protocol, folder / "results.json", FLAGS.jobs)
    except KeyboardInterrupt:
        print("\nInterrupted: here is what there is.", file=sys.stderr)
    for path in output.glob("*/results.json"):
        record = claim_tables.read(path.parent)
        if not claim_tables.outcomes(record):
            continue  # none has all its runs yet
        for name, table in claim_tables.tables(record).items():
            (path.parent / name).write_text(table)
        for name, picture in claim_pictures.draw(record).items():
            picture.savefig(path.parent / name, dpi=120)
    sections = claim_tables.of_protocols(protocols(), output)
    (output / "protocols.md").write_text(sections)
    for name, table in claim_tables.of_claims(protocols(), output).items():
        (output / name).write_text(table)
        print(f"\n{output / name}\n\n{table}")


if __name__ == "__main__":
    flags.DEFINE_string("output", "docs/results/claims", "Where to write.")
    flags.DEFINE_multi_enum("run", [], ["core", "night", "gpu"], "To make.")
    flags.DEFINE_multi_string("protocol", [], "Only these.")
    flags.DEFINE_integer("jobs", None, "Runs at a time, else one a core.", 1)
    app.run(main)
