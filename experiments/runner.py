"""Makes the runs of a protocol, each once, and stores each as it ends."""

import contextlib
import fcntl
import json
import logging
import multiprocessing
import os
import pathlib
import signal
import time
from concurrent import futures

from tqdm import tqdm

from experiments import protocols
from experiments import results
from experiments import training


def run(protocol, folder, tier=None, jobs=None, ray_address=None):
    """Makes the runs missing in a folder, several at a time."""
    missing = missing_runs(protocol, results.read(folder), tier)
    if not missing:
        return
    own = protocol.get("layers")
    if ray_address:
        made = _on_ray(missing, own, ray_address)
    else:
        made = _here(missing, own, jobs)
    bar = tqdm(made, folder.name, len(missing), unit="run")
    before = time.monotonic()
    with contextlib.closing(made):
        for one in bar:
            now = time.monotonic()
            store(protocol, folder, one, now - before)
            before = now


def missing_runs(protocol, record, tier=None):
    """The settings of the runs that are asked for and not stored."""
    stored = [
        {pair for pair in run.items() if isinstance(pair[1], (str, int, float))}
        for run in (record or {"runs": []})["runs"]
    ]
    return [
        settings
        for settings in protocols.all_settings(protocol, tier)
        if not any(settings.items() <= run for run in stored)
    ]


def store(protocol, folder, run, seconds):
    """Adds a run to those of the folder, also if another process does so."""
    with open(folder / ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # ends with the process
        record = results.read(folder) or {}
        took = record.get("took", {"runs": 0, "seconds": 0})
        record = {
            **results.made_by(),
            "protocol": protocol,
            "took": {
                "runs": took["runs"] + 1,
                "seconds": round(took["seconds"] + seconds, 1),
            },
            "runs": [*record.get("runs", []), run],
        }
        text = json.dumps(record, indent=0)
        results.save_text(text + "\n", folder / "results.json")


def _here(missing, own, jobs):
    """The runs as they end, of processes on this machine."""
    os.environ.setdefault("TF_NUM_INTRAOP_THREADS", "1")  # one core each
    # Not joblib: it restarts a worker that has compiled a few networks.
    spawn = multiprocessing.get_context("spawn")
    pool = futures.ProcessPoolExecutor(jobs, spawn, _prepare)
    waiting = {pool.submit(training.run, one, own) for one in missing}
    try:
        for ended in futures.as_completed(set(waiting)):
            waiting.remove(ended)
            yield ended.result()
    except KeyboardInterrupt:
        pool.shutdown(cancel_futures=True)  # waits for the runs under way
        yield from (one.result() for one in waiting if not one.cancelled())
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def _prepare():
    # Ctrl-C goes to the parent.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # TensorFlow warns of many networks compiled in one process, as here.
    logging.getLogger("tensorflow").setLevel(logging.ERROR)


def _on_ray(missing, own, address):
    """The same of a Ray cluster; a run whose worker dies is made again."""
    import ray

    package = str(pathlib.Path(__file__).parent)  # travels with the runs
    ray.init(address, runtime_env={"py_modules": [package]})
    try:
        train = ray.remote(max_retries=2)(training.run)
        waiting = [train.remote(one, own) for one in missing]
        while waiting:
            ended, waiting = ray.wait(waiting)
            yield from ray.get(ended)
    finally:
        ray.shutdown()
