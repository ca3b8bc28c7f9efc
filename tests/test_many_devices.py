"""Several devices and several processes train what one would."""

import functools
import re
import signal
import socket

import keras
import pytest
import scripts
from references import assert_same

import keras_rin  # noqa: F401, registers RIN

BACKEND = keras.backend.backend()
pytestmark = [
    pytest.mark.exhaustive,
    pytest.mark.each_backend,
    pytest.mark.skipif(
        BACKEND == "torch", reason="Keras 3.15 does not distribute Torch"
    ),
]


def start(output, *arguments, devices=1, prepare=None):
    sizes = ["--samples=256", "--length=10", "--epochs=4"]
    return scripts.Running(
        "examples/many_devices.py",
        *sizes,
        *arguments,
        f"--output={output}",
        prepare=prepare,
        XLA_FLAGS=f"--xla_force_host_platform_device_count={devices}",
    )


def result(output, *processes):
    """The losses printed by epoch, and the weights of the first process."""
    finished = [process.end(timeout=300) for process in processes]
    assert not any(process.returncode for process in finished), finished
    lines = re.compile(r"^Epoch (\d)/4\n.* loss: ([\d.]+)$", re.M)
    losses = {int(n): float(x) for n, x in lines.findall(finished[0].stdout)}
    model = keras.models.load_model(output / "model-0.keras")
    return losses, model.get_weights()


def start_together(output, prepare=None):
    """On JAX two processes, on TensorFlow one with two devices."""
    if BACKEND == "tensorflow":
        return [start(output, "--devices=2", prepare=prepare)]
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        coordinator = f"--coordinator=127.0.0.1:{free.getsockname()[1]}"
    return [
        start(output, coordinator, "--processes=2", f"--process={n}", **options)
        for n, options in enumerate([{"prepare": prepare}, {}])
    ]


def assert_close(actual, expected):
    assert actual[0] == pytest.approx(expected[0], abs=2e-4)
    assert_same(actual[1], expected[1], 0, 1e-4)


def test_together_they_train_what_one_does(tmp_path):
    alone, together, split = (tmp_path / name for name in "ats")
    expected = result(alone, start(alone))
    assert [*expected[0]] == [1, 2, 3, 4]
    assert_close(result(together, *start_together(together)), expected)
    if BACKEND == "jax":  # on TensorFlow these were two devices of a process
        assert_close(result(split, start(split, devices=2)), expected)


def test_devices_that_do_not_divide_a_batch_train_too(tmp_path):
    three = ["--devices=3"] if BACKEND == "tensorflow" else []
    losses, _ = result(tmp_path, start(tmp_path, *three, devices=3))
    assert [*losses] == [1, 2, 3, 4]


def die_in_epoch(number):
    def on_epoch_begin(self, epoch, logs=None):
        if epoch + 1 == number:
            scripts.die()

    keras.callbacks.History.on_epoch_begin = on_epoch_begin


def test_when_a_process_dies_the_others_end_and_a_single_one_resumes(tmp_path):
    die = functools.partial(die_in_epoch, 3)
    killed, *others = [
        process.end(timeout=300) for process in start_together(tmp_path, die)
    ]
    assert killed.returncode == -signal.SIGKILL
    for process in others:
        assert process.returncode
        # The second is JAX's own word, where it comes before ours.
        words = "A process has failed|another task died"
        assert re.search(words, process.stdout + process.stderr)
    if not others:
        resumed = result(tmp_path, *start_together(tmp_path))
        assert [*resumed[0]] == [3, 4]
        whole = result(tmp_path / "w", *start_together(tmp_path / "w"))
        whole = {epoch: whole[0][epoch] for epoch in (3, 4)}, whole[1]
        assert_close(resumed, whole)
