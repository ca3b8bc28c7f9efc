"""Claims: what was published or asked, what was found, and the verdict."""

import dataclasses
import itertools
import runpy
from collections.abc import Sequence

from engine import findings
from engine import verdicts
from engine import words
from engine.protocol import HYPERPARAMETERS
from engine.protocol import SHARED
from engine.protocol import require_known

SUBJECTS = "RIN", "non-normal", "identity", "ours"
VALUES = {
    "about": SUBJECTS,
    "expect": ("better", "equal"),
    # Of an outcome, by seed.
    "measure": ("test_losses", "curve_means", "unsolved"),
}
TEST = {
    **{"expect": "better", "within": None, "measure": "test_losses"},
    **{"compare": None, "where": {}, "finding": None},
}
FIELDS = "about", "source", "published", "after", "size", "universal"


@dataclasses.dataclass(frozen=True, eq=False)
class Claim:
    """A statement, and what a study found of it."""

    statement: str
    study: str  # FOLDER or FOLDER/PART
    about: str = "ours"
    source: str = "our question"
    published: str = "no such comparison"
    after: str = ""  # the runs that were made before the claim was written
    size: str = ""  # of our trial, and the published one
    universal: bool = False  # it names no exception: one "no" refutes it
    parts: Sequence = ()  # what was found; none where all runs are missing
    unit: str = "comparisons"  # what the parts are

    def __post_init__(self):
        require_known("value of `about`", [self.about], SUBJECTS)

    @property
    def verdict(self):
        answers = [part.answer for part in self.parts]
        return verdicts.verdict(answers, self.universal, self.unit)


def evaluate(study):
    """The claims of a study; ValueError says what is wrong in one."""
    source = study.protocol.source
    shared = {key: source[key] for key in SHARED if key in source}
    claims = source["claims"].items()
    return [_claim(study, text, shared | values) for text, values in claims]


def _claim(study, statement, values):
    for name in VALUES.keys() & values.keys():
        require_known(f"value of `{name}`", [values[name]], VALUES[name])
    test = {n: values.pop(n, default) for n, default in TEST.items()}
    require_known("key of a claim", values, FIELDS)
    require_known("hyperparameter", test["where"], HYPERPARAMETERS)
    missing = [name for name in ("compare", "within") if test[name] is None]
    if missing and not test["finding"]:
        raise ValueError(f"no `{missing[0]}` or `finding` for “{statement}”")
    decide = _find if test["finding"] else _compare
    return Claim(
        statement, study.protocol.name, **values, **decide(study, test)
    )


def _find(study, test):
    """The parts that a function finds in a study and `where`."""
    path, functions = study.protocol.folder / "findings.py", vars(findings)
    if path.exists():
        functions = functions | runpy.run_path(path)
    require_known("finding", [test["finding"]], functions)
    find = functions[test["finding"]]
    parts = find(study, test["where"]) if study.runs else []
    return {"parts": parts, "unit": "models"}


def _compare(study, test):
    """A part for each pair of models, none if the runs of all are missing."""
    pairs, varied = (
        pairs_of(study.protocol.variants, test),
        study.protocol.varied,
    )
    if not pairs:
        raise ValueError(f"no two models for {test['compare']}")
    parts = [
        _part(study, test, pair, words.condition(pair, pairs, varied))
        for pair in pairs
    ]
    if all(part.answer == verdicts.UNTESTED for part in parts):
        parts = []
    return {"parts": parts, "unit": words.unit(pairs, varied)}


def _part(study, test, pair, condition):
    outcomes = list(map(study.outcome, pair))
    if None in outcomes:
        return verdicts.Part(condition, "", verdicts.UNTESTED)
    losses = (getattr(outcome, test["measure"]) for outcome in outcomes)
    return verdicts.compare(*losses, test["expect"], test["within"], condition)


def pairs_of(variants, test):
    """The pairs of variants to compare, which agree in all else.

    `compare` lists pairs of models, each named by its layer or by some of its
    hyperparameters; `where` limits the others.
    """
    pairs = []
    for names in test["compare"]:
        first, second = (
            {"layer": name} if isinstance(name, str) else name for name in names
        )
        named = first | second
        require_known("hyperparameter", named, HYPERPARAMETERS)
        pairs += [
            (variant, other)
            for variant, other in itertools.product(variants, variants)
            if variant.matches(first)
            and variant.matches(test["where"])
            and other.matches(second)
            and variant.without(named) == other.without(named)
        ]
    return pairs


def of_results(study, claims, program, results):
    """The claims of a program, whose `finding` makes parts of its results."""
    of_program = []
    for statement, values in claims.items():
        parts = getattr(program, values.pop("finding"))(results)
        parts = [parts] if isinstance(parts, verdicts.Part) else parts
        of_program.append(Claim(statement, study, parts=parts, **values))
    return of_program
