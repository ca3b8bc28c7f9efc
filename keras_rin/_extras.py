"""How to install the packages of an extra."""

import importlib.metadata

from packaging.requirements import Requirement

IS_PUBLISHED = False  # whether an index has keras-rin (docs/releasing.md)


def install_command(extra):
    """The `pip install` of an extra of this package.

    An index that lacks the package may have one of a stranger by its name, so
    until it is published the packages of the extra are named.
    """
    if IS_PUBLISHED:
        return f'pip install "keras-rin[{extra}]"'
    try:
        return " ".join(["pip install", *sorted(_packages(extra))])
    except importlib.metadata.PackageNotFoundError:  # it is not installed
        return f'pip install "PATH/TO/SOURCE[{extra}]"'


def _packages(extra):
    for text in importlib.metadata.requires("keras-rin") or ():
        requirement = Requirement(text)
        marker = requirement.marker
        if marker is None or not marker.evaluate({"extra": extra}):
            continue
        if requirement.name == "keras-rin":
            for inner in requirement.extras:
                yield from _packages(inner)
        elif requirement.specifier:
            yield f'"{requirement.name}{requirement.specifier}"'
        else:
            yield requirement.name
