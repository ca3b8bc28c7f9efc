"""perfect_fit: a residual network that knows its training data by heart."""

import typing

import keras
import numpy as np
from numpy.typing import ArrayLike

from keras_rin import arguments
from keras_rin.constructions import peeling
from keras_rin.layers.residual_dense_stack import ResidualDenseStack

HIDDEN = 64  # at most, in a residual unit
ENOUGH = 1e-3  # a margin with which float32 has no trouble
ALLOWED = 0.25  # of the distance of two surrogates, lost to rounding
CLASSES = 2**20  # at most: each is a column of the last kernel
BATCH = 1024  # points at a time, when the network is tried on them
# Beyond 2^100 and 2^-100 the weights would leave the range of float32.
RANGE, SHIFT = 100, 64


class PerfectFit(typing.NamedTuple):
    """What `perfect_fit` returns: `model` and `margin`."""

    model: keras.Model
    margin: float


def perfect_fit(
    x: ArrayLike, y: ArrayLike, width: int | None = None
) -> PerfectFit:
    """Builds, without training, a network that classifies every point right.

    h_0 = (c x - mean) A,  h_{i+1} = h_i + relu(h_i U_i + s_i) V_i,
    logits = h_depth W + b

    Works for any labels and any points: points need to be distinct only
    where their labels differ. Each neuron waits for one point, is silent on
    all that have not been moved before, and moves its own to the place that
    stands for its label, a corner of a grid; the last layer takes the nearest
    corner. The last coordinate of h says which points have been moved.

    The number of weights is about n (2 width + 1). With the width this
    function chooses, ln n and more only where float32 needs it, that is the
    n ln n of the theorem, times about 2.2. The network is built in float64;
    the thresholds stand in the middle of their gaps, the points are
    standardised, so that they can be of any scale: c is 1, and a power of 2
    where the largest number of x is beyond 2^100 or below 2^-100. Numbers
    below 1.2e-38 are 0 to most processors in float32, and to this function.

    Before it is returned the network is run on all its points, on the backend
    and the device of the moment; on another device, with products of another
    precision, the margin is what counts.

    Args:
        x: Array of finite numbers of shape `(n, features)`. The network sees
            it in float32, and so does this function.
        y: Array of integers of shape `(n,)`, the classes, from 0, below
            2^20: the network has an output for each.
        width: Integer of at least 2, the size of h. Defaults to `None`: the
            smallest of a few, from ln n upwards, that float32 can hold.

    Returns:
        A named tuple of `model`, a `keras.Sequential` in float32 whose
        outputs `(batch, classes)` are largest at the class, and `margin`, the
        smallest distance of a point from a threshold, in units of the largest
        point. Rounding errors have to stay well below: float32 has about
        1e-7 of its own, TF32 1e-3, bfloat16 1e-2.

    Raises:
        ValueError: If `x` or `y` has another shape or type, if `x` has
            numbers that are not finite in float32, if points that are
            identical in float32 have different labels, if float32 cannot
            hold the margin, and then the message names the width that would
            do, or if the network that was built gives a point another label.

    Example:

    >>> x, y = np.array([[0.0], [1.0], [2.0]]), np.array([1, 0, 1])
    >>> model, margin = keras_rin.constructions.perfect_fit(x, y)
    >>> model.predict(x, verbose=0).argmax(axis=1)
    array([1, 0, 1])

    Reference:
        Hardt and Ma, 2017, Identity matters in deep learning (arXiv
        1611.04231), theorem 3.2; the order by norms, which needs no distance
        between the points, is ours.
    """
    if width is not None:
        width = arguments.integer("width", width, at_least=2)
    points, labels, places = _distinct(*_checked(x, y))
    cloud, widths = _Cloud(points, labels), _widths(*points.shape)
    stack = _Stack(cloud, width or widths[0])
    if stack.lost > ALLOWED:
        wider = _wide_enough(cloud, [w for w in widths if w > stack.width])
        if width is not None or wider is None:
            raise ValueError(_too_narrow(stack, wider, places))
        stack = wider
    model = _model(cloud, stack)
    _try(model, points, labels, places)
    return PerfectFit(model, float(stack.margin))


def _checked(x, y):
    with np.errstate(over="ignore", under="ignore"):
        x, y = arguments.real_array("x", x).astype("float32"), np.asarray(y)
    x[np.abs(x) < np.finfo("float32").tiny] = 0
    if x.ndim != 2 or 0 in x.shape:
        raise ValueError(
            "`x` must be of shape (n, features) with at least one of each. "
            f"Received: x of shape {x.shape}"
        )
    finite = np.isfinite(x).all(axis=1)
    if not finite.all():
        raise ValueError(
            "`x` must be finite in float32. Received: "
            f"x[{finite.argmin()}]={x[finite.argmin()]}"
        )
    if not np.issubdtype(y.dtype, np.integer) or y.shape != x.shape[:1]:
        raise ValueError(
            f"`y` must be integers of shape {x.shape[:1]}, one for each row "
            f"of `x`. Received: y of shape {y.shape} and dtype {y.dtype}"
        )
    if y.min() < 0:
        raise ValueError(
            "`y` must be classes from 0 upwards. "
            f"Received: y[{y.argmin()}]={y.min()}"
        )
    if y.max() >= CLASSES:
        raise ValueError(
            f"`y` must be classes below {CLASSES}, for the network has an "
            "output for each: numpy.unique(y, return_inverse=True) counts "
            f"those there are. Received: y[{y.argmax()}]={y.max()}"
        )
    return x, y


def _distinct(x, y):
    """Each point once, its label, and where in `x` it stands first."""
    points, first, where = np.unique(
        x, axis=0, return_index=True, return_inverse=True
    )
    where = where.reshape(-1)
    contradicted = y != y[first][where]
    if contradicted.any():
        i = contradicted.argmax()
        j = first[where[i]]
        raise ValueError(
            "Identical points must have the same label. Received: "
            f"x[{j}] and x[{i}] are the same in float32, y[{j}]={y[j]} and "
            f"y[{i}]={y[i]}. Numbers below 1.2e-38 are 0 in float32: where "
            "all are so small, multiply x"
        )
    return points.astype("float64"), y[first], first


def _widths(n, features):
    """From ln n to where more directions than features have nothing to add."""
    widths = [max(4, int(np.ceil(np.log(n))))]
    while widths[-1] < features + 1:
        widths.append(min(widths[-1] * 3 // 2, features + 1))
    return widths


class _Cloud:
    """The points with mean 0 and deviation 1 in every feature."""

    def __init__(self, points, labels):
        self.labels, self.classes = labels, int(labels.max()) + 1
        exponent = np.frexp(np.abs(points).max())[1]
        steps = np.sign(exponent) * (abs(exponent) > RANGE)
        self.factor = float(2.0 ** (-SHIFT * steps))
        points = points * self.factor
        # As the network subtracts it.
        self.mean = points.mean(axis=0).astype("float32")
        centred = points - self.mean
        # A feature that hardly differs would need a weight beyond float32.
        deviation = np.maximum(centred.std(axis=0), 2.0**-RANGE)
        self.weights = np.where(np.ptp(centred, axis=0) > 0, 1 / deviation, 0)
        self.points = centred * self.weights

    def projected(self, k):
        """A matrix to k dimensions, and the points there, the largest at 1."""
        projection = _projection(self.points.shape[1], k)
        z = self.points @ projection
        radius = np.linalg.norm(z, axis=1).max() or 1.0
        return projection / radius, z / radius

    def reach(self, order, projection):
        """The size of each point and all after it, before the projection."""
        scale = np.linalg.norm(projection, ord=2)
        sizes = np.linalg.norm(self.points, axis=1)[order] * scale
        largest = np.maximum.accumulate(sizes[::-1])[::-1]
        return np.where(largest > 0, largest, 1)


class _Stack:
    """The weights of the residual units, and what rounding does to them."""

    def __init__(self, cloud, width):
        n, self.width = len(cloud.points), width
        self.depth = -(-n // HIDDEN)
        self.hidden = -(-n // self.depth)
        self.projection, z = cloud.projected(width - 1)
        self.order = np.argsort(-np.linalg.norm(z, axis=1), kind="stable")
        self.corners, spacing = _corners(cloud.classes, width - 1)
        z, corners = z[self.order], self.corners[cloud.labels[self.order]]
        # Points already moved stand at height -1, where nothing fires.
        targets = np.column_stack([corners - z, np.full(n, -1.0)])
        height = np.linalg.norm(self.corners, axis=1).max() + 2
        self.kernel = np.zeros((self.depth, width, self.hidden))
        self.kernel[:, -1] = height
        self.bias = np.full((self.depth, self.hidden), -1.0)
        self.output_kernel = np.zeros((self.depth, self.hidden, width))
        self.margin, self.lost, self.weakest = np.inf, 0.0, 0
        roundoff = np.finfo("float32").eps * (1 + np.sqrt(width) / 4) / spacing
        reach = cloud.reach(self.order, self.projection)
        for i, start in enumerate(range(0, n, self.hidden)):
            self._add(i, start, z, targets, reach[start], roundoff)
            if self.lost > ALLOWED:
                break

    def _add(self, i, start, z, targets, reach, roundoff):
        """Writes unit i, which moves the points from `start` on."""
        rows = slice(start, min(start + self.hidden, len(z)))
        neurons = range(rows.stop - start)
        try:
            u, t, gaps, v, fires = peeling.unit_of(
                z, start, rows.stop, targets[rows], ENOUGH * reach
            )
        except peeling.NoGap as error:
            self.lost, self.weakest = np.inf, start + error.point
            return
        self.kernel[i, :-1, neurons] = u
        self.bias[i, neurons] = -t
        self.output_kernel[i, neurons] = v
        self.margin = min(self.margin, gaps.min() / reach)
        # What each neuron adds rounds on its own, so that squares add up.
        lost = roundoff * reach * np.sqrt(fires @ np.sum(v**2, axis=1))
        if lost.max() > self.lost:
            self.lost, self.weakest = lost.max(), start + gaps.argmin()


def _projection(features, k):
    """The coordinates themselves where there is room, else random ones."""
    if k >= features:
        return np.eye(features, k)
    gaussian = np.random.default_rng(0).normal(size=(features, k))
    return np.linalg.qr(gaussian)[0]


def _corners(classes, k):
    """Points of a grid around 0, one for each class, and their spacing."""
    levels = 2
    while levels**k < classes:
        levels += 1
    corners, rest = np.empty((classes, k)), np.arange(classes)
    for axis in range(k):
        rest, corners[:, axis] = np.divmod(rest, levels)
    corners -= corners.max(axis=0) / 2
    return corners / (levels - 1), 1 / (levels - 1)


def _model(cloud, stack):
    """The stack between a projection and the choice of the nearest corner."""
    rescaling = keras.layers.Rescaling(cloud.factor, dtype="float32")
    model = keras.Sequential(
        [
            keras.Input((len(cloud.mean),), dtype="float32"),
            *([] if cloud.factor == 1 else [rescaling]),
            keras.layers.Normalization(
                mean=cloud.mean,
                variance=np.ones_like(cloud.mean),
                dtype="float32",
            ),
            keras.layers.Dense(
                stack.width, use_bias=False, dtype="float32", name="projection"
            ),
            ResidualDenseStack(
                stack.depth,
                stack.hidden,
                kernel_initializer="zeros",
                dtype="float32",
            ),
            keras.layers.Dense(cloud.classes, dtype="float32", name="logits"),
        ],
        name="perfect_fit",
    )
    projection = cloud.weights[:, None] * stack.projection
    model.set_weights(
        [
            np.pad(projection, [(0, 0), (0, 1)]),
            stack.kernel,
            stack.output_kernel,
            stack.bias,
            np.pad(stack.corners, [(0, 0), (0, 1)]).T,
            -np.sum(stack.corners**2, axis=1) / 2,
        ]
    )
    return model


def _try(model, points, labels, places):
    """Runs the network where it is, in the precision it has there."""
    for start in range(0, len(points), BATCH):
        part = slice(start, start + BATCH)
        logits = model(points[part].astype("float32"), training=False)
        logits = keras.ops.convert_to_numpy(logits)
        found = np.where(np.isnan(logits).any(1), -1, logits.argmax(1))
        wrong = np.flatnonzero(found != labels[part])
        if wrong.size:
            i = start + wrong[0]
            raise ValueError(
                "The network does not fit in the precision in which it runs: "
                f"it gives x[{places[i]}] the class {found[wrong[0]]} for "
                f"{labels[i]}. Features of very different scales, or products "
                "rounded to less than float32, can be the reason. Received: "
                f"numbers in x between {np.abs(points).min():.2g} and "
                f"{np.abs(points).max():.2g} in size"
            )


def _wide_enough(cloud, widths):
    for width in widths:
        stack = _Stack(cloud, width)
        if stack.lost <= ALLOWED:
            return stack


def _too_narrow(stack, wider, places):
    cure = f"`width={wider.width}` can" if wider else "no width can"
    return (
        f"float32 cannot hold this fit at width {stack.width}, {cure}: another "
        f"point is too close to x[{places[stack.order[stack.weakest]]}], "
        f"which rounding may carry {min(stack.lost, 1):.2g} of the way to "
        f"another class, where {ALLOWED} is allowed. "
        f"Received: width={stack.width}"
    )
