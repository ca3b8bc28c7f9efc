"""perfect_fit: a residual network that memorizes its training data."""

import typing

import keras
import numpy as np
import scipy
from numpy.typing import ArrayLike

from keras_rin import _arguments
from keras_rin.constructions._residual_blocks import ResidualDenseStack

MOST_UNITS = 64  # largest number of neurons in a residual block
LARGEST_SHARE = 0.25  # of the distance of two labels, taken by rounding
SMALLEST_DEVIATION = 1e-30  # a smaller one needs a weight beyond float32


class PerfectFit(typing.NamedTuple):
    """What `perfect_fit` returns: a network and its margin.

    Attributes:
        model: A `keras.Sequential` in float32, whose outputs
            `(batch, classes)` are largest at the class.
        margin: Float, the smallest distance of a point from a threshold,
            relative to the length of the longest point. It has to be well
            above the rounding errors: about 1e-7 in float32, 1e-3 in TF32,
            1e-2 in bfloat16.
    """

    model: keras.Model
    margin: float


def perfect_fit(
    x: "ArrayLike", y: "ArrayLike", *, width: int | None = None
) -> PerfectFit:
    """Computes the weights of a network that classifies every point correctly.

    h_0 = (x - mean) A,  h_{i+1} = h_i + relu(h_i U_i + s_i) V_i,
    logits = h_depth W + b

    Nothing is trained, and labels and points are arbitrary: only points with
    different labels have to be distinct. Each neuron is active on one point
    and inactive on all that have not been moved yet. It moves its point to
    the location of its label, a corner of a grid, and the last layer returns
    the nearest corner. The last coordinate of h is a flag of moved points.

    The number of weights is about n (2 width + 1). With the default width,
    which is ln(n) unless float32 needs more, that is the n ln(n) of the
    theorem, times about 2.2. The network is computed in float64 and run on
    all points before it is returned, on the current backend and device. On a
    device with less precise products, compare the margin with that precision.

    Args:
        x: Array of finite numbers of shape `(n, features)`, converted to
            float32.
        y: Integer array of shape `(n,)`, the classes, from 0 upwards. The
            network has one output per class.
        width: Integer of at least 2, dimensionality of h. Defaults to `None`:
            the smallest width from about ln(n) upwards that suffices in
            float32.

    Returns:
        A `PerfectFit`, a named tuple `(model, margin)`.

    Raises:
        ValueError: If points that are identical in float32 have different
            labels, or the margin is too small for float32 at this width.
        ValueError: If the network misclassifies a point on this device.

    Example:

    >>> x, y = np.array([[0.0], [1.0], [2.0]]), np.array([1, 0, 1])
    >>> model, margin = keras_rin.constructions.perfect_fit(x, y)
    >>> model.predict(x, verbose=0).argmax(axis=1)
    array([1, 0, 1])

    Reference:
        Hardt and Ma, 2017, Identity matters in deep learning (arXiv
        1611.04231), theorem 3.2. The order by length, which needs no minimum
        distance between points, was introduced by this package.
    """
    if width is not None:
        width = _arguments.integer("width", width, at_least=2)
    points, labels, first_indices = _distinct(*_checked(x, y))
    mean, scale = _standardization(points)
    standardized = (points - mean) * scale
    n, features = points.shape
    narrowest, widest = width or max(4, int(np.ceil(np.log(n)))), features + 1
    while True:
        try:
            weights, margin = _weights(standardized, labels, narrowest)
            break
        except _TooNarrow as error:
            if width or narrowest >= widest:
                raise ValueError(
                    f"In float32 this fit fails at width {narrowest}: another "
                    f"point is too close to x[{first_indices[error.point]}], "
                    "which rounding may move to another class. "
                    + (
                        f"A larger width may suffice, up to {widest}."
                        if narrowest < widest
                        else "No larger width would move them apart."
                    )
                    + f" Received: width={narrowest}"
                ) from None
            narrowest = min(narrowest * 3 // 2, widest)
    weights[0] *= scale[:, None]
    model = _model(mean, weights)
    _check_predictions(model, points, labels, first_indices)
    return PerfectFit(model, float(margin))


def _checked(x, y):
    with np.errstate(over="ignore"):
        x, y = _arguments.real_array("x", x).astype("float32"), np.asarray(y)
    _arguments.finite_array("x", x)
    if x.ndim != 2 or not x.size or y.shape != x.shape[:1]:
        raise ValueError(
            "`x` must be of shape (n, features) with at least one of each, and "
            f"`y` of shape (n,). Received: shapes {x.shape} and {y.shape}"
        )
    if y.dtype.kind not in "iu" or y.min() < 0:
        raise ValueError(
            "`y` must be integers from 0 upwards. "
            f"Received: y of dtype {y.dtype}: {y}"
        )
    return x, y


def _distinct(x, y):
    """The distinct points, their labels and first indices in `x`."""
    points, first, inverse = np.unique(
        x, axis=0, return_index=True, return_inverse=True
    )
    inverse = inverse.reshape(-1)
    contradicted = y != y[first][inverse]
    if contradicted.any():
        i = contradicted.argmax()
        j = first[inverse[i]]
        raise ValueError(
            "Identical points must have the same label. Received: "
            f"x[{j}] and x[{i}] are the same in float32, y[{j}]={y[j]} and "
            f"y[{i}]={y[i]}"
        )
    return points.astype("float64"), y[first], first


def _standardization(points):
    """The mean, which the network subtracts in float32, and 1 / deviation."""
    mean = points.mean(axis=0).astype("float32")
    deviation = np.maximum((points - mean).std(axis=0), SMALLEST_DEVIATION)
    return mean, np.where(np.ptp(points, axis=0) > 0, 1 / deviation, 0)


class _TooNarrow(Exception):
    """Rounding may move a point by too much of the distance to a class."""

    def __init__(self, point):
        self.point = point


def _weights(points, labels, width):
    """The weights of the network, and its margin.

    Points are sorted by length, the longest first. Then a hyperplane separates
    each point a from all later points b: <a, b> < <a, a>. One neuron for each
    is therefore enough. It is active on its own point, on some before it in
    the block, which gives a triangular system for the moves, and on none later.
    """
    depth = -(-len(points) // MOST_UNITS)
    units = -(-len(points) // depth)
    projection = _projection(points.shape[1], width - 1)
    projection /= np.linalg.norm(points @ projection, axis=1).max() or 1
    z = points @ projection
    order = np.argsort(-np.linalg.norm(z, axis=1), kind="stable")
    z = z[order]
    corners, spacing = _corners(int(labels.max()) + 1, width - 1)
    # Moved points have the last coordinate -1, where no neuron is active.
    targets = np.pad(corners[labels[order]] - z, [(0, 0), (0, 1)])
    targets[:, -1] = -1
    kernel = np.zeros((depth, width, units))
    kernel[:, -1] = np.linalg.norm(corners, axis=1).max() + 2
    bias = np.full((depth, units), -1.0)
    output_kernel = np.zeros((depth, units, width))
    # The projection of a point rounds by as much as the point is long.
    reach = np.linalg.norm(points, axis=1).max() or 1
    reach *= np.linalg.norm(projection, ord=2) or 1
    roundoff = np.finfo("float32").eps * (1 + np.sqrt(width) / 4) / spacing
    margin = np.inf
    for block, start in enumerate(range(0, len(z), units)):
        moved = slice(start, start + units)
        directions, gaps = _directions(z[start:], units)
        count = len(gaps)
        thresholds = np.linalg.norm(z[moved], axis=1) - gaps
        active = np.triu(np.maximum(z[moved] @ directions.T - thresholds, 0))
        if gaps.min() <= 0:
            raise _TooNarrow(order[start + gaps.argmin()])
        moves = scipy.linalg.solve_triangular(active, targets[moved])
        # The rounding errors of the neurons are independent: squares add up.
        squares = (active > 0) @ (moves**2).sum(axis=1)
        share = roundoff * reach * np.sqrt(squares.max())
        if not share <= LARGEST_SHARE:
            raise _TooNarrow(order[start + gaps.argmin()])
        kernel[block, :-1, :count] = directions.T
        bias[block, :count] = -thresholds
        output_kernel[block, :count] = moves
        margin = min(margin, gaps.min() / reach)
    return [
        np.pad(projection, [(0, 0), (0, 1)]),
        kernel,
        output_kernel,
        bias,
        np.pad(corners, [(0, 0), (0, 1)]).T,
        -np.sum(corners**2, axis=1) / 2,
    ], margin


def _directions(z, units):
    """The directions of the first points, and the gaps to all later ones.

    A gap is half of what a point has above the others in its direction.
    """
    lengths = np.linalg.norm(z[:units], axis=1)
    directions = z[:units] / np.where(lengths > 0, lengths, 1)[:, None]
    scores = directions @ z.T
    scores[np.tri(*scores.shape) > 0] = -np.inf  # no later point
    return directions, np.minimum((lengths - scores.max(axis=1)) / 2, 1)


def _projection(features, k):
    """The identity if k suffices for all features, or a random projection."""
    if k >= features:
        return np.eye(features, k)
    gaussian = np.random.default_rng(0).normal(size=(features, k))
    return np.linalg.qr(gaussian)[0]


def _corners(classes, k):
    """Grid points around 0, one for each class, and their spacing."""
    levels = 2
    while levels**k < classes:
        levels += 1
    corners, codes = np.empty((classes, k)), np.arange(classes)
    for axis in range(k):
        codes, corners[:, axis] = np.divmod(codes, levels)
    corners -= corners.max(axis=0) / 2
    return corners / (levels - 1), 1 / (levels - 1)


def _model(mean, weights):
    """Projection, residual blocks and the choice of the nearest corner."""
    depth, width, units = weights[1].shape
    float32: dict[str, typing.Any] = {"dtype": "float32"}
    layers, variance = keras.layers, np.ones_like(mean)
    model = keras.Sequential(
        [
            keras.Input(mean.shape, **float32),
            layers.Normalization(mean=mean, variance=variance, **float32),
            layers.Dense(width, use_bias=False, name="projection", **float32),
            ResidualDenseStack(units, depth, **float32),
            layers.Dense(len(weights[-1]), name="logits", **float32),
        ],
        name="perfect_fit",
    )
    model.set_weights(weights)
    return model


def _check_predictions(model, points, labels, first_indices):
    """Runs the network on its points, on the current backend and device."""
    logits = model.predict(points.astype("float32"), verbose=0)
    predictions = np.where(np.isnan(logits).any(1), -1, logits.argmax(1))
    wrong = np.flatnonzero(predictions != labels)
    if wrong.size:
        raise ValueError(
            "The network does not fit in the precision of this device, as "
            "with products of less than float32: it gives "
            f"x[{first_indices[wrong[0]]}] the class {predictions[wrong[0]]} "
            f"instead of {labels[wrong[0]]}."
        )
