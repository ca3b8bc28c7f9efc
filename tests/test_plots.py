import matplotlib.pyplot
import numpy as np
import pytest
from references import drawn_lines
from references import simple_rnn

from keras_rin import diagnostics
from keras_rin import plots

pytestmark = pytest.mark.one_backend

# A plot reads some fields of a result.
CHAIN = diagnostics.HiddenChain(*diagnostics.HiddenChain._fields)._replace(
    difference=np.array([-1, 0, 1]),
    mean_weight={"cell": np.array([0.1, 0.2, 0.9])},
    standard_error={"cell": np.array([np.nan, 0.05, np.nan])},
    order=np.array([1, 0]),
)
SPECTRUM = diagnostics.LyapunovSpectrum(
    exponents=np.array([0.0, -1.0, -np.inf]),
    standard_error=np.array([0.1, 0.2, np.nan]),
    convergence=np.zeros((5, 3)),
)
# The saddle expands along its second direction; the source spirals out.
JACOBIANS = 0.5 * np.tile(np.eye(3), (5, 1, 1))
JACOBIANS[2, 1] = 1, 2, 0
JACOBIANS[3] = [[1, 0, 2], [0, 0.5, 0], [-2, 0, 1]]
POINTS = diagnostics.FixedPoints(*diagnostics.FixedPoints._fields)._replace(
    states=np.sin(np.arange(18)).reshape(6, 3)[:5],
    jacobians=JACOBIANS,
    contracting=np.array([1, 2, 0, 0, 0]),
    neutral=np.array([1, 0, 1, 0, 2]),
    expanding=np.array([0, 0, 1, 2, 0]),
    dimension=np.array([0, 0, 0, 0, 1]),
    members=np.split(np.sin(np.arange(18)).reshape(6, 3), range(1, 5)),
)
KINDS = [
    "1 neutral",
    "1 stable",
    "1 saddle (1 expanding direction)",
    "1 source",
    "1 continuum of dimension 1",
]
CYCLES = diagnostics.Cycles(*diagnostics.Cycles._fields)._replace(
    states=np.sin(np.arange(18)).reshape(2, 3, 3),
    multipliers=np.zeros((2, 3)),
    neutral=np.array([0, 0]),
    expanding=np.array([0, 1]),
    dimension=np.array([0, 0]),
)
NO_CYCLES = diagnostics.Cycles(
    *(field if isinstance(field, str) else field[:0] for field in CYCLES)
)
BRANCHES = diagnostics.Branches(*diagnostics.Branches._fields)._replace(
    intervals=np.array([[0, 0.5], [0.2, 0.5]]),
    states=np.sin(np.arange(12)).reshape(2, 2, 3),
    neutral=np.array([0, 0]),
    expanding=np.array([0, 1]),
    ends=[("limit", "fold"), ("persistence", "fold")],
)
NO_BRANCHES = BRANCHES._replace(ends=[], evidence=None)
ABLATION = diagnostics.SchurAblation(
    score=0.1,
    band_scores=np.array([0.9, 0.2, 0.1]),
    band_norms=np.array([1.7, 0.3, 0.0]),
    coupling_scores=np.array([0.8, 0.3]),
    couplings=np.array([[0, 1], [1, 3]]),
    normal_score=0.9,
)
PLOTS = {
    "branches": BRANCHES,
    "cycles": CYCLES,
    "memory_curves": {"chain": [1, 0.5], "identity": [0.2, 0.1]},
    "eigenvalues": 0.5 * np.eye(3, k=1),
    "hidden_chain": CHAIN,
    "fixed_points": POINTS,
    "jacobian_spectra": {"RIN": np.array([[0.5, 0.5j]])},
    "lyapunov_spectra": {"RIN": SPECTRUM},
    "gradient_norms": {"RIN": [0.1, 0.5, 1.0]},
    "learning_curves": {"RIN": [[3, 2, 1], [5, 2, 0]]},
    "schur_ablation": ABLATION,
}


def plot(name, data, **options):
    return getattr(plots, f"plot_{name}")(data, **options)


@pytest.mark.parametrize("name", PLOTS)
def test_it_draws_with_labels_where_it_is_told_to(name, tmp_path):
    figure = matplotlib.figure.Figure(layout="constrained")
    left, right = figure.subplots(1, 2)
    assert plot(name, PLOTS[name], ax=right) is figure
    assert right.get_xlabel() and right.get_ylabel() and not left.get_xlabel()
    figure.savefig(tmp_path / "picture.png")
    assert (tmp_path / "picture.png").stat().st_size > 5000
    by_default = plot(name, PLOTS[name])  # of pyplot, which can show it
    assert by_default.number in matplotlib.pyplot.get_fignums()


OF_NAMES = [name for name, data in PLOTS.items() if isinstance(data, dict)]
OTHER_GATES = CHAIN._replace(mean_weight={"input": np.zeros(3)})
REFUSED = [
    *((name, "`", data) for name in OF_NAMES for data in ({}, [1, 2])),
    ("memory_curves", r"`curves\['a'\]` .* shape", {"a": np.eye(3)}),
    ("gradient_norms", r"`norms\['a'\]` .* shape", {"a": [[1.0]]}),
    ("learning_curves", r"`curves\['a'\]` .* shape", {"a": [[1], 2]}),
    ("learning_curves", r"`curves\['a'\]` .* numbers", {"a": "abc"}),
    ("jacobian_spectra", r"`eigenvalues\['a'\]`", {"a": "b"}),
    ("hidden_chain", "same gates", []),
    ("hidden_chain", "same gates", [CHAIN, OTHER_GATES]),
    ("hidden_chain", "`reach` must", CHAIN, {"reach": 0}),
    ("fixed_points", "time.* 3", POINTS, {"trajectories": np.ones((1, 5, 2))}),
    ("fixed_points", "finite", POINTS, {"trajectories": [[[np.nan] * 3]]}),
    ("fixed_points", "has no point", POINTS._replace(members=[])),
    ("fixed_points", "`components` must be 2 or 3", POINTS, {"components": 4}),
    ("fixed_points", '`ax` must .*="3d"', POINTS, {"components": 3}),
    ("fixed_points", r"project\(states\)", POINTS, {"project": np.eye(3)}),
    ("fixed_points", "`color_by` .* shape", POINTS, {"color_by": [1, 2]}),
    ("cycles", "must have a cycle", NO_CYCLES),
    ("branches", "must have a piece", NO_BRANCHES),
    ("branches", r"project\(states\)", BRANCHES, {"project": np.eye(3)}),
    ("cycles", r"project\(states\)", CYCLES, {"project": np.eye(3)}),
    ("eigenvalues", "must be a square matrix", np.ones((2, 3))),
    ("eigenvalues", r"matrix\['a'\]` must be a square", {"a": np.ones(3)}),
    ("eigenvalues", "`recurrent_matrix` must be a non-empty dict", {}),
]


@pytest.mark.parametrize(
    "name, message, data, options", [(*row, {})[:4] for row in REFUSED]
)
def test_it_is_refused_before_anything_is_drawn(name, message, data, options):
    ax = matplotlib.figure.Figure().subplots()
    with pytest.raises(ValueError, match=f"{message}.*Received"):
        plot(name, data, ax=ax, **options)
    assert not ax.get_lines() and not ax.get_xlabel()


def test_lines_differ_and_a_layer_has_one_style_in_whatever_order():
    """The first lines differ without color, too. Ticks are whole epochs."""
    names = ["LSTM", "mine", "RIN", "RIN, chain", *map(str, range(26))]
    drawn = []
    for order in (names, names[::-1], names[-5:]):
        figure = plots.plot_learning_curves({name: [1, 2] for name in order})
        assert not np.any(figure.axes[0].get_xticks() % 1)
        lines = figure.axes[0].get_lines()
        assert [line.get_label() for line in lines] == order
        styles = [(line.get_color(), str(line._dash_pattern)) for line in lines]
        assert len(set(styles)) == len(order)
        drawn.append(dict(zip(order, styles, strict=True)))
    assert len({dashes for _, dashes in drawn[2].values()}) == 5
    for name in ("LSTM", "RIN", "RIN, chain"):
        assert drawn[0][name] == drawn[1][name]


RUNS = [[3, 2], [5, 2], [4, np.nan]]


@pytest.mark.parametrize(
    "name, data, expected",
    [
        ("memory_curves", [1, 0.5, 0.25], [[0, 1, 2], [1, 0.5, 0.25]]),
        # Backwards and, on a logarithmic axis, without zeros.
        ("gradient_norms", [0, 0.5, 1], [[0, 1, 2], [1, 0.5, np.nan]]),
        ("learning_curves", [3.0, 2.0], [[1, 2], [3, 2]]),
        ("learning_curves", RUNS, [[1, 2], [4, 2]]),
        # A run that ends early counts as far as it went.
        ("learning_curves", [[3], [5, 2, 1], []], [[1, 2, 3], [4, 2, 1]]),
        ("jacobian_spectra", [[0.5, 0.25 + 1j]], [[0.5, 0.25], [0, 1]]),
        ("lyapunov_spectra", SPECTRUM, [[1, 2, 3], [0, -1, np.nan]]),
    ],
)
def test_a_line_shows_the_data(name, data, expected):
    drawn = drawn_lines(plot(name, {"RIN": data}))["RIN"]
    np.testing.assert_array_equal(drawn, expected)


def test_a_cross_marks_where_the_gradient_becomes_zero():
    figure = plots.plot_gradient_norms({"chain": [0, 0.5, 1], "RIN": [1, 1, 1]})
    (cross,) = (x for x in figure.axes[0].get_lines() if x.get_marker() == "x")
    np.testing.assert_array_equal(cross.get_xydata(), [[1, 0.5]])


SECOND = CHAIN._replace(mean_weight={"cell": np.array([0.3, 0.2, 0.5])})
ERROR = np.std([0.9, 0.5], ddof=1) / np.sqrt(2)


@pytest.mark.parametrize(
    "name, data, x, expected",
    [
        ("learning_curves", {"RIN": RUNS}, 1, [3, 5]),
        ("learning_curves", {"RIN": RUNS}, 2, [2, 2]),
        ("lyapunov_spectra", {"RIN": SPECTRUM}, 2, [-1.2, -0.8]),
        ("hidden_chain", CHAIN, 0, [0.15, 0.25]),
        ("hidden_chain", [CHAIN, SECOND], 1, [0.7 - ERROR, 0.7 + ERROR]),
    ],
)
def test_the_band_is_the_range_or_one_standard_error(name, data, x, expected):
    axes = plot(name, data).axes[0]
    vertices = axes.collections[0].get_paths()[0].vertices
    y = vertices[vertices[:, 0] == x, 1]
    np.testing.assert_allclose([y.min(), y.max()], expected)


def test_the_hidden_chain_is_drawn_as_far_as_it_reaches():
    wide = CHAIN._replace(
        difference=np.arange(-2, 3),
        mean_weight={"cell": np.array([0, 0.1, 0.2, 0.9, 1])},
        standard_error={"cell": np.zeros(5)},
        order=np.arange(3),
    )
    for networks, reach in (([CHAIN, wide], 20), (wide, 1)):
        figure = plots.plot_hidden_chain(networks, reach=reach)
        expected = [[-1, 0, 1], [0.1, 0.2, 0.9]]
        np.testing.assert_allclose(drawn_lines(figure)["cell"], expected)


@pytest.mark.parametrize(
    "matrix, level, radius",
    [
        (np.zeros((2, 2)), -0.5, 10**-0.5),
        # Of [[0, b], [0, 0]]: sigma_max - sigma_min = b, their product z^2.
        ([[0, 4.0], [0, 0]], -0.5, (10**-0.5 * (10**-0.5 + 4)) ** 0.5),
        # Inside a circle of its gain, a long chain is nearly singular.
        (3 * np.eye(30, k=1), -1, 3),
    ],
)
def test_pseudospectra_are_discs_which_non_normality_widens(
    matrix, level, radius
):
    figure = plots.plot_eigenvalues(matrix, levels=[level], points=81)
    contour = figure.axes[0].collections[0].get_paths()[-1].vertices
    distances = np.linalg.norm(contour, axis=1)
    np.testing.assert_allclose(distances, radius, rtol=0.1)
    assert np.ptp(np.arctan2(*contour.T)) > 6  # all around


def test_each_matrix_has_its_eigenvalues_in_a_color_and_a_name():
    matrices = {"RIN": np.diag([0.5, 1]), "other": np.diag([0.2, -2.0])}
    *_, points = plots.plot_eigenvalues(matrices["other"]).axes[0].get_lines()
    np.testing.assert_allclose(sorted(points.get_xdata()), [-2, 0.2])
    options = {"levels": (-1.5, -0.5), "points": 20}
    (axes,) = plots.plot_eigenvalues(matrices, **options).axes
    lines = {line.get_label(): line for line in axes.get_lines()}
    for name, matrix in matrices.items():
        np.testing.assert_allclose(
            sorted(lines[name].get_xdata()), sorted(np.diagonal(matrix))
        )
    assert lines["RIN"].get_color() != lines["other"].get_color()
    labels = [text.get_text() for text in axes.get_legend().get_texts()]
    assert labels == ["RIN", "other", "$10^{-1.5}$", "$10^{-0.5}$"]


def test_the_kind_with_fewest_points_is_drawn_above_the_others():
    eigenvalues = {"few": [0.5], "many": np.zeros(9), "some": np.zeros(3)}
    axes = plots.plot_jacobian_spectra(eigenvalues).axes[0]
    lines = sorted(axes.get_lines()[1:], key=lambda line: line.zorder)
    assert [line.get_label() for line in lines] == ["many", "some", "few"]


def drawn_states(axes):
    """The lines without a label, which are modes, and all points, by kind."""
    lines = {True: [], False: []}
    for line in axes.get_lines():
        data = getattr(line, "get_data_3d", line.get_data)()
        lines[line.get_label()[0] == "_"].append(np.transpose(data))
    return lines[True], np.concatenate(lines[False])


def distances(states):
    return np.linalg.norm(states[:, None] - states[None], axis=2)


STATES = np.concatenate(POINTS.members)
FLAT = np.random.default_rng(0).normal(size=(4, 6, 3)) * [3, 1, 0]


@pytest.mark.parametrize("components", [2, 3])
def test_principal_components_keep_the_distances_in_a_plane(components, rng):
    rotation = np.linalg.qr(rng.normal(size=(3, 3))).Q
    members = [m * [1, 1, 0] @ rotation + 5 for m in POINTS.members]
    points = POINTS._replace(members=members)
    options = {"components": components, "modes": False}
    figure = plots.plot_fixed_points(points, FLAT @ rotation + 5, **options)
    modes, drawn = drawn_states(figure.axes[0])
    assert list(drawn_lines(figure)) == KINDS and not modes
    expected = distances(STATES * [1, 1, 0])
    np.testing.assert_allclose(distances(drawn), expected, atol=1e-9)


@pytest.mark.parametrize("by", [None, [3, 1, 4, 1]])
def test_trajectories_are_colored_by_time_or_a_number_for_each(by):
    options = {"project": np.eye(3)[:, ::2], "color_by": by}
    axes, *bars = plots.plot_fixed_points(POINTS, FLAT, **options).axes
    assert [list(bar.get_yticks()) for bar in bars] == [[1, 3, 4]] * bool(by)
    assert [bar.get_ylabel() for bar in bars] == ["trajectory"] * bool(by)
    ends = [path.vertices for path in axes.collections[0].get_paths()]
    steps = np.stack([FLAT[:, :-1, ::2], FLAT[:, 1:, ::2]], axis=2)
    np.testing.assert_array_equal(ends, np.concatenate(steps))
    numbers = np.tile(range(1, 6), 4) if by is None else np.repeat(by, 5)
    np.testing.assert_array_equal(axes.collections[0].get_array(), numbers)


@pytest.mark.parametrize(
    "project, components, chosen",
    [
        (np.eye(3)[:, ::2], 2, [0, 2]),
        (lambda states: states[:, [2, 0]], 2, [2, 0]),
        (np.eye(3), 3, [0, 1, 2]),
    ],
)
def test_expanding_directions_are_lines_through_their_points(
    project, components, chosen
):
    options = {"project": project, "components": components}
    (axes,) = plots.plot_fixed_points(POINTS, **options).axes
    modes, drawn = drawn_states(axes)
    np.testing.assert_array_equal(drawn, STATES[:, chosen])
    for mode, point in zip(modes, STATES[[2, 3, 3]], strict=True):
        np.testing.assert_allclose(mode.mean(axis=0), point[chosen], atol=1e-12)
    along, real, imaginary = (np.abs(mode[-1] - mode[0]) for mode in modes)
    expected = np.array([[0, 1, 0], [1, 0, 1]])[:, chosen]
    expected = 0.2 * np.ptp(STATES, axis=0).max() * expected
    drawn = [along, real + imaginary]
    np.testing.assert_allclose(drawn, expected, atol=1e-12)


def test_states_of_one_number_are_drawn_on_a_line():
    points = POINTS._replace(
        states=np.zeros((5, 1)),
        jacobians=np.full((5, 1, 1), 0.5),
        members=list(np.eye(5)[:, :1, None]),
    )
    lines = drawn_lines(plots.plot_fixed_points(points))
    x, y = np.hstack([lines[kind] for kind in KINDS])
    assert np.ptp(x) == pytest.approx(1) and not y.any()


def test_a_cycle_is_a_closed_line_dashed_where_it_is_not_stable():
    figure = plots.plot_cycles(CYCLES, project=np.eye(3)[:, :2])
    stable, unstable = figure.axes[0].get_lines()
    for line, states in zip((stable, unstable), CYCLES.states, strict=True):
        expected = [*states[:, :2], states[0, :2]]
        np.testing.assert_array_equal(line.get_xydata(), expected)
    assert (stable.get_linestyle(), unstable.get_linestyle()) == ("-", "--")
    assert list(drawn_lines(figure)) == [
        "stable (1), of period 3",
        "unstable or neutral (1), of period 3",
    ]


def test_a_bifurcation_diagram_has_dashed_pieces_and_folds():
    figure = plots.plot_branches(BRANCHES, project=np.eye(3)[:, :1])
    lines = drawn_lines(figure)
    assert list(lines) == ["stable", "unstable or neutral", "fold"]
    values = BRANCHES.states[..., 0]
    for k, name in enumerate(["stable", "unstable or neutral"]):
        expected = [BRANCHES.intervals[k], values[k]]
        np.testing.assert_array_equal(lines[name], expected)
    np.testing.assert_array_equal(lines["fold"], [[0.5] * 2, values[:, 1]])
    styles = [line.get_linestyle() for line in figure.axes[0].get_lines()]
    assert styles == ["-", "--", "None"]


def rotation_map():
    """A layer that turns its plane and shrinks what is beside it."""
    return simple_rnn(np.array([[0, 1, 0], [-1, 0, 0], [0, 0, 0.5]]), None)


# Three points have their mean in the middle, and so have fixed points.
@pytest.mark.parametrize(
    "plane, middle, basis, kinds",
    [
        (2 * np.eye(3)[:2], [1 / 3, 0, 1 / 3], np.eye(3)[:2], []),
        (
            [[1, 0, 0], [-1, 0, 0], [0, 1, 0]],
            [0, 1 / 3, 0],
            np.diag([-1, 1, 0])[:2],
            ["1 stable", "1 saddle (1 expanding direction)"],
        ),
    ],
)
def test_a_flow_has_the_speed_and_the_points_of_its_plane(
    plane, middle, basis, kinds
):
    """|F(s) - s| = sqrt(2) |s| in a plane that turns by a right angle."""
    members = [np.zeros((1, 3)), np.array([[0.0, 0, 1]]), np.eye(3)[:1]]
    points = POINTS._replace(
        states=np.concatenate(members),
        contracting=np.array([3, 3, 2]),
        neutral=np.array([0, 0, 0]),
        expanding=np.array([0, 0, 1]),
        dimension=np.zeros(3, int),
        members=members,
    )
    options = {"fixed_points": points, "extent": 2.0, "points": 5}
    layer = rotation_map()
    figure = plots.plot_flow(layer, plane, **options)
    axes, bar = figure.axes
    assert bar.get_ylabel() == "speed |F(s, x) - s|"
    mesh = axes.collections[0]
    x, y = np.moveaxis(np.asarray(mesh.get_coordinates()), -1, 0)
    states = middle + np.stack([x.ravel(), y.ravel()], axis=1) @ basis
    turned = states @ layer.get_weights()[1]
    speeds = np.linalg.norm(turned - states, axis=1)
    np.testing.assert_allclose(mesh.get_array().ravel(), speeds, atol=1e-12)
    assert list(drawn_lines(figure)) == kinds


@pytest.mark.parametrize(
    "plane, options, message",
    [
        ([[1, 0, 0], [2, 0, 0]], {}, "must span a plane"),
        ([[1, 0, 0]], {}, "`plane` must have the shape"),
        (np.eye(3)[:2], {"x": [1.0, 2.0]}, "`x` must have"),
        (np.eye(3)[:2], {"extent": 0.0}, "`extent` must"),
        (np.eye(4)[:2], {}, "must have the shape"),
    ],
)
def test_what_is_no_plane_is_refused(plane, options, message):
    with pytest.raises(ValueError, match=message):
        plots.plot_flow(rotation_map(), plane, **options)
