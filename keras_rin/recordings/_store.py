"""What trainings gave, in a folder, from which the same call resumes."""

import hashlib
import json
import pathlib
import tempfile

import filelock
import keras
import numpy as np

from keras_rin._version import __version__


class Store:
    """Trainings in the folder `trainings`, by all that determines them."""

    def __init__(self, folder, *job):
        self._temporary = None if folder else tempfile.TemporaryDirectory()
        folder = self._temporary.name if self._temporary else folder
        versions = __version__, keras.version(), keras.backend.backend()
        self.job, self.folder = (
            (*job, versions),
            pathlib.Path(folder, "trainings"),
        )
        self.folder.mkdir(parents=True, exist_ok=True)
        self._lock = filelock.FileLock(self.folder / "lock", timeout=0)
        try:
            self._lock.acquire()
        except filelock.Timeout as error:
            raise ValueError(
                f"{folder} is in use by another job; choose another --output."
            ) from error
        self.path, self.records = self.folder / "results.jsonl", {}
        text = self.path.read_text() if self.path.exists() else ""
        for line in text.splitlines():
            try:
                self.records |= json.loads(line)
            except ValueError:
                print(f"{self.path}: a line that was cut off is left out.")
        if text and not text.endswith("\n"):
            self.path.write_text(
                "".join(
                    f"{json.dumps({k: v})}\n" for k, v in self.records.items()
                )
            )

    def close(self):
        self._lock.release()

    def name(self, *case):
        """The name of a training: the hash of its job and case."""
        digest = hashlib.sha256()
        for value in (*self.job, repr(case)):
            if isinstance(value, np.ndarray):
                digest.update(f"{value.dtype}{value.shape}".encode())
                digest.update(np.ascontiguousarray(value))
            else:
                digest.update(repr(value).encode())
        return digest.hexdigest()[:32]

    def file(self, name):
        """The file of weights and outputs of a training."""
        return self.folder / f"{name}.npz"

    def add(self, name, record):
        """Keeps what a training gave, whose files are written."""
        self.records[name] = record
        with self.path.open("a") as file:
            file.write(json.dumps({name: record}) + "\n")
