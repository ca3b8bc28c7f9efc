"""A small protocol, and runs of it that were never made."""

from engine import protocol
from engine.study import Run
from engine.study import Study

TOML = """
question = "Which?"
setting = "Small."
seeds = [0, 1, 2]
data = { task = "adding", length = 5, train = 12 }
model = { units = 3 }
training = { updates = 4, batch_size = 6 }
grid = [{ layer = ["RIN", "IRNN"], learning_rate = [0.001, 0.01] }]

[claims."RIN is better."]
about = "RIN"
within = 0.05
compare = [["RIN", "IRNN"]]
"""
LENGTHS = TOML.replace("length = 5, ", "").replace(
    "grid = [{", "grid = [{ length = [5, 6],"
)
METADATA = {
    "versions": {"keras": "3", "tensorflow": "2"},
    "took": {"runs": 12, "seconds": 300},
}


def read(folder, text=TOML):
    folder.mkdir(exist_ok=True)
    (folder / "protocol.toml").write_text(text)
    return protocol.read(folder)


def run(setting, validation=0.5, test=0.5, **measured):
    losses = {"validation": validation, "test": test, "baseline": 1.0}
    return Run(setting, **losses | measured)


def study(folder, outcome, text=TOML):
    """Each run has what `outcome` says of its setting, none for None."""
    small_protocol = read(folder, text)
    runs = [
        run(setting, **measured)
        for setting in small_protocol.settings
        if (measured := outcome(setting)) is not None
    ]
    return Study(small_protocol, tuple(runs), METADATA)
