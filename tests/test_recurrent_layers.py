import keras
import numpy as np
import pytest
from cases import one_backend_after
from keras import layers
from references import built
from references import to_numpy

from keras_rin import diagnostics
from keras_rin.layers import RIN
from keras_rin.layers import DeepTransitionRINCell


@pytest.mark.one_backend
@pytest.mark.parametrize(
    "layer, names",
    [
        (keras.layers.LSTM, ["input", "forget", "cell", "output"]),
        (keras.layers.GRU, ["update", "reset", "candidate"]),
        (keras.layers.SimpleRNN, ["recurrent"]),
    ],
    ids=["LSTM", "GRU", "SimpleRNN"],
)
def test_each_gate_has_its_matrix(layer, names):
    layer = built(layer(5))
    matrices = diagnostics.recurrent_matrices(layer)
    assert list(matrices) == names
    kernel = to_numpy(layer.cell.recurrent_kernel)
    for source in (layer, layer.cell):
        joined = np.hstack(
            list(diagnostics.recurrent_matrices(source).values())
        )
        np.testing.assert_array_equal(joined, kernel)
        assert joined.dtype == np.float64


def test_of_two_transitions_it_is_both_effective_matrices():
    cell = DeepTransitionRINCell(5, recurrent_initializer="random_normal")
    matrices = diagnostics.recurrent_matrices(built(keras.layers.RNN(cell)))
    assert list(matrices) == ["recurrent", "transition"]
    _, first, _, second, _ = cell.get_weights()
    for offset, matrix in zip((first, second), matrices.values(), strict=True):
        np.testing.assert_array_equal(matrix, offset.astype("f8") + np.eye(5))
        assert matrix.dtype == np.float64


def test_a_small_offset_is_not_lost_in_bfloat16():
    small = keras.initializers.Constant(3e-4)
    layer = RIN(2, recurrent_initializer=small, dtype="bfloat16")
    layer.build((None, None, 1))
    offset = diagnostics.recurrent_matrices(layer)["recurrent"] - np.eye(2)
    np.testing.assert_allclose(offset, 3e-4, rtol=0.01)  # bfloat16's U


class TwoGatedCell(keras.layers.Layer):
    state_size = output_size = 3

    def build(self, input_shape):
        self.recurrent_kernel = self.add_weight((3, 6), name="kernel")


def test_gates_of_an_unknown_cell_are_numbered():
    cell = TwoGatedCell()
    cell.build((None, 2))
    assert list(diagnostics.recurrent_matrices(cell)) == ["gate_0", "gate_1"]


OF_SEQUENCES = [
    diagnostics.gradient_norms,
    diagnostics.lyapunov_spectrum,
    diagnostics.state_jacobians,
    diagnostics.state_trajectories,
]


def of_zeros(diagnose):
    """A diagnostic of sequences as a function of the layer alone."""
    return lambda layer: diagnose(layer, np.zeros((1, 3, 2)))


def fixed_points_of_4_units(layer):
    return diagnostics.fixed_points(layer, np.zeros((1, 4)), iterations=1)


DIAGNOSTICS = {
    "recurrent_matrices": diagnostics.recurrent_matrices,
    "hidden_chain": diagnostics.hidden_chain,
    "fixed_points": fixed_points_of_4_units,
    **{function.__name__: of_zeros(function) for function in OF_SEQUENCES},
}


@pytest.mark.parametrize("diagnose", DIAGNOSTICS.values(), ids=DIAGNOSTICS)
@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: layers.Dense(3), "one recurrent cell.*Received: layer="),
        (lambda: layers.RNN([layers.GRUCell(3)] * 2), "one recurrent cell"),
        (lambda: layers.Bidirectional(layers.LSTM(3)), "one direction"),
        (lambda: layers.LSTM(3), "has no weights yet"),
        (lambda: np.eye(3), "must be a recurrent layer"),
    ],
    ids=["Dense", "stack", "Bidirectional", "unbuilt", "matrix"],
)
def test_other_layers_are_refused(diagnose, make, message):
    with pytest.raises(ValueError, match=message):
        diagnose(make())


@pytest.mark.parametrize(
    "diagnose", [diagnostics.recurrent_matrices, diagnostics.hidden_chain]
)
def test_a_layer_without_a_recurrent_kernel_is_refused(diagnose):
    cell = TwoGatedCell()
    cell.built = True
    with pytest.raises(ValueError, match="attribute `recurrent_kernel`"):
        diagnose(cell)


X = np.ones((4, 5, 2))
SHAPE = r"`x` must be finite in float32 and of shape \(batch, time, 2\)"


@pytest.mark.parametrize("diagnose", OF_SEQUENCES)
@pytest.mark.parametrize(
    "x, mask, message",
    [
        (X[0], None, SHAPE),
        (X[..., :1], None, SHAPE),
        (X[:0], None, SHAPE),
        (X * np.nan, None, SHAPE),
        (X, np.ones((4, 4), bool), "`mask` must"),
        (X, np.zeros((4, 5)), "`mask` must"),
    ],
)
def test_other_sequences_and_masks_are_refused(diagnose, x, mask, message):
    layer = built(keras.layers.SimpleRNN(3))
    with pytest.raises(ValueError, match=message):
        diagnose(layer, x, mask=mask)


@pytest.mark.parametrize(
    "diagnose", [fixed_points_of_4_units, *map(of_zeros, OF_SEQUENCES)]
)
@pytest.mark.parametrize("weight", [0, 1, 2])
def test_weights_that_are_not_finite_are_named(diagnose, weight):
    layer = built(keras.layers.SimpleRNN(4))
    weights = layer.get_weights()
    weights[weight][..., 0] = np.nan
    layer.set_weights(weights)
    message = f"weights of .* must be finite.*{layer.weights[weight].path}"
    with pytest.raises(ValueError, match=message):
        diagnose(layer)


def test_weights_of_float64_may_be_beyond_float32():
    layer = keras.layers.SimpleRNN(2, dtype="float64")
    layer.build((None, None, 1))
    layer.cell.kernel.assign([[1e40, 2e40]])
    x = np.zeros((1, 3, 1))
    assert np.isfinite(diagnostics.gradient_norms(layer, x)).all()


# Of those that call the cell; the others do it by the map of these Jacobians.
@pytest.mark.parametrize(
    "name", ["gradient_norms", "hidden_chain", "state_jacobians"]
)
@pytest.mark.parametrize("raises", one_backend_after([False, True]))
def test_the_model_stays_as_it_was(name, raises, rng):
    options = {"dropout": 0.5, "recurrent_dropout": 0.5, "seed": 1}
    layer = keras.layers.GRU(4, **options, stateful=True, dtype="mixed_float16")
    policy, activation = layer.cell.dtype_policy, layer.cell.activation
    model = keras.Sequential([layer])
    x = rng.normal(size=(2, 3, 2)).astype("float32")
    model(x)
    if raises:
        layer.cell.recurrent_kernel.assign(np.full((4, 12), 1e30))
    before = [to_numpy(v).copy() for v in model.variables]
    try:
        DIAGNOSTICS[name](layer)
    except ValueError:
        assert raises
    for old, new in zip(before, model.variables, strict=True):
        np.testing.assert_array_equal(old, to_numpy(new))
    assert layer.cell.dtype_policy is policy
    assert layer.cell.activation is activation
    fresh = layer.cell.get_dropout_mask(keras.ops.ones((2, 2)))
    assert keras.tree.flatten(fresh)[0].shape == (2, 2)
