import keras
import numpy as np
import pytest
from references import assert_same
from references import to_numpy

from keras_rin.initializers import Chain
from keras_rin.initializers import Offset
from keras_rin.initializers import PerGate
from keras_rin.initializers import Ramp


def as_numpy(initializer, units, dtype=None):
    return to_numpy(initializer((units, units), dtype))


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
    one = np.eye(2, 5) * 0.9
    assert_same(source((2, 20)), np.hstack([one] * 4))


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
