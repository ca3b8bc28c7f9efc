"""Separates points one by one, with one neuron each, block by block.

If points are sorted by length, the longest first, a hyperplane separates each
point a from all later points b: <a, b> < <a, a> if b is shorter than a, or of
equal length and different. One neuron per point therefore suffices for any
points. It is active on its own point, on some points before it in the same
block, which gives a triangular system for the moves, and on no later point.
"""

import numpy as np
import scipy

CHUNK = 8192  # number of points at a time, which bounds the memory
ROUNDS = 100  # largest number of changes of a direction


def separating_neurons(z, start, stop, targets, enough):
    """The neurons that move the points `start` to `stop` and no later one.

    Args:
        z: float64 array of shape `(n, k)`, the longest point first.
        start, stop: Integers, which points are moved.
        targets: Array of shape `(stop - start, m)`, the required moves.
        enough: Float, a sufficient gap.

    Returns:
        `directions` `(stop - start, k)`, of length 1, `thresholds` and `gaps`
        `(stop - start,)`, `moves` `(stop - start, m)`, which are infinite if
        rounding closes a gap, and `is_active`, booleans: whether a point (row)
        activates a neuron (column).
    """
    points = z[start:stop]
    directions, gaps = _directions(z, start, stop, enough)
    scores = points @ directions.T
    thresholds = np.diag(scores) - gaps
    active = np.triu(np.maximum(scores - thresholds, 0))
    if np.diag(active).all():
        moves = scipy.linalg.solve_triangular(active, targets)
    else:
        moves = np.full_like(targets, np.inf)
    return directions, thresholds, gaps, moves, active > 0


def _directions(z, start, stop, enough):
    """The directions of the points, changed if the gap is small."""
    points = z[start:stop]
    directions = _unit_length(points)
    gaps, rivals = _gaps(z, start, np.arange(stop - start), directions)
    normals = points - z[rivals]
    for _ in range(ROUNDS):
        # No direction has a wider gap than half the length of a normal.
        bound = np.linalg.norm(normals, axis=1) / 2
        weak = np.flatnonzero(gaps < np.minimum(enough, bound / 2))
        if weak.size == 0:
            break
        new_directions = _unit_length(normals[weak])
        new_gaps, rivals = _gaps(z, start, weak, new_directions)
        better = new_gaps > gaps[weak]
        directions[weak[better]] = new_directions[better]
        gaps[weak[better]] = new_gaps[better]
        normals[weak] = _nearest_on_segment(
            normals[weak], points[weak] - z[rivals]
        )
    return directions, gaps


def _gaps(z, start, columns, directions):
    """Half the distance, along its direction, of each point to the later ones.

    Of the points `start + columns`; also the indices of the closest ones.
    """
    best = np.full(len(columns), -np.inf)
    rivals = start + columns
    for first in range(start, len(z), CHUNK):
        scores = directions @ z[first : first + CHUNK].T
        if first == start:
            early = np.arange(columns[-1] + 1) <= columns[:, None]
            scores[:, : columns[-1] + 1][early] = -np.inf
        closest = scores.argmax(axis=1)
        value = np.take_along_axis(scores, closest[:, None], 1)[:, 0]
        rivals = np.where(value > best, first + closest, rivals)
        best = np.maximum(best, value)
    point_scores = np.sum(z[start + columns] * directions, axis=1)
    return np.minimum((point_scores - best) / 2, 1), rivals


def _nearest_on_segment(a, b):
    """The points closest to the origin on the segments from a to b.

    Iterated with the closest b, they converge to the normal of the widest gap
    (Gilbert's algorithm).
    """
    step = a - b
    length = np.sum(step**2, axis=1, keepdims=True)
    along = np.sum(a * step, axis=1, keepdims=True)
    share = np.divide(along, length, out=np.zeros_like(along), where=length > 0)
    return a - np.clip(share, 0, 1) * step


def _unit_length(vectors):
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.divide(
        vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0
    )
