import keras
import numpy as np
import pytest
from cases import one_backend_after
from references import assert_same
from references import to_numpy

from keras_rin.constraints import Orthogonal

# Torch's compiler is not there on every machine.
COMPILER = keras.backend.backend() != "torch"


def nearest(matrix):
    """By the singular value decomposition, in float64."""
    left, _, right = np.linalg.svd(np.asarray(matrix, "float64"))
    return left @ right


def departure(matrix):
    matrix = np.asarray(matrix, "float64")
    return np.linalg.norm(matrix.T @ matrix - np.eye(len(matrix)), 2)


def matrices(rng, units):
    gaussian = rng.normal(size=(units, units)) / np.sqrt(units)
    orthogonal = nearest(gaussian)
    return {
        "gaussian": gaussian,
        "large": 1e38 * orthogonal,
        "small": 1e-30 * gaussian,
        "after an update": orthogonal + 1e-3 * gaussian,
        "ill-conditioned": orthogonal * np.logspace(0, -3, units),
        "orthogonal": orthogonal,
        "a reflection": orthogonal * np.sign(rng.normal(size=units)),
    }


@pytest.mark.parametrize("units", one_backend_after([5, 64, 2, 1]))
def test_it_is_the_nearest_orthogonal_matrix(rng, units):
    for name, matrix in matrices(rng, units).items():
        result = to_numpy(Orthogonal()(matrix.astype("float32")))
        expected = nearest(matrix.astype("float32"))
        np.testing.assert_allclose(result, expected, atol=1e-5, err_msg=name)
        assert departure(result) < 2e-6, name


def test_float64_is_kept_to_its_own_precision(rng, float64):
    if keras.backend.backend() == "torch":
        pytest.skip("Keras 3.15 multiplies float64 matrices in float32")
    gaussian = rng.normal(size=(20, 20))
    for matrix in (gaussian, nearest(gaussian) + 1e-3 * gaussian):
        result = to_numpy(Orthogonal()(keras.ops.convert_to_tensor(matrix)))
        np.testing.assert_allclose(result, nearest(matrix), atol=1e-12)


def test_an_offset_makes_u_plus_i_orthogonal(rng):
    offset = 0.3 * rng.normal(size=(6, 6)).astype("float32")
    result = to_numpy(Orthogonal(offset=True)(offset))
    expected = nearest(offset + np.eye(6)) - np.eye(6)
    np.testing.assert_allclose(result, expected, atol=1e-6)


def test_each_gate_is_made_orthogonal_by_itself(rng):
    kernel = rng.normal(size=(5, 15)).astype("float32")
    kernel[0, 0] = np.nan
    first, *others = np.split(to_numpy(Orthogonal(gates=3)(kernel)), 3, axis=1)
    assert np.isnan(first).all()
    for gate, part in zip(
        others, (kernel[:, 5:10], kernel[:, 10:]), strict=True
    ):
        np.testing.assert_allclose(gate, nearest(part), atol=1e-5)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_a_graded_matrix_of_16_bits_has_its_nearest_one(rng, dtype):
    matrix = np.logspace(4, -4, 5)[:, None] * rng.normal(size=(5, 5))
    matrix = keras.ops.cast(matrix, dtype)
    expected = nearest(to_numpy(keras.ops.cast(matrix, "float32")))
    result = Orthogonal()(matrix)
    assert keras.backend.standardize_dtype(result.dtype) == dtype
    assert_same(keras.ops.cast(result, "float32"), expected, 0.01)


def test_a_compiled_training_step_reaches_it_too(rng):
    rnn = keras.layers.SimpleRNN(3, recurrent_constraint=Orthogonal())
    model = keras.Sequential([keras.Input((4, 1)), rnn])
    model.compile(keras.optimizers.SGD(0.0), "mse", jit_compile=COMPILER)
    kernel, _, bias = rnn.get_weights()
    recurrent = rng.normal(size=(3, 3))
    recurrent = (3e38 * recurrent / np.abs(recurrent).max()).astype("float32")
    rnn.set_weights([kernel, recurrent, bias])
    model.fit(np.zeros((2, 4, 1)), np.zeros((2, 3)), verbose=0)
    np.testing.assert_allclose(
        rnn.get_weights()[1], nearest(recurrent), atol=2e-5
    )


@pytest.mark.one_backend
def test_a_singular_matrix_becomes_one_of_its_nearest():
    """One that is nearest has the inner product sum_i sigma_i with W."""
    for matrix in (
        np.zeros((3, 3)),
        np.eye(5, k=1),
        np.diag([1.0, 1.0, 0.0]),
        1e20 * np.outer([1.0, 2.0, 3.0], [1.0, 0.0, -1.0]),
        np.diag([1e30, 1e-30]),
        np.full((4, 4), -1e-3),
    ):
        result = to_numpy(Orthogonal()(matrix.astype("float32")))
        assert departure(result) < 2e-6
        nuclear = np.linalg.norm(matrix, "nuc")
        product = np.sum(result.astype("float64") * matrix)
        assert product >= nuclear * (1 - 1e-6)


def test_the_config_makes_the_same_constraint():
    config = keras.constraints.serialize(Orthogonal(offset=True, gates=3))
    again = keras.constraints.deserialize(config)
    assert (again.offset, again.gates) == (True, 3)


@pytest.mark.one_backend
@pytest.mark.parametrize(
    "gates, weight, message",
    [
        (1, np.ones((3, 4)), "weight of shape .units.*Received"),
        (1, np.ones(3), "weight of shape .units.*Received"),
        (4, np.ones((3, 3)), "weight of shape .units.*Received"),
        (1, np.eye(3, dtype="int32"), "floating.*int32"),
    ],
)
def test_what_cannot_become_orthogonal_is_refused(gates, weight, message):
    with pytest.raises(ValueError, match=message):
        Orthogonal(gates=gates)(weight)
