"""What protocols and their layers mean, and what is refused."""

import keras
import numpy as np
import pytest
import small

import keras_rin
from engine import claims
from engine import models
from engine import protocol
from engine.record import STUDIES
from engine.study import Study

FOLDERS = sorted(path.parent for path in STUDIES.glob("*/protocol.toml"))


def test_runs_are_made_grid_after_grid_and_seed_after_seed(tmp_path):
    more = '[[grid]]\nlayer = "GRU"\nlearning_rate = 1.0\nseeds = [7]\n'
    text = small.TOML.replace("[[claims]]", more + "\n[[claims]]")
    settings = small.read(tmp_path, text).settings
    made = [(s.layer, s.learning_rate, s.seed) for s in settings]
    first = [
        (layer, rate, seed)
        for seed in (0, 1, 2)
        for layer in ("RIN", "IRNN")
        for rate in (0.001, 0.01)
    ]
    assert made == [*first, ("GRU", 1.0, 7)]
    assert {(s.inputs, s.clip, s.beta_2) for s in settings} == {
        ("raw", "norm 1", 0.999)
    }


@pytest.mark.parametrize(
    "old, new, error",
    [
        ("question", "qestion", "unknown key: qestion. Known are about,"),
        ('question = "Which?"', "", "`question` is missing"),
        ('"IRNN"]\nl', '"IRNM"]\nl', "unknown layer: IRNM. Known are GRU,"),
        ("units", "unitz", "unknown hyperparameter: unitz"),
        ('"adding"', '"subtracting"', "unknown value of `task`: subtracting"),
        ("length = 5", "", "`length` of a run is missing"),
        ("seeds", 'tuned = ["rate"]\nseeds', "choose or show: rate"),
        ("seeds", 'tables = ["chairs"]\nseeds', "unknown table: chairs"),
        ("within = 0.05", "", "no `within`"),
        ("within", "without", "unknown key of a claim: without"),
        ('"IRNN"]]', '"GRU"]]', "no two models"),
        ('compare = [["RIN", "IRNN"]]', "", "no `compare`, `finding`"),
        ("compare", 'finding = "lost"\ncompare', "unknown finding: lost"),
        ("within", 'expect = "worse"\nwithin', "unknown value of `expect`"),
    ],
)
def test_what_is_wrong_is_said_before_any_run(tmp_path, old, new, error):
    with pytest.raises(ValueError) as raised:
        assert old in small.TOML
        claims.of(Study(small.read(tmp_path, small.TOML.replace(old, new))))
    assert error in str(raised.value)


def test_models_are_compared_that_are_equal_in_all_else(tmp_path):
    text = small.TOML.replace("length = 5\n", "")
    text = text.replace("[[grid]]", "[[grid]]\nlength = [5, 6, 7]")
    text += "where = { length = [5, 7] }\n"
    (claim,) = claims.of(Study(small.read(tmp_path, text)))
    pairs = [(a.layer, a.length, b.layer, b.length) for a, b in claim.pairs]
    assert pairs == [("RIN", 5, "IRNN", 5), ("RIN", 7, "IRNN", 7)]
    assert {s.length for s in claim.settings} == {5, 7}
    assert len(claim.settings) == 2 * 2 * 2 * 3  # lengths, layers, rates, seeds


def test_a_layer_is_its_class_with_its_config(tmp_path):
    text = small.TOML.replace("[[grid]]", "[[grid]]\nnoise = [0.25]")
    text = text.replace('"RIN", "IRNN"]\nl', '"RIN", "IRNN", "mine"]\nl')
    text += """[layers.mine]
class_name = "keras_rin>NoisyRNN"
stddev = "$noise"
cell = { class_name = "keras_rin>RINCell", config = { units = "$units" } }
"""
    asked = small.read(tmp_path, text).settings
    layer = models.layer(asked[-1], return_sequences=True)
    assert isinstance(layer, keras_rin.layers.NoisyRNN)
    config = layer.get_config()
    assert config["stddev"] == 0.25
    assert config["cell"]["config"]["units"] == 3
    assert layer.return_sequences
    assert isinstance(models.layer(asked[2]), keras.layers.SimpleRNN)


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_every_layer_of_a_study_is_one_of_keras(folder):
    asked = protocol.read(folder).settings
    for setting in {setting.layer: setting for setting in asked}.values():
        if setting.layer:
            assert not models.layer(setting).built


def test_an_irnn_with_noise_is_initialized_as_a_rin():
    keras.utils.set_random_seed(0)
    matrix = keras.ops.convert_to_numpy(models.IdentityAndNoise()((50, 50)))
    noise = matrix - np.eye(50)
    assert np.std(noise) == pytest.approx(0.001, rel=0.1)
    assert abs(np.mean(noise)) < 1e-4


def test_the_protocol_of_the_guide_is_one(tmp_path):
    guide = (STUDIES.parent / "docs" / "experiments.md").read_text()
    asked = small.read(tmp_path, guide.split("```toml\n")[1].split("```")[0])
    assert len(asked.settings) == 45
    (claim,) = claims.of(Study(asked))
    assert len(claim.pairs) == 2
