"""How pages and pictures name hyperparameters, variants and comparisons.

A variant is named by the hyperparameters in which those of a study differ;
what all share, or what follows from another one, is left out.
"""

WORDS = {  # where they are others than in code
    "layer": "model",
    "number": "task",  # what readers of bAbI call it
    "clip": "clipping",
    "noise": "noise std",
    "train": "training samples",
    "blocks": "blocks per stage",
}
UNITS = {
    "length": "lengths",
    "noise": "levels of noise",
    "number": "tasks",
    "permuted": "orders",
    "task": "tasks",
}


def name(hyperparameter):
    return WORDS.get(hyperparameter, hyperparameter.replace("_", " "))


def label(values):
    """A variant in words, of pairs of a hyperparameter and its value."""
    named = (_with_name(*item) for item in values if item[1] is not None)
    return ", ".join(named)


def _with_name(key, value):
    if isinstance(value, bool):
        return name(key) if value else f"not {name(key)}"
    return value if isinstance(value, str) else f"{name(key)} {value:g}"


def cell(value):
    if isinstance(value, bool):
        return "yes" if value else "no"
    return value or "" if isinstance(value, str | None) else f"{value:g}"


def distinguishing_names(variants, names):
    """The hyperparameters that tell variants apart, as few as may be.

    Numbers that follow from another value are left out before words are, the
    last of `names` before the first.
    """
    values = {name: [variant[name] for variant in variants] for name in names}
    names = [n for n in names if set(values[n]) != {None}]

    def count(names):
        return len(set(zip(*map(values.get, names), strict=True)))

    def is_word(name):
        return any(isinstance(value, str) for value in values[name])

    different = count(names)
    for name in sorted(reversed(names), key=is_word):
        fewer = [n for n in names if n != name]
        if fewer and count(fewer) == different:
            names = fewer
    return names


def unit(pairs, names):
    """What the comparisons of a claim are, such as lengths."""
    sides = list(zip(*pairs, strict=True))
    varied = [n for n in names if any(_differs(side, n) for side in sides)]
    unit = "comparisons"
    return UNITS.get(varied[0], unit) if len(varied) == 1 else unit


def condition(pair, pairs, names):
    """What tells a comparison from the others of its claim."""
    first, second = (
        [
            (name, variant[name])
            for name in distinguishing_names(
                side, _with_values(side, sorted(names))
            )
            if _differs(side, name)
        ]
        for variant, side in zip(pair, zip(*pairs, strict=True), strict=True)
    )
    both = [item for item in first if item in second]
    first, second = (
        label(item for item in items if item not in both)
        for items in (first, second)
    )
    words = [label(both), first, f"vs. {second}" if second else ""]
    return " ".join(filter(None, words))


def _differs(variants, name):
    return len({variant[name] for variant in variants}) > 1


def _with_values(variants, names):
    """Those of the first variant first."""
    used = (n for variant in variants for n in names if variant[n] is not None)
    return list(dict.fromkeys(used))
