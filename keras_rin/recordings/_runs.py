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

    def __contains__(self, key):
        return json.dumps(key) in self.results

    def make(self, function, *key):
        """The result that is kept, or that of the function, which is kept."""
        name = json.dumps(key)
        if name not in self.results:
            self.results[name] = function(*key)
            with self.path.open("a") as file:
                file.write(json.dumps([key, self.results[name]]) + "\n")
        return self.results[name]

    def weights(self, *key):
        """The file for the weights of a training."""
        return self.folder / f"{'_'.join(map(str, key))}.weights.h5"
