"""The protocols: files that fix what is trained before anything is.

A protocol is a TOML file. `grid` lists the models: each combination of the
values of a grid, with what is `fixed`, is trained with each of the `seeds`.
`tuned` names the hyperparameters whose best values are chosen on validation
data. A claim compares two models, all else equal, or names a finding.
"""

import itertools
import pathlib
import tomllib

FOLDER = pathlib.Path(__file__).parent / "protocols"
TIERS = ("core", "night", "gpu")
OWN = {"tier", "seeds"}  # of a grid, in the place of the protocol's
# What a protocol, and a claim, says unless it says otherwise.
DEFAULTS = {"tier": "night", "tuned": ["learning_rate"], "seeds": [*range(5)]}
OF_CLAIMS = {
    "source": "our question",
    "published": "no such comparison",
    "expect": "better",
}


def read(path):
    """The protocol in a file, with all that it leaves to a default."""
    read = tomllib.loads(pathlib.Path(path).read_text())
    protocol = {**DEFAULTS, **read}
    shared = {"about", "within", *OF_CLAIMS} & read.keys()
    defaults = OF_CLAIMS | {key: read[key] for key in shared}
    claims = read.get("claims", [])
    protocol["claims"] = [{**defaults, **claim} for claim in claims]
    grids = []
    for grid in protocol.get("grid", []):
        values = {k: v if isinstance(v, list) else [v] for k, v in grid.items()}
        grids.append({**values, **{k: grid[k] for k in OWN & grid.keys()}})
    protocol["grid"] = grids
    return protocol


def tiers(protocol):
    return {grid.get("tier", protocol["tier"]) for grid in protocol["grid"]}


def all_settings(protocol, tier=None):
    """The settings of each run, of one tier or of all.

    Grid after grid, each seed after seed: of a protocol of many hours, the
    first grid has its verdicts first.
    """
    return list(
        itertools.chain.from_iterable(
            _settings(protocol, grid)
            for grid in protocol["grid"]
            if tier in (None, grid.get("tier", protocol["tier"]))
        )
    )


def _settings(protocol, grid):
    values = {name: grid[name] for name in grid if name not in OWN}
    for seed in grid.get("seeds", protocol["seeds"]):
        for chosen in itertools.product(*values.values()):
            named = dict(zip(values, chosen, strict=True))
            yield {**protocol.get("fixed", {}), **named, "seed": seed}


def of_models(protocol):
    """Names of the settings that tell models: those of the grids, not tuned."""
    names = dict.fromkeys(itertools.chain.from_iterable(protocol["grid"]))
    return [n for n in names if n not in OWN and n not in protocol["tuned"]]


def all_models(protocol):
    names = of_models(protocol)
    found = [
        {name: one[name] for name in names if name in one}
        for one in all_settings(protocol)
    ]
    return [one for n, one in enumerate(found) if one not in found[:n]]


def settings_of(claim, protocol):
    """The settings of the runs that a claim needs: those of its models."""
    names, models = of_models(protocol), all_models(protocol)
    where = _rest(claim.get("where", {}), protocol["tuned"])
    needed = [one for one in models if matches(one, where)]
    if "compare" in claim:
        needed = list(itertools.chain(*comparisons(claim, models)))
    return [
        settings
        for settings in all_settings(protocol)
        if {n: settings[n] for n in names if n in settings} in needed
    ]


def comparisons(claim, models):
    """The pairs of models that a claim compares.

    `compare` lists pairs of models, each named by its layer or by some of its
    settings; two models are compared if they agree in all others. `where`
    limits these, each to a value or to one of a list.
    """
    pairs = [
        [{"layer": one} if isinstance(one, str) else one for one in pair]
        for pair in claim["compare"]
    ]
    return [
        (a, b)
        for one, other in pairs
        for a, b in itertools.product(models, models)
        if one.items() <= a.items()
        and other.items() <= b.items()
        and _rest(a, one | other) == _rest(b, one | other)
        and matches(a, claim.get("where", {}))
    ]


def matches(model, where):
    """Whether the settings of a model have the values, or one of a list."""
    return all(
        model.get(name) in (value if isinstance(value, list) else [value])
        for name, value in where.items()
    )


def _rest(model, names):
    return {name: model[name] for name in model if name not in names}
