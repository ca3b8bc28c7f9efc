"""Pages: README.md of each study, the index of all, and docs/claims.md."""

import re

from engine import claims
from engine import pictures
from engine import record
from engine import tables
from engine import verdicts

CLAIMS = record.STUDIES.parent / "docs" / "claims.md"
UNRECORDED = "not recorded"
# How the sources of the claims that others made begin.
TEXTS = "Hu et al.", "Orhan", "Hardt and Ma", "note of 26 January"
ANSWERS = {"yes": "holds", "no": "does not hold"}
ABOVE = {  # a table that needs a sentence
    "panels": "Normalized test loss, median over seeds, at the best {tuned} in "
    "brackets:",
    "departures": "Henrici departure of the recurrent matrix, median and range "
    "over seeds:",
}


def of(study, asserted):
    """README.md of a study: question, setting, claims, tables, pictures."""
    protocol = study.protocol
    title = f"# {protocol.name.replace('_', ' ')}"
    parts = [title, f"**{protocol.question}**", protocol.text]
    if protocol.settings:
        parts.append(f"    python -m engine run {protocol.name}")
        parts.append(_made(study) if study.outcomes else _missing(study))
    parts.append(
        "[How to read a page](../README.md#how-to-read-a-page) defines the "
        "verdicts and the normalized loss."
    )
    if asserted:
        header = ["claim, *source*", "found, *published*", "verdict"]
        rows = [row for claim in asserted for row in _rows(claim)]
        parts += ["## Claims", record.markdown(header, rows, words=3).strip()]
    if study.outcomes:
        parts += ["## Runs", *_tables(study)]
        parts += [
            f"![{pictures.CAPTIONS[file]}]({file})"
            for file in pictures.of(study)
        ]
    return "\n\n".join(filter(None, parts)) + "\n"


def _tables(study):
    tuned = ", ".join(tables.tuned(study))
    for table in study.protocol.tables:
        if table in ABOVE:
            yield ABOVE[table].format(tuned=tuned)
        yield tables.SHOWN[table](study).strip()


def _rows(claim):
    """The claim, what is published of it, and its parts if there are more."""
    parts, summary, source = claim.parts, "", claim.source
    if claim.after:
        source += f"; defined after {claim.after}"
    if not parts:
        summary = claim.untested or _missing(claim.study, claim.settings)
    if len(parts) == 1:
        part = parts[0]
        summary = ": ".join(filter(None, [part.condition, part.summary]))
        parts = []
    if claim.results:
        study = claim.results.partition("/")[0]
        summary += f" ([{study}](../{study}/README.md))"
    rows = [[claim.statement, summary, f"**{claim.verdict}**"]]
    rows.append([f"*{source}*", f"*{claim.published}*", ""])
    for part in parts:
        answer = ANSWERS.get(part.answer, part.answer)
        rows.append([f"– {part.condition}", part.summary, answer])
    return rows


def _missing(study, settings=None):
    """Which of the runs are missing, and how long these would take."""
    settings = study.protocol.settings if settings is None else settings
    missing, text = len(study.missing(settings)), "Not run yet"
    if missing < len(settings):
        text += f", but for {len(settings) - missing} of {len(settings)} runs"
    hours = study.hours_missing(settings)
    if hours is None:
        return f"{text}."
    return (
        f"{text}: {missing} runs would take about {hours:.2g} hours on two "
        f"cores ({study.estimate['processor']})."
    )


def _made(study):
    """How many runs there are, and where they were made."""
    protocol, versions = study.protocol, study.metadata["versions"]
    seeds = len({setting.seed for setting in protocol.settings})
    parts = [
        f"{_count(study)}, {seeds} seed{'s' * (seeds > 1)}",
        f"keras {versions['keras']}, tensorflow {versions['tensorflow']}",
    ]
    took = study.metadata["took"]
    if took["runs"] == len(study.runs):
        minutes = f"{took['seconds'] / 60:.0f} minutes"
        parts.append(f"{minutes}, {study.metadata['machine']}")
    elif study.hours_taken is not None:
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


def of_index(studies):
    """The table of all studies, those with a protocol with their cost."""
    rows, known = [], {study.protocol.name: study for study in studies}
    for path in sorted(record.STUDIES.glob("[a-z]*/README.md")):
        name = path.parent.name
        question = re.search(r"^\*\*(.+?)\*\*", path.read_text(), re.MULTILINE)
        row = [f"[{name}]({name}/README.md)", question[1] if question else ""]
        study = known.get(name)
        if study and study.protocol.settings:
            hours = study.hours_taken
            hours = UNRECORDED if hours is None else f"{hours:.2g}"
            row += [_count(study).replace(" runs", "", 1), hours]
        rows.append(row + [""] * (4 - len(row)))
    header = ["study", "question", "runs", "hours on two cores"]
    return record.markdown(header, rows, words=2)


def of_claims(asserted):
    """Each claim with its size, verdict, and the study that tests it.

    Those of a text first; questions of our own follow.
    """
    rows = []
    for claim in asserted:
        name = claim.study.protocol.name
        about = claim.about if claim.source.startswith(TEXTS) else "ours"
        link = f"[{name}](../studies/{name}/README.md)"
        row = [about, claim.statement, claim.size, claim.verdict, link]
        rows.append(row)
    rows.sort(key=lambda row: claims.SUBJECTS.index(row[0]))
    header = "text", "claim", "our size (published size)", "verdict", "study"
    return record.markdown(header, rows, words=len(header))


def of_comparisons(asserted):
    """How many comparisons there are, and how many hold."""
    comparisons = [c for claim in asserted for c in claim.comparisons if c]
    answers = [comparison.answer for comparison in comparisons]
    p_values = [
        1.0 if answer == verdicts.UNSOLVED else comparison.p_value
        for comparison, answer in zip(comparisons, answers, strict=True)
    ]
    alpha, discoveries = verdicts.ALPHA, verdicts.discoveries(p_values)
    rows = [
        ["comparisons", len(comparisons)],
        [f"hold, p < {alpha:g}", sum(p < alpha for p in p_values)],
        [f"hold at a false discovery rate of {alpha:g}", discoveries],
        ["neither model solved the task", answers.count(verdicts.UNSOLVED)],
    ]
    return record.markdown(["", "count"], rows)


def draw(study, folder):
    """The pictures of a study, from its stored runs."""
    for file, figure in pictures.of(study).items():
        record.write_picture(folder / file, figure(study))


def write(study, folder):
    """The page and the pictures of a study."""
    draw(study, folder)
    record.write_text(folder / "README.md", of(study, claims.of(study)))


def write_all(studies):
    """The pages of studies, the index of all, and the claims."""
    every = []
    for study in studies:
        asserted = claims.of(study)
        every += asserted
        path = record.STUDIES / study.protocol.name / "README.md"
        record.write_text(path, of(study, asserted))
    record.insert(record.STUDIES / "README.md", "studies", of_index(studies))
    record.insert(CLAIMS, "claims", of_claims(every))
    record.insert(CLAIMS, "comparisons", of_comparisons(every))
