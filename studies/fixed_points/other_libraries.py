"""What do SciPy and clvlib find in the same network?

A RIN with tanh is trained as in [three bits](#three-bits), with seed 0. Fixed
points are searched from the same 400 states under zero input; `optimize.root`
of SciPy starts from one after the other, and roots closer than 1e-3 are one.
Lyapunov exponents are those of 2,000 time steps of zero input, which lead to a
stable point: they are the logarithms of the moduli of the eigenvalues there.
`lyapunov_spectrum` reads ten sequences, clvlib one. Seconds are of one call,
beside other work, so only their order counts.
"""

import time

import numpy as np
from fixed_points import three_bits
from scipy import optimize
from scipy.cluster import hierarchy

from engine import record
from keras_rin import diagnostics


class Network:
    """A RIN under zero input, as functions of time and state."""

    def __init__(self, layer):
        _, offset, self.bias = map(np.float64, layer.get_weights())
        self.matrix = offset + np.eye(len(offset))

    def step(self, t, state):
        return np.tanh(state @ self.matrix + self.bias)

    def jacobian(self, t, state):
        return (1 - self.step(t, state) ** 2)[:, None] * self.matrix.T

    def largest_exponent(self, state):
        """That of a fixed point."""
        return np.log(abs(np.linalg.eigvals(self.jacobian(0, state)))).max()

    def roots(self, states):
        functions = {
            "fun": lambda s: self.step(0, s) - s,
            "jac": lambda s: self.jacobian(0, s) - np.eye(len(s)),
        }
        ends = [optimize.root(x0=state, **functions) for state in states]
        roots = np.array([end.x for end in ends if end.success])
        numbers = hierarchy.fclusterdata(roots, 1e-3, "distance")
        _, first = np.unique(numbers, return_index=True)
        return roots[first], len(ends) - len(roots)


def timed(call, *arguments, **options):
    start = time.perf_counter()
    return call(*arguments, **options), time.perf_counter() - start


def measure(updates=1_000, steps=2_000):
    from clvlib import lyap_exp_from_ic

    model, _ = three_bits.train("RIN, tanh", 0, updates)
    layer, rng = model.layers[0], np.random.default_rng([0, 1])
    x, trajectories, states = three_bits.states_near(layer, rng)
    network, end = Network(layer), trajectories[0, -1].astype("float64")
    x = np.concatenate([x[[0] * 10], np.zeros((10, steps, 3))], axis=1)
    case = network.step, network.jacobian, end, np.arange(steps + 1.0)
    points, *took = timed(diagnostics.fixed_points, layer, states, x=[0] * 3)
    counts = [len(points.states), sum(points.stable)]
    counts.append(len(points.unconverged_states))
    (roots, failed), *of_scipy = timed(network.roots, states)
    stable = sum(network.largest_exponent(root) < 0 for root in roots)
    spectrum, *of_spectrum = timed(diagnostics.lyapunov_spectrum, layer, x)
    theirs, *of_clvlib = timed(lyap_exp_from_ic, *case, stepper="discrete")
    at_rest = network.largest_exponent(theirs[-1][-1])
    distances = np.linalg.norm(points.states[:, None] - roots, axis=-1)
    rows = {
        "fixed_points": [*counts, *took],
        "scipy.optimize.root": [len(roots), stable, failed, *of_scipy],
        "lyapunov_spectrum": [max(spectrum.exponents), *of_spectrum],
        "clvlib.lyap_exp_from_ic": [max(theirs[0]), *of_clvlib],
        "where the state comes to rest": [at_rest],
    }
    rows = {name: list(map(float, row)) for name, row in rows.items()}
    return {"both": int((distances.min(axis=0) < 1e-3).sum()), "rows": rows}


def tables(results):
    rows = [
        [name, *(f"{value:.3g}" for value in row)]
        for name, row in results["rows"].items()
    ]
    points = ["function", "points", "stable", "unconverged, of 400", "seconds"]
    exponents = ["function", "largest exponent", "seconds"]
    caption = f"Fixed points, {results['both']} of which both find"
    return {
        caption: record.markdown(points, rows[:2]),
        "Lyapunov exponents": record.markdown(exponents, rows[2:]),
    }


SMALLEST = {"updates": 20, "steps": 20}
