import keras
import numpy as np
import pytest
from cases import first_of
from references import assert_same
from references import to_numpy

from keras_rin.initializers import Chain
from keras_rin.initializers import ChainIdentity
from keras_rin.initializers import FeedbackChain
from keras_rin.initializers import Offset
from keras_rin.initializers import PartialIdentity
from keras_rin.initializers import PerGate
from keras_rin.initializers import Ramp
from keras_rin.initializers import SmallVarianceNormal
from keras_rin.layers import RIN
from keras_rin.layers import DeepTransitionRINCell
from keras_rin.layers import FixedProjection
from keras_rin.layers import LinearResidual
from keras_rin.layers import ResidualConv2D
from keras_rin.layers import ResidualDense
from keras_rin.layers import ResidualDenseStack

SQUARE = [
    Chain(),
    ChainIdentity(),
    FeedbackChain(),
    Offset("zeros"),
    PartialIdentity(),
    Ramp(),
]


def as_numpy(initializer, units, dtype=None):
    return to_numpy(initializer((units, units), dtype))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64", None])
def test_the_dtype_is_the_one_asked_for(dtype):
    for initializer in (*SQUARE, SmallVarianceNormal()):
        matrix = initializer((3, 3), dtype=dtype)
        expected = dtype or keras.config.floatx()
        assert keras.backend.standardize_dtype(matrix.dtype) == expected


@pytest.mark.parametrize(
    "initializer",
    [
        Chain(0.3),
        ChainIdentity(0.3, -0.7),
        FeedbackChain(0.9, 0.1),
        PartialIdentity(0.3),
        Ramp(0.2),
        Offset(Chain(0.3)),
        PerGate(Chain(0.3), gates=1),
        PerGate([Chain(0.5)], gates=1),
    ],
)
def test_the_config_makes_the_same_matrix(initializer):
    config = keras.initializers.serialize(initializer)
    again = keras.initializers.deserialize(config)
    np.testing.assert_array_equal(as_numpy(initializer, 4), as_numpy(again, 4))


@pytest.mark.one_backend
@pytest.mark.parametrize("initializer", SQUARE)
def test_other_shapes_are_refused(initializer):
    for shape in ((3, 4), (3,), (3, 3, 3), (), (0, 0), (None, None)):
        with pytest.raises(ValueError, match="square matrices only"):
            initializer(shape)


@pytest.mark.parametrize(
    "initializer, name",
    [
        (Chain(1e39), "gain"),
        (ChainIdentity(1e39, 0), "chain_gain"),
        (ChainIdentity(0, -1e39), "identity_gain"),
        (FeedbackChain(1e39, 0), "gain"),
        (FeedbackChain(0, 1e39), "feedback"),
        (Ramp(1e39), "limit"),
    ],
)
def test_a_weight_beyond_the_dtype_is_named(initializer, name):
    """Infinity times the zeros beside it would be NaN."""
    with pytest.raises(ValueError, match=f"`{name}` of .*dtype=float32"):
        initializer((3, 3))
    with pytest.raises(ValueError, match=f"`{name}` of .*dtype=float16"):
        initializer((3, 3), "float16")
    with pytest.raises(ValueError, match="floating dtype.*dtype=int32"):
        initializer((3, 3), "int32")
    assert np.isfinite(as_numpy(initializer, 3, "float64")).all()


def test_a_ramp_in_float64_has_its_digits(float64):
    ramp = as_numpy(Ramp(1.0), 8, "float64")
    expected = (np.arange(8) - np.arange(8)[:, None]) / 7
    np.testing.assert_allclose(ramp, expected, rtol=1e-14)


def impulse_response(layer, steps, units):
    """Where a pulse on unit 0 stands at each step, by the layer itself."""
    h = np.eye(1, units, dtype="float32")
    states = layer(np.zeros((1, steps, 1)), initial_state=h)
    return to_numpy(states)[0]


@pytest.mark.parametrize("units", [1, 2, 7])
def test_a_chain_is_the_shift_of_numpy(units):
    expected = 1.02 * np.eye(units, k=1)
    np.testing.assert_allclose(as_numpy(Chain(1.02), units), expected)


@pytest.mark.parametrize("units", [1, 2, 7])
def test_a_chain_to_the_power_of_its_length_is_zero(units):
    chain = as_numpy(Chain(1.5), units)
    assert not np.linalg.matrix_power(chain, units).any()
    assert np.linalg.matrix_power(chain, units - 1).any()


def test_chain_identity_is_the_sum():
    expected = 0.5 * np.eye(5, k=1) + 0.9 * np.eye(5)
    np.testing.assert_allclose(as_numpy(ChainIdentity(0.5, 0.9), 5), expected)


def test_in_simple_rnn_a_chain_hands_a_pulse_to_the_next_unit():
    layer = keras.layers.SimpleRNN(
        4, "relu", recurrent_initializer=Chain(0.5), return_sequences=True
    )
    expected = np.diag([1, 0.5, 0.25, 0.125])[1:]
    np.testing.assert_allclose(impulse_response(layer, 3, 4), expected)


def test_in_rin_chain_identity_less_one_is_the_same_chain():
    layer = RIN(
        4, recurrent_initializer=ChainIdentity(0.5, -1), return_sequences=True
    )
    expected = np.diag([1, 0.5, 0.25, 0.125])[1:]
    np.testing.assert_allclose(impulse_response(layer, 3, 4), expected)


def test_in_rin_a_chain_comes_on_top_of_the_identity():
    with pytest.warns(UserWarning, match="Offset"):
        layer = RIN(3, recurrent_initializer=Chain(0.5))
    layer.build((None, None, 1))
    expected = np.eye(3) + 0.5 * np.eye(3, k=1)
    assert_same(layer.effective_recurrent_kernel, expected)


@pytest.mark.parametrize(
    "make, name",
    [
        (lambda gain: Chain(gain), "gain"),
        (lambda gain: ChainIdentity(chain_gain=gain), "chain_gain"),
        (lambda gain: FeedbackChain(gain), "gain"),
        (lambda feedback: FeedbackChain(feedback=feedback), "feedback"),
        (lambda limit: Ramp(limit), "limit"),
    ],
)
@pytest.mark.parametrize("gain", [-1, float("nan"), float("inf"), "1", None])
def test_gains_must_be_finite_and_not_negative(make, name, gain):
    with pytest.raises(ValueError, match=f"`{name}` must.*Received: {name}="):
        make(gain)


@pytest.mark.parametrize("gain", [float("nan"), -float("inf"), "1", None])
def test_the_identity_gain_must_be_finite(gain):
    with pytest.raises(ValueError, match="`identity_gain` must"):
        ChainIdentity(identity_gain=gain)


@pytest.mark.parametrize("units", [1, 2, 7])
def test_a_feedback_chain_has_two_diagonals(units):
    expected = 0.9 * np.eye(units, k=1) + 0.1 * np.eye(units, k=-1)
    np.testing.assert_allclose(
        as_numpy(FeedbackChain(0.9, 0.1), units), expected
    )


def test_the_spectral_radius_of_a_feedback_chain_is_the_closed_form():
    matrix = as_numpy(FeedbackChain(0.99, 0.21), 100, "float64")
    radius = np.abs(np.linalg.eigvals(matrix)).max()
    expected = 2 * np.sqrt(0.99 * 0.21) * np.cos(np.pi / 101)
    np.testing.assert_allclose(radius, expected, rtol=1e-5)


@pytest.mark.parametrize("units", [2, 5])
def test_a_ramp_rises_with_the_place_of_the_receiver(units):
    ramp = as_numpy(Ramp(0.01), units)
    for j in range(units):
        for i in range(units):
            expected = 0.01 * (j - i) / (units - 1)
            np.testing.assert_allclose(ramp[i, j], expected, atol=1e-8)


def test_a_ramp_of_one_unit_is_zero():
    assert as_numpy(Ramp(), 1) == 0


@pytest.mark.parametrize(
    "initializer",
    [Chain(0.9), FeedbackChain(), keras.initializers.Orthogonal(seed=0)],
)
def test_an_offset_starts_rin_where_the_effective_start_does(initializer):
    layer = RIN(5, recurrent_initializer=Offset(initializer))
    layer.build((None, None, 2))
    expected = as_numpy(initializer, 5)
    assert_same(layer.effective_recurrent_kernel, expected)


@pytest.mark.parametrize("start", [Offset, PerGate])
def test_no_initializer_at_all_is_refused(start):
    with pytest.raises(ValueError, match="Received: initializer=None"):
        start(None)


@pytest.mark.parametrize(
    "fraction, units, ones", [(0.5, 4, 2), (0.5, 5, 3), (0, 3, 0), (1, 3, 3)]
)
def test_so_many_units_integrate(fraction, units, ones):
    matrix = to_numpy(PartialIdentity(fraction)((units, units)))
    expected = np.diag([0.0] * (units - ones) + [1.0] * ones)
    np.testing.assert_array_equal(matrix, expected)
    np.testing.assert_array_equal(matrix @ matrix, matrix)


def test_the_others_are_a_hidden_layer_of_the_input(rng):
    layer = RIN(
        4,
        recurrent_initializer=Offset(PartialIdentity()),
        return_sequences=True,
    )
    x = rng.normal(size=(3, 7, 2)).astype("float32")
    states = to_numpy(layer(x))
    z = x @ to_numpy(layer.cell.kernel)
    assert_same(states[..., :2], np.maximum(z[..., :2], 0))
    h = np.zeros((3, 2))
    for t in range(7):
        h = np.maximum(h + z[:, t, 2:], 0)
    assert_same(states[:, -1, 2:], h)


@pytest.mark.parametrize("fraction", [-0.1, 1.1, np.nan, "half", None])
def test_a_fraction_is_a_share(fraction):
    with pytest.raises(ValueError, match=r"`fraction`.*\[0, 1\]"):
        PartialIdentity(fraction)


@pytest.mark.one_backend
def test_hundredths_of_a_hundred_units_are_whole():
    for percent in range(1, 100):
        matrix = PartialIdentity(percent / 100)((100, 100))
        assert np.trace(to_numpy(matrix)) == percent


def pulse_through(layer, gate):
    """The recurrent kernel of one gate, as the built layer holds it."""
    layer.build((None, None, 2))
    kernel = to_numpy(layer.cell.recurrent_kernel)
    return kernel[:, gate * layer.units :][:, : layer.units]


def test_per_gate_starts_every_gate_of_an_lstm():
    layer = keras.layers.LSTM(4, recurrent_initializer=PerGate(Chain(0.7)))
    for gate in range(4):
        assert_same(pulse_through(layer, gate), 0.7 * np.eye(4, k=1))


def test_the_mixed_start_puts_the_chain_in_the_cell_gate():
    mixed = PerGate([Ramp(), Ramp(), Chain(1.02), Ramp()])
    layer = keras.layers.LSTM(6, recurrent_initializer=mixed)
    assert_same(pulse_through(layer, 2), 1.02 * np.eye(6, k=1))
    for gate in (0, 1, 3):
        assert_same(pulse_through(layer, gate), as_numpy(Ramp(), 6))


def carries_to_next_unit(layer):
    """With every gate held open, does a pulse on unit 0 reach unit 1 first?"""
    layer.build((None, None, 1))
    h = np.eye(1, layer.units, dtype="float32")
    states = [h, 0 * h] if isinstance(layer, keras.layers.LSTM) else [h]
    output = to_numpy(layer(np.zeros((1, 1, 1)), initial_state=states))[0]
    return np.abs(output - (h[0] / 2 if len(states) == 1 else 0)).argmax()


@pytest.mark.parametrize(
    "layer, gates",
    [(keras.layers.LSTM, "ifco"), (keras.layers.GRU, "zrh")],
    ids=["LSTM", "GRU"],
)
def test_the_gates_stand_in_the_order_of_keras(layer, gates):
    starts = [Chain() if gate in "ch" else "zeros" for gate in gates]
    start = PerGate(starts, gates=len(gates))
    assert carries_to_next_unit(layer(4, recurrent_initializer=start)) == 1


@pytest.mark.parametrize("seed", [None, 7, keras.random.SeedGenerator(7)])
@pytest.mark.parametrize("wrap", [lambda start: start, Offset])
def test_gates_draw_different_numbers(wrap, seed):
    normal = keras.initializers.RandomNormal(seed=seed)
    kernel = to_numpy(PerGate(wrap(normal))((3, 12)))
    assert len(np.unique(kernel)) == 36


def test_a_seeded_start_draws_the_same_again():
    start = PerGate(keras.initializers.Orthogonal(seed=7))
    assert_same(start((3, 12)), start((3, 12)))


def test_per_gate_takes_a_function_as_keras_does():
    start = PerGate(lambda shape, dtype: keras.ops.ones(shape, dtype))
    assert_same(start((3, 12)), np.ones((3, 12)))


def test_per_gate_starts_input_kernels_too():
    source = PerGate(keras.initializers.Identity(0.9))
    gate_kernel = np.eye(2, 5) * 0.9
    assert_same(source((2, 20)), np.hstack([gate_kernel] * 4))


@pytest.mark.parametrize("shape", [(3, 13), ()])
def test_gates_that_do_not_divide_the_kernel_are_refused(shape):
    with pytest.raises(ValueError, match="last axis.*Received: shape="):
        PerGate()(shape)


@pytest.mark.parametrize("gates", [0, -1, 1.5, None])
def test_gates_must_be_a_positive_integer(gates):
    with pytest.raises(ValueError, match="`gates` must be an integer"):
        PerGate(gates=gates)


def test_a_list_must_have_one_start_a_gate():
    with pytest.raises(ValueError, match="gates=4.*Received: 3 initializers"):
        PerGate([Chain(), Chain(), Chain()])


@pytest.mark.parametrize(
    ("layer", "gates"), [(keras.layers.LSTM, 4), (keras.layers.GRU, 3)]
)
@pytest.mark.parametrize("units", [5, 8])
def test_the_error_of_a_chain_names_per_gate(layer, gates, units):
    with pytest.raises(
        ValueError,
        match=rf"{layer.__name__}.*PerGate\(Chain\(...\), gates={gates}\)",
    ):
        layer(units, recurrent_initializer=Chain()).build((None, None, 2))


@pytest.mark.one_backend
@pytest.mark.parametrize(
    ("layer", "gates", "wrong"),
    [(keras.layers.LSTM, 4, 3), (keras.layers.GRU, 3, 4)],
)
@pytest.mark.parametrize("units", [5, 8, 9, 12])
def test_the_error_names_the_gates_of_the_layer(layer, gates, wrong, units):
    start = PerGate(Chain(), gates=wrong)
    with pytest.raises(
        ValueError, match=rf"{layer.__name__}.*PerGate\(..., gates={gates}\)"
    ):
        layer(units, recurrent_initializer=start).build((None, None, 2))


@pytest.mark.one_backend
@pytest.mark.parametrize(
    "shape, sigma",
    [
        ((3, 3, 64, 128), 1 / (9 * 128)),
        ((1, 1, 200, 64), 1 / 64),
        ((3, 5, 40, 32), 1 / (15 * 32)),
        ((7, 50, 64), 1 / (7 * 64)),
        ((300, 100), 1 / 100),
    ],
)
def test_small_variance_normal_has_the_sigma_of_the_paper(shape, sigma):
    kernel = to_numpy(SmallVarianceNormal(seed=0)(shape))
    np.testing.assert_allclose(kernel.std(), sigma, rtol=0.03)
    assert abs(kernel.mean()) < 0.03 * sigma
    assert np.abs(kernel).max() > 3 * sigma  # a normal one, not cut off


def growth(initializer, blocks=27, filters=32):
    """How many times the input's the deviation is after so many blocks."""
    x = keras.random.normal((4, 8, 8, filters), seed=0)
    y = x
    for _ in range(blocks):
        # A string, or the initializer would repeat its numbers.
        start = {
            "kernel_initializer": initializer.clone(),
            "output_initializer": initializer.clone(),
        }
        y = ResidualConv2D(filters, use_bias=False, **start)(y)
    return to_numpy(y).std() / to_numpy(x).std()


@pytest.mark.one_backend
def test_small_variance_keeps_a_deep_stack_where_it_starts():
    assert abs(growth(SmallVarianceNormal()) - 1) < 0.01
    # sigma = 1 / (k sqrt(c)); the borders see less than three halves a block
    usual = keras.initializers.RandomNormal(stddev=1 / (3 * 32**0.5))
    assert 1.3 ** (27 / 2) < growth(usual) < 1.5 ** (27 / 2) * 2


def test_small_variance_draws_anew_unless_it_has_a_seed():
    free, seeded = SmallVarianceNormal(), SmallVarianceNormal(seed=1)
    shape = (3, 3, 2, 2)
    assert not np.array_equal(to_numpy(free(shape)), to_numpy(free(shape)))
    assert_same(seeded(shape), SmallVarianceNormal(seed=1)(shape))
    config = keras.initializers.serialize(seeded)
    assert_same(keras.initializers.deserialize(config)(shape), seeded(shape))


@pytest.mark.parametrize("seed", [-1, 0.5, "1", True])
def test_a_seed_is_an_integer(seed):
    with pytest.raises(ValueError, match="`seed` must.*Received: seed="):
        SmallVarianceNormal(seed)


@pytest.mark.parametrize("shape", [(), (3,)])
def test_small_variance_refuses_what_is_no_kernel(shape):
    with pytest.raises(
        ValueError, match="initializes kernels.*Received: shape="
    ):
        SmallVarianceNormal()(shape)


HALF = pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
# Rounding of each entry, in units of the dtype's own spacing at 1.
SPACING = {"bfloat16": 2**-8, "float16": 2**-11}


def orthogonal():
    return keras.initializers.Orthogonal(seed=3)


def as_float64(tensor):
    return to_numpy(keras.ops.cast(tensor, "float32")).astype("float64")


def assert_rounded(tensor, exact, dtype):
    assert keras.backend.standardize_dtype(tensor.dtype) == dtype
    np.testing.assert_allclose(
        as_float64(tensor), exact, rtol=SPACING[dtype], atol=1e-7
    )


@HALF
@pytest.mark.parametrize(
    ("initializer", "shape", "exact"),
    [
        (Offset(orthogonal()), (5, 5), lambda v: v - np.eye(5)),
        (PerGate([orthogonal()], gates=1), (5, 5), lambda v: v),
        (PerGate([orthogonal()] * 4), (5, 20), lambda v: np.tile(v, 4)),
        (PerGate([Offset(orthogonal())], 1), (5, 5), lambda v: v - np.eye(5)),
    ],
    ids=["Offset", "PerGate", "four gates", "PerGate of Offset"],
)
def test_an_orthogonal_matrix_is_that_of_float32(
    initializer, shape, exact, dtype
):
    matrix = to_numpy(orthogonal()((5, 5), "float32")).astype("float64")
    np.testing.assert_allclose(matrix @ matrix.T, np.eye(5), atol=1e-6)
    assert_rounded(initializer(shape, dtype), exact(matrix), dtype)


@HALF
def test_an_offset_keeps_digits_that_the_effective_matrix_loses(dtype):
    offset = Offset(ChainIdentity(0.5, 0.999))((3, 3), dtype)
    exact = 0.5 * np.eye(3, k=1) - 0.001 * np.eye(3)
    np.testing.assert_allclose(as_float64(offset), exact, rtol=5e-3)


@pytest.mark.parametrize(
    "initializer",
    [
        Offset(Chain(1e5)),
        PerGate([Chain(1e5)], gates=1),
        Offset(PerGate([Chain(1e5)], gates=1)),
    ],
    ids=["Offset", "PerGate", "both"],
)
def test_a_weight_beyond_float16_is_still_refused(initializer):
    with pytest.raises(ValueError, match="`gain` of Chain .*dtype=float16"):
        initializer((3, 3), "float16")
    assert np.isfinite(as_float64(initializer((3, 3), "bfloat16"))).all()


def deep_transition(initializer, dtype):
    cell = DeepTransitionRINCell(
        4, recurrent_initializer=Offset(initializer), dtype=dtype
    )
    return keras.layers.RNN(cell)


# name: (how to make it, its input shape, the weights that are orthogonal)
LAYERS = {
    "RIN": (
        lambda initializer, dtype: RIN(
            4,
            kernel_initializer=initializer,
            recurrent_initializer=Offset(initializer),
            dtype=dtype,
        ),
        (5, 4),
        ["kernel", "recurrent_kernel"],
    ),
    "DeepTransitionRINCell": (deep_transition, (5, 4), ["recurrent_kernel"]),
    "FixedProjection": (
        lambda initializer, dtype: FixedProjection(4, initializer, dtype=dtype),
        (4,),
        ["kernel"],
    ),
    "LinearResidual": (
        lambda initializer, dtype: LinearResidual(
            type(initializer)(0.1, initializer.seed), dtype=dtype
        ),
        (4,),
        ["kernel"],
    ),
    "ResidualDense": (
        lambda initializer, dtype: ResidualDense(
            4,
            kernel_initializer=initializer,
            output_initializer=initializer,
            dtype=dtype,
        ),
        (4,),
        ["kernel", "output_kernel"],
    ),
    "ResidualDenseStack": (
        lambda initializer, dtype: ResidualDenseStack(
            4, depth=2, kernel_initializer=initializer, dtype=dtype
        ),
        (4,),
        ["kernel"],
    ),
    "ResidualConv2D": (
        lambda initializer, dtype: ResidualConv2D(
            4,
            kernel_initializer=initializer,
            output_initializer=initializer,
            dtype=dtype,
        ),
        (4, 4, 4),
        ["kernel", "output_kernel"],
    ),
}


@HALF
@pytest.mark.parametrize(
    ("make", "shape", "names"),
    first_of(LAYERS.values(), 3, pytest.mark.one_backend),
    ids=LAYERS,
)
def test_a_layer_has_the_orthogonal_weights_of_float32(
    make, shape, names, dtype
):
    weights = {}
    for layer_dtype in (dtype, "float32"):
        layer = make(orthogonal(), layer_dtype)
        layer.build((None, *shape))
        weights[layer_dtype] = {weight.name: weight for weight in layer.weights}
    for name in names:
        exact = as_float64(weights["float32"][name].value)
        assert_rounded(weights[dtype][name].value, exact, dtype)
