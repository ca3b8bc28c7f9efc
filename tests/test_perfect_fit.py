import keras
import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st
from references import to_numpy

from keras_rin.constructions import perfect_fit

pytestmark = pytest.mark.one_backend


def labels(model, x):
    """An independent pass in float64, by the formula of the docstring."""
    mean = np.float64(model.layers[0].mean)
    a, kernel, output, bias, w, b = (np.float64(v) for v in model.get_weights())
    h = (np.float32(x) - mean) @ a
    for u, v, s in zip(kernel, output, bias, strict=True):
        h = h + np.maximum(h @ u + s, 0) @ v
    assert np.isfinite(h).all()
    return (h @ w + b).argmax(axis=1)


def assert_fits(model, x, y):
    np.testing.assert_array_equal(labels(model, x), y)
    logits = to_numpy(model(np.float32(x)))
    np.testing.assert_array_equal(logits.argmax(axis=1), y)


@st.composite
def labelled_points(draw):
    """Points of any size and scale; some twice, some nearly."""
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    n, features = draw(st.integers(1, 60)), draw(st.integers(1, 12))
    scale = 10.0 ** draw(st.integers(-20, 20))
    x = rng.normal(size=(n, features)) * scale
    y = rng.integers(draw(st.integers(1, 100)), size=n)
    twins = x + 0.1 * scale * rng.normal(size=x.shape)
    keep = rng.random(n) < draw(st.sampled_from([0, 0.3]))
    x = np.concatenate([x, x[keep], twins[keep]])
    y = np.concatenate([y, y[keep], rng.integers(5, size=keep.sum())])
    return x + draw(st.sampled_from([0, 10])) * scale, y


@settings(max_examples=12, deadline=None, derandomize=True)
@given(data=labelled_points())
def test_every_point_gets_its_label(data):
    x, y = data
    model, margin = perfect_fit(x, y)
    assert 1e-6 < margin <= 1
    assert model.output_shape == (None, y.max() + 1)
    assert_fits(model, x, y)


@pytest.mark.parametrize("broken", [0.0, np.nan])
def test_a_network_that_does_not_fit_is_not_returned(monkeypatch, broken):
    def predict(self, x, **options):
        return np.full((len(x), 3), broken)

    monkeypatch.setattr(keras.Sequential, "predict", predict)
    with pytest.raises(ValueError, match=r"does not fit in the prec.*x\[[0-9]"):
        perfect_fit(np.arange(9.0)[:, None], np.arange(9) % 3)


@pytest.fixture(scope="module")
def thousand():
    rng = np.random.default_rng(42)
    x, y = rng.normal(size=(1000, 64)), rng.integers(10, size=1000)
    return x, y, *perfect_fit(x, y)


def test_it_has_as_many_weights_as_the_theorem_says(thousand):
    x, y, model, _ = thousand
    assert_fits(model, x, y)
    n, (d, r) = len(x), (64, 10)
    width = model.layers[1].units
    assert width == np.ceil(np.log(n))
    stack = model.layers[2]
    neurons = stack.depth * stack.units
    assert n <= neurons < n + stack.depth
    assert model.count_params() == (
        d * width + neurons * (2 * width + 1) + r * (width + 1)
    )
    assert model.count_params() < 2.5 * (n * np.log(n) + r**2)


def test_the_margin_is_the_distance_from_the_nearest_threshold(thousand):
    """Neuron i against the points from the i-th largest one on."""
    x, _, model, margin = thousand
    mean = np.float64(model.layers[0].mean)
    a, kernel, _, bias, *_ = (np.float64(v) for v in model.get_weights())
    z = (np.float32(x) - mean) @ a
    z = z[np.argsort(-np.linalg.norm(z, axis=1))]
    directions, thresholds = np.concatenate(kernel, axis=1), -bias.ravel()
    scores = z @ directions[:, : len(z)] - thresholds[: len(z)]
    waiting = np.tri(len(z), dtype=bool)
    assert np.diag(scores).min() > 0
    assert scores[waiting & ~np.eye(len(z), dtype=bool)].max() < 0
    nearest = np.abs(scores[waiting]).min()
    largest = np.linalg.norm(x / np.std(x, axis=0), axis=1).max()
    scale = np.linalg.norm(a * np.std(x, axis=0)[:, None], 2)
    assert margin == pytest.approx(nearest / (largest * scale), rel=0.3)


SMALL = {
    "on a line, at any distance": (
        np.array([0.0, 1e-3, 2e-3, 1, 1.001, 5, 5.0001])[:, None],
        [2, 0, 1, 1, 0, 1, 0],
    ),
    "one in the middle of all, without a direction": (
        np.array([[1.0, 0], [-1, 0], [0, 1], [0, -1], [0, 0]]),
        [0, 0, 0, 0, 1],
    ),
    "one of class 3": (np.full((1, 2), 7.0), [3]),
    "one four times": (np.full((4, 2), 7.0), [2] * 4),
    "features 18 digits apart, each of which is needed": (
        np.stack(np.meshgrid([0, 1e-9, 3e-9], [0, 1e9, 3e9]), -1).reshape(9, 2),
        np.arange(9),
    ),
    "features of any scale and without a difference": (
        np.random.default_rng(1).normal(size=(40, 4)) * [1e-9, 1, 1e9, 0]
        + [0, 0, 0, 5],
        np.arange(40) ** 2 % 3,
    ),
}


@pytest.mark.parametrize(("x", "y"), SMALL.values(), ids=SMALL)
def test_points_of_special_places_are_fitted(x, y):
    assert_fits(perfect_fit(x, np.array(y)).model, x, y)


def test_a_global_policy_does_not_change_the_network(thousand):
    before = keras.config.dtype_policy()
    keras.config.set_dtype_policy("mixed_bfloat16")
    try:
        x, y = thousand[0][:50], thousand[1][:50]
        model, _ = perfect_fit(x, y)
        assert_fits(model, x, y)
        assert {layer.compute_dtype for layer in model.layers} == {"float32"}
    finally:
        keras.config.set_dtype_policy(before)


TWO, POWERS = [[0.0], [1.0]], 2.0 ** np.arange(-60, 60)[:, None]
TWICE, NEAR = [[0.0, 1], [2, 3], [0, 1], [-0.0, 1]], [[1.0], [1 + 1e-12]]


@pytest.mark.parametrize(
    "x, y, message",
    [
        (np.ones(3), [0, 1, 2], "`x` must be of shape"),
        (np.ones((3, 0)), [0, 1, 2], "`x` must be of shape"),
        ([[0.0], [np.nan]], [0, 1], "`x` must contain finite.*1 finite"),
        ([[0.0], [1e39]], [0, 1], "`x` must contain finite.*1 finite"),
        (TWO, [0, 1, 0], r"`y` of shape .n,.*\(3,\)"),
        (TWO, [[0], [1]], r"`y` of shape .n,.*\(2, 1\)"),
        (TWO, [0.0, 1.0], "`y` must be integers.*float64"),
        (TWO, [0, -1], r"from 0 up.*\[ 0 -1\]"),
        (TWICE, [1, 1, 1, 7], r"x\[0\] and x\[3\].*y\[3\]=7"),
        (NEAR, [0, 1], r"x\[0\] and x\[1\] are the same in float32"),
        (POWERS, np.arange(120) % 2, r"this fit fails.*close to x\["),
        (
            [[0.0, 0], [1, 0], [1, 2e-7], [5, 5]],
            [0, 1, 0, 1],
            r"fails at width 4: .*x\[[12]\].*No larger width",
        ),
    ],
)
def test_other_data_is_refused(x, y, message):
    with pytest.raises(ValueError, match=message):
        perfect_fit(x, np.array(y))


def test_a_width_that_float32_cannot_hold_is_refused_with_one_it_can():
    rng = np.random.default_rng(3)
    x, y = rng.normal(size=(800, 20)), rng.integers(2, size=800)
    for width, message in (
        (1, "`width` must be an integer"),
        (2, "fails at width 2.*x.[0-9].*up to 21.*width=2"),
    ):
        with pytest.raises(ValueError, match=message):
            perfect_fit(x, y, width=width)
    assert perfect_fit(x, y, width=7).model.layers[1].units == 7
    twins = np.concatenate([x[:30], x[:30] + 1e-3 * rng.normal(size=(30, 20))])
    assert perfect_fit(twins, np.arange(60) // 30).model.layers[1].units > 5
