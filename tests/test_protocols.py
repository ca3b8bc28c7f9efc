"""What protocols and their layers mean, and what is refused."""

import numpy as np
import pytest
from studies import GOOD
from studies import PROTOCOL
from studies import TRAINED
from studies import UNDER_TENSORFLOW

import keras_rin
from experiments import checks
from experiments import layers
from experiments import protocols

pytestmark = UNDER_TENSORFLOW


def test_of_a_protocol_the_first_grid_is_made_first():
    grids = [
        {"layer": ["a", "b"], "learning_rate": [1]},
        {"layer": ["c"], "learning_rate": [1]},
    ]
    made = protocols.all_settings({**PROTOCOL, "grid": grids, "seeds": [0, 1]})
    order = [(run["layer"], run["seed"]) for run in made]
    assert order == [
        *zip("abab", (0, 0, 1, 1), strict=True),
        ("c", 0),
        ("c", 1),
    ]


@pytest.mark.parametrize(
    "claim, layers, permuted",
    [
        ({"compare": [["a", "b"]], "where": {"permuted": True}}, "ab", {True}),
        ({"finding": "x", "where": {"layer": ["a", "c"]}}, "ac", {True, False}),
        (
            {"finding": "x", "where": {"layer": "a", "learning_rate": [1]}},
            "a",
            {True, False},
        ),
        ({"finding": "x"}, "abc", {True, False}),
    ],
)
def test_a_claim_needs_the_runs_of_its_models(claim, layers, permuted):
    grid = {"layer": ["a", "b", "c"], "permuted": [True, False]}
    protocol = {**PROTOCOL, "grid": [grid | {"learning_rate": [1, 2]}]}
    needed = protocols.settings_of(claim, protocol)
    assert {settings["layer"] for settings in needed} == set(layers)
    assert {settings["permuted"] for settings in needed} == permuted
    assert len(needed) == len(layers) * len(permuted) * 2 * 3  # rates, seeds


def test_models_are_compared_that_are_equal_in_all_else():
    models = [
        {"layer": layer, "length": length}
        for layer in ("a", "b", "c")
        for length in (1, 2, 3)
    ]
    a, b, c = ({"layer": name} for name in "abc")
    claim = {"compare": [[a, b], [a, c]], "where": {"length": [1, 3]}}
    assert protocols.comparisons(claim, models) == [
        ({"layer": "a", "length": n}, {"layer": other, "length": n})
        for other in ("b", "c")
        for n in (1, 3)
    ]
    claim = {"compare": [[{"length": 2}, {"length": 1}]], "where": b}
    one, other = models[4], models[3]
    assert protocols.comparisons(claim, models) == [(one, other)]


@pytest.mark.parametrize("name", TRAINED)
def test_every_layer_of_a_protocol_is_one_of_keras(name):
    protocol = TRAINED[name]
    seen = set()
    for one in protocols.all_settings(protocol):
        if "layer" in one and one["layer"] not in seen:
            seen.add(one["layer"])
            assert layers.build(one, protocol.get("layers")).built is False


def test_a_layer_is_its_class_with_its_config():
    settings = {"layer": "mine", "units": 3, "noise": 0.25}
    cell = {"class_name": "keras_rin>RINCell", "config": {"units": "$units"}}
    own = {"mine": {"class_name": "keras_rin>NoisyRNN"}}
    own["mine"] |= {"cell": cell, "stddev": "$noise"}
    layer = layers.build(settings, own, return_sequences=True)
    assert isinstance(layer, keras_rin.layers.NoisyRNN)
    assert (layer.stddev, layer.return_sequences) == (0.25, True)
    layer = layers.build({"layer": "LSTM mixed", "units": 5})
    layer.build((None, None, 2))
    gates = np.split(layer.cell.recurrent_kernel.numpy(), 4, axis=1)
    np.testing.assert_allclose(gates[2], 1.02 * np.eye(5, k=1), rtol=1e-6)
    np.testing.assert_array_equal(gates[0], gates[3])


def test_the_noisy_irnn_has_the_initialization_of_a_rin():
    matrix = layers.IdentityAndNoise()((200, 200)) - np.eye(200)
    assert np.std(matrix) == pytest.approx(0.001, rel=0.02)
    assert abs(np.mean(matrix)) < 2e-5


BAD = {
    "unknown layer: LSTN": ("LSTM", "LSTN"),
    "unknown hyperparameter: unit": ("units =", "unit ="),
    "unknown task: coping": ('"copying"', '"coping"'),
    "unknown tier: soon": ('tier = "core"', 'tier = "soon"'),
    "unknown value of `clip`: all": ("units =", 'clip = "all"\nunits ='),
    "`setting` is missing": ('setting = "Small."', ""),
    "unknown key: teir": ("tier =", "teir ="),
    "unknown key of a claim: witin": ("within", "witin"),
    "unknown value of `expect`: lower": ("within", 'expect = "lower"\nwithin'),
    "unknown hyperparameter in `panels`: lenght": (
        "tier =",
        'panels = "lenght"\ntier =',
    ),
    "`within` of a claim is missing": ("within = 0.05", ""),
    "`about` of a claim is missing": ('about = "mine"', ""),
    "unknown table in `tables`: modles": (
        "tier =",
        'tables = ["modles"]\ntier =',
    ),
    "unknown finding: diverges": (
        "within",
        'finding = "diverges"\nwithin',
    ),
    "`never_diverges` needs `where`": (
        "within",
        'finding = "never_diverges"\nwithin',
    ),
    "unknown value of `results`: memories": (
        "within",
        'results = "memories"\nwithin',
    ),
    "unknown value of `measure`: loss": ("within", 'measure = "loss"\nwithin'),
    "no `compare`, `finding` or `untested`": (
        'compare = [[{ layer = "RIN" }, { layer = "LSTM" }]]',
        "",
    ),
    "unknown hyperparameter in `tuned`: rate": (
        'tuned = ["learning_rate"]',
        'tuned = ["learning_rate", "rate"]',
    ),
    "`factors_are_small` takes no `where`": (
        "within",
        'finding = "factors_are_small"\nwhere = { layer = "RIN" }\nwithin',
    ),
    "no two models to compare": ('{ layer = "RIN" }', '{ layer = "GRU" }'),
    "Expected": ("[fixed]", "[fixed"),
}


@pytest.mark.parametrize("said", BAD)
def test_what_is_wrong_in_a_protocol_is_said_before_it_trains(said, tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(GOOD)
    assert len(protocols.all_settings(checks.read(path))) == 4
    path.write_text(GOOD.replace(*BAD[said]))
    with pytest.raises(ValueError, match=f"mine.toml: .*{said}"):
        checks.read(path)


def test_where_limits_the_first_model_of_a_pair():
    models = [{"layer": a, "length": n} for a in "ab" for n in (1, 2)]
    claim = {"compare": [["a", "b"]], "where": {"layer": "a", "length": 1}}
    assert protocols.comparisons(claim, models) == [(models[0], models[2])]


def test_a_grid_may_have_seeds_of_its_own():
    grid = [{"layer": ["a"], "seeds": [7]}, {"layer": ["b"]}]
    made = protocols.all_settings({**PROTOCOL, "grid": grid})
    found = [(run["layer"], run["seed"]) for run in made]
    assert found == [("a", 7), ("b", 0), ("b", 1), ("b", 2)]
