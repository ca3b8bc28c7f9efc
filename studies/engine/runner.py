"""Makes the missing runs of a study, and stores each as it ends.

A kill loses the runs under way; the same command makes those that are missing.
Two commands may write to one folder.
"""

import contextlib
import json
import logging
import multiprocessing
import os
import pathlib
import signal
import time
from concurrent import futures

from tqdm import tqdm

from engine import record
from engine import training
from engine.study import load
from engine.study import total_core_seconds

# TensorFlow keeps each compiled network, 0.1 GiB, until its process ends.
RUNS_OF_A_PROCESS = 32


def run(protocol, jobs=None, ray_address=None):
    """Makes and stores the missing runs, several at a time."""
    settings = load(protocol).missing(protocol.settings)
    if ray_address:
        runs = _on_ray(settings, ray_address)
    else:
        runs = _in_processes(settings, jobs)
    with contextlib.closing(runs):
        for done in tqdm(runs, protocol.name, len(settings), unit="run"):
            store(protocol, *done)


def timed_run(setting):
    """The run of a setting, and the seconds that it took on one core."""
    before = time.monotonic()
    return training.run(setting), time.monotonic() - before


def store(protocol, run, core_seconds):
    """Adds a run to those of a protocol, also if another process does so."""
    path = protocol.file("runs.jsonl")
    with record.locked(protocol.folder):
        lines = path.read_text().splitlines() if path.exists() else ["{}"]
        cost = json.loads(lines[0]).get("took", {"runs": 0, "core_seconds": 0})
        cost = {
            "runs": cost["runs"] + 1,
            "core_seconds": round(total_core_seconds(cost) + core_seconds, 1),
        }
        first = {**record.made_by(), "protocol": protocol.source, "took": cost}
        lines = [json.dumps(first), *lines[1:], json.dumps(run.as_dict())]
        record.write_text(path, "\n".join(lines) + "\n")


def _in_processes(settings, jobs):
    """The runs of the settings, each as it ends."""
    jobs = jobs or os.cpu_count()
    count = jobs * RUNS_OF_A_PROCESS
    for start in range(0, len(settings), count):
        yield from _in_a_pool(settings[start : start + count], jobs)


def _in_a_pool(settings, jobs):
    os.environ.setdefault("TF_NUM_INTRAOP_THREADS", "1")  # one core each
    # Not joblib: it restarts a worker that has compiled a few networks.
    spawn = multiprocessing.get_context("spawn")
    pool = futures.ProcessPoolExecutor(jobs, spawn, _prepare)
    runs = [pool.submit(timed_run, setting) for setting in settings]
    try:
        for run in futures.as_completed(runs):
            yield run.result()
    finally:
        pool.shutdown(cancel_futures=True)


def _prepare():
    # Ctrl-C ends the runs under way without a traceback of each.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    # TensorFlow warns of many networks compiled in one process, as here.
    logging.getLogger("tensorflow").setLevel(logging.ERROR)


def _on_ray(settings, address):
    """The same of a Ray cluster; a run whose worker dies is made again."""
    import ray

    package = str(pathlib.Path(__file__).parent)  # travels with the runs
    ray.init(address, runtime_env={"py_modules": [package]})
    try:
        train = ray.remote(max_retries=2)(timed_run)
        waiting = [train.remote(setting) for setting in settings]
        while waiting:
            ready, waiting = ray.wait(waiting)
            yield from ray.get(ready)
    finally:
        ray.shutdown()
