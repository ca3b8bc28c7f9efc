"""Several processes of JAX that train one network together."""

import contextlib
import os
import sys
import traceback

import jax
import keras
import numpy as np
from jax.experimental import multihost_utils

from keras_rin import files
from keras_rin.callbacks import ResumableTraining


def join(coordinator, processes, process):
    """Waits for the others. Comes before any computation."""
    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    keras.distribution.initialize(coordinator, processes, process)


def share_newest(path):
    """Gives all processes the newest state of training that one of them has.

    A process may die between the write of another and its own, and a machine
    may come back with an empty disk.
    """
    content = path.read_bytes() if path.exists() else b""
    epoch = ResumableTraining(path).epoch
    sizes = multihost_utils.process_allgather(np.array([epoch, len(content)]))
    newest = max(range(len(sizes)), key=lambda one: tuple(sizes[one]))
    mine = np.resize(np.frombuffer(content, "uint8"), sizes[newest, 1])
    newest_content = multihost_utils.broadcast_one_to_all(
        mine, is_source=jax.process_index() == newest
    )
    if newest_content.size:
        with files.replacing(path, "The newest state of training") as new:
            new.write_bytes(newest_content.tobytes())


@contextlib.contextmanager
def failing_together():
    """An error within, as where another process has gone, ends this one."""
    try:
        yield
    except Exception:
        traceback.print_exc()
        print(
            "A process has failed, this one or another. Start all of them "
            "again with --resume to go on after the last whole epoch.",
            file=sys.stderr,
            flush=True,
        )
        sys.stdout.flush()
        os._exit(1)  # an orderly exit waits for those that are gone
