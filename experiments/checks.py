"""What is wrong in a protocol is said before its runs, which take hours."""

import inspect
import itertools
import tomllib

from experiments import data
from experiments import findings
from experiments import layers
from experiments import models
from experiments import protocols
from experiments import results
from experiments import tables
from experiments import training
from experiments import verdicts

EXPECT = ("better", "equal")
SHARED = {"about", "within", "size", *protocols.OF_CLAIMS}  # with each claim
KEYS_OF_A_CLAIM = SHARED | set(
    "statement compare where finding results after measure untested".split()
)
KEYS = {*SHARED, *protocols.DEFAULTS} | set(
    "question setting differs panels tables files curves fixed grid layers "
    "claims".split()
)
HYPERPARAMETERS = {"task", *models.HYPERPARAMETERS, *training.HYPERPARAMETERS}


def read_all():
    """{name: protocol} of all files."""
    paths = sorted(protocols.FOLDER.glob("*.toml"))
    return {path.stem: read(path) for path in paths}


def read(path):
    """The protocol in a file; ValueError says what is wrong in it."""
    try:
        protocol = protocols.read(path)
        _known("key", protocol, KEYS)
        _required(protocol, ["question"])
        if protocol["grid"]:
            _check_runs(protocol)
        for claim in protocol["claims"]:
            _check_claim(claim, protocol)
    except (OSError, tomllib.TOMLDecodeError, ValueError) as error:
        raise ValueError(f"{path}: {error}") from error
    return protocol


def _check_runs(protocol):
    _required(protocol, ["setting"])
    _known("tier", protocols.tiers(protocol), protocols.TIERS)
    each = protocols.all_settings(protocol)
    names = set(itertools.chain.from_iterable(each)) - {"seed"}
    tasks = {settings.get("task") for settings in each}
    _known("task", tasks, data.TASKS)
    of_tasks = set().union(*(data.TASKS[task][1] for task in tasks))
    _known("hyperparameter", names, HYPERPARAMETERS | of_tasks)
    _known("hyperparameter in `tuned`", protocol["tuned"], names)
    panels = [protocol["panels"]] if "panels" in protocol else []
    _known("hyperparameter in `panels`", panels, names)
    for key in ("tables", "files"):
        _known(f"table in `{key}`", protocol.get(key, []), tables.SHOWN)
    for name, values in training.VALUES.items():
        used = {one[name] for one in each if name in one}
        _known(f"value of `{name}`", used, values)
    labels = {one["layer"] for one in each if "layer" in one}
    _known("layer", labels, {**layers.LAYERS, **protocol.get("layers", {})})


def _check_claim(claim, protocol):
    _known("key of a claim", claim, KEYS_OF_A_CLAIM)
    _required(claim, ["about", "statement"], " of a claim")
    _known("value of `expect`", [claim["expect"]], EXPECT)
    measure = claim.get("measure", "losses")
    _known("value of `measure`", [measure], verdicts.MEASURES)
    of = f'for the claim "{claim["statement"]}".'
    if not claim.keys() & {"compare", "finding", "untested"}:
        raise ValueError(f"no `compare`, `finding` or `untested` {of}")
    if "compare" in claim:
        _required(claim, ["within"], " of a claim")
        if not protocols.comparisons(claim, protocols.all_models(protocol)):
            raise ValueError(f"no two models to compare {of}")
    if "finding" in claim:
        _known("finding", [claim["finding"]], findings.ALL)
        takes = inspect.signature(findings.ALL[claim["finding"]]).parameters
        if ("where" in takes) != ("where" in claim):
            needs = "needs" if "where" in takes else "takes no"
            raise ValueError(f"`{claim['finding']}` {needs} `where`.")
    if "results" in claim:
        stored = results.RESULTS.glob("*/results.json")
        stored = {path.parent.name for path in stored}
        _known("value of `results`", [claim["results"]], {"runs", *stored})


def _known(what, given, names):
    unknown = sorted(set(map(str, given)) - set(names))
    if unknown:
        raise ValueError(
            f"unknown {what}: {', '.join(unknown)}. Known are "
            f"{', '.join(sorted(names))}."
        )


def _required(given, keys, of=""):
    for key in keys:
        if key not in given:
            raise ValueError(f"`{key}`{of} is missing.")
