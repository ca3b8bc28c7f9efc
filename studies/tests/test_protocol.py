"""What protocols and their layers mean, and what is refused."""

import keras
import pytest
import small

import keras_rin
from engine import claims
from engine import models
from engine.record import STUDIES
from engine.study import Study


def test_runs_are_made_grid_after_grid_and_seed_after_seed(tmp_path):
    more = ', { layer = "GRU", learning_rate = 1.0, seeds = [7] }]'
    longer = small.read(tmp_path, small.TOML.replace(" }]", f" }}{more}"))
    order = [(s["layer"], s["learning_rate"], s.seed) for s in longer.settings]
    first = [
        (layer, rate, seed)
        for seed in (0, 1, 2)
        for layer in ("RIN", "IRNN")
        for rate in (0.001, 0.01)
    ]
    assert order == [*first, ("GRU", 1.0, 7)]


@pytest.mark.parametrize(
    "old, new, error",
    [
        ("question", "qestion", "unknown key: qestion. Known are about,"),
        ('question = "Which?"', "", "`question` is missing"),
        ('"IRNN"], l', '"IRNM"], l', "unknown layer: IRNM. Known are GRU,"),
        ("units", "unitz", "unknown hyperparameter: unitz"),
        ('"adding"', '"subtracting"', "unknown value of `task`: subtracting"),
        ("length = 5, ", "", "`length` of a run is missing"),
        ("seeds", 'tuned = ["rate"]\nseeds', "choose or show: rate"),
        ("seeds", 'tables = ["chairs"]\nseeds', "unknown table: chairs"),
        ("within = 0.05", "", "no `within`"),
        ("within", "without", "unknown key of a claim: without"),
        ('"IRNN"]]', '"GRU"]]', "no two models"),
        ('compare = [["RIN", "IRNN"]]', "", "no `compare` or `finding`"),
        ("compare", 'finding = "lost"\ncompare', "unknown finding: lost"),
        ("within", 'expect = "worse"\nwithin', "unknown value of `expect`"),
        ("within", "[layers]\nRIN = 'RIN('\n[claims.b]\nwithin", "was never"),
        ("within", "[layers]\nRIN = 'RIN(n=n)'\n[claims.b]\nwithin", "'n'"),
        ("within", "[layers]\nRIN = 'RIN(3)'\n[claims.b]\nwithin", "a name:"),
    ],
)
def test_what_is_wrong_is_said_before_any_run(tmp_path, old, new, error):
    assert old in small.TOML
    with pytest.raises(ValueError) as raised:
        claims.of(Study(small.read(tmp_path, small.TOML.replace(old, new))))
    assert error in str(raised.value)


def test_models_are_compared_that_are_equal_in_all_else(tmp_path):
    protocol = small.read(tmp_path, small.LENGTHS)
    test = claims.Test(compare=[["RIN", "IRNN"]], where={"length": 6})
    pairs = test.pairs(protocol.variants)
    names = "layer", "length"
    ((first, second),) = pairs
    assert [first[name] for name in names] == ["RIN", 6]
    assert [second[name] for name in names] == ["IRNN", 6]


def test_a_layer_is_what_its_call_says(tmp_path):
    text = small.TOML.replace("units = 3", "units = 3, noise = 0.25")
    text = text.replace('"IRNN"], l', '"IRNN", "mine"], l') + (
        "[layers]\nmine = 'NoisyRNN(cell=RINCell(units=units, "
        "kernel_initializer=keras.RandomNormal(stddev=2)), stddev=noise)'\n"
    )
    settings = small.read(tmp_path, text).settings
    layer = models.layer(settings[-1].model.call, return_sequences=True)
    assert isinstance(layer, keras_rin.layers.NoisyRNN)
    config = layer.get_config()
    assert config["stddev"] == 0.25
    cell = config["cell"]["config"]
    assert cell["units"] == 3
    assert cell["kernel_initializer"]["config"]["stddev"] == 2
    assert layer.return_sequences
    assert isinstance(
        models.layer(settings[2].model.call), keras.layers.SimpleRNN
    )


def test_the_protocol_of_the_guide_is_one(tmp_path):
    guide = (STUDIES.parent / "docs" / "experiments.md").read_text()
    guide_protocol = small.read(
        tmp_path, guide.split("```toml\n")[1].split("```")[0]
    )
    assert len(guide_protocol.settings) == 45
    assert len(claims.of(Study(guide_protocol))) == 1
