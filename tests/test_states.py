import numpy as np
import pytest
from references import drawn_lines

from keras_rin import plots
from keras_rin.diagnostics._fixed_points import FixedPoints

pytestmark = pytest.mark.one_backend

POINTS = FixedPoints(
    states=np.diag([3.0, 2.0, 1.0]),
    speeds=np.zeros(3),
    jacobians=np.zeros((3, 3, 3)),
    eigenvalues=np.zeros((3, 3), complex),
    contracting=np.array([3, 2, 1]),
    neutral=np.array([0, 1, 0]),
    expanding=np.array([0, 0, 2]),
    dimension=np.array([0, 1, 0]),
    members=[
        np.array([[3.0, 0, 0]]),
        np.array([[0, 2.0, 0], [0, 3.0, 0]]),
        np.array([[0, 0, 1.0]]),
    ],
    starts=np.array([1, 2, 1]),
    unconverged_states=np.zeros((0, 3)),
    unconverged_speeds=np.zeros(0),
)


def distances(points):
    return np.linalg.norm(points[:, None] - points[None], axis=2)


def test_fixed_points_are_projected_on_the_plane_of_the_trajectories(rng):
    """Rotated, points in a plane keep their distances, by kind."""
    rotation = np.linalg.qr(rng.normal(size=(3, 3))).Q
    flat = rng.normal(size=(4, 6, 3)) * [3, 1, 0]
    members = [m * [1, 1, 0] @ rotation for m in POINTS.members]
    found = POINTS._replace(members=members)
    figure = plots.plot_fixed_points(found, flat @ rotation)
    drawn = drawn_lines(figure)
    kinds = ["stable (1)", "saddle, 2 unstable (1)"]
    kinds.append("continuum of dimension 1 (1)")
    points = np.concatenate([drawn[kind].T for kind in kinds])
    every = np.concatenate([members[0], members[2], members[1]])
    np.testing.assert_allclose(distances(points), distances(every))
    walks = figure.axes[0].get_lines()[:4]
    walked = np.concatenate([line.get_xydata() for line in walks])
    np.testing.assert_allclose(
        distances(walked), distances(flat.reshape(-1, 3))
    )


def test_states_of_one_number_are_drawn_on_a_line():
    members = [np.array([[-1.0]]), np.array([[1.0]])]
    found = POINTS._replace(
        contracting=np.array([1, 1]),
        neutral=np.array([0, 0]),
        expanding=np.array([0, 0]),
        dimension=np.array([0, 0]),
        members=members,
    )
    drawn = drawn_lines(plots.plot_fixed_points(found))["stable (2)"]
    np.testing.assert_allclose(drawn, [[-1, 1], [0, 0]])


def test_kinds_of_points_have_a_label_each():
    states = np.arange(10.0).reshape(5, 1, 2)
    found = POINTS._replace(
        contracting=np.array([2, 1, 0, 1, 0]),
        neutral=np.array([0, 1, 2, 0, 0]),
        expanding=np.array([0, 0, 0, 1, 2]),
        dimension=np.array([0, 0, 1, 0, 0]),
        members=list(states),
    )
    labels = list(drawn_lines(plots.plot_fixed_points(found)))
    assert labels == [
        "neutral in 1 (1)",
        "stable (1)",
        "saddle, 1 unstable (1)",
        "source, 2 unstable (1)",
        "continuum of dimension 1 (1)",
    ]


def test_with_nothing_to_draw_it_says_so():
    found = POINTS._replace(members=[])
    with pytest.raises(ValueError, match="`fixed_points` has no point"):
        plots.plot_fixed_points(found)
