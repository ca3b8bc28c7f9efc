"""What docs/claims.md shows: claims with their verdicts, and all protocols."""

import operator
import textwrap

from benchmarks.claims import findings
from benchmarks.claims import records
from benchmarks.claims import tables
from benchmarks.claims import verdicts
from benchmarks.claims import wanted
from examples import outputs

WIDTH = 88  # of a line of text
UNTESTED = "not tested"
NOT_RUN = {
    "core": "Not run yet.",
    "night": "Not run yet: takes part of a night on two cores.",
    "gpu": "Not run yet: needs a GPU, and none was available.",
}
ANSWERS = {"yes": "holds", "no": "does not hold"}
ABOVE = {  # a table that needs a sentence
    "settings": "Median of the normalized validation loss and solved runs, by "
    "{tuned}:",
    "departures": "Henrici departure of the recurrent matrix, median and range "
    "over seeds:",
}
PICTURES = {
    "models.png": "Normalized test loss of each model: median, 95 % "
    "interval and seeds",
    "settings.png": "Normalized validation loss at each pair of "
    "hyperparameters",
}


def of_protocols(protocols, folder):
    """{page: a section for each protocol}, those without runs at the end."""
    sections = [
        _section(name, protocol, folder / name)
        for name, protocol in wanted.trained(protocols).items()
    ]
    sections.sort(key=lambda text: "Not run yet" in text)
    return {"protocols.md": "\n".join(sections), **_files(protocols, folder)}


def _files(protocols, folder):
    """{page: table}: those that pages show by themselves."""
    return {
        f"{name}/{table}.md": tables.SHOWN[table](record)
        for name, protocol in protocols.items()
        for table in protocol.get("files", ())
        if (record := records.read(folder / name)) and tables.outcomes(record)
    }


def _section(name, protocol, folder):
    record = records.read(folder)
    parts = [
        f"### {name.replace('_', ' ')}",
        f"**{protocol['question']}**",
        _wrapped(f"{protocol['setting']} {protocol['differs']}"),
        f"    python -m benchmarks.claims --run={protocol['tier']} "
        f"--protocol={name}",
    ]
    if record is None or not tables.outcomes(record):
        return "\n\n".join([*parts, _not_run(protocol, record)]) + "\n"
    parts.append(_made(record))
    for table in protocol.get("tables", ["models"]):
        if table in ABOVE:
            tuned = map(tables.said, record["protocol"]["tuned"])
            parts.append(ABOVE[table].format(tuned=", ".join(tuned)))
        parts.append(tables.SHOWN[table](record).strip())
    parts += [
        f"![{told}](results/claims/{name}/{picture})"
        for picture, told in PICTURES.items()
        if (folder / picture).exists()
    ]
    return "\n\n".join(parts) + "\n"


def _wrapped(text):
    """Lines of a width, none of which begins with a plus: that is a list."""
    glued = text.replace(" + ", "\0+ ")
    return textwrap.fill(
        glued, WIDTH, break_long_words=False, break_on_hyphens=False
    ).replace("\0", " ")


def _not_run(protocol, record):
    """Why there is nothing to show yet."""
    if record is None or not record["runs"]:
        return NOT_RUN[protocol["tier"]]
    made, asked = len(record["runs"]), wanted.count(protocol)
    return f"Not run yet, but for {made} of {asked} runs."


def _made(record):
    runs, protocol = record["runs"], record["protocol"]
    made = f"{len(runs)} of {wanted.count(protocol)} runs, "
    made += f"{len(protocol['seeds'])} seeds; "
    made += ", ".join(
        f"{name} {version}"
        for name, version in record["versions"].items()
        if name in ("keras", "tensorflow")
    )
    timed, minutes = _took(record)
    if timed == len(runs):
        made += f"; {minutes:.0f} minutes, {record['machine']}"
    return made + "."


def _took(record):
    """How many of the runs were timed, and how many minutes these took."""
    took = record.get("took", [])
    seconds = sum(part["seconds"] for part in took)
    return sum(part["runs"] for part in took), seconds / 60


def of_tiers(protocols, folder):
    """{page: table}: what each choice of `--run` makes, and how long it took.

    Early runs were made without a clock; `timed` counts the others.
    """
    rows = []
    for tier in NOT_RUN:
        names = [
            name
            for name, protocol in wanted.trained(protocols).items()
            if protocol["tier"] == tier
        ]
        made = [records.read(folder / n) or {"runs": []} for n in names]
        took = [_took(record) for record in made]
        counts = [
            len(names),
            sum(wanted.count(protocols[name]) for name in names),
            sum(len(record["runs"]) for record in made),
            sum(timed for timed, _ in took),
        ]
        minutes = sum(minutes for _, minutes in took)
        rows.append([tier, *map(str, counts), f"{minutes:.0f}"])
    header = ["`--run=`", "protocols", "runs", "stored", "timed", "minutes"]
    return {"tiers.md": outputs.markdown(header, rows)}


def of_claims(protocols, folder):
    """{page: tables}: what is published, what was found, and the verdict.

    What tested a claim stands above its table; claims that were not tested
    are at the end.
    """
    pages = {}
    for name, protocol in protocols.items():
        results = tested(name, protocol, folder)
        for claim, result in zip(protocol["claims"], results, strict=True):
            parts, verdict, made_by = result
            groups = pages.setdefault(claim["about"], {})
            if verdict == UNTESTED:
                made_by = UNTESTED
                why = claim.get("untested") or _not_run(
                    protocol, records.read(folder / name)
                )
                parts = [("", why, "")]
            rows = groups.setdefault(made_by, [])
            rows += _rows(claim, parts, verdict)
    return {
        f"{page}.md": "\n".join(
            f"{_above(made_by, protocols)}\n\n{_claims(rows)}"
            for made_by, rows in sorted(
                groups.items(), key=lambda item: item[0] == UNTESTED
            )
        )
        for page, groups in pages.items()
    }


def _claims(rows):
    header = ["claim, *source*", "found, *published*", "verdict"]
    return outputs.markdown(header, rows, words=len(header))


def _above(made_by, protocols):
    """What tested the claims of a table: a protocol or a script."""
    if made_by == UNTESTED:
        return "**Not tested**"
    if made_by in protocols:
        link = f"[{made_by.replace('_', ' ')}](#{made_by.replace('_', '-')})"
        return f"**{link}** {protocols[made_by]['question']}"
    return f"**`{made_by}`**"


def _rows(claim, parts, verdict):
    """The claim, what is published of it, and its parts if there are more."""
    found, more = "", parts
    if len(parts) == 1:
        ((condition, found, _),), more = parts, []
        found = ": ".join(filter(None, [condition, found]))
    return [
        [claim["statement"], found, f"**{verdict}**"],
        [f"*{claim['source']}*", f"*{claim['published']}*", ""],
        *(
            [f"– {condition}", found, ANSWERS.get(answer, answer)]
            for condition, found, answer in more
        ),
    ]


def tested(name, protocol, folder):
    """Of each claim its parts, the verdict, and what tested it.

    A part is a condition, what was found, and the answer. There are none
    where runs are missing.
    """
    record = records.read(folder / name)
    for claim in protocol["claims"]:
        if "untested" in claim:
            yield [], UNTESTED, ""
        elif "finding" in claim:
            yield _found(claim, record, name)
        else:
            yield *_compared(claim, record), name


def _compared(claim, record):
    found = {} if record is None else tables.outcomes(record)
    measure = operator.attrgetter(claim.get("measure", "losses"))
    parts = []
    for pair in claim["pairs"]:
        one, other = map(verdicts.model, pair)
        if not {one, other} <= found.keys():
            return [], UNTESTED
        difference = verdicts.difference(
            measure(found[one]), measure(found[other])
        )
        ends = tables.interval((difference.low, difference.high))
        parts.append(
            (
                condition(pair, claim["pairs"]),
                f"{difference.mean:+.2g} ({ends})",
                difference.says(claim["expect"], claim["within"]),
            )
        )
    return parts, verdicts.verdict([answer for *_, answer in parts])


def condition(pair, pairs):
    """What tells a comparison from the others of its claim, in words."""
    varied = []
    for side, settings in enumerate(pair):
        others = [pair[side] for pair in pairs]
        varied.append(
            [
                (name, settings[name])
                for name in tables.told_by(others, others)
                if len({other.get(name) for other in others}) > 1
                and name in settings
            ]
        )
    both = [item for item in varied[0] if item in varied[1]]
    one, other = (
        tables.label(item for item in items if item not in both)
        for items in varied
    )
    words = [tables.label(both), one, f"vs. {other}" if other else ""]
    return " ".join(word for word in words if word)


def _found(claim, own, name):
    """The same for a finding, in the runs of the protocol or elsewhere."""
    finding = getattr(findings, claim["finding"])
    made_by, record = name, own
    if claim.get("results") == "runs":
        if own is None or len(own["runs"]) < wanted.count(own["protocol"]):
            return [], UNTESTED, name
    else:
        made_by, record = findings.FILE, None
        if "results" in claim:
            record = records.read(records.RESULTS / claim["results"])
            made_by = record["command"].split()[1]
    parts = finding(record)
    verdict = verdicts.verdict([answer for *_, answer in parts])
    return parts, verdict, made_by
