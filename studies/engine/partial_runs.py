"""Runs of a program, each stored when it ends, so that a kill loses one."""

import collections
import json
import pathlib

from tqdm import tqdm

from engine import record


class PartialRuns(collections.UserDict):
    """{key: run} of the runs in a file, where each is stored when it is set.

    A run is a dict, and a line of JSON in the file. Its key is the tuple of
    its values at `fields`, which are added when it is set. Two commands may
    write to one file. With None as `path` nothing is stored.
    """

    def __init__(self, path, fields):
        super().__init__()
        self.path = None if path is None else pathlib.Path(path)
        self.fields = tuple(fields)
        if self.path is not None:
            self._read()

    def __setitem__(self, key, run):
        run = dict(zip(self.fields, key, strict=True)) | run
        run = json.loads(json.dumps(run))  # a tuple is a list, as when read
        if self.path is None:
            self.data[key] = run
            return
        with record.locked(self.path.parent):
            self._read()  # those that another process has stored
            self.data[key] = run
            lines = (json.dumps(stored) + "\n" for stored in self.values())
            record.write_text(self.path, "".join(lines))

    def complete(self, keys, make):
        """The runs of keys, of which `make(*key)` makes those missing."""
        keys = list(keys)
        for key in tqdm(keys):
            if key not in self:
                self[key] = make(*key)
        return [self[key] for key in keys]

    def _read(self):
        if self.path.exists():
            for line in self.path.read_text().splitlines():
                run = json.loads(line)
                self.data[tuple(run[field] for field in self.fields)] = run
