"""A chain of layers at random is the same step by step, in every format."""

import functools
import importlib.util

import keras
import pytest
from chains import IN_INTEGERS
from chains import random_chain
from references import outputs_of_steps
from step_files import assert_near
from step_files import round_weights
from step_files import run_micro
from step_files import write_and_run

from keras_rin.export import streaming_step

# Keras says so of a model within the model, wherever its own layers keep masks.
pytestmark = pytest.mark.filterwarnings("ignore:.*does not support masking")
SEEDS = range(29)
# The other seeds are exhaustive.
DEFAULT_SEEDS = {
    "streaming_step": (3, 7, 16),
    "c": (3, 4, 9, 13, 15),
    "tf_saved_model": (11,),
    "litert": (15, 27),
    "onnx": (3, 12),
    "float32": (9,),
    "float16": (4,),
    "integer16": (3,),
    "integer8": (12,),
}
NOT_IN_ONNX = {"celu": "Expm1", "gelu": "Erfc"}
SAVES = importlib.util.find_spec("tensorflow") and (
    keras.backend.backend() != "torch"
)
RUNS = {
    "streaming_step": True,
    "c": True,
    "tf_saved_model": SAVES,
    "litert": keras.backend.backend() == "tensorflow",
    "onnx": keras.backend.backend() == "tensorflow",
}


# By how much 60 steps may be off in an arithmetic of LiteRT, as a part of the
# largest output.
TOLERANCES = {
    "float32": 1e-5,
    "float16": 2e-3,
    "integer16": 64 / 32_767,
    "integer8": 8 / 127,
}


def chains(*formats):
    cases = []
    for format in formats:
        runs = RUNS.get(format, RUNS["litert"])
        marks = [pytest.mark.skipif(not runs, reason="not here")]
        for seed in SEEDS:
            is_default = seed in DEFAULT_SEEDS[format]
            more = [] if is_default else [pytest.mark.exhaustive]
            more += [pytest.mark.runtime] if seed == 1 else []
            cases.append(pytest.param(format, seed, marks=marks + more))
    return pytest.mark.parametrize(("format", "seed"), cases)


@pytest.mark.one_backend
@chains("c", "tf_saved_model", "litert", "onnx")
def test_a_chain_is_a_file(format, seed, tmp_path):
    model, x = random_chain(seed)
    config = str(model.get_config())
    refused = [
        operation
        for name, operation in NOT_IN_ONNX.items()
        if format == "onnx" and f"'activation': '{name}'" in config
    ]
    if refused:
        with pytest.raises(ValueError, match=refused[0]):
            write_and_run(model, format, tmp_path, x)
        assert not list(tmp_path.iterdir())
    else:
        is_rounded = format == "c" and seed % 2
        options = {"arithmetic": "int8"} if is_rounded else {}
        y = write_and_run(model, format, tmp_path, x, **options)
        if is_rounded:
            round_weights(model)
        # Products of 8 bits round what they read to 16.
        assert_near(y, model, x, tolerance=2e-4 if is_rounded else 2e-5)


@pytest.mark.one_backend
@chains(*TOLERANCES)
def test_a_chain_in_litert_and_for_microcontrollers(format, seed, tmp_path):
    model, x = random_chain(seed, **IN_INTEGERS)
    tolerance, is_integer = TOLERANCES[format], format.startswith("integer")
    options = {"arithmetic": format}
    if is_integer:
        round_weights(model)
        options["calibration"] = x
    write = functools.partial(
        write_and_run, model, "litert", tmp_path, x, **options
    )
    assert_near(write(), model, x, tolerance)
    run = functools.partial(run_micro, tmp_path / "step.tflite", x)
    has_softplus = "softplus" in str(model.get_config())
    if format == "float16" or (is_integer and has_softplus):
        with pytest.raises(RuntimeError, match="failed to allocate"):
            run()
    else:
        assert_near(run(), model, x, tolerance)


@pytest.mark.each_backend
@chains("streaming_step")
def test_a_chain_is_a_step(format, seed):
    model, x = random_chain(seed)
    assert_near(outputs_of_steps(streaming_step(model), x), model, x, 2e-5)
