"""What trainings gave, in a folder, from which the same call resumes."""

import json
import pathlib
import tempfile


class Runs:
    """Results by what was trained, in the folder `trainings`.

    Those of another job, that is of other data or options, are removed.
    """

    def __init__(self, folder, job):
        self._temporary = None if folder else tempfile.TemporaryDirectory()
        self.folder = pathlib.Path(
            self._temporary.name if self._temporary else folder, "trainings"
        )
        self.folder.mkdir(parents=True, exist_ok=True)
        self.path, first = self.folder / "results.jsonl", json.dumps(job)
        lines = self.path.read_text().splitlines() if self.path.exists() else []
        if lines[:1] != [first]:
            lines = [first]
            self.path.write_text(first + "\n")
        items = map(json.loads, lines[1:])
        self.results = {json.dumps(key): result for key, result in items}

    def get(self, *key):
        """The result that is kept, or `None`."""
        return self.results.get(json.dumps(key))

    def put(self, result, *key):
        """Keeps a result, and returns it."""
        self.results[json.dumps(key)] = result
        with self.path.open("a") as file:
            file.write(json.dumps([key, result]) + "\n")
        return result

    def weights(self, *key):
        """The file for the weights of a training."""
        return self.folder / f"{'_'.join(map(str, key))}.weights.h5"
