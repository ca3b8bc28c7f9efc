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
from experiments import verdicts

# TensorFlow keeps each compiled network, 0.1 GiB, until its process ends.
RUNS_OF_A_PROCESS = 32


def stored(protocol, folder):
    """The study of a protocol, with what is stored by now."""
    return verdicts.Study(
        protocol, results.read(folder), results.read(folder / "estimate")
    )


def run(protocol, folder, asked, jobs=None, ray_address=None):
    """Makes and stores runs, several at a time."""
    own = protocol.get("layers")
    if not asked:
        return
    if ray_address:
        made = _on_ray(asked, own, ray_address)
    else:
        made = _here(training.run, asked, own, jobs)
    bar = tqdm(made, folder.name, len(asked), unit="run")
    before = time.monotonic()
    with contextlib.closing(made):
        for one in bar:
            now = time.monotonic()
            store(protocol, folder, one, now - before)
            before = now


def estimate(protocol, folder, asked, jobs=None):
    """Times a few updates of each model, once, and stores what a run takes."""
    folder = results.prepare(folder / "estimate")
    models = (results.read(folder) or {"models": []})["models"]
    timed = {verdicts.model_of(protocol, one) for one in models}
    of_model = {
        verdicts.model_of(protocol, settings): settings for settings in asked
    }
    left = [one for model, one in of_model.items() if model not in timed]
    made = _here(training.estimate, left, protocol.get("layers"), jobs)
    with contextlib.closing(made):
        for one in tqdm(made, folder.parent.name, len(left), unit="model"):
            models.append(one)
            results.write(folder, {"models": models}, lambda record: {})


def hours(study, asked):
    """What the missing runs would take two cores, None if not estimated."""
    protocol, timed = study.protocol, (study.estimate or {}).get("models", [])
    seconds = {
        verdicts.model_of(protocol, one): one["seconds"] for one in timed
    }
    lacking = [
        verdicts.model_of(protocol, settings)
        for settings in missing(study, asked)
    ]
    if not seconds.keys() >= set(lacking):
        return None
    return sum(seconds[model] for model in lacking) / 2 / 3600


def missing(study, asked):
    """Which of the settings have no run that is stored."""
    names = set().union(*asked)

    def key(run):
        return frozenset((name, run[name]) for name in names & run.keys())

    stored = set(map(key, study.runs))
    return [settings for settings in asked if key(settings) not in stored]


def beyond_the_edges(study):
    """Missing runs at the next learning rate, where the best is at an edge.

    Rates go in steps of about three: 0.001, 0.003, 0.01.
    """
    protocol, beyond = study.protocol, []
    if protocol["tuned"] != ["learning_rate"]:
        return []
    for model, outcome in study.outcomes.items():
        tried = sorted(rate for (rate,) in outcome.groups)
        best = outcome.tuned["learning_rate"]
        rates = [best / 3] if best == tried[0] else []
        rates += [best * 3.2] if best == tried[-1] else []
        if len(tried) == 1 or outcome.median > verdicts.LEARNED:
            rates = []  # it is given, or none is better than another
        one_a_seed = {
            settings["seed"]: settings
            for settings in protocols.all_settings(protocol)
            if verdicts.model_of(protocol, settings) == model
        }
        beyond += [
            {**settings, "learning_rate": float(f"{rate:.0e}")}
            for rate in rates
            for settings in one_a_seed.values()
        ]
    return missing(study, beyond)


def store(protocol, folder, run, seconds):
    """Adds a run to those of the folder, also if another process does so."""
    with open(folder / ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # ends with the process
        record = results.read(folder) or {"runs": []}
        took = record.get("took", {"runs": 0, "seconds": 0})
        record = {
            **results.made_by(),
            "protocol": protocol,
            "took": {
                "runs": took["runs"] + 1,
                "seconds": round(took["seconds"] + seconds, 1),
            },
            "runs": [*record["runs"], run],
        }
        results.save_text(text_of(record), folder / "results.json")


def text_of(record):
    """JSON with a line for each run: a new run is a new line."""
    others = {key: record[key] for key in record if key != "runs"}
    runs = ",\n".join(map(json.dumps, record["runs"]))
    return f'{json.dumps(others)[:-1]}, "runs": [\n{runs}\n]}}\n'


def _here(make, asked, own, jobs):
    """What is made of the settings, as it ends, by processes here."""
    jobs = jobs or os.cpu_count()
    count = jobs * RUNS_OF_A_PROCESS
    for start in range(0, len(asked), count):
        yield from _in_a_pool(make, asked[start : start + count], own, jobs)


def _in_a_pool(make, asked, own, jobs):
    os.environ.setdefault("TF_NUM_INTRAOP_THREADS", "1")  # one core each
    # Not joblib: it restarts a worker that has compiled a few networks.
    spawn = multiprocessing.get_context("spawn")
    pool = futures.ProcessPoolExecutor(jobs, spawn, _prepare)
    waiting = {pool.submit(make, one, own) for one in asked}
    try:
        for ended in futures.as_completed(set(waiting)):
            waiting.remove(ended)
            yield ended.result()
    except KeyboardInterrupt:
        pool.shutdown(cancel_futures=True)  # waits for the runs under way
        ended = [one for one in waiting if not one.cancelled()]
        yield from (one.result() for one in ended if not one.exception())
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def _prepare():
    # Ctrl-C goes to the parent.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # TensorFlow warns of many networks compiled in one process, as here.
    logging.getLogger("tensorflow").setLevel(logging.ERROR)


def _on_ray(asked, own, address):
    """The same of a Ray cluster; a run whose worker dies is made again."""
    import ray

    package = str(pathlib.Path(__file__).parent)  # travels with the runs
    ray.init(address, runtime_env={"py_modules": [package]})
    try:
        train = ray.remote(max_retries=2)(training.run)
        waiting = [train.remote(one, own) for one in asked]
        while waiting:
            ended, waiting = ray.wait(waiting)
            yield from ray.get(ended)
    finally:
        ray.shutdown()
