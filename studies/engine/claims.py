"""Claims: what was published or asked, what was found, and the verdict."""

import dataclasses
import itertools
import re
import runpy
from collections.abc import Sequence

from engine import findings
from engine import verdicts
from engine import words
from engine.protocol import HYPERPARAMETERS
from engine.protocol import require_known

SUBJECTS = "RIN", "non-normal", "identity", "ours"
MEASURES = "test_losses", "curve_means", "unsolved"  # of an outcome, by seed
# A claim with one of these words names no exception.
UNIVERSAL = re.compile(r"\b(whatever|does not|never|every)\b")


@dataclasses.dataclass(frozen=True, eq=False)
class Claim:
    """A statement, and what a study found of it.

    Attributes:
        study: Name of the study, FOLDER or FOLDER/PART.
        after: The runs that were made before the claim was written.
        size: Of our trial, and the published one.
        parts: What was found; empty where all runs are missing.
        unit: What the parts are.
        comparisons: Those of which parts are made.
    """

    statement: str
    study: str
    about: str = "ours"
    source: str = "our question"
    published: str = "no such comparison"
    after: str = ""
    size: str = ""
    parts: Sequence = ()
    unit: str = "comparisons"
    comparisons: Sequence = ()

    def __post_init__(self):
        require_known("value of `about`", [self.about], SUBJECTS)

    @property
    def verdict(self):
        universal = UNIVERSAL.search(self.statement) is not None
        answers = [part.answer for part in self.parts]
        return verdicts.verdict(answers, universal, self.unit)


@dataclasses.dataclass(frozen=True)
class Test:
    """How a protocol tests a claim: two models compared, or a finding.

    `compare` lists pairs of variants, each named by its layer or by some of its
    hyperparameters; `where` limits the others. A `finding` is a function of
    findings.py beside the protocol, from a study and `where` to parts.
    """

    __test__ = False  # it is no test of pytest

    expect: str = "better"
    within: float | None = None
    measure: str = "test_losses"
    compare: Sequence = ()
    where: dict = dataclasses.field(default_factory=dict)
    finding: str = ""

    def __post_init__(self):
        require_known("value of `expect`", [self.expect], ["better", "equal"])
        require_known("value of `measure`", [self.measure], MEASURES)
        require_known("hyperparameter", self.where, HYPERPARAMETERS)

    def pairs(self, variants):
        """The pairs of variants to compare, which agree in all else."""
        pairs = []
        for names in self.compare:
            first, second = (
                {"layer": name} if isinstance(name, str) else name
                for name in names
            )
            named = first | second
            require_known("hyperparameter", named, HYPERPARAMETERS)
            pairs += [
                (variant, other)
                for variant, other in itertools.product(variants, variants)
                if variant.matches(first)
                and other.matches(second)
                and variant.without(named) == other.without(named)
                and variant.matches(self.where)
            ]
        return pairs

    def comparison(self, study, pair):
        """None where runs are missing."""
        outcomes = list(map(study.outcome, pair))
        if None in outcomes:
            return None
        losses = [getattr(outcome, self.measure) for outcome in outcomes]
        return verdicts.compare(*losses, self.expect, self.within)


def of(study):
    """The claims of a study; ValueError says what is wrong in one."""
    return [_claim(study, dict(values)) for values in study.protocol.claims]


def _claim(study, values):
    names = [field.name for field in dataclasses.fields(Test)]
    test = Test(**{name: values.pop(name) for name in names if name in values})
    known = "statement", "about", "source", "published", "after", "size"
    require_known("key of a claim", values, known)
    name, statement = study.protocol.name, values["statement"]
    if test.finding:
        functions = _findings(study.protocol.folder)
        require_known("finding", [test.finding], functions)
        find = functions[test.finding]
        parts = find(study, test.where) if study.runs else []
        return Claim(**values, study=name, parts=parts, unit="models")
    pairs, varied = test.pairs(study.protocol.variants), study.protocol.varied
    if not test.compare:
        raise ValueError(f"no `compare` or `finding` for “{statement}”")
    if test.within is None:
        raise ValueError(f"no `within` for “{statement}”")
    if not pairs:
        raise ValueError(f"no two models for “{statement}”")
    comparisons = [test.comparison(study, pair) for pair in pairs]
    conditions = [words.condition(pair, pairs, varied) for pair in pairs]
    parts = [
        verdicts.part(*both)
        for both in zip(conditions, comparisons, strict=True)
    ]
    made = list(filter(None, comparisons))
    return Claim(
        **values,
        study=name,
        parts=parts if made else [],
        unit=words.unit(pairs, varied),
        comparisons=made,
    )


def _findings(folder):
    """The functions of a study that find out what is no comparison."""
    path = folder / "findings.py"
    own = runpy.run_path(path, run_name="own") if path.exists() else {}
    return {
        name: value
        for name, value in {**vars(findings), **own}.items()
        if getattr(value, "__module__", "") in ("own", findings.__name__)
    }


def of_results(study, claims, results):
    """The claims of a program, whose `finding` makes a part of its results."""
    return [
        Claim(parts=[claim.pop("finding")(results)], study=study, **claim)
        for claim in map(dict, claims)
    ]
