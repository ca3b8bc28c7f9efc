"""What trainings gave, in a folder, from which the same call resumes."""

import os
import pathlib

import filelock
import joblib
import keras
import numpy as np

from keras_rin._version import __version__


class Store:
    """Trainings in the folder `trainings`: a file each, or none.

    Its name is a hash of all that determines the training.
    """

    def __init__(self, folder, *job):
        self.folder = pathlib.Path(folder, "trainings")
        self.folder.mkdir(parents=True, exist_ok=True)
        versions = __version__, keras.version(), keras.backend.backend()
        self._job = joblib.hash((job, versions))
        self._lock = filelock.FileLock(self.folder / "lock", timeout=0)

    def __enter__(self):
        try:
            self._lock.acquire()
        except filelock.Timeout as error:
            text = f"{self.folder} is in use by another job: choose --output"
            raise ValueError(text) from error
        return self

    def __exit__(self, *error):
        self._lock.release()

    def _file(self, case):
        return self.folder / f"{joblib.hash((self._job, case))}.npz"

    def load(self, case):
        """Weights, outputs and updates of a training, or `None`."""
        if not self._file(case).exists():
            return None
        with np.load(self._file(case)) as arrays:
            *weights, outputs, updates = (arrays[name] for name in arrays)
        return weights, outputs, int(updates)

    def save(self, case, weights, outputs, updates):
        """Keeps a training, whole or not at all."""
        path = self.folder / "unfinished.npz"
        np.savez(path, *weights, outputs, updates)
        os.replace(path, self._file(case))
