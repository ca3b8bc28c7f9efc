"""Networks with ReLU, and all fixed points of one by another way."""

import functools
import itertools

import keras
import numpy as np
from references import built
from scipy import optimize

from keras_rin.layers import RIN
from keras_rin.layers import RateRNN

RATE = functools.partial(RateRNN, tau=4.0)


def network(matrix, drive, kind=keras.layers.SimpleRNN):
    """A layer that computes relu(h V + c + x), or rates of it, in float64."""
    units = len(matrix)
    layer = kind(units, activation="relu", dtype="float64")
    built(layer, features=units)
    offset = np.eye(units) * (kind is RIN)
    layer.set_weights([np.eye(units), matrix - offset, np.full(units, drive)])
    return layer


def in_order(states):
    return np.array(sorted(np.round(states, 9).tolist()))


def points_by_linear_programs(matrix, drive):
    """h >= 0 with h = h V + c in a set and h V + c <= 0 = h outside of it."""
    units, points = len(matrix), []
    for is_active in itertools.product([False, True], repeat=units):
        is_active = np.array(is_active)
        difference = (np.eye(units) - matrix).T
        result = optimize.linprog(
            np.zeros(units),
            A_eq=difference[is_active] if is_active.any() else None,
            b_eq=drive[is_active] if is_active.any() else None,
            A_ub=-difference[~is_active] if not is_active.all() else None,
            b_ub=-drive[~is_active] if not is_active.all() else None,
            bounds=[(0, None) if on else (0, 0) for on in is_active],
        )
        points += [result.x] if result.status == 0 else []
    return np.array(points).reshape(-1, units)
