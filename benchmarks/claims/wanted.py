"""The protocols, fixed before their runs, and the runs they ask for."""

import itertools
import pathlib
import tomllib

PROTOCOLS = pathlib.Path(__file__).parents[1] / "protocols"


def protocols():
    """{name: protocol} of all files."""
    return {
        path.stem: tomllib.loads(path.read_text())
        for path in sorted(PROTOCOLS.glob("*.toml"))
    }


def trained(protocols):
    """Those that ask for runs; the others read results of other scripts."""
    return {name: p for name, p in protocols.items() if "grid" in p}


def all_settings(protocol):
    """The settings of each run, seed after seed."""
    for seed, grid in itertools.product(protocol["seeds"], protocol["grid"]):
        for values in itertools.product(*grid.values()):
            chosen = dict(zip(grid, values, strict=True))
            yield {**protocol["fixed"], **chosen, "seed": seed}


def count(protocol):
    """The number of runs of a protocol."""
    return sum(1 for _ in all_settings(protocol))
