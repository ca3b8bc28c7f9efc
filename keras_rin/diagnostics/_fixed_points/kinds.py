"""The kind of a fixed point or a cycle: how many directions expand."""

import collections

import numpy as np

from keras_rin.diagnostics._fixed_points.minimization import minus_identity
from keras_rin.diagnostics._matrices import spectrum


def directions(jacobian, tolerance, borders=0):
    """The Jacobian of a point, its eigenvalues, and how many are of a kind.

    Each unit on a border of linear pieces, where J is that of one side alone,
    counts as a neutral direction.
    """
    smallest = np.linalg.svdvals(minus_identity(jacobian))[-1]
    # Rounding leaves a state s uncertain by eps |s| over the smallest singular
    # value of J - I, or by sqrt(eps) |s| where this is 0, and J with it.
    smallest = max(smallest, np.sqrt(spectrum.ROUNDING))
    error = spectrum.ROUNDING * (len(jacobian) + 1 / smallest)
    eigenvalues, is_neutral = spectrum.neutral(jacobian, tolerance, error)
    moduli = np.abs(eigenvalues)
    expanding = np.count_nonzero(~is_neutral & (moduli > 1))
    neutral = np.count_nonzero(is_neutral) + borders
    return {
        "jacobians": jacobian,
        "eigenvalues": eigenvalues[np.argsort(-moduli, kind="stable")],
        "neutral": min(neutral, len(jacobian) - expanding),
        "expanding": expanding,
    }


def columns(entries, **shapes):
    """Arrays of fields of all entries, which are dicts, of a shape each.

    The numbers of directions are among the fields.
    """
    counts = "neutral", "expanding", "dimension"
    shapes |= dict.fromkeys(counts, ())
    dtypes: dict[str, type] = {"eigenvalues": complex}
    dtypes |= dict.fromkeys((*counts, "searches", "switching"), int)
    arrays = {}
    for name, shape in shapes.items():
        values = [entry[name] for entry in entries]
        array: np.ndarray = np.array(values, dtypes.get(name, float))
        arrays[name] = array.reshape(-1, *shape)
    return arrays


def point_kind(expanding, neutral, contracting, dimension):
    if dimension:
        return "continuum"
    if expanding:
        return "saddle" if neutral or contracting else "source"
    return "neutral" if neutral else "stable"


def kinds(result, contracting):
    """The kind of each point of a result."""
    columns = result.expanding, result.neutral, contracting, result.dimension
    return list(map(point_kind, *columns))


def counts_of_kinds(result, contracting):
    """The words for how many points there are of each kind, "" for none."""
    columns = result.expanding.tolist(), result.dimension.tolist()
    counts = collections.Counter(
        zip(kinds(result, contracting), *columns, strict=True)
    )
    words = (count_of_kind(number, *kind) for kind, number in counts.items())
    return ", ".join(words)


def count_of_kind(number, kind, expanding, dimension):
    """The words for a number of points of one kind."""
    directions = f" ({expanding} expanding direction{'s' * (expanding > 1)})"
    name = kind + "s" * (number > 1 and kind in ("saddle", "source"))
    if kind == "continuum":
        name = f"{'continua' if number > 1 else kind} of dimension {dimension}"
    has_others = expanding > 0 and kind != "source"
    return f"{number} {name}{directions * has_others}"
