"""How many fixed points are there, proven, and how many do searches miss?

RIN with ReLU learns the flip-flop task of three bits in 1,000 updates, and a
branch and bound finds all of its fixed points without input
(`fixed_points(layer, complete=True)`). *Missed* are those that two
other searches do not find: minimization of the speed from 300 and 3,000 states
near its trajectories, and restarts in the manner of SCYFI (Eisenmann et al.,
2023, arXiv 2310.17561, written from its equations): a random set of active
units, its linear fixed point, the set of that point, and so on for 20 steps,
from 300 and 3,000 sets. A point is found within 0.001. A cell has the median
(lowest to highest) of the seeds whose search was complete. Random networks have
V of deviation 1.2 / sqrt(units) and a normal drive. Seconds are those of a
processor that also did other work; nodes do not depend on it.
"""

import time

import keras
import numpy as np

import keras_rin
from engine import record
from engine.measurement import Variant
from engine.measurement import groups
from engine.measurement import spread
from engine.partial_runs import PartialRuns
from keras_rin import diagnostics
from keras_rin.tasks import flip_flop

LENGTH, BATCH, BITS = 40, 64, 3
FIELDS = "network", "units", "seed"
STEPS, CLOSE = 20, 1e-3


def measure(
    partial=None,
    units=(24,),
    seeds=range(5),
    random_units=(16, 24),
    starts=(300, 3_000),
    updates=1_000,
    seconds=900,
):
    runs = PartialRuns(partial, FIELDS)
    keys = [("trained", n, seed) for n in units for seed in seeds]
    keys += [("random", n, seed) for n in random_units for seed in seeds]
    return {
        "runs": runs.complete(
            keys, lambda *key: run(*key, starts, updates, seconds)
        )
    }


def run(network, units, seed, starts, updates, seconds):
    """All fixed points of one network, and what two searches miss."""
    keras.utils.set_random_seed(seed)
    rng = np.random.default_rng(seed)
    features = BITS if network == "trained" else 1
    layer = keras_rin.layers.RIN(units, return_sequences=True)
    if network == "trained":
        train(layer, rng, updates)
    else:
        layer.build((None, None, features))
        matrix = 1.2 * rng.normal(size=(units, units)) / units**0.5
        weights = np.zeros((1, units)), matrix - np.eye(units)
        layer.set_weights([*weights, rng.normal(size=units)])
    begin = time.process_time()
    points = diagnostics.fixed_points(
        layer, x=np.zeros(features), complete=True, seconds=seconds
    )
    result = {
        "points": len(points.states),
        "stable": int(points.stable.sum()),
        "nodes": points.evidence.nodes,
        "open": points.evidence.open_branches,
        "seconds": time.process_time() - begin,
    }
    if network == "trained":
        for count in starts:
            near = minimized(layer, rng, count)
            result[f"minimization {count}"] = missed(points, near)
            ends = restarted(layer, rng, count)
            result[f"restarts {count}"] = missed(points, ends)
    return result


def train(layer, rng, updates):
    model = keras.Sequential(
        [keras.Input((LENGTH, BITS)), layer, keras.layers.Dense(BITS)]
    )
    rate = keras.optimizers.schedules.CosineDecay(0.003, updates, 0.01)
    optimizer = keras.optimizers.Adam(rate, global_clipnorm=1.0)
    model.compile(optimizer, "mse", jit_compile=True)
    x, y = flip_flop.generate(rng, updates * BATCH, LENGTH, bits=BITS)
    model.fit(x, y, batch_size=BATCH, verbose=0)


def minimized(layer, rng, count):
    """The fixed points that minimization of the speed reaches."""
    x, _ = flip_flop.generate(rng, 100, LENGTH, bits=BITS)
    states = diagnostics.state_trajectories(layer, x)[:, 1:]
    states = rng.permutation(np.concatenate(states))[:count]
    states = states + 0.3 * rng.normal(size=states.shape)
    return diagnostics.fixed_points(layer, states, x=np.zeros(BITS)).states


def restarted(layer, rng, count):
    """The fixed points that linear fixed points of sets lead to."""
    matrix = diagnostics.recurrent_matrices(layer)["recurrent"]
    drive = np.asarray(layer.get_weights()[2], "float64")
    units = len(drive)
    is_active = rng.random((count, units)) < 0.5
    ends = []
    for _ in range(STEPS):
        # z = (z * active) V + c, of the arguments z.
        systems = np.eye(units) - is_active[:, :, None] * matrix
        transposed = np.swapaxes(systems, 1, 2)
        z = np.linalg.solve(transposed, np.tile(drive, (count, 1))[..., None])
        z = z[..., 0]
        is_same = ((z > 0) == is_active).all(axis=1)
        ends.append(np.maximum(z[is_same], 0))
        is_active = z > 0
        # A set that is its own begins anew.
        is_active[is_same] = rng.random((is_same.sum(), units)) < 0.5
    return np.concatenate(ends)


def missed(points, states):
    """How many of the points are far from all states."""
    if not len(states):
        return len(points.states)
    offsets = points.states[:, None] - states[None]
    distances = np.linalg.norm(offsets, axis=2).min(axis=1)
    return int((distances > CLOSE).sum())


def tables(results):
    trained, random = {}, {}
    for (network, units), runs in groups(
        results["runs"], "network", "units"
    ).items():
        (trained if network == "trained" else random)[units] = runs
    return {
        "Trained networks": _table(trained),
        "Random networks": _table(random),
    }


def _table(runs_by_units):
    header, rows = [], []
    for units, runs in runs_by_units.items():
        complete = [run for run in runs if not run["open"]]
        names = [key for key in runs[0] if key not in (*FIELDS, "open")]
        titles = [
            f"missed by {name} starts" if name[-1].isdigit() else name
            for name in names
        ]
        header = ["units", "complete", *titles]
        cells = [
            spread([run[name] for run in complete]) if complete else ""
            for name in names
        ]
        rows.append([units, f"{len(complete)} of {len(runs)}", *cells])
    return record.markdown(header, rows)


VARIANTS = {
    "": Variant(),
    "larger": Variant(
        "Larger networks", {"units": (48,), "random_units": (32, 40)}
    ),
}
SMALLEST = {
    "units": (16,),
    "seeds": (0,),
    "random_units": (16,),
    "starts": (20,),
    "updates": 2,
    "seconds": 5,
}
