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
ANY = "comparisons"
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
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return name(key) if value else f"not {name(key)}"
    return f"{name(key)} {value:g}"


def cell(value):
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return value if isinstance(value, str) else f"{value:g}"


def interval(ends, form=".2g"):
    low, high = ends
    return f"{low:{form}} to {high:{form}}"


def telling_names(variants, names):
    """The hyperparameters that tell variants apart, as few as may be.

    Numbers that follow from another value are left out before words are, the
    last of `names` before the first.
    """

    values = {name: _values(variants, name) for name in names}

    def count(names):
        return len(set(zip(*map(values.get, names), strict=True)))

    names = [n for n in names if set(values[n]) != {None}]
    words = [n for n in names if any(isinstance(v, str) for v in values[n])]
    numbers = [n for n in names if n not in words]
    telling = names
    for name in [*reversed(numbers), *reversed(words)]:
        fewer = [n for n in telling if n != name]
        if fewer and count(fewer) == count(names):
            telling = fewer
    return telling


def _values(variants, name):
    return [variant[name] for variant in variants]


def unit(pairs, names):
    """What the comparisons of a claim are, such as lengths."""
    varied = {
        name
        for side in zip(*pairs, strict=True)
        for name in names
        if len(set(_values(side, name))) > 1
    }
    return UNITS.get(varied.pop(), ANY) if len(varied) == 1 else ANY


def condition(pair, pairs, names):
    """What tells a comparison from the others of its claim."""
    varied = []
    for variant, variants in zip(pair, zip(*pairs, strict=True), strict=True):
        names_with_values = dict.fromkeys(
            name
            for in_claim in variants
            for name in sorted(names)
            if in_claim[name] is not None
        )
        varied.append(
            [
                (name, variant[name])
                for name in telling_names(variants, names_with_values)
                if len(set(_values(variants, name))) > 1
            ]
        )
    both = [item for item in varied[0] if item in varied[1]]
    first, second = (
        label(item for item in items if item not in both) for items in varied
    )
    words = [label(both), first, f"vs. {second}" if second else ""]
    return " ".join(word for word in words if word)
