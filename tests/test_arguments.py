"""Values of arguments that functions refuse in one way, by their names."""

from functools import partial

import numpy as np
import pytest
from references import simple_rnn

from keras_rin import callbacks
from keras_rin import constraints
from keras_rin import diagnostics
from keras_rin import initializers
from keras_rin import layers
from keras_rin import plots
from keras_rin import regularizers
from keras_rin import tasks
from keras_rin.constructions import near_identity_factors
from keras_rin.models import residual_convnet

pytestmark = pytest.mark.one_backend

HALF = np.eye(2) / 2
curve = partial(diagnostics.fisher_memory_curve, HALF)
amplification = partial(diagnostics.transient_amplification, HALF)
chain = partial(diagnostics.hidden_chain, simple_rnn(HALF))
exponents = partial(
    diagnostics.lyapunov_spectrum, simple_rnn(HALF), np.ones((1, 20, 1))
)
points = partial(diagnostics.fixed_points, simple_rnn(HALF), np.zeros((1, 2)))
norms = partial(
    diagnostics.gradient_norms, simple_rnn(HALF), np.ones((1, 3, 1))
)
jacobians = partial(
    diagnostics.state_jacobians, simple_rnn(HALF), np.ones((1, 3, 1))
)
RATE, CELL = partial(layers.RateRNN, units=3, tau=2.0), layers.RINCell
RESIDUAL = partial(layers.ResidualRNN, units=3, inner_units=4)
NOISY = partial(layers.NoisyRNN, layers.RINCell(3))
CONV, DENSE = layers.ResidualConv2D, layers.ResidualDense
EIGENVALUES = partial(plots.plot_eigenvalues, np.eye(2))


@pytest.mark.parametrize("dtype", ["float16", "int8", "bool", object])
def test_numbers_of_any_type_are_taken(dtype):
    assert diagnostics.henrici_departure(np.eye(3).astype(dtype)) == 0
    assert initializers.PartialIdentity(np.float32(0.5)).fraction == 0.5
    assert CELL(np.int32(1)).units == 1


NO_SIZE = [0, -1, 1.5, "3", None, True, [1]]
NO_GAIN = [-1, np.nan, np.inf, "1", None]
NO_FRACTION = [-0.1, 1.1, np.nan, "half", None, True, [1.0]]
NO_MATRIX = [
    *[3, [1, 2], [[1, 2]], [], [[np.inf]], [[1j]], np.ones((1, 1, 1))],
    [[1, 2], [3]],
    [["1", "2"], ["3", "4"]],
    [[None, 1], [1, 1]],
    [[10**400, 1], [1, 1]],
    np.array([["2026-01-01"]], "datetime64[D]"),
    np.ma.masked_equal([[1.0]], 1.0),
    {"a": 1},
]
NO_VECTOR = [1, [1], [[1, 2]], [1, np.nan], [1j, 2]]


def task(module, **sizes):
    return partial(module.generate, np.random.default_rng(0), **sizes)


ADDING = task(tasks.adding, samples=1, length=50)
COPYING = task(tasks.copying, samples=1, length=50)
MATCH = task(tasks.delayed_match, samples=1, length=50)
FLIP_FLOP = task(tasks.flip_flop, samples=1, length=50)
SMALL_NET = partial(residual_convnet, (8, 8, 3), stem_filters=4, filters=(4,))
# A function, the name of an argument, and what it may not be.
REFUSED = [
    *((make, "units", NO_SIZE) for make in (CELL, layers.MinGRU, RATE, DENSE)),
    (CONV, "filters", NO_SIZE),
    (partial(CONV, 4), "kernel_size", [*NO_SIZE[:-1], (), (3,), (3, 0)]),
    (partial(CONV, 4), "strides", NO_SIZE),
    (layers.LinearResidual, "scale", ["depth", None, np.inf, True]),
    *(
        (partial(CELL, 3), name, [-0.1, 1.5, np.nan, "0.5"])
        for name in ("dropout", "recurrent_dropout")
    ),
    (NOISY, "stddev", NO_GAIN),
    (RATE, "tau", [0, *NO_GAIN]),
    (RATE, "dt", [3.0, *NO_GAIN]),
    (RATE, "noise", NO_GAIN),
    (RATE, "rank", [0, -1, 1.5, "3"]),
    (RESIDUAL, "inner_units", NO_SIZE),
    *((RESIDUAL, name, NO_GAIN) for name in ("penalty", "margin")),
    (initializers.Chain, "gain", NO_GAIN),
    (initializers.ChainIdentity, "chain_gain", NO_GAIN),
    (initializers.ChainIdentity, "identity_gain", NO_GAIN[1:]),
    (initializers.FeedbackChain, "gain", NO_GAIN),
    (initializers.FeedbackChain, "feedback", NO_GAIN),
    (initializers.PartialIdentity, "fraction", NO_FRACTION),
    (initializers.PerGate, "gates", NO_SIZE),
    (initializers.Ramp, "limit", NO_GAIN),
    (initializers.OneUnitInput, "unit", [-1, 0.5, "1", True]),
    (partial(initializers.AlignedInput, "zeros"), "horizon", [0, 1.5, True]),
    *(
        (make, "gain", NO_GAIN[1:])
        for make in (
            initializers.OneUnitInput,
            partial(initializers.AlignedInput, "zeros"),
        )
    ),
    (initializers.SmallVarianceNormal, "seed", [-1, 0.5, "1", True]),
    (regularizers.IdentityOffsetL2, "l2", NO_GAIN),
    (constraints.Orthogonal, "gates", NO_SIZE),
    *(
        (function, "recurrent_matrix", NO_MATRIX)
        for function in (
            diagnostics.henrici_departure,
            diagnostics.spectral_radius,
            diagnostics.transient_amplification,
        )
    ),
    (curve, "input_vector", NO_VECTOR),
    (amplification, "input_vector", NO_VECTOR),
    (amplification, "steps", NO_SIZE[:4]),
    (curve, "noise", [0, *NO_GAIN, np.ones(2)]),
    (curve, "horizon", [0, 2.5]),
    (curve, "lags", [0]),
    (chain, "steps", NO_SIZE),
    (exponents, "exponents", [0, 3]),
    (exponents, "warmup", [-1, 20]),
    (norms, "directions", [0]),
    (jacobians, "dtype", ["bfloat16"]),
    (points, "tolerance", [0, *NO_GAIN]),
    (points, "distance", NO_GAIN),
    (points, "modulus_tolerance", [1.5, *NO_GAIN]),
    (points, "iterations", NO_SIZE),
    (partial(near_identity_factors, HALF), "depth", NO_SIZE),
    (SMALL_NET, "blocks", NO_SIZE),
    (callbacks.RecurrentDiagnostics, "every", NO_SIZE),
    (EIGENVALUES, "points", [1]),
    (EIGENVALUES, "levels", [[[0, 0]]]),
    *((make, "samples", NO_SIZE) for make in (ADDING, COPYING, MATCH)),
    (ADDING, "length", [1]),
    (COPYING, "length", [20]),
    (COPYING, "copied", [0]),
    (COPYING, "symbols", [0]),
    (MATCH, "length", [16]),
    (MATCH, "stimuli", [1]),
    (MATCH, "period", [0]),
    (MATCH, "shortest_delay", [0, 35]),
    (FLIP_FLOP, "length", [0]),
    (FLIP_FLOP, "bits", [1.5]),
    (FLIP_FLOP, "pulse_probability", [1.1]),
]


@pytest.mark.parametrize("function, name, values", REFUSED)
def test_other_values_are_refused_by_name(function, name, values):
    for value in values:
        message = f"(?s)`{name}` must .*Received: {name}[ =]"
        with pytest.raises(ValueError, match=message):
            function(**{name: value})
