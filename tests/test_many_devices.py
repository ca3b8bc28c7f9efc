"""The example on several devices or processes trains what it does on one."""

import os
import pathlib
import re
import signal
import socket
import subprocess
import sys

import keras
import pytest
from references import assert_same

import keras_rin  # noqa: F401, registers RIN

BACKEND = keras.backend.backend()
pytestmark = [
    pytest.mark.exhaustive,
    pytest.mark.skipif(
        BACKEND == "torch", reason="Keras 3.15 does not distribute Torch"
    ),
]
ROOT = pathlib.Path(__file__).parents[1]


def start(output, *arguments, devices=1):
    sizes = ["--samples=1024", "--length=10", "--epochs=4"]
    environment = {
        "XLA_FLAGS": f"--xla_force_host_platform_device_count={devices}",
        **{"PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"},
    }
    return subprocess.Popen(
        [sys.executable, ROOT / "examples" / "many_devices.py", *sizes]
        + [*arguments, f"--output={output}"],
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def start_together(output):
    """On JAX two processes, on TensorFlow one with two devices."""
    if BACKEND == "tensorflow":
        return [start(output, "--devices=2")]
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        coordinator = f"--coordinator=127.0.0.1:{free.getsockname()[1]}"
    options = coordinator, "--processes=2"
    return [start(output, *options, f"--process={n}") for n in range(2)]


def printed_by(process):
    """What a process prints until it ends, or is killed after five minutes."""
    try:
        return process.communicate(timeout=300)[0]
    finally:
        process.kill()


def weights(output, *processes):
    """Those that the first of the processes has saved."""
    printed = list(map(printed_by, processes))
    assert not any(process.returncode for process in processes), printed
    return keras.models.load_model(output / "model-0.keras").get_weights()


def test_together_they_train_what_one_does(tmp_path):
    alone, together, split = (tmp_path / name for name in "ats")
    expected = weights(alone, start(alone))
    actual = weights(together, *start_together(together))
    assert_same(actual, expected, 0, 1e-3)
    if BACKEND == "jax":  # on TensorFlow these were two devices of a process
        assert_same(weights(split, start(split, devices=2)), expected, 0, 1e-3)


def test_when_a_process_dies_the_others_end_and_a_single_one_resumes(tmp_path):
    killed, *others = start_together(tmp_path)
    with killed:
        for line in killed.stdout:
            if line.startswith("Epoch 3/4"):
                killed.kill()
    assert killed.returncode == -signal.SIGKILL
    for process in others:
        printed = printed_by(process)
        assert process.returncode
        # The second is JAX's own word, where it comes before ours.
        assert re.search("A process has failed|another task died", printed)
    if not others:
        resumed = weights(tmp_path, *start_together(tmp_path))
        whole = weights(tmp_path / "w", *start_together(tmp_path / "w"))
        assert_same(resumed, whole, 0, 1e-3)
