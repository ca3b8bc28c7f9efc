"""What protocols and their layers mean, and what is refused."""

import pytest
import small

from engine import claims
from engine import protocol as protocols
from engine.record import STUDIES
from engine.study import Study


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
        claims.evaluate(
            Study(small.read(tmp_path, small.TOML.replace(old, new)))
        )
    assert error in str(raised.value)


def test_the_protocol_of_the_guide_is_one(tmp_path):
    guide = (STUDIES.parent / "docs" / "experiments.md").read_text()
    text = guide.split("```toml\n")[1].split("```")[0]
    protocol = small.read(tmp_path, text)
    assert len(protocol.settings) == 45
    assert len(claims.evaluate(Study(protocol))) == 1
