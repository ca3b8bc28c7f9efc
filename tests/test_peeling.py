import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st
from references import assert_same

from keras_rin.constructions import _peeling

pytestmark = pytest.mark.one_backend


def sorted_cloud(seed, n, k):
    z = np.random.default_rng(seed).normal(size=(n, k))
    z = z[np.argsort(-np.linalg.norm(z, axis=1))]
    return z / np.linalg.norm(z[0])


@settings(max_examples=50, deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 10**6),
    n=st.integers(1, 40),
    k=st.integers(1, 6),
    start=st.integers(0, 39),
    size=st.integers(1, 10),
    enough=st.sampled_from([0, 1e-3, 1]),
)
def test_a_unit_moves_its_points_and_no_later_one(
    seed, n, k, start, size, enough
):
    z = sorted_cloud(seed, n, k)
    start = min(start, n - 1)
    stop = min(start + size, n)
    targets = np.random.default_rng(seed + 1).normal(size=(stop - start, 3))
    u, t, gaps, v, fires = _peeling.separating_neurons(
        z, start, stop, targets, enough
    )
    active = np.maximum(z @ u.T - t, 0)
    assert_same(active[start:stop] @ v, targets, rtol=0, atol=1e-6)
    np.testing.assert_array_equal(active[stop:], 0)
    np.testing.assert_array_equal(active[start:stop] > 0, fires)


@settings(max_examples=50, deadline=None, derandomize=True)
@given(seed=st.integers(0, 10**6), n=st.integers(2, 40), k=st.integers(1, 6))
def test_a_gap_is_half_the_way_to_the_next_point(seed, n, k):
    z = sorted_cloud(seed, n, k)
    u, t, gaps, _, _ = _peeling.separating_neurons(
        z, 0, 1, np.ones((1, 1)), 1e-3
    )
    assert_same(np.linalg.norm(u), 1)
    scores = z @ u[0]
    assert_same((scores[0] - scores[1:].max()) / 2, gaps[0], atol=1e-12)
    assert_same((scores[0] + scores[1:].max()) / 2, t[0], atol=1e-12)
    # Nothing separates two points wider than the way between them.
    assert 0 < gaps[0] <= np.linalg.norm(z[0] - z[1:], axis=1).min() / 2


def test_chunks_change_nothing(monkeypatch):
    z, targets = sorted_cloud(0, 50, 3), np.ones((8, 1))
    whole = _peeling.separating_neurons(z, 10, 18, targets, 1)
    monkeypatch.setattr(_peeling, "CHUNK", 9)
    for one, other in zip(
        whole, _peeling.separating_neurons(z, 10, 18, targets, 1), strict=True
    ):
        assert_same(one, other, rtol=0, atol=1e-10)


@pytest.mark.parametrize("distance", [1e-2, 1e-4, 1e-6])
def test_a_turned_direction_tells_twins_of_one_size_apart(distance):
    """On a circle the first direction has a gap of distance^2 / 4."""
    angles = np.linspace(0, 2 * np.pi, 12, endpoint=False)
    angles = np.append(angles, distance)
    z = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    first, turned = (
        _peeling.separating_neurons(z, 0, 1, np.ones((1, 1)), enough)[2][0]
        for enough in (0, 1)
    )
    assert_same(first, distance**2 / 4, rtol=1e-2, atol=1e-12)
    # At best the cut lies along the tangent, between the next two points.
    assert turned > 0.05 * distance
