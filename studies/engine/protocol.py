"""Protocols: TOML files that fix what is trained before anything is.

Each combination of the values of a row of `grid`, with the hyperparameters of
all runs in `data`, `model` and `training`, is trained with each of the `seeds`.
`tuned` names the hyperparameters whose best values are chosen on validation
data; the others and the layer tell variants apart. `claims` are read by
`claims.py`. A study of one protocol has it in protocol.toml; of several, each
part in protocol_PART.toml, and its name is FOLDER/PART.
"""

import ast
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
SHARED = "about within source published expect size compare where finding"
KEYS = set(
    f"{SHARED} data model training question setting differs seeds tuned panels "
    "tables curves grid layers claims".split()
)


@dataclasses.dataclass(frozen=True)
class Data:
    """What a run is trained on; None where the task has no such choice."""

    task: str
    length: int | None = None
    train: int | None = None
    copied: int | None = None
    images: str | None = None
    permuted: bool = False
    pooled: int = 1
    number: int | None = None
    inputs: str = "raw"


@dataclasses.dataclass(frozen=True)
class Model:
    """What is trained: recurrent layers, or a network of whole images.

    `layer` is the name of a layer, `call` what makes it, and `config` what that
    is by now, as JSON.
    """

    layer: str | None = None
    call: str | None = dataclasses.field(default=None, compare=False)
    config: str | None = None
    units: int | None = None
    layers: int = 1
    hidden: int = 0
    noise: float | None = None
    chain_gain: float | None = None
    identity_gain: float | None = None
    initializer: str | None = None
    read_out: str | None = None
    blocks: int | None = None
    width: int = 8


@dataclasses.dataclass(frozen=True)
class Training:
    updates: int
    batch_size: int
    learning_rate: float | None
    schedule: str = "constant"
    clip: str = "norm 1"
    beta_2: float = 0.999


GROUPS = {"data": Data, "model": Model, "training": Training}
GROUP_OF = {
    field.name: group
    for group, kind in GROUPS.items()
    for field in dataclasses.fields(kind)
}
HYPERPARAMETERS = [n for n in GROUP_OF if n not in ("call", "config")] + [
    "seed"
]


@dataclasses.dataclass(frozen=True)
class Setting:
    """All that determines a run.

    A variant is a setting without seed, tuned hyperparameters and config: these
    are None. Pages call it a model.
    """

    data: Data
    model: Model
    training: Training
    seed: int | None

    @classmethod
    def of(cls, values):
        """From the value of each hyperparameter that has no default."""
        groups = {
            group: kind(
                **{n: v for n, v in values.items() if GROUP_OF.get(n) == group}
            )
            for group, kind in GROUPS.items()
        }
        return cls(**groups, seed=values["seed"])

    @classmethod
    def from_dict(cls, values):
        """Of a stored run: what it does not have is None, not a default."""
        stored = {**values["data"], **values["model"], **values["training"]}
        if "config" in stored:
            stored["config"] = json.dumps(stored["config"], sort_keys=True)
        return cls.of(
            dict.fromkeys(GROUP_OF) | stored | {"seed": values["seed"]}
        )

    def as_dict(self):
        """All hyperparameters in their groups, without those that are None."""
        groups = {
            group: {
                name: value
                for name, value in vars(getattr(self, group)).items()
                if value is not None and name != "call"
            }
            for group in GROUPS
        }
        if self.model.config:
            groups["model"]["config"] = json.loads(self.model.config)
        return {**groups, "seed": self.seed}

    def __getitem__(self, name):
        group = self if name == "seed" else getattr(self, GROUP_OF[name])
        return getattr(group, name)

    def at(self, **values):
        """With other values of some hyperparameters."""
        seed = values.pop("seed", self.seed)
        groups = {}
        for name, value in values.items():
            groups.setdefault(GROUP_OF[name], {})[name] = value
        changed = {
            group: dataclasses.replace(getattr(self, group), **values)
            for group, values in groups.items()
        }
        return dataclasses.replace(self, seed=seed, **changed)

    def without(self, names):
        return self.at(config=None, **dict.fromkeys(names))

    def matches(self, values):
        """Whether each hyperparameter has its value, or one of a list."""
        return all(
            self[name] in (value if isinstance(value, list) else [value])
            for name, value in values.items()
        )


@dataclasses.dataclass(frozen=True)
class Protocol:
    """What a study asks, trains and shows; `read` makes one from a file."""

    path: pathlib.Path
    question: str
    text: str
    settings: tuple[Setting, ...]
    varied: tuple[str, ...]  # hyperparameters that tell variants apart
    tuned: tuple[str, ...]
    panels: str | None
    tables: tuple[str, ...]
    curves: bool
    claims: tuple[dict, ...]
    source: dict  # the file

    @property
    def part(self):
        return self.path.stem.partition("_")[2]

    @property
    def name(self):
        return "/".join(filter(None, [self.path.parent.name, self.part]))

    @property
    def folder(self):
        return self.path.parent

    def file(self, name):
        """The path of a file of the protocol, or of its part of a study."""
        stem, _, suffix = name.partition(".")
        stem = "_".join(filter(None, [stem, self.part]))
        return self.folder / f"{stem}.{suffix}"

    def with_layer(self, setting):
        """A setting whose config is that of the layer of its name."""
        if setting["layer"] is None:
            return setting
        layers = {**LAYERS, **self.source.get("layers", {})}
        require_known("layer", [setting["layer"]], layers)
        call = ast.parse(layers[setting["layer"]], mode="eval").body
        values = {name: setting[name] for name in HYPERPARAMETERS}
        call = _resolved(call, values)
        if "cell" not in {keyword.arg for keyword in call.keywords}:
            units = ast.Constant(setting["units"])
            call.keywords.append(ast.keyword("units", units))
        call = ast.unparse(call)
        return setting.at(call=call, config=models.config(call))

    def variant(self, setting):
        return setting.without(["seed", *self.tuned])

    @functools.cached_property
    def variants(self):
        return tuple(dict.fromkeys(map(self.variant, self.settings)))

    def seeds(self, variant):
        settings = [s for s in self.settings if self.variant(s) == variant]
        return list(dict.fromkeys(setting.seed for setting in settings))


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
    require_known("key", source, KEYS)
    for key in "question", "setting", "grid":
        if key not in source:
            raise ValueError(f"`{key}` is missing.")
    fixed = {k: v for group in GROUPS for k, v in source.get(group, {}).items()}
    tuned = tuple(source.get("tuned", ["learning_rate"]))
    grids = [
        {key: v if isinstance(v, list) else [v] for key, v in grid.items()}
        for grid in source["grid"]
    ]
    names = [n for n in dict.fromkeys(itertools.chain(*grids)) if n != "seeds"]
    require_known("hyperparameter", [*names, *fixed], HYPERPARAMETERS)
    chosen = filter(None, [*tuned, source.get("panels")])
    require_known("hyperparameter to choose or show", chosen, names)
    tables = tuple(source.get("tables", ["models"]))
    require_known("table", tables, TABLES)
    shared = {key: source[key] for key in SHARED.split() if key in source}
    protocol = Protocol(
        path=path,
        question=source["question"],
        text=" ".join(source[k] for k in ("setting", "differs") if k in source),
        settings=(),
        varied=tuple(n for n in names if n not in tuned),
        tuned=tuned,
        panels=source.get("panels"),
        tables=tables,
        curves=source.get("curves", False),
        claims=tuple(
            {**shared, "statement": statement, **claim}
            for statement, claim in source.get("claims", {}).items()
        ),
        source=source,
    )
    # Grid after grid, seed after seed: the first grid has its verdicts first.
    settings = tuple(
        protocol.with_layer(
            Setting.of(_checked(fixed | chosen | {"seed": seed}))
        )
        for grid in grids
        for seed in grid.pop("seeds", source.get("seeds", range(5)))
        for chosen in _combinations(grid)
    )
    return dataclasses.replace(protocol, settings=settings)


def _combinations(grid):
    for values in itertools.product(*grid.values()):
        yield dict(zip(grid, values, strict=True))


def _checked(values):
    for name in VALUES.keys() & values.keys():
        require_known(f"value of `{name}`", [values[name]], VALUES[name])
    for name in ("task", *NEEDED[values["task"]]):
        if name not in values:
            raise ValueError(f"`{name}` of a run is missing.")
    return values


def _resolved(node, values):
    """A call with the values of the hyperparameters that it names."""
    if isinstance(node, ast.Call):
        if node.args:
            raise ValueError(f"an argument lacks a name: {ast.unparse(node)}")
        for keyword in node.keywords:
            keyword.value = _resolved(keyword.value, values)
    elif isinstance(node, ast.List):
        node.elts = [_resolved(element, values) for element in node.elts]
    elif isinstance(node, ast.Name):
        return ast.Constant(values[node.id])
    return node


def require_known(kind, values, names):
    unknown = sorted(set(map(str, values)) - set(names))
    if unknown:
        raise ValueError(
            f"unknown {kind}: {', '.join(unknown)}. Known are "
            f"{', '.join(sorted(names))}."
        )
