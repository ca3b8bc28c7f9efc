"""Several devices and several processes train what one would."""

import re
import signal
import socket
import time

import keras
import numpy as np
import pytest
import scripts

from keras_rin.callbacks import ResumableTraining

BACKEND = keras.backend.backend()
pytestmark = [
    pytest.mark.exhaustive,
    pytest.mark.each_backend,
    pytest.mark.skipif(
        BACKEND == "torch", reason="Keras 3.15 does not distribute Torch"
    ),
]


def start(output, *arguments, devices=1):
    sizes = ["--samples=256", "--length=10", "--units=8", "--epochs=6"]
    return scripts.Running(
        "examples/many_devices.py",
        *sizes,
        *arguments,
        "--resume",
        f"--output={output}",
        XLA_FLAGS=f"--xla_force_host_platform_device_count={devices}",
    )


def result(output, *processes):
    """The losses, the weights of the first process and the epochs begun."""
    ended = [process.end(timeout=300) for process in processes]
    assert not any(process.returncode for process in ended), ended
    losses = ResumableTraining(output / "training-0.npz").history["loss"]
    model = keras.models.load_model(output / "model-0.keras")
    return np.array(losses), model.get_weights(), epochs_begun(ended)


def epochs_begun(ended):
    printed = "".join(process.stdout for process in ended)
    return [int(n) for n in re.findall(r"^Epoch (\d+)/", printed, re.M)]


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    output = tmp_path_factory.mktemp("alone")
    return result(output, start(output))


@pytest.fixture(scope="module")
def together(tmp_path_factory):
    output = tmp_path_factory.mktemp("together")
    return result(output, *start_together(output))


def start_together(output):
    """On JAX two processes, on TensorFlow one with two devices."""
    if BACKEND == "tensorflow":
        return [start(output, "--devices=2")]
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        coordinator = f"--coordinator=127.0.0.1:{free.getsockname()[1]}"
    return [
        start(output, coordinator, "--processes=2", f"--process={number}")
        for number in range(2)
    ]


def assert_close(actual, expected):
    np.testing.assert_allclose(actual[0], expected[0], rtol=1e-4)
    for a, b in zip(actual[1], expected[1], strict=True):
        np.testing.assert_allclose(a, b, atol=1e-4)


def test_together_they_train_what_one_does(together, alone):
    assert_close(together, alone)


@pytest.mark.skipif(
    BACKEND == "tensorflow", reason="on TensorFlow the test above is this one"
)
def test_two_devices_of_a_process_train_what_one_does(alone, tmp_path):
    assert_close(result(tmp_path, start(tmp_path, devices=2)), alone)


def newest_epoch(output):
    files = output.glob("training-*.npz")
    return max((ResumableTraining(file).epoch for file in files), default=0)


def train_until_killed(output, epoch):
    """The epochs begun before the first process is killed; the other ends."""
    processes = start_together(output)
    while newest_epoch(output) < epoch:
        assert processes[0].is_alive(), processes[0].end()
        time.sleep(0.01)
    processes[0].kill()
    ended = [process.end(timeout=300) for process in processes]
    killed, *others = ended
    assert killed.returncode == -signal.SIGKILL
    for process in others:
        assert process.returncode
        # The second is JAX's own word, where it comes before ours.
        words = "A process has failed|another task died"
        assert re.search(words, process.stderr)
    return epochs_begun(ended)


def test_a_kill_costs_an_epoch_at_most_and_changes_nothing(together, tmp_path):
    last = max(train_until_killed(tmp_path, epoch=2))
    if BACKEND == "jax":  # comes back on a machine with an empty disk
        (tmp_path / "training-0.npz").unlink()
    losses, weights, begun = result(tmp_path, *start_together(tmp_path))
    assert last <= min(begun) <= last + 1
    np.testing.assert_array_equal(losses, together[0])
    for weight, expected in zip(weights, together[1], strict=True):
        np.testing.assert_array_equal(weight, expected)
