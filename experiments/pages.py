"""What docs/claims.md shows: claims with their verdicts, and all protocols."""

import operator
import textwrap
from itertools import chain

import numpy as np
from scipy import stats

from experiments import findings
from experiments import protocols as reading
from experiments import results
from experiments import runner
from experiments import tables
from experiments import verdicts

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
    "models.png": "Normalized test loss of each model: median and seeds",
    "settings.png": "Normalized validation loss at each pair of "
    "hyperparameters",
}


def of_protocols(protocols, folder):
    """{page: a section for each protocol}, those without runs at the end."""
    sections = [
        _section(name, protocol, folder / name)
        for name, protocol in protocols.items()
        if protocol["grid"]
    ]
    sections.sort(key=lambda text: "Not run yet" in text)
    return {"protocols.md": "\n".join(sections), **_files(protocols, folder)}


def record_of(protocol, folder):
    """What is stored of a protocol, None if nothing is."""
    record = results.read(folder)
    if record is None:
        return None
    return {**record, "stored": record["protocol"], "protocol": protocol}


def _files(protocols, folder):
    """{page: table}: those that pages show by themselves."""
    return {
        f"{name}/{table}.md": tables.SHOWN[table](record)
        for name, protocol in protocols.items()
        for table in protocol.get("files", ())
        if (record := record_of(protocol, folder / name))
        and tables.outcomes(record)
    }


def _section(name, protocol, folder):
    record = record_of(protocol, folder)
    parts = [
        f"### {name.replace('_', ' ')}",
        f"**{protocol['question']}**",
        _wrapped(f"{protocol['setting']} {protocol.get('differs', '')}"),
        f"    python -m experiments --run={protocol['tier']} --protocol={name}",
    ]
    if record is None or not tables.outcomes(record):
        return "\n\n".join([*parts, _not_run(protocol, record)]) + "\n"
    parts.append(_made(record))
    for table in protocol.get("tables", ["models"]):
        if table in ABOVE:
            tuned = map(tables.said, protocol["tuned"])
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
    made, asked = len(record["runs"]), len(reading.all_settings(protocol))
    return f"Not run yet, but for {made} of {asked} runs."


def _made(record):
    """How many runs there are, where they were made, and what has changed."""
    runs, protocol = record["runs"], record["protocol"]
    asked = reading.all_settings(protocol)
    seeds = len({settings["seed"] for settings in asked})
    versions = record["versions"]
    made = [
        f"{len(runs)} of {len(asked)} runs, {seeds} seeds",
        f"keras {versions['keras']}, tensorflow {versions['tensorflow']}",
    ]
    if record["took"]["runs"] == len(runs):
        minutes = record["took"]["seconds"] / 60
        made.append(f"{minutes:.0f} minutes, {record['machine']}")
    processors = {run["processor"] for run in runs if "processor" in run}
    if processors:
        made.append(" and ".join(sorted(processors)))
    if 0 < sum("processor" in run for run in runs) < len(runs):
        made.append("the processor of the other runs was not recorded")
    if any(record["stored"][k] != protocol[k] for k in ("fixed", "grid")):
        made.append("the protocol has changed since")
    return "; ".join(made) + "."


def of_tiers(protocols, folder):
    """{page: table}: what each choice of `--run` makes, and what is stored."""
    rows = []
    for tier in reading.TIERS:
        counts = [0, 0, 0]
        for name, protocol in protocols.items():
            asked = len(reading.all_settings(protocol, tier))
            missing = len(runner.missing_runs(protocol, folder / name, tier))
            counts = np.add(counts, [asked > 0, asked, asked - missing])
        rows.append([tier, *(f"{count:,}" for count in counts)])
    header = ["`--run=`", "protocols", "runs", "stored"]
    return {"tiers.md": results.markdown(header, rows)}


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
                    protocol, record_of(protocol, folder / name)
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
    return results.markdown(header, rows, words=len(header))


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
    record = record_of(protocol, folder / name)
    for claim in protocol["claims"]:
        if "untested" in claim:
            yield [], UNTESTED, ""
        elif "finding" in claim:
            yield _found(claim, record, name)
        else:
            made = _compared(claim, record, protocol)
            parts = [_part(claim, pair, made) for pair in made]
            answers = [answer for *_, answer in parts]
            verdict = verdicts.verdict(answers) if parts else UNTESTED
            yield parts, verdict, name


def _compared(claim, record, protocol):
    """{pair of models: Comparison}, empty where runs are missing."""
    found = tables.outcomes(record) if record else {}
    measure = operator.attrgetter(claim.get("measure", "losses"))
    pairs = [
        tuple(map(verdicts.model, pair))
        for pair in reading.comparisons(claim, reading.all_models(protocol))
    ]
    if not set(chain(*pairs)) <= found.keys():
        return {}
    return {
        (one, other): verdicts.compare(
            measure(found[one]), measure(found[other])
        )
        for one, other in pairs
    }


def _part(claim, pair, made):
    comparison, pairs = made[pair], [tuple(map(dict, each)) for each in made]
    return (
        condition(tuple(map(dict, pair)), pairs),
        f"{comparison.mean:+.2g} ({tables.interval(comparison.interval())})",
        comparison.says(claim["expect"], claim["within"]),
    )


def of_comparisons(protocols, folder):
    """{page: table}: how many comparisons there are, and how many hold."""
    p_values, answers = [], []
    for name, protocol in protocols.items():
        record = record_of(protocol, folder / name)
        for claim in protocol["claims"]:
            if "compare" in claim:
                for made in _compared(claim, record, protocol).values():
                    asked = claim["expect"], claim["within"]
                    answers.append(made.says(*asked))
                    unsolved = answers[-1] == verdicts.UNSOLVED
                    p_values.append(1 if unsolved else made.p_value(*asked))
    alpha = verdicts.ALPHA
    adjusted = stats.false_discovery_control(p_values) if p_values else []
    rows = [
        ["comparisons", len(p_values)],
        [f"hold, p < {alpha:g}", sum(p < alpha for p in p_values)],
        [
            f"hold at a false discovery rate of {alpha:g}",
            sum(p < alpha for p in adjusted),
        ],
        ["neither model solved the task", answers.count(verdicts.UNSOLVED)],
    ]
    rows = [[what, str(count)] for what, count in rows]
    return {"comparisons.md": results.markdown(["", "count"], rows)}


def condition(pair, pairs):
    """What tells a comparison from the others of its claim, in words."""
    varied = []
    for side, settings in enumerate(pair):
        others = [pair[side] for pair in pairs]
        names = tables.told_by(others, dict.fromkeys(chain(*others)))
        varied.append(
            [
                (name, settings[name])
                for name in names
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
    if claim.get("results") != "runs":
        made_by, record = findings.FILE, None
        if "results" in claim:
            record = results.read(results.RESULTS / claim["results"])
            made_by = record["command"].split()[1]
    elif own is None:
        return [], UNTESTED, name
    where = {"where": claim["where"]} if "where" in claim else {}
    parts = finding(record, **where)
    if not parts:
        return [], UNTESTED, name
    verdict = verdicts.verdict([answer for *_, answer in parts])
    return parts, verdict, made_by
