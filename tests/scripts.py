"""Scripts as a user runs them, without the seconds that imports take.

Each has a process of its own: the fork of one that has imported Keras and has
computed nothing.
"""

import multiprocessing
import os
import pathlib
import runpy
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).parents[1]
OF_TESTS = {str(ROOT / name) for name in ("", "docs", "examples", "tests")}
FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(["keras", "matplotlib.pyplot"])


def run(script, *arguments):
    """What `subprocess.run` returns for a file, or for a module by its name."""
    with tempfile.TemporaryDirectory() as folder:
        texts = [pathlib.Path(folder, name) for name in ("out", "err")]
        process = FORKS.Process(target=_main, args=(script, arguments, texts))
        process.start()
        process.join()
        return subprocess.CompletedProcess(
            [script, *arguments],
            process.exitcode,
            *(text.read_text() for text in texts),
        )


def _main(script, arguments, texts):
    for stream, text in enumerate(texts, start=1):
        os.dup2(os.open(text, os.O_CREAT | os.O_WRONLY), stream)
    os.chdir(ROOT)
    sys.path[:] = [path for path in sys.path if path not in OF_TESTS]
    sys.argv = [script, *arguments]
    if script.endswith(".py"):
        sys.path.insert(0, str(ROOT / script.rpartition("/")[0]))
        runpy.run_path(script, run_name="__main__")
    else:
        sys.path.insert(0, str(ROOT))
        runpy.run_module(script, run_name="__main__", alter_sys=True)
