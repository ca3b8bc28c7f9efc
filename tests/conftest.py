import os

# Tests run two at a time, and NumPy's threads would wait for each other.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("JAX_ENABLE_X64", "1")  # JAX drops float64 without it
# Tests compile for longer than they compute.
os.environ.setdefault("JAX_DISABLE_MOST_OPTIMIZATIONS", "1")

import keras  # noqa: E402
import numpy as np  # noqa: E402
import pytest  # noqa: E402

# Of names, NumPy, files and text: the same on every backend.
ONE_BACKEND = {
    "test_adding",
    "test_architecture",
    "test_arguments",
    "test_babi",
    "test_backends",
    "test_cases",
    "test_character_stream",
    "test_copying",
    "test_exact_diagnostics",
    "test_fisher_memory",
    "test_flip_flop",
    "test_hidden_chain",
    "test_insert_tables",
    "test_language",
    "test_mathematics",
    "test_nonnormality",
    "test_pages",
    "test_peeling",
    "test_curves",
    "test_drawing",
    "test_spectra",
    "test_states",
    "test_reports",
    "test_robustness",
    "test_public_names",
    "test_sequential_pixels",
    "test_spectrum",
    "test_versions",
}


def pytest_collection_modifyitems(items):
    for item in items:
        if item.module.__name__ in ONE_BACKEND:
            item.add_marker("one_backend")


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture(autouse=True)
def seed_keras():
    keras.utils.set_random_seed(0)


@pytest.fixture
def float64():
    """Everything Keras makes in this test is float64."""
    floatx, policy = keras.config.floatx(), keras.config.dtype_policy()
    keras.config.set_floatx("float64")
    keras.config.set_dtype_policy("float64")
    yield
    keras.config.set_floatx(floatx)
    keras.config.set_dtype_policy(policy)
