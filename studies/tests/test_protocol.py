"""What protocols and their layers mean, and what is refused."""

import keras
import pytest
import small

import keras_rin
from engine import claims
from engine import models
from engine import protocol as protocols
from engine.record import STUDIES
from engine.study import Study


def test_runs_are_made_grid_after_grid_and_seed_after_seed(tmp_path):
    more = ', { layer = "GRU", learning_rate = 1.0, seeds = [7] }]'
    longer = small.read(tmp_path, small.TOML.replace(" }]", f" }}{more}"))
    names = "layer", "learning_rate", "seed"
    order = [tuple(map(setting.get, names)) for setting in longer.settings]
    first = [
        (layer, rate, seed)
        for seed in (0, 1, 2)
        for layer in ("RIN", "IRNN")
        for rate in (0.001, 0.01)
    ]
    assert order == [*first, ("GRU", 1.0, 7)]


def test_a_part_of_a_study_has_its_own_files(tmp_path):
    (tmp_path / "protocol_b_c.toml").write_text(small.TOML)
    part = protocols.read(tmp_path / "b_c")
    assert part.name == f"{tmp_path.name}/b_c"
    assert part.file("runs.jsonl") == tmp_path / "runs_b_c.jsonl"


@pytest.mark.parametrize(
    "old, new, error",
    [
        ("question", "qestion", "unknown key: qestion. Known are about,"),
        ('question = "Which?"', "", "`question` is missing"),
        ('"IRNN"], l', '"IRNM"], l', "unknown layer: IRNM. Known are GRU,"),
        ("units", "unitz", "unknown hyperparameter: unitz"),
        ('"adding"', '"subtracting"', "unknown value of `task`: subtracting"),
        ("length = 5, ", "", "`length` is missing"),
        ("seeds", 'tuned = ["rate"]\nseeds', "choose or show: rate"),
        ("seeds", 'tables = ["chairs"]\nseeds', "unknown table: chairs"),
        ("within = 0.05", "", "no `within`"),
        ("within", "without", "unknown key of a claim: without"),
        ('"IRNN"]]', '"GRU"]]', "no two models"),
        ('compare = [["RIN", "IRNN"]]', "", "no `compare` or `finding`"),
        ("compare", 'finding = "lost"\ncompare', "unknown finding: lost"),
        ("within", 'expect = "worse"\nwithin', "unknown value of `expect`"),
        ('"RIN"\nw', '"him"\nw', "unknown value of `about`: him"),
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
    pairs = claims.pairs_of(protocol.variants, [["RIN", "IRNN"]], {"length": 6})
    names = "layer", "length"
    assert [[[of[n] for n in names] for of in pair] for pair in pairs] == [
        [["RIN", 6], ["IRNN", 6]]
    ]


def test_a_layer_is_what_its_call_says(tmp_path):
    text = small.TOML.replace("units = 3", "units = 3, noise = 0.25")
    text = text.replace('"IRNN"], l', '"IRNN", "mine"], l') + (
        "[layers]\nmine = 'NoisyRNN(cell=RINCell(units=units, "
        "kernel_initializer=keras.RandomNormal(stddev=2)), stddev=noise)'\n"
    )
    settings = small.read(tmp_path, text).settings
    layer = models.layer(settings[-1]["call"], return_sequences=True)
    assert isinstance(layer, keras_rin.layers.NoisyRNN)
    assert layer.return_sequences
    config = layer.get_config()
    cell = config["cell"]["config"]
    assert (config["stddev"], cell["units"]) == (0.25, 3)
    assert cell["kernel_initializer"]["config"]["stddev"] == 2
    assert isinstance(models.layer(settings[2]["call"]), keras.layers.SimpleRNN)


def test_the_protocol_of_the_guide_is_one(tmp_path):
    guide = (STUDIES.parent / "docs" / "experiments.md").read_text()
    text = guide.split("```toml\n")[1].split("```")[0]
    protocol = small.read(tmp_path, text)
    assert len(protocol.settings) == 45
    assert len(claims.of(Study(protocol))) == 1
