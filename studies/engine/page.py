"""Pages: README.md of each study, the index of all, and docs/claims.md."""

import collections
import itertools
import re

from engine import claims
from engine import pictures
from engine import record
from engine import tables
from engine import verdicts
from engine.study import total_core_seconds

CLAIMS = record.STUDIES.parent / "docs" / "claims.md"
DECIDED = "holds", "does not hold"
ANSWERS = {"yes": "holds", "no": "does not hold"}
DEPARTURES = (
    "Henrici departure of the recurrent matrix, median and range over seeds:"
)
GUIDE = (
    "[How to read a page](../README.md#how-to-read-a-page) defines the "
    "verdicts and the normalized loss."
)


def text(name, question, parts):
    """A page of FOLDER; of FOLDER/PART, its headings are one level below."""
    folder, _, part = name.partition("/")
    title = "# " + (part or folder).replace("_", " ")
    paragraphs = filter(None, [title, f"**{question}**", *parts])
    page = "\n\n".join(paragraphs) + "\n"
    return re.sub("^#", "##", page, flags=re.M) if part else page


def of_study(study, study_claims):
    """What README.md says of a protocol, or of its part of a study."""
    protocol = study.protocol
    parts = [f"{protocol['setting']} {protocol['differs']}".strip()]
    parts += [f"    python -m engine run {protocol.name}", _made(study)]
    parts += [GUIDE] * (not protocol.part) + of_claims(study_claims)
    if study.outcomes:
        parts.append("## Runs")
        for name in protocol["tables"]:
            parts += [DEPARTURES] * (name == "departures")
            parts.append(tables.table(study, name))
        parts += [
            f"![{pictures.CAPTIONS[file]}]({protocol.file(file).name})"
            for file in pictures.figures(study)
        ]
    return text(protocol.name, protocol["question"], parts)


def of_claims(every):
    """The heading and the table of the claims of a study, if it has any."""
    header = ["claim, *source*", "found, *published*", "verdict"]
    rows = [row for claim in every for row in _rows(claim)]
    table = record.markdown(header, rows, words=3).strip()
    return ["## Claims", table] if rows else []


def _rows(claim):
    """The claim, what is published of it, and its parts if there are more."""
    parts, summary, source = claim.parts, "", claim.source
    if claim.after:
        source += f"; defined after {claim.after}"
    if not parts:
        summary = "Not run yet."
    if len(parts) == 1:
        (part,), parts = parts, []
        summary = ": ".join(filter(None, [part.condition, part.summary]))
    yield [claim.statement, summary, f"**{claim.verdict}**"]
    sizes = f"; our size (published size): {claim.size}" * bool(claim.size)
    yield [f"*{source}*", f"*{claim.published}{sizes}*", ""]
    for part in parts:
        answer = ANSWERS.get(part.answer, part.answer)
        yield [f"– {part.condition}", part.summary, answer]


def _made(study):
    """How many runs there are, and where they were made."""
    if not study.runs:
        return "Not run yet."
    settings, versions = study.protocol.settings, study.metadata["versions"]
    stored = len(settings) - len(study.missing(settings))
    beyond = len(study.runs) - stored
    runs = f"{stored} of {len(settings)} runs"
    runs += f" and {beyond} at further learning rates" * bool(beyond)
    seeds = len({setting["seed"] for setting in settings})
    parts = [
        f"{runs}, {seeds} seed{'s' * (seeds > 1)}",
        f"keras {versions['keras']}, tensorflow {versions['tensorflow']}",
    ]
    if cost := study.metadata.get("took"):
        seconds = total_core_seconds(cost) * len(study.runs) / cost["runs"]
        parts.append(f"about {seconds / 2 / 3600:.2g} hours on two cores")
    processors = {
        run.processor or "processor not recorded" for run in study.runs
    }
    return "; ".join([*parts, *sorted(processors)]) + "."


def of_table(every):
    """The claims that hold, then those that do not."""
    rows = []
    for kind_and_subject in itertools.product(DECIDED, claims.SUBJECTS):
        for claim in every:
            if (_kind(claim.verdict), claim.about) != kind_and_subject:
                continue
            folder, _, part = claim.study.partition("/")
            anchor = f"#{part.replace('_', '-')}" if part else ""
            link = f"[{claim.verdict}](../studies/{folder}/README.md{anchor})"
            rows.append((claim.about, claim.statement, link))
    header = "about", "claim", "verdict and study"
    return record.markdown(header, rows, words=len(header))


def _kind(verdict):
    """A verdict without its numbers."""
    return re.sub(r" in \d.*", " in part", verdict)


def of_counts(every):
    """How many claims have which verdict, and how many comparisons hold."""
    counts = collections.Counter(_kind(claim.verdict) for claim in every)
    p_values = [
        part.p_value
        for claim in every
        for part in claim.parts
        if part.p_value is not None
    ]
    alpha = verdicts.ALPHA
    rows = [
        *(["claims: " + kind, count] for kind, count in counts.most_common()),
        ["comparisons", len(p_values)],
        [f"comparisons: hold, p < {alpha:g}", sum(p < alpha for p in p_values)],
        [
            f"comparisons: hold at a false discovery rate of {alpha:g}",
            verdicts.discoveries(p_values),
        ],
    ]
    return record.markdown(["", "count"], rows)


def draw(study):
    """The pictures of a study, from its stored runs."""
    for file, figure in pictures.figures(study).items():
        record.write_picture(study.protocol.file(file), figure(study))


def write(study, study_claims):
    """README.md of a study, or the part of it that is of a protocol."""
    path = study.protocol.folder / "README.md"
    record.write_page(path, study.protocol.part, of_study(study, study_claims))


def write_all(studies, every):
    """The pages of studies, and docs/claims.md with the claims of programs."""
    for study in studies:
        study_claims = claims.evaluate(study)
        every = [*every, *study_claims]
        write(study, study_claims)
    record.write_page(CLAIMS, "claims", of_table(every))
    record.write_page(CLAIMS, "counts", of_counts(every))
