"""Makes the runs of a protocol, each once, and stores them."""

import logging
import multiprocessing
import os
import signal
import time
from concurrent import futures

from tqdm import tqdm

from benchmarks.claims import records
from benchmarks.claims import wanted


def prepare():
    """Initializes a worker process."""
    # Ctrl-C goes to the parent, which stores; runs under way are finished.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # TensorFlow warns of many networks compiled in one process, as here.
    logging.getLogger("tensorflow").setLevel(logging.ERROR)


def run(protocol, folder, jobs):
    """Makes the runs missing in a folder, in parallel."""
    from benchmarks.claims import training  # TensorFlow takes seconds

    stored = records.read(folder) or {}
    before = stored.get("runs", [])
    missing = [
        settings
        for settings in wanted.all_settings(protocol)
        if not any(settings.items() <= run.items() for run in before)
    ]
    if not missing:
        return
    os.environ.setdefault("TF_NUM_INTRAOP_THREADS", "1")  # one core each
    # Not joblib: it restarts a worker that has compiled a few networks.
    spawn = multiprocessing.get_context("spawn")
    pool = futures.ProcessPoolExecutor(jobs, spawn, prepare)
    waiting = [pool.submit(training.run, one) for one in missing]
    began = time.monotonic()

    def store():
        done = [f for f in waiting if f.done() and not f.cancelled()]
        made = before + [future.result() for future in done]
        took = {"runs": len(done), "seconds": round(time.monotonic() - began)}
        took = [*stored.get("took", []), took]
        records.save(folder, {"protocol": protocol, "took": took, "runs": made})

    try:
        for _ in tqdm(
            futures.as_completed(waiting),
            folder.name,
            len(waiting),
            unit="run",
        ):
            store()
    finally:
        pool.shutdown(cancel_futures=True)
        store()
