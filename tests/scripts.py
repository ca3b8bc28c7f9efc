"""Scripts in processes of their own, without the seconds of their imports.

Each is the fork of a process that has imported Keras and has computed nothing.
A file is copied to an empty folder and run there.
"""

import atexit
import multiprocessing
import os
import pathlib
import runpy
import shutil
import signal
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).parents[1]
OF_TESTS = {str(ROOT / name) for name in ("", "docs", "tests")}
FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(["keras", "keras_rin", "matplotlib.pyplot"])


def die():
    os.kill(os.getpid(), signal.SIGKILL)


class Running:
    """A script under way, with these variables in its environment.

    Its process calls `prepare` before the script.
    """

    def __init__(self, script, *arguments, prepare=None, **environment):
        self.folder = tempfile.TemporaryDirectory()
        self.texts = [
            pathlib.Path(self.folder.name, name) for name in ("out", "err")
        ]
        self.args = (script, *arguments)
        self.process = FORKS.Process(
            target=_main,
            args=(script, arguments, environment, self.texts, prepare),
        )
        self.process.start()

    def end(self, timeout=None):
        """Waits for it; a `subprocess.CompletedProcess`."""
        self.process.join(timeout)
        if self.process.is_alive():
            self.process.kill()
            raise TimeoutError(f"{self.args} took over {timeout} seconds.")
        texts = [text.read_text() for text in self.texts]
        self.folder.cleanup()
        return subprocess.CompletedProcess(
            self.args, self.process.exitcode, *texts
        )


def _main(script, arguments, environment, texts, prepare):
    for stream, text in enumerate(texts, start=1):
        os.dup2(os.open(text, os.O_CREAT | os.O_WRONLY), stream)
    sys.stdout.reconfigure(line_buffering=True)  # what a kill finds printed
    os.environ.update(environment)
    sys.path[:] = [path for path in sys.path if path not in OF_TESTS]
    sys.argv = [script, *arguments]
    if prepare:
        prepare()
    try:
        os.chdir(texts[0].parent)
        sys.argv[0] = shutil.copy(ROOT / script, ".")
        runpy.run_path(sys.argv[0], run_name="__main__")
    finally:
        atexit._run_exitfuncs()  # which a fork leaves out
