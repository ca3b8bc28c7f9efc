"""Pages: README.md of each study, the index of all, and docs/claims.md."""

import collections
import re

from engine import claims
from engine import pictures
from engine import record
from engine import tables
from engine import verdicts

CLAIMS = record.STUDIES.parent / "docs" / "claims.md"
DECIDED = "holds", "does not hold", "holds in part"
ANSWERS = {"yes": "holds", "no": "does not hold"}
DEPARTURES = (
    "Henrici departure of the recurrent matrix, median and range over seeds:"
)


def of(study, asserted):
    """What README.md says of a protocol, or of its part of a study."""
    protocol = study.protocol
    level = "##" if protocol.part else "#"
    title = (protocol.part or protocol.name).replace("_", " ")
    parts = [f"{level} {title}", f"**{protocol.question}**", protocol.text]
    parts.append(f"    python -m engine run {protocol.name}")
    parts.append(_made(study) if study.outcomes else _missing(study))
    if not protocol.part:
        parts.append(
            "[How to read a page](../README.md#how-to-read-a-page) defines the "
            "verdicts and the normalized loss."
        )
    parts += of_claims(asserted, level)
    if study.outcomes:
        parts += [f"{level}# Runs", *_tables(study)]
        parts += [
            f"![{pictures.CAPTIONS[file]}]({protocol.file(file).name})"
            for file in pictures.of(study)
        ]
    return "\n\n".join(filter(None, parts)) + "\n"


def _tables(study):
    for table in study.protocol.tables:
        if table == "departures":
            yield DEPARTURES
        yield tables.SHOWN[table](study).strip()


def of_claims(asserted, level="#"):
    """The heading and the table of the claims of a study, if it has any."""
    header = ["claim, *source*", "found, *published*", "verdict"]
    rows = [row for claim in asserted for row in _rows(claim)]
    table = record.markdown(header, rows, words=3).strip()
    return [f"{level}# Claims", table] if rows else []


def _rows(claim):
    """The claim, what is published of it, and its parts if there are more."""
    parts, summary, source = claim.parts, "", claim.source
    if claim.after:
        source += f"; defined after {claim.after}"
    if not parts:
        summary = "Not run yet."
    if len(parts) == 1:
        (part,) = parts
        summary = ": ".join(filter(None, [part.condition, part.summary]))
        parts = []
    return [
        [claim.statement, summary, f"**{claim.verdict}**"],
        [f"*{source}*", f"*{claim.published}*", ""],
        *(
            [
                f"– {part.condition}",
                part.summary,
                ANSWERS.get(part.answer, part.answer),
            ]
            for part in parts
        ),
    ]


def _missing(study):
    """That runs are missing, and how many there are."""
    settings = study.protocol.settings
    stored = len(settings) - len(study.missing(settings))
    return "Not run yet" + (
        f", but for {stored} of {len(settings)} runs." if stored else "."
    )


def _made(study):
    """How many runs there are, and where they were made."""
    versions = study.metadata["versions"]
    seeds = len({setting.seed for setting in study.protocol.settings})
    parts = [
        f"{_count(study)}, {seeds} seed{'s' * (seeds > 1)}",
        f"keras {versions['keras']}, tensorflow {versions['tensorflow']}",
    ]
    if study.hours_taken is not None:
        parts.append(f"about {study.hours_taken:.2g} hours on two cores")
    return "; ".join([*parts, *_processors(study)]) + "."


def _count(study):
    count = len(study.protocol.settings)
    stored = count - len(study.missing(study.protocol.settings))
    beyond = len(study.runs) - stored
    more = f" and {beyond} at further learning rates" if beyond else ""
    return f"{stored} of {count} runs{more}"


def _processors(study):
    """On which processors runs were made, each with its instructions."""
    vectors = {}
    for processor in sorted({run.processor or "" for run in study.runs}):
        name, _, instructions = processor.partition(", ")
        vectors.setdefault(name, []).extend(filter(None, [instructions]))
    some_unrecorded = vectors.pop("", None) is not None and vectors
    return [
        f"{name} ({', '.join(widest)})" if widest else name
        for name, widest in vectors.items()
    ] + ["others not recorded"] * bool(some_unrecorded)


def of_table(asserted):
    """The claims that hold or do not, then those that hold in part."""
    rows = []
    ranked = [claim for claim in asserted if _rank(claim) < len(DECIDED)]
    for claim in sorted(ranked, key=_order):
        folder, _, part = claim.study.partition("/")
        anchor = f"#{part.replace('_', '-')}" if part else ""
        link = f"[{folder}](../studies/{folder}/README.md{anchor})"
        row = [claim.about, claim.statement, claim.size, claim.verdict, link]
        rows.append(row)
    header = "about", "claim", "our size (published size)", "verdict", "study"
    return record.markdown(header, rows, words=len(header))


def _order(claim):
    return _rank(claim), claims.SUBJECTS.index(claim.about)


def _rank(claim):
    kinds = [*DECIDED, _kind(claim.verdict)]
    return kinds.index(_kind(claim.verdict))


def _kind(verdict):
    """A verdict without its numbers."""
    return re.sub(r" in \d.*", " in part", verdict)


def of_counts(asserted):
    """How many claims have which verdict, and how many comparisons hold."""
    counts = collections.Counter(_kind(claim.verdict) for claim in asserted)
    comparisons = [c for claim in asserted for c in claim.comparisons]
    answers = [comparison.answer for comparison in comparisons]
    p_values = [
        1.0 if answer == verdicts.UNSOLVED else comparison.p_value
        for comparison, answer in zip(comparisons, answers, strict=True)
    ]
    alpha, discoveries = verdicts.ALPHA, verdicts.discoveries(p_values)
    rows = [
        *(["claims: " + kind, count] for kind, count in counts.most_common()),
        ["comparisons", len(comparisons)],
        [f"comparisons: hold, p < {alpha:g}", sum(p < alpha for p in p_values)],
        [
            f"comparisons: hold at a false discovery rate of {alpha:g}",
            discoveries,
        ],
    ]
    return record.markdown(["", "count"], rows)


def draw(study):
    """The pictures of a study, from its stored runs."""
    for file, figure in pictures.of(study).items():
        record.write_picture(study.protocol.file(file), figure(study))


def write(study, asserted):
    """README.md of a study, or the part of it that is of a protocol."""
    path, part = study.protocol.folder / "README.md", study.protocol.part
    if part:
        record.insert(path, part, of(study, asserted))
    else:
        record.write_text(path, of(study, asserted))


def write_all(studies, every):
    """The pages of studies, and docs/claims.md with the claims of programs."""
    for study in studies:
        asserted = claims.of(study)
        every = [*every, *asserted]
        write(study, asserted)
    record.insert(CLAIMS, "claims", of_table(every))
    record.insert(CLAIMS, "counts", of_counts(every))
