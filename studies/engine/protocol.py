"""Protocols: TOML files that fix what is trained before anything is.

Each combination of the values of a row of `grid`, with the hyperparameters of
all runs in `data`, `network` and `training`, is trained with each of the
`seeds`. `tuned` names the hyperparameters whose best values are chosen on
validation data; the others and the layer tell variants apart. `claims` are read
by `claims.py`.
"""

import ast
import dataclasses
import functools
import itertools
import pathlib
import tomllib

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
TABLES = "models", "accuracies", "panels", "departures", "rates"
SHARED = "about within source published expect size compare where finding"
FIXED = "data network training"
KEYS = set(
    f"{SHARED} {FIXED} question setting differs seeds tuned panels tables "
    "curves grid layers claims".split()
)


@dataclasses.dataclass(frozen=True)
class Setting:
    """All that determines a run.

    A variant is a setting without seed and tuned hyperparameters: these are
    None. Pages call it a model.
    """

    task: str
    updates: int
    batch_size: int
    learning_rate: float | None
    seed: int | None
    # Data; None if the task has no such choice.
    length: int | None = None
    train: int | None = None
    copied: int | None = None
    images: str | None = None
    permuted: bool = False
    pooled: int = 1
    number: int | None = None
    inputs: str = "raw"
    # Recurrent networks.
    layer: str | None = None
    layer_config: dict | None = dataclasses.field(
        default=None, compare=False, repr=False
    )
    units: int | None = None
    layers: int = 1
    hidden: int = 0
    noise: float | None = None
    chain_gain: float | None = None
    identity_gain: float | None = None
    # Networks of whole images.
    initializer: str | None = None
    read_out: str | None = None
    blocks: int | None = None
    width: int = 8
    # Training.
    schedule: str = "constant"
    clip: str = "norm 1"
    beta_2: float | None = None

    def __post_init__(self):
        if self.beta_2 is None:
            beta_2 = 0.99 if self.schedule == "cosine" else 0.999
            object.__setattr__(self, "beta_2", beta_2)

    def without(self, names):
        return dataclasses.replace(self, **dict.fromkeys(names))

    def at(self, **values):
        return dataclasses.replace(self, **values)

    def matches(self, values):
        """Whether each hyperparameter has its value, or one of a list."""
        return all(
            getattr(self, name) in (v if isinstance(v, list) else [v])
            for name, v in values.items()
        )

    def as_dict(self):
        """The hyperparameters that differ from their defaults."""
        fields = [f for f in dataclasses.fields(self) if f.compare]
        values = {f: getattr(self, f.name) for f in fields}
        return {f.name: v for f, v in values.items() if v != f.default}


HYPERPARAMETERS = [f.name for f in dataclasses.fields(Setting) if f.compare]


@dataclasses.dataclass(frozen=True)
class Protocol:
    """What a study asks, trains and shows; `read` makes one from a file."""

    name: str
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

    def setting(self, values):
        """From the values of hyperparameters, with the config of its layer."""
        values = {n: values[n] for n in HYPERPARAMETERS if n in values}
        layer = values.get("layer")
        if layer is not None:
            layers = {**LAYERS, **self.source.get("layers", {})}
            require_known("layer", [layer], layers)
            call = ast.parse(layers[layer], mode="eval").body
            values["layer_config"] = config = _config(call, values)
            if "cell" not in config["config"]:
                config["config"]["units"] = values["units"]
        return Setting(**values)

    def variant(self, setting):
        return setting.without(["seed", *self.tuned])

    @functools.cached_property
    def variants(self):
        return tuple(dict.fromkeys(map(self.variant, self.settings)))

    def seeds(self, variant):
        settings = [s for s in self.settings if self.variant(s) == variant]
        return list(dict.fromkeys(setting.seed for setting in settings))


def read(folder):
    """The protocol of a study's folder; ValueError says what is wrong in it."""
    path = pathlib.Path(folder) / "protocol.toml"
    try:
        source = tomllib.loads(path.read_text())
        return _protocol(path.resolve().parent.name, source)
    except (OSError, KeyError, SyntaxError, TypeError, ValueError) as error:
        raise ValueError(f"{path}: {error}") from error


def _protocol(name, source):
    require_known("key", source, KEYS)
    for key in ["question", *(["setting"] if "grid" in source else [])]:
        if key not in source:
            raise ValueError(f"`{key}` is missing.")
    seeds = source.get("seeds", range(5))
    parts = [source.get(key, {}) for key in FIXED.split()]
    fixed = dict(itertools.chain(*map(dict.items, parts)))
    tuned = tuple(source.get("tuned", ["learning_rate"]))
    grids = [
        {key: v if isinstance(v, list) else [v] for key, v in grid.items()}
        for grid in source.get("grid", [])
    ]
    names = [n for n in dict.fromkeys(itertools.chain(*grids)) if n != "seeds"]
    require_known("hyperparameter", [*names, *fixed], HYPERPARAMETERS)
    if grids:
        chosen = filter(None, [*tuned, source.get("panels")])
        require_known("hyperparameter to choose or show", chosen, names)
    tables = tuple(source.get("tables", ["models"]))
    require_known("table", tables, TABLES)
    shared = {key: source[key] for key in SHARED.split() if key in source}
    claims = [
        {**shared, "statement": statement, **claim}
        for statement, claim in source.get("claims", {}).items()
    ]
    protocol = Protocol(
        name=name,
        question=source["question"],
        text=" ".join(source[k] for k in ("setting", "differs") if k in source),
        settings=(),
        varied=tuple(n for n in names if n not in tuned),
        tuned=tuned,
        panels=source.get("panels"),
        tables=tables,
        curves=source.get("curves", False),
        claims=tuple(claims),
        source=source,
    )
    # Grid after grid, seed after seed: the first grid has its verdicts first.
    settings = tuple(
        protocol.setting(_checked({**fixed, **chosen, "seed": seed}))
        for grid in grids
        for seed in grid.pop("seeds", seeds)
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


def _config(node, values):
    """The config of Keras that a call means; a name is a hyperparameter."""
    if isinstance(node, ast.Call):
        if node.args:
            raise ValueError(f"an argument lacks a name: {ast.unparse(node)}")
        name = ast.unparse(node.func)
        if "." not in name:
            name = f"keras_rin.{name}"
        name = name.removeprefix("keras.").replace(".", ">")
        arguments = {k.arg: _config(k.value, values) for k in node.keywords}
        return {"class_name": name, "config": arguments}
    if isinstance(node, ast.List):
        return [_config(element, values) for element in node.elts]
    if isinstance(node, ast.Name):
        return values[node.id]
    return ast.literal_eval(node)


def require_known(kind, values, names):
    unknown = sorted(set(map(str, values)) - set(names))
    if unknown:
        raise ValueError(
            f"unknown {kind}: {', '.join(unknown)}. Known are "
            f"{', '.join(sorted(names))}."
        )
