"""Several devices and several processes train what one would."""

import functools
import re
import signal
import socket

import keras
import numpy as np
import pytest
import scripts
from references import assert_same

from keras_rin.callbacks import ResumableTraining

BACKEND = keras.backend.backend()
pytestmark = [
    pytest.mark.exhaustive,
    pytest.mark.each_backend,
    pytest.mark.skipif(
        BACKEND == "torch", reason="Keras 3.15 does not distribute Torch"
    ),
]


def start(output, *arguments, devices=1, prepare=None):
    sizes = ["--samples=256", "--length=10", "--units=8", "--epochs=4"]
    return scripts.Running(
        "examples/many_devices.py",
        *sizes,
        *arguments,
        "--resume",
        f"--output={output}",
        prepare=prepare,
        XLA_FLAGS=f"--xla_force_host_platform_device_count={devices}",
    )


def result(output, *processes):
    """The losses, the weights of the first process and the epochs begun."""
    finished = [process.end(timeout=300) for process in processes]
    assert not any(process.returncode for process in finished), finished
    losses = ResumableTraining(output / "training-0.npz").history["loss"]
    model = keras.models.load_model(output / "model-0.keras")
    return np.array(losses), model.get_weights(), epochs_begun(finished)


def epochs_begun(processes):
    printed = "".join(process.stdout for process in processes)
    return [int(n) for n in re.findall(r"^Epoch (\d+)/", printed, re.M)]


def start_together(output, prepare=None):
    """On JAX two processes, on TensorFlow one with two devices."""
    if BACKEND == "tensorflow":
        return [start(output, "--devices=2", prepare=prepare)]
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        coordinator = f"--coordinator=127.0.0.1:{free.getsockname()[1]}"
    return [
        start(output, coordinator, "--processes=2", f"--process={number}", **of)
        for number, of in enumerate([{"prepare": prepare}, {}])
    ]


def assert_close(actual, expected):
    np.testing.assert_allclose(actual[0], expected[0], rtol=1e-4)
    for a, b in zip(actual[1], expected[1], strict=True):
        np.testing.assert_allclose(a, b, atol=1e-4)


def train_until_killed(output):
    """The epochs begun before the first process dies; the other ends.

    It dies before it renames its checkpoint at the end of epoch 2.
    """
    file = f"{output}/.training-0"
    die = functools.partial(scripts.at_file, 6, scripts.die, file)
    finished = [
        process.end(timeout=300) for process in start_together(output, die)
    ]
    killed, *others = finished
    assert killed.returncode == -signal.SIGKILL
    for process in others:
        assert process.returncode
        # The second is JAX's own word, where it comes before ours.
        words = "A process has failed|another task died"
        assert re.search(words, process.stderr)
    return epochs_begun(finished)


def test_together_they_train_what_one_does_even_after_a_kill(tmp_path):
    """A kill costs an epoch at most and changes nothing."""
    alone, together, killed, split = (tmp_path / name for name in "atks")
    expected = result(alone, start(alone))
    whole = result(together, *start_together(together))
    assert_close(whole, expected)
    if BACKEND == "jax":  # on TensorFlow these were two devices of a process
        assert_close(result(split, start(split, devices=2)), expected)
    last = max(train_until_killed(killed))
    if BACKEND == "jax":  # comes back on a machine with an empty disk
        (killed / "training-0.npz").unlink()
    losses, weights, begun = result(killed, *start_together(killed))
    assert last <= min(begun) <= last + 1
    np.testing.assert_array_equal(losses, whole[0])
    assert_same(weights, whole[1], 0, 0)
