"""ResidualRNN: its formula and penalty, and a state that keeps its bits."""

import keras
import numpy as np
import pytest
from cases import first_of
from cases import table
from derivatives import BACKEND
from derivatives import outputs_and_gradients
from keras import ops
from references import MASKS
from references import assert_same
from references import built
from references import numpy_states
from references import residual_step
from references import to_numpy
from references import weights64
from step_files import write_and_run

from keras_rin import diagnostics
from keras_rin.layers import ResidualRNN

PENALTY, MARGIN = 0.3, 0.4


def drawn(units=4, inner_units=7, seed=0, scale=0.4, **options):
    """A layer of two features with random weights."""
    rng = np.random.default_rng(seed)
    layer = built(ResidualRNN(units, inner_units, **options))
    shapes = [weight.shape for weight in layer.get_weights()]
    layer.set_weights([rng.normal(0, scale, shape) for shape in shapes])
    return layer


def numpy_run(weights, x, h, mask, activation="relu"):
    """States, and the penalty of each sequence, step by step in float64."""
    states = numpy_states(residual_step(activation), weights, x, h, mask)
    before = np.concatenate([h[:, None], states[:, :-1]], axis=1)
    kernel, recurrent, _, bias = weights
    near = np.maximum(x @ kernel + before @ recurrent + bias + MARGIN, 0)
    near = near.sum(axis=2)
    near = near if mask is None else np.where(mask, near, 0)
    return states, PENALTY * near.sum(axis=1)


def numpy_loss(arguments, mask, activation, return_sequences):
    x, h, *weights = arguments
    states, penalties = numpy_run(weights, x, h, mask, activation)
    outputs = states if return_sequences else states[:, -1]
    return (outputs**2).sum() + penalties.mean()


def squared_and_penalized(layer, mask):
    """The squares of the outputs and the penalty, as a function."""

    def loss(x, h, *weights):
        others = layer.non_trainable_variables
        options = {"initial_state": h, "mask": mask, "training": True}
        outputs, _, losses = layer.stateless_call(
            weights, others, x, return_losses=True, **options
        )
        value = ops.sum(outputs**2) + ops.cast(sum(losses), outputs.dtype)
        return value, value

    return loss


@pytest.mark.parametrize(
    "activation, mask, time, return_sequences, loop, compiled",
    table(
        ["relu", "tanh", "elu"] if BACKEND != "jax" else ["relu", "elu"],
        MASKS,
        [7, 48, 40],
        [True, False],
        ["fused", "recompute", "of Keras"],
        [False, True],
    ),
)
def test_loss_and_gradients_are_those_of_a_numpy_loop(
    rng, activation, mask, time, return_sequences, loop, compiled
):
    """The gradients by central differences, along random directions."""
    layer = drawn(
        activation=activation,
        return_sequences=return_sequences,
        **{"penalty": PENALTY, "margin": MARGIN, "dtype": "float64"},
        fused=loop == "fused" or (loop != "of Keras" and "auto"),
        recompute=loop == "recompute",
        scale=0.2,
    )
    mask = MASKS[mask](time, 3)
    mask = None if mask is None else mask.T
    weights = weights64(layer)
    arguments = [rng.normal(size=(3, time, 2)), rng.random((3, 4)), *weights]
    if mask is not None and BACKEND != "jax":
        # Elsewhere Keras puts out zeros before the first step without a mask.
        arguments[1] *= mask.any(axis=1, keepdims=True) & mask[:, :1]
    tensors = [ops.convert_to_tensor(a, "float64") for a in arguments]
    tensor_mask = None if mask is None else ops.convert_to_tensor(mask)
    value, gradients = outputs_and_gradients(
        squared_and_penalized(layer, tensor_mask), tensors, compiled
    )
    options = mask, activation, return_sequences
    expected = numpy_loss(arguments, *options)
    # The penalty is summed in float32.
    np.testing.assert_allclose(to_numpy(value), expected, rtol=1e-6)
    for _ in range(4):
        directions = [rng.normal(size=a.shape) for a in arguments]
        slope = sum(
            (to_numpy(gradient) * direction).sum()
            for gradient, direction in zip(gradients, directions, strict=True)
        )
        up, down = (
            numpy_loss(
                [
                    a + sign * 1e-6 * direction
                    for a, direction in zip(arguments, directions, strict=True)
                ],
                *options,
            )
            for sign in (1, -1)
        )
        scale = np.sqrt(sum((to_numpy(g) ** 2).sum() for g in gradients))
        np.testing.assert_allclose(
            slope, (up - down) / 2e-6, rtol=1e-5, atol=1e-6 * scale
        )


@pytest.mark.parametrize(
    "fused, jit_compile, penalty",
    first_of([(True, "auto", 1.0), (False, True, 1.0), (True, True, 0.0)]),
)
def test_the_penalty_is_a_part_of_the_loss_in_training_alone(
    rng, fused, jit_compile, penalty
):
    layer = drawn(fused=fused, penalty=PENALTY * penalty, margin=MARGIN)
    model = keras.Sequential([keras.Input((None, 2)), layer])
    model.compile(keras.optimizers.SGD(0.0), "mse", jit_compile=jit_compile)
    x = rng.normal(size=(6, 9, 2)).astype("float32")
    y = np.zeros((6, 4))
    states, penalties = numpy_run(weights64(layer), x, y, None)
    expected = (states[:, -1] ** 2).mean()
    history = model.fit(x, y, batch_size=6, validation_data=(x, y), verbose=0)
    assert history.history["loss"] == pytest.approx(
        [expected + penalty * penalties.mean()], rel=1e-5
    )
    assert history.history["val_loss"] == pytest.approx([expected], rel=1e-5)
    outputs = model.predict(x, verbose=0)
    assert_same(outputs, states[:, -1])


def test_dropout_acts_on_inputs_and_product_but_not_on_the_carried_state():
    """All that is read is dropped: the bias alone moves the state."""
    for name in ("dropout", "recurrent_dropout"):
        layer = drawn(**{name: 1.0})
        kernel, recurrent, output, bias = weights64(layer)
        x, h = np.ones((1, 1, 2)), np.ones((1, 4))
        kernel = 0 * kernel if name == "dropout" else kernel
        recurrent = recurrent if name == "dropout" else 0 * recurrent
        expected, _ = numpy_run((kernel, recurrent, output, bias), x, h, None)
        outputs = layer(x, initial_state=h, training=True)
        assert_same(outputs, expected[:, 0])


def test_weights_are_drawn_as_documented():
    layer = built(ResidualRNN(200, 300))
    kernel, recurrent, output, bias = weights64(layer)
    assert np.abs(kernel).max() <= np.sqrt(6 / (2 + 300))
    assert recurrent.std() == pytest.approx(0.1 / np.sqrt(200), rel=0.02)
    assert output.std() == pytest.approx(0.1 / np.sqrt(300), rel=0.02)
    assert (bias == -0.5).all()
    again = weights64(built(ResidualRNN(200, 300)))
    assert not np.array_equal(again[1], recurrent)


def silent(layer):
    """The layer, without an event for inputs in [0, 1] and any small state."""
    kernel, recurrent, output, bias = layer.get_weights()
    layer.set_weights([0.1 * kernel, 0.1 * recurrent, output, 0 * bias - 3])
    return layer


@pytest.mark.parametrize("steps", first_of([(10_000,), (1_000_000,)]))
def test_silent_steps_change_no_bit(rng, steps):
    """In float32, whatever the inputs are and the state was."""
    layer = silent(drawn(8, 20))
    h = rng.normal(size=(2, 8)).astype("float32")
    x = rng.random((2, steps, 2), dtype="float32")
    (inputs, initial) = keras.Input((None, 2)), keras.Input((8,))
    model = keras.Model([inputs, initial], layer(inputs, initial_state=initial))
    np.testing.assert_array_equal(model.predict([x, h], verbose=0), h)


def counter():
    """Counts the events of channel 1, an input of 1000 there, in quarters."""
    layer = ResidualRNN(2, 3, return_sequences=True)
    layers = [keras.layers.Rescaling(0.001), layer, keras.layers.Dense(1)]
    model = keras.Sequential([keras.Input((None, 2)), *layers])
    kernel, output = np.zeros((2, 3)), np.zeros((3, 2))
    kernel[1, 0], output[0, 0] = 1.0, 0.5
    kernel[0, 1], output[1, 1] = 0.5, 1.0  # never above 0
    bias = np.array([-0.5, -0.6, -1.0])
    layer.set_weights([kernel, np.zeros((2, 3)), output, bias])
    model.layers[-1].set_weights([np.ones((2, 1)), np.zeros(1)])
    return model


def drawn_events(rng, steps, events):
    x = rng.integers(0, 1000, size=(1, steps, 2)).astype("int16")
    x[..., 1] = 0
    x[0, rng.choice(steps, events, replace=False), 1] = 1000
    return x, np.cumsum(x[0, :, 1] > 0) * 0.25


@pytest.mark.runtime
@pytest.mark.one_backend
def test_a_million_steps_in_integers_change_no_bit_without_an_event(
    rng, tmp_path
):
    model = counter()
    calibration, _ = drawn_events(rng, 2_000, 60)
    x, expected = drawn_events(rng, 1_000_000, 40)
    options = {"arithmetic": "integer", "calibration": calibration}
    y = write_and_run(model, "c", tmp_path, x, **options)[0, :, 0]
    changes = np.flatnonzero(np.diff(y))
    np.testing.assert_array_equal(changes, np.flatnonzero(np.diff(expected)))
    (unit,) = set(np.round(y[expected > 0] / expected[expected > 0], -2))
    np.testing.assert_allclose(y / unit, expected, atol=0.01)


@pytest.mark.one_backend
@pytest.mark.parametrize("seeds", first_of([(range(20),), (range(20, 200),)]))
def test_states_hold_where_no_input_of_the_box_moves_them(seeds):
    """The corner with the largest argument moves all others."""
    counts = np.zeros(2, int)
    for seed in seeds:
        rng = np.random.default_rng(seed)
        layer = drawn(3, 5, seed, scale=rng.uniform(0.1, 0.6))
        layer.cell.bias.assign(rng.normal(-0.7, 0.3, size=5))
        kernel, recurrent, _, bias = weights64(layer)
        states = rng.normal(size=(50, 3)).astype("float32")
        low, high = np.sort(rng.normal(size=(2, 2)).astype("float32"), axis=0)
        proof = diagnostics.holds(layer, states, low, high)
        corners = np.array(
            [[a, b] for a in (low[0], high[0]) for b in (low[1], high[1])]
        )
        arguments = states @ recurrent + bias + (corners @ kernel)[:, None]
        largest = arguments.max(axis=(0, 2))
        np.testing.assert_allclose(proof.margin, -largest, atol=1e-5)
        np.testing.assert_array_equal(
            proof.unit, arguments.max(axis=0).argmax(axis=1)
        )
        assert (proof.holds == (largest <= 0)).sum() >= 49  # up to rounding
        assert not (proof.holds & (largest > 0)).any()
        x = np.concatenate([corners, rng.uniform(low, high, size=(40, 2))])
        sequences = np.repeat(x, 50, axis=0).astype("float32")[:, None]
        before = np.tile(states, (len(x), 1))
        moved = to_numpy(layer(sequences, initial_state=before)) != before
        moved = moved.any(axis=1).reshape(len(x), 50)
        assert not moved[:, proof.holds].any()
        assert moved[:4].any(axis=0)[largest > 1e-5].all()
        counts += [proof.holds.sum(), (~proof.holds).sum()]
    assert counts.min() > 0


@pytest.mark.one_backend
def test_the_proof_counts_rounding_errors():
    """Sums whose terms cancel, at an argument of 0 in exact arithmetic."""
    layer = drawn(2, 1)
    for number in (1.0, 1e4):
        row = np.array([[number], [-number]])
        layer.set_weights(
            [np.zeros((2, 1)), row, np.ones((1, 2)), np.full(1, -1e-4)]
        )
        proof = diagnostics.holds(layer, np.ones((1, 2)), 0, 0)
        assert proof.holds.all() == (number == 1)


@pytest.mark.one_backend
@pytest.mark.parametrize(
    "layer, arguments, message",
    [
        (ResidualRNN(4, 7, "tanh"), {}, 'activation="relu"'),
        (keras.layers.SimpleRNN(4), {}, "must be a `ResidualRNN`"),
        (ResidualRNN(4, 7, dtype="mixed_bfloat16"), {}, "bfloat16"),
        (ResidualRNN(4, 7), {"low": 2}, "low=2.0 and high=1.0 in channel 0"),
        (ResidualRNN(4, 7), {"high": np.inf}, "`high` must contain finite"),
        (ResidualRNN(4, 7), {"states": np.ones((2, 3))}, "shape"),
    ],
)
def test_what_cannot_be_proved_is_refused(layer, arguments, message):
    options = {"states": np.ones((2, 4)), "low": 0, "high": 1}
    with pytest.raises(ValueError, match=message):
        diagnostics.holds(built(layer), **{**options, **arguments})
