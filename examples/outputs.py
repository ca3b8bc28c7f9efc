"""Where results go: a directory, a table, and what they were made on."""

import importlib.metadata
import io
import json
import os
import pathlib
import platform
import sys
import tempfile

from absl import app
from rich import box
from rich.console import Console
from rich.table import Table

from keras_rin import files


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
    grid = Table(box=box.MARKDOWN)
    for number, title in enumerate(header):
        justify = "left" if number < words else "right"
        grid.add_column(title, justify=justify)
    for row in rows:
        grid.add_row(*row)
    console = Console(file=io.StringIO(), width=1000, markup=False)
    console.print(grid)
    lines = console.file.getvalue().strip().splitlines()
    return "\n".join(line.rstrip() for line in lines) + "\n"


def write(directory, record, tables):
    """Writes results.json and the tables made of it, and prints these."""
    record = {**made_by(), **record}
    # Tables come from what a file gives back, tuples become lists there.
    text = json.dumps(record)
    save_text(text + "\n", directory / "results.json")
    for name, table in tables(json.loads(text)).items():
        save_text(table, directory / name)
        print(f"\n{directory / name}\n\n{table}")


def save_text(text, path):
    """Writes a file anew; one that is there stays until all is written."""
    with files.replacing(path, "The text") as new:
        new.write_text(text)


def save_picture(figure, path):
    """The same of a figure of matplotlib."""
    with files.replacing(path, "The picture") as new:
        figure.savefig(new, dpi=120)


def made_by():
    """Command, machine and versions, as they go into a results file."""
    names = ("keras-rin", "keras", "tensorflow", "jax", "torch", "numpy")
    return {
        "command": " ".join(
            ["python", os.path.relpath(sys.argv[0]), *sys.argv[1:]]
        ),
        "machine": f"{platform.machine()}, {os.cpu_count()} CPUs",
        "processor": _processor(),
        "python": platform.python_version(),
        "versions": {
            name: version for name in names if (version := _version(name))
        },
    }


def _version(name):
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _processor():
    try:
        with open("/proc/cpuinfo") as lines:
            names = [line for line in lines if line.startswith("model name")]
        return names[0].split(":")[1].strip()
    except (OSError, IndexError):
        return platform.processor()
