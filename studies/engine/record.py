"""Records of results: what was measured, and by which command and machine."""

import contextlib
import fcntl
import importlib.metadata
import io
import json
import os
import pathlib
import platform
import re
import shlex
import sys

import matplotlib
import tabulate

STUDIES = pathlib.Path(__file__).parents[1]
PACKAGES = ("keras-rin", "keras", "tensorflow", "jax", "torch", "numpy")
VECTORS = {"amx_tile": "AMX", "avx512f": "AVX-512", "avx2": "AVX2"}


def read(path):
    """The record in a file, None if there is none yet."""
    return json.loads(path.read_text()) if path.exists() else None


def write(path, record):
    """Replaces a file by a record and what made it."""
    write_text(path, json.dumps({**made_by(), **record}) + "\n")


def write_text(path, text):
    """Replaces a file, by nothing if the disk is full or this is killed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name(f".{path.name}.{os.getpid()}")
    new.write_text(text)
    new.replace(path)


def file_name(name, *parts):
    """The name of a file of a part of a study, of a variant of it."""
    stem, _, suffix = name.partition(".")
    return "_".join(filter(None, [stem, *parts])) + f".{suffix}"


def write_page(path, part, text):
    """Replaces a page, or what stands in it between the marks of a part.

    Marks that are missing are added at the end.
    """
    if part:
        page = path.read_text() if path.exists() else ""
        first, last = f"<!-- {part} -->\n", "<!-- end -->"
        before, _, after = page.partition(first)
        _, _, after = after.partition(last)
        text = "".join([before, first, text, last, after or "\n"])
    write_text(path, text)


def write_picture(path, figure):
    """Replaces an SVG by a figure; text stays text."""
    svg = io.StringIO()
    options = {"svg.fonttype": "none", "svg.hashsalt": "keras_rin"}
    with matplotlib.rc_context(options):
        figure.savefig(svg, format="svg", dpi=120, metadata={"Date": None})
    # Two decimals of a coordinate, of six, suffice.
    write_text(path, re.sub(r"(\.\d\d)\d+", r"\1", svg.getvalue()))


@contextlib.contextmanager
def locked(folder):
    """Keeps other processes that lock this folder waiting meanwhile."""
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # ends with the process
        yield


def markdown(header, rows, words=1):
    """A table in Markdown; the first columns, of words, are to the left."""
    sides = ["left" if n < words else "right" for n in range(len(header))]
    table = tabulate.tabulate(
        rows, header, tablefmt="pipe", disable_numparse=True, colalign=sides
    )
    return table + "\n"


def table(columns, rows, words=1):
    """A table in Markdown of {header: cell}, a line for each row.

    A cell is a function of a row that returns a string, or a format string for
    rows that are dicts.
    """
    cells = [
        [
            cell(row) if callable(cell) else cell.format_map(row)
            for cell in columns.values()
        ]
        for row in rows
    ]
    return markdown(list(columns), cells, words)


def made_by():
    """Command, machine and versions, which stand beside the results."""
    return {
        "command": command(),
        "machine": f"{platform.machine()}, {os.cpu_count()} CPUs",
        "processor": processor(),
        **({"gpu": gpu()} if gpu() else {}),
        "python": platform.python_version(),
        "versions": versions(),
    }


def command():
    """The line that started this program."""
    line = shlex.join(["python", "-m", "engine", *sys.argv[1:]])
    backend = os.environ.get("KERAS_BACKEND", "tensorflow")
    return f"KERAS_BACKEND={backend} " * (backend != "tensorflow") + line


def versions():
    """{package: version} of the packages that are installed."""
    installed = {}
    for package in PACKAGES:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            installed[package] = importlib.metadata.version(package)
    return installed


def gpu():
    """Name of the GPU that JAX computes on, if it does."""
    if os.environ.get("KERAS_BACKEND") != "jax":
        return None
    import jax

    device = jax.devices()[0]
    return device.device_kind if device.platform == "gpu" else None


def processor():
    """Name of the processor, and the widest of its vector instructions."""
    path = pathlib.Path("/proc/cpuinfo")
    text = path.read_text() if path.exists() else ""
    fields = dict(re.findall(r"^(.+?)\s*: (.*)$", text, re.M))
    flags = fields.get("flags", "").split()
    vectors = [name for flag, name in VECTORS.items() if flag in flags]
    name = fields.get("model name", platform.processor())
    return ", ".join([name, *vectors[:1]])
