"""Results of experiments and benchmarks: where they go and what made them."""

import contextlib
import importlib.metadata
import json
import os
import pathlib
import platform
import shlex
import sys
import tempfile

import tabulate
from absl import app

from keras_rin import _files as files

VECTORS = {"amx_tile": "AMX", "avx512f": "AVX-512", "avx2": "AVX2"}
RESULTS = pathlib.Path(__file__).parents[1] / "docs" / "results"


def prepare(directory):
    """Makes the output directory, or stops before any work is done."""
    path = pathlib.Path(directory)
    try:
        path.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path):
            return path
    except OSError as error:
        raise app.UsageError(
            "--output must be a directory that can be written. "
            f"Received: --output={path} ({error})"
        ) from error


def markdown(header, rows, words=1):
    """A table in Markdown, its first columns, of words, to the left."""
    return (
        tabulate.tabulate(
            rows,
            header,
            tablefmt="pipe",
            disable_numparse=True,
            colalign=[
                "left" if n < words else "right" for n in range(len(header))
            ],
        )
        + "\n"
    )


def read(folder):
    """The record of a folder, None if there is none yet."""
    path = pathlib.Path(folder) / "results.json"
    return json.loads(path.read_text()) if path.exists() else None


def write(folder, record, tables):
    """Writes results.json and the tables made of it, and prints these."""
    record = {**made_by(), **record}
    # Tables come from what a file gives back, tuples become lists there.
    text = json.dumps(record)
    save_text(text + "\n", folder / "results.json")
    for name, table in tables(json.loads(text)).items():
        save_text(table, folder / name)
        print(f"\n{folder / name}\n\n{table}")


def save_text(text, path):
    """Replaces a file once all of it is written."""
    with files.replacing(path, "The text") as new:
        new.write_text(text)


def save_picture(figure, path):
    """Replaces the picture in a file by a Matplotlib figure."""
    with files.replacing(path, "The picture") as new:
        figure.savefig(new, dpi=120)


def made_by():
    """Command, machine and versions, as they go into a results file."""
    names = ("keras-rin", "keras", "tensorflow", "jax", "torch", "numpy")
    return {
        "command": command(),
        "machine": f"{platform.machine()}, {os.cpu_count()} CPUs",
        "processor": processor(),
        "python": platform.python_version(),
        "versions": {
            name: version for name in names if (version := _version(name))
        },
    }


def command():
    """The line that started this program; a module is named, no path to it."""
    module = sys.modules["__main__"].__spec__
    if module is None:
        program = [pathlib.Path(sys.argv[0]).name]
    else:
        program = ["-m", module.name.removesuffix(".__main__")]
    backend = os.environ.get("KERAS_BACKEND", "tensorflow")
    line = shlex.join(["python", *program, *sys.argv[1:]])
    return (
        line if backend == "tensorflow" else f"KERAS_BACKEND={backend} {line}"
    )


def _version(name):
    with contextlib.suppress(importlib.metadata.PackageNotFoundError):
        return importlib.metadata.version(name)


def processor():
    """Name of the processor, and the widest of its vector instructions."""
    try:
        lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    values = {
        key.strip(): value.strip()
        for key, _, value in (line.partition(":") for line in lines)
    }
    flags = values.get("flags", "").split()
    known = [name for flag, name in VECTORS.items() if flag in flags]
    name = values.get("model name", platform.processor())
    return ", ".join([name, *known[:1]])
