"""From a protocol to its runs, each of them stored and made once."""

import json
import multiprocessing
import os
import signal
import time
from concurrent import futures

from tqdm import tqdm

from benchmarks.claims import tables
from benchmarks.claims import wanted
from examples import outputs

DEAF = (signal.SIGINT, signal.SIG_IGN)


def run(protocol, path, jobs):
    """Makes the runs missing in the file at `path`, several at a time."""
    from benchmarks.claims import training  # TensorFlow takes seconds

    stored = tables.read(path.parent) or {}
    before = stored.get("runs", [])
    missing = [
        settings
        for settings in wanted.all_settings(protocol)
        if not any(settings.items() <= run.items() for run in before)
    ]
    if not missing:
        return
    os.environ.setdefault("TF_NUM_INTRAOP_THREADS", "1")  # a core each
    # Not joblib: it starts a worker anew once that has compiled a few networks.
    spawn = multiprocessing.get_context("spawn")
    # Ctrl-C is for the one that stores: runs that have begun are waited for.
    pool = futures.ProcessPoolExecutor(jobs, spawn, signal.signal, DEAF)
    waiting = [pool.submit(training.run, one) for one in missing]
    began = time.monotonic()

    def store():
        done = [f for f in waiting if f.done() and not f.cancelled()]
        made = before + [future.result() for future in done]
        took = {"runs": len(done), "seconds": round(time.monotonic() - began)}
        took = [*stored.get("took", []), took]
        save(path, {"protocol": protocol, "took": took, "runs": made})

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
    record = {**outputs.made_by(), **record}
    new = path.with_suffix(".new")
    new.write_text(json.dumps(record, indent=0) + "\n")
    new.replace(path)
