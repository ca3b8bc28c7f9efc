"""Several devices and several processes train what one would."""

import json
import os
import pathlib
import socket
import subprocess
import sys

import keras
import numpy as np
import pytest

import keras_rin  # noqa: F401  a saved RIN needs it to be loaded

SCRIPT = pathlib.Path(__file__).parents[1] / "examples" / "many_devices.py"
BACKEND = keras.backend.backend()
pytestmark = pytest.mark.skipif(
    BACKEND == "torch", reason="Keras 3.15 does not distribute Torch"
)


def start(output, *arguments, devices=1):
    environment = {
        **os.environ,
        "XLA_FLAGS": f"--xla_force_host_platform_device_count={devices}",
    }
    sizes = ["--samples=256", "--length=10", "--units=8"]
    return subprocess.Popen(
        [sys.executable, SCRIPT, *sizes, *arguments, f"--output={output}"],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def result(output, *processes):
    """The losses, and the weights of the first process."""
    for process in processes:
        text, _ = process.communicate(timeout=300)
        assert process.returncode == 0, text
    losses = json.loads((output / "results.json").read_text())["loss"]
    model = keras.models.load_model(output / "model-0.keras")
    return np.array(losses), model.get_weights()


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    output = tmp_path_factory.mktemp("alone")
    return result(output, start(output))


def assert_the_same(one, other):
    np.testing.assert_allclose(one[0], other[0], rtol=1e-4)
    for a, b in zip(one[1], other[1], strict=True):
        np.testing.assert_allclose(a, b, atol=1e-4)


def test_two_devices_train_what_one_does(alone, tmp_path):
    more = ["--devices=2"] if BACKEND == "tensorflow" else []
    both = result(tmp_path, start(tmp_path, *more, devices=2))
    assert_the_same(both, alone)


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


@pytest.mark.skipif(BACKEND != "jax", reason="Keras does it on JAX")
def test_two_processes_train_what_one_does(alone, tmp_path):
    addresses = ",".join(f"127.0.0.1:{free_port()}" for _ in range(2))
    processes = [
        start(tmp_path, f"--addresses={addresses}", f"--process={number}")
        for number in range(2)
    ]
    assert_the_same(result(tmp_path, *processes), alone)
