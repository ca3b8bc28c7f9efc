"""Claims: what was published or asked, what was found, and the verdict."""

import dataclasses
import functools
import itertools

from engine import findings
from engine import record
from engine import verdicts
from engine import words
from engine.protocol import HYPERPARAMETERS
from engine.protocol import require_known
from engine.study import Study

SUBJECTS = "RIN", "non-normal", "identity", "ours"
MEASURES = "test_losses", "curve_means", "unsolved"  # of an outcome, by seed


@dataclasses.dataclass(frozen=True, eq=False)
class Claim:
    """Two variants compared, all else equal, or a finding; or neither.

    `compare` lists pairs of variants, each named by its layer or by some of its
    hyperparameters; `where` limits the others. A `finding` of the results of a
    measured study begins with its name. An `untested` claim says why.
    """

    study: Study
    statement: str
    about: str = "ours"
    source: str = "our question"
    published: str = "no such comparison"
    after: str = ""  # the runs that were made before the claim was written
    size: str = ""
    expect: str = "better"
    within: float | None = None
    measure: str = "test_losses"
    compare: tuple = ()
    where: dict = dataclasses.field(default_factory=dict)
    finding: str = ""
    untested: str = ""

    def __post_init__(self):
        require_known("value of `about`", [self.about], SUBJECTS)
        require_known("value of `expect`", [self.expect], ["better", "equal"])
        require_known("value of `measure`", [self.measure], MEASURES)
        require_known("hyperparameter", self.where, HYPERPARAMETERS)
        if self.finding:
            known = [*findings.OF_RUNS, *findings.COMPUTED]
            known += [f"{self.results}.{name}" for name in findings.OF_RESULTS]
            require_known("finding", [self.finding], known)
        elif self.compare:
            if self.within is None:
                raise ValueError(f"no `within` for “{self.statement}”")
            if not self.pairs:
                raise ValueError(f"no two models for “{self.statement}”")
        elif not self.untested:
            raise ValueError(
                f"no `compare`, `finding` or `untested` for “{self.statement}”"
            )

    @functools.cached_property
    def pairs(self):
        """The pairs of variants to compare, which agree in all else."""
        variants, pairs = self.study.protocol.variants, []
        for names in self.compare:
            first, second = (
                {"layer": name} if isinstance(name, str) else name
                for name in names
            )
            require_known("hyperparameter", first | second, HYPERPARAMETERS)
            named = first | second
            pairs += [
                (variant, other)
                for variant, other in itertools.product(variants, variants)
                if variant.matches(first)
                and other.matches(second)
                and variant.without(named) == other.without(named)
                and variant.matches(self.where)
            ]
        return pairs

    @functools.cached_property
    def comparisons(self):
        """Of each pair; None where runs are missing."""
        return [self._comparison(*pair) for pair in self.pairs]

    def _comparison(self, *pair):
        outcomes = list(map(self.study.outcome, pair))
        if None in outcomes:
            return None
        losses = [getattr(outcome, self.measure) for outcome in outcomes]
        return verdicts.compare(*losses, self.expect, self.within)

    @functools.cached_property
    def parts(self):
        """What was found; nothing where all runs are missing."""
        if self.finding in findings.COMPUTED:
            return findings.COMPUTED[self.finding]()
        if self.results:
            results = record.of_program(self.results)
            name = self.finding.rpartition(".")[2]
            return findings.OF_RESULTS[name](results)
        if self.finding:
            finding = findings.OF_RUNS[self.finding]
            return finding(self.study, self.where) if self.study.runs else []
        if not any(self.comparisons):
            return []
        return list(map(self._part, self.pairs, self.comparisons))

    @property
    def results(self):
        """The name of the measured study that a finding is of, "" if none."""
        return self.finding.rpartition(".")[0]

    def _part(self, pair, comparison):
        varied = self.study.protocol.varied
        condition = words.condition(pair, self.pairs, varied)
        if comparison is None:
            return verdicts.Part(condition, "", verdicts.UNTESTED)
        interval = words.interval(comparison.interval)
        summary = f"{comparison.mean:+.2g} ({interval})"
        return verdicts.Part(condition, summary, comparison.answer)

    @property
    def verdict(self):
        return verdicts.verdict(part.answer for part in self.parts)

    @property
    def settings(self):
        """Of the runs that the claim needs: those of its variants."""
        protocol = self.study.protocol
        needed = set(itertools.chain(*self.pairs))
        if not self.compare:
            items = self.where.items()
            where = {k: v for k, v in items if k not in protocol.tuned}
            needed = {v for v in protocol.variants if v.matches(where)}
        return [s for s in protocol.settings if protocol.variant(s) in needed]


def of(study):
    """The claims of a study; ValueError says what is wrong in one."""
    known = {field.name for field in dataclasses.fields(Claim)} - {"study"}
    for values in study.protocol.claims:
        require_known("key of a claim", values, known)
    return [Claim(study, **values) for values in study.protocol.claims]
