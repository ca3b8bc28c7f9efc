"""All cycles of a network with ReLU, as fixed points of all their phases."""

import operator
import typing

import keras
import numpy as np
from numpy.typing import ArrayLike

from keras_rin import _arguments
from keras_rin.diagnostics._fixed_points import active_sets
from keras_rin.diagnostics._fixed_points import kinds
from keras_rin.diagnostics._fixed_points.branch_and_bound import Search
from keras_rin.diagnostics._fixed_points.branch_and_bound import SearchEvidence
from keras_rin.diagnostics._fixed_points.branch_and_bound import network_problem
from keras_rin.diagnostics._fixed_points.branch_and_bound import run
from keras_rin.diagnostics._fixed_points.fixed_points import checked_limits
from keras_rin.diagnostics._fixed_points.threshold_linear import (
    threshold_linear,
)


class Cycles(typing.NamedTuple):
    """What `cycles` returns, an entry for each cycle, stable ones first.

    Its line is how many there are of each kind, and whether these are all.

    Attributes:
        states: Array `(cycles, period, units)`, one state after the other.
        multipliers: Complex array `(cycles, units)`, the eigenvalues of the
            product of the Jacobians along a cycle, the largest modulus first.
        neutral: Integer array `(cycles,)`, the number of directions in which
            the modulus is 1, and of units on a border of linear pieces.
        expanding: Integer array `(cycles,)`, the number of directions.
        dimension: Integer array `(cycles,)`, 0 for an isolated cycle, for a
            continuum of them the number of directions along it.
        evidence: A `SearchEvidence`: whether these are all cycles.
    """

    states: np.ndarray
    multipliers: np.ndarray
    neutral: np.ndarray
    expanding: np.ndarray
    dimension: np.ndarray
    evidence: SearchEvidence

    @property
    def stable(self) -> np.ndarray:
        """Whether all directions of a cycle contract, Boolean `(cycles,)`."""
        return (self.neutral == 0) & (self.expanding == 0)

    def __repr__(self):
        units, period = self.multipliers.shape[1], self.states.shape[1]
        contracting = units - self.neutral - self.expanding
        text = kinds.counts_of_kinds(self, contracting) or "no cycle"
        return f"{text}, of period {period}; {self.evidence}"


def cycles(
    layer: keras.Layer,
    period: int,
    *,
    x: "ArrayLike | None" = None,
    modulus_tolerance: float = 1e-6,
    seconds: float | None = None,
) -> Cycles:
    """All cycles of one period of a network with ReLU under a constant input.

    s_{t+1} = F(s_t, x), s_{t + period} = s_t

    They are the fixed points of a network of period * units units, of which the
    search of `fixed_points(layer, complete=True)` finds all. Each cycle comes
    once, and not as a cycle of a multiple of its period.

    Args:
        layer: A built SimpleRNN, RIN or RateRNN with ReLU, or its cell.
        period: Integer of at least 2, number of time steps.
        x: Array `(features,)`, finite, the constant input. Defaults to
            `None`: zeros.
        modulus_tolerance: Number from 0 to 1, as in `fixed_points`. Defaults
            to 1e-6.
        seconds: Positive number, after which the search ends with what it has
            found, as Ctrl-C does. Defaults to `None`: when it is done.

    Returns:
        A `Cycles`, a named tuple.

    Raises:
        ValueError: If the layer is not of that kind, an argument is not as
            above, or there are continua in more than 64 sets of active units.

    Example: a unit that inhibits itself.

    >>> layer = keras.layers.SimpleRNN(1, "relu", bias_initializer="ones")
    >>> layer.build((None, None, 1))
    >>> _ = layer.cell.recurrent_kernel.assign([[-2.0]])
    >>> cycles = keras_rin.diagnostics.cycles(layer, period=2)
    >>> cycles.states[0].ravel()
    array([1., 0.])
    >>> cycles.stable
    array([ True])

    Reference:
        Eisenmann, Monfared, Goring and Durstewitz, 2023, Bifurcations and loss
        jumps in RNN training (arXiv 2310.17561), which finds cycles by
        restarts.
    """
    network = threshold_linear(layer, "`cycles`")
    drive = network.drive(x)
    period = _arguments.integer("period", period, at_least=2)
    tolerance, seconds = checked_limits(modulus_tolerance, seconds)
    unrolled = _unrolled(network, drive, period, tolerance)
    pieces = active_sets.Pieces(unrolled)
    # Of the phases of a cycle the first one has the largest sum of rates.
    weights = np.random.default_rng(0).uniform(0.5, 1.5, network.units)
    first = np.eye(period)[0] - np.eye(period)[1:]
    problem = network_problem(
        unrolled.matrix, unrolled.drive, cuts=np.kron(first, weights)
    )
    search = Search(problem, pieces.accept, tolerance)
    evidence = run(search, seconds, "simplex")
    solutions = _distinct_cycles(pieces.solutions(), unrolled, period)
    entries = [
        _directions(network, solution, period, tolerance)
        | {"states": _states(network, unrolled, solution, period)}
        | {"dimension": solution.dimension}
        for solution in solutions
    ]
    entries.sort(key=operator.itemgetter("expanding", "neutral"))
    fields = kinds.columns(
        entries, states=(period, network.units), eigenvalues=(network.units,)
    )
    multipliers = fields.pop("eigenvalues")
    return Cycles(**fields, multipliers=multipliers, evidence=evidence)


def _unrolled(network, drive, period, tolerance):
    """The rates of all phases as one network a = relu(a B + d).

    s_{t+1} = (1 - leak) s_t + leak (a_t V + c) is solved for all s.
    """
    leak = 1.0 if network.leak is None else network.leak
    shift = np.roll(np.eye(period), 1, axis=1)  # row t drives column t + 1
    mixed = leak * np.linalg.solve(np.eye(period) - (1 - leak) * shift, shift)
    matrix = np.kron(mixed, network.matrix)
    return active_sets.Network(matrix, np.tile(drive, period), tolerance)


def _states(network, unrolled, solution, period):
    """The states of a cycle, `(period, units)`."""
    rates = solution.states[0]
    states = rates if network.leak is None else unrolled.arguments(rates)
    return states.reshape(period, network.units)


def _distinct_cycles(solutions, unrolled, period):
    """Solutions of this period, one of those that differ by their phase."""
    slack = max(1e-9, unrolled.tolerance)
    distinct: list[active_sets.Solution] = []
    for solution in solutions:
        members = solution.states.reshape(len(solution.states), period, -1)
        size = slack * np.abs(members).max(axis=(1, 2), initial=unrolled.scale)
        distances = np.min(
            [
                np.abs(np.roll(members, k, axis=1) - members).max(axis=(1, 2))
                for k in range(1, period)
                if period % k == 0
            ],
            axis=0,
        )
        k = (distances - size).argmax()
        if distances[k] <= size[k]:  # a cycle of a shorter period
            continue
        solution = solution._replace(states=solution.states[k : k + 1])
        if not any(
            _same(solution, other, period, size[k]) for other in distinct
        ):
            distinct.append(solution)
    return distinct


def _same(first, second, period, slack):
    """Whether two solutions are one cycle, or continuum of cycles."""
    if first.dimension != second.dimension:
        return False
    if first.dimension:
        pair = first.is_active, second.is_active
    else:
        pair = first.states[0], second.states[0]
    here, there = np.array(pair, float).reshape(2, period, -1)
    turns = (np.roll(there, k, axis=0) for k in range(period))
    return any(np.abs(here - turn).max() <= slack for turn in turns)


def _directions(network, solution, period, tolerance):
    is_active = solution.is_active.reshape(period, network.units)
    jacobians = network.jacobian(is_active)
    if network.leak is None:  # J has the slopes of the new state
        jacobians = np.roll(jacobians, -1, axis=0)
    product = np.eye(network.units)
    for jacobian in jacobians:
        product = jacobian @ product
    borders = np.count_nonzero(solution.is_border)
    return kinds.directions(product, tolerance, borders)
