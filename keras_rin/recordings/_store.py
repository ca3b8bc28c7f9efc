"""What trainings gave, in a folder, from which the same call resumes."""

import json
import pathlib
import shutil
import tempfile

import filelock
import joblib
import keras

from keras_rin._version import __version__


class Store:
    """Trainings in the folder `trainings`, by all that determines them.

    A line of `results.jsonl` has the record of one, whose name is a hash.
    """

    def __init__(self, folder, *job):
        self._is_temporary = folder is None
        folder = pathlib.Path(folder or tempfile.mkdtemp(), "trainings")
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self.records = folder, dict[str, dict]()
        versions = __version__, keras.version(), keras.backend.backend()
        self._job = joblib.hash((job, versions))
        self._lock = filelock.FileLock(folder / "lock", timeout=0)

    def __enter__(self):
        try:
            self._lock.acquire()
        except filelock.Timeout as error:
            text = f"{self.folder} is in use by another job: choose --output"
            raise ValueError(text) from error
        path = self.folder / "results.jsonl"
        text = path.read_text() if path.exists() else ""
        for line in text.splitlines():
            try:
                self.records |= json.loads(line)
            except ValueError:
                print(f"{path}: a line that was cut off is left out.")
        self._file = path.open("a")
        if not text.endswith("\n"):
            self._file.write("\n" if text else "")
        return self

    def __exit__(self, *error):
        self._file.close()
        self._lock.release()
        if self._is_temporary:
            shutil.rmtree(self.folder.parent)

    def name(self, *case):
        """The name of a training."""
        return joblib.hash((self._job, case))

    def file(self, name):
        """The file of weights and outputs of a training."""
        return self.folder / f"{name}.npz"

    def add(self, name, record):
        """Keeps the record of a training, whose file is written."""
        self.records[name] = record
        self._file.write(json.dumps({name: record}) + "\n")
        self._file.flush()
