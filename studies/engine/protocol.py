"""Protocols: TOML files that fix what is trained before anything is.

Each combination of the values of a row of `grid`, with the hyperparameters of
all runs in `data`, `model` and `training`, is trained with each of the `seeds`.
`tuned` names the hyperparameters whose best values are chosen on validation
data; the others and the layer tell variants apart. `claims` are read by
`claims.py`. A study of one protocol has it in protocol.toml; of several, each
part in protocol_PART.toml, and its name is FOLDER/PART.
"""

import dataclasses
import functools
import itertools
import json
import pathlib
import tomllib

from engine import models
from engine import record

FILE = pathlib.Path(__file__).with_name("layers.toml")
LAYERS = tomllib.loads(FILE.read_text())
NEEDED = {  # by the data of a task
    "adding": ("length", "train"),
    "copying": ("length", "train", "copied"),
    "pixels": ("images",),
    "images": ("images",),
    "text": ("length", "train"),
    "babi": ("number",),
}
VALUES = {
    "task": NEEDED,
    "schedule": ("constant", "cosine"),
    "clip": ("norm 1", "norm 100", "global norm 1", "value 1", "none"),
    "inputs": ("raw", "adapted", "normalized"),
    "read_out": ("fixed", "trained"),
}
TABLES = "models", "accuracies", "departures", "rates"
GROUPS = {  # hyperparameters, with the defaults of those that have one
    "data": {
        **dict.fromkeys("task length train copied images number".split()),
        **{"permuted": False, "pooled": 1, "inputs": "raw"},
    },
    "model": {
        **dict.fromkeys("layer units noise chain_gain identity_gain".split()),
        **dict.fromkeys("initializer read_out blocks".split()),
        **{"layers": 1, "hidden": 0, "width": 8},
    },
    "training": {
        **dict.fromkeys("updates batch_size learning_rate".split()),
        **{"schedule": "constant", "clip": "norm 1", "beta_2": 0.999},
    },
}
HYPERPARAMETERS = {"seed": None} | GROUPS["data"] | GROUPS["model"]
HYPERPARAMETERS |= GROUPS["training"]
DEFAULTS = {  # of the keys of a protocol
    **{"data": {}, "model": {}, "training": {}, "layers": {}, "claims": {}},
    **{"tuned": ["learning_rate"], "seeds": [0, 1, 2, 3, 4], "differs": ""},
    **{"tables": ["models"], "panels": None, "curves": False},
}
REQUIRED = "question", "setting", "grid"
# What a protocol says of all its claims.
SHARED = (
    "about within source published expect size compare where finding".split()
)


class Setting(dict):
    """{hyperparameter: value}, all that determines a run.

    A value is None where the task or network has no such choice. With `layer`,
    a name, come `call`, what makes it, and `config`, what that is by now, as
    JSON. In a variant, which pages call a model, `call`, `config`, the seed and
    tuned hyperparameters are None.
    """

    def __hash__(self):
        return hash(frozenset(self.items()))

    @classmethod
    def from_dict(cls, values):
        """Of a stored run: what it does not have is None, not a default."""
        stored = {"call": None, "config": None, "seed": values["seed"]}
        for group in GROUPS:
            stored |= values[group]
        if stored["config"]:
            stored["config"] = json.dumps(stored["config"], sort_keys=True)
        return cls(dict.fromkeys(HYPERPARAMETERS) | stored)

    def as_dict(self):
        """All hyperparameters in their groups, without those that are None."""
        groups = {
            group: {n: self[n] for n in names if self[n] is not None}
            for group, names in GROUPS.items()
        }
        if self["config"]:
            groups["model"]["config"] = json.loads(self["config"])
        return {**groups, "seed": self["seed"]}

    def at(self, **values):
        """With other values of some hyperparameters."""
        return Setting(self, **values)

    def without(self, names):
        return self.at(call=None, config=None, **dict.fromkeys(names))

    def matches(self, values):
        """Whether each hyperparameter has its value, or one of a list."""
        return all(
            self[name] in (value if isinstance(value, list) else [value])
            for name, value in values.items()
        )


@dataclasses.dataclass(frozen=True)
class Protocol:
    """What a study asks, trains and shows; `read` makes one from a file.

    `source` is the file, with the defaults of what it does not say.
    """

    path: pathlib.Path
    source: dict
    settings: tuple[Setting, ...] = ()

    def __getitem__(self, key):
        return self.source[key]

    @property
    def varied(self):
        """The hyperparameters that tell variants apart."""
        names = dict.fromkeys(itertools.chain(*self["grid"]))
        return [n for n in names if n not in self["tuned"]]

    @property
    def folder(self):
        return self.path.parent

    @property
    def part(self):
        return self.path.stem.partition("_")[2]

    @property
    def name(self):
        return "/".join(filter(None, [self.folder.name, self.part]))

    def file(self, name):
        """The path of a file of the protocol, or of its part of a study."""
        return self.folder / record.file_name(name, self.part)

    def with_layer(self, setting):
        """A setting whose config is that of the layer of its name."""
        if setting["layer"] is None:
            return setting.at(call=None, config=None)
        layers = LAYERS | self["layers"]
        require_known("layer", [setting["layer"]], layers)
        call = models.call(layers[setting["layer"]], setting)
        return setting.at(call=call, config=models.config(call))

    def variant(self, setting):
        return setting.without(["seed", *self["tuned"]])

    @functools.cached_property
    def variants(self):
        return tuple(dict.fromkeys(map(self.variant, self.settings)))


def read(study):
    """The protocol of a folder, a part FOLDER/PART or a file.

    ValueError says what is wrong in it.
    """
    path = pathlib.Path(study)
    if path.suffix != ".toml":
        part = path.with_name(f"protocol_{path.name}.toml")
        path = part if part.exists() else path / "protocol.toml"
    try:
        return _protocol(path.resolve(), tomllib.loads(path.read_text()))
    except (OSError, KeyError, SyntaxError, TypeError, ValueError) as error:
        raise ValueError(f"{path}: {error}") from error


def every():
    """The protocols of all studies."""
    return list(map(read, sorted(record.STUDIES.glob("*/protocol*.toml"))))


def _protocol(path, source):
    require_known("key", source, [*REQUIRED, *DEFAULTS, *SHARED])
    _require(REQUIRED, source)
    protocol = Protocol(path, DEFAULTS | source)
    fixed = protocol["data"] | protocol["model"] | protocol["training"]
    names = set(itertools.chain(*protocol["grid"]))
    require_known("hyperparameter", [*names, *fixed], HYPERPARAMETERS)
    shown = filter(None, [*protocol["tuned"], protocol["panels"]])
    require_known("hyperparameter to choose or show", shown, names)
    require_known("table", protocol["tables"], TABLES)
    # Grid after grid, seed after seed: the first grid has its verdicts first.
    settings = tuple(
        protocol.with_layer(_setting({**fixed, **chosen, "seed": seed}))
        for grid in protocol["grid"]
        for seed in protocol["seeds"]
        for chosen in _combinations(grid)
    )
    return dataclasses.replace(protocol, settings=settings)


def _combinations(grid):
    """{hyperparameter: value} of each combination of a row."""
    values = (v if isinstance(v, list) else [v] for v in grid.values())
    for chosen in itertools.product(*values):
        yield dict(zip(grid, chosen, strict=True))


def _setting(values):
    for name in VALUES.keys() & values.keys():
        require_known(f"value of `{name}`", [values[name]], VALUES[name])
    _require(["task", "updates", "batch_size", "learning_rate"], values)
    _require(NEEDED[values["task"]], values)
    return Setting(HYPERPARAMETERS | values)


def _require(names, values):
    for name in names:
        if name not in values:
            raise ValueError(f"`{name}` is missing.")


def require_known(kind, values, names):
    unknown = sorted(set(map(str, values)) - set(names))
    if unknown:
        raise ValueError(
            f"unknown {kind}: {', '.join(unknown)}. Known are "
            f"{', '.join(sorted(names))}."
        )
