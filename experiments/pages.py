"""What docs/claims.md shows: claims with their verdicts, and all protocols.

Each function takes {name: Study} and returns {file: text}.
"""

import operator
from itertools import chain

from scipy import stats

from experiments import findings
from experiments import pictures
from experiments import protocols
from experiments import results
from experiments import runner
from experiments import tables
from experiments import verdicts

UNRECORDED = "not recorded"
UNRECORDED_OF_SOME = "others not recorded"
# How the sources of the claims that others made begin.
TEXTS = ("Hu et al.", "Orhan", "Hardt and Ma", "note of 26 January")
SUBJECTS = {
    "recurrent_identity": "RIN",
    "nonnormal": "non-normal",
    "identity_in_depth": "identity",
}
ANSWERS = {"yes": "holds", "no": "does not hold"}
ABOVE = {  # a table that needs a sentence
    "panels": "Normalized test loss, median over seeds, at the best {tuned} in "
    "brackets:",
    "settings": "Median of the normalized validation loss and solved runs, by "
    "{tuned}:",
    "departures": "Henrici departure of the recurrent matrix, median and range "
    "over seeds:",
}
PICTURES = {
    "models.png": "Normalized test loss of each model",
    "settings.png": "Normalized validation loss at each pair of "
    "hyperparameters",
    "curves.png": "Normalized validation loss after each epoch: median and "
    "range over seeds",
}


def of_protocols(studies):
    """A section for each protocol, those without runs at the end."""
    sections = [
        _section(name, study)
        for name, study in studies.items()
        if study.protocol["grid"]
    ]
    sections.sort(key=lambda text: "Not run yet" in text)
    alone = {  # tables that pages show by themselves
        f"{name}/{table}.md": tables.SHOWN[table](study)
        for name, study in studies.items()
        for table in study.protocol.get("files", ())
        if study.outcomes
    }
    return {"protocols.md": "\n".join(sections), **alone}


def _section(name, study):
    protocol = study.protocol
    parts = [
        f"### {name.replace('_', ' ')}",
        f"**{protocol['question']}**",
        f"{protocol['setting']} {protocol.get('differs', '')}".strip(),
        f"    python -m experiments {_runs(protocol)} --protocol={name}",
    ]
    if not study.outcomes:
        asked = protocols.all_settings(protocol)
        return "\n\n".join([*parts, _not_run(study, asked)]) + "\n"
    parts.append(_made(study))
    for table in protocol.get("tables", ["models"]):
        if table in ABOVE:
            tuned = map(tables.said, protocol["tuned"])
            parts.append(ABOVE[table].format(tuned=", ".join(tuned)))
        parts.append(tables.SHOWN[table](study).strip())
    parts += [
        f"![{PICTURES[picture]}](results/claims/{name}/{picture})"
        for picture in pictures.of(study)
    ]
    return "\n\n".join(parts) + "\n"


def _runs(protocol):
    """The flags that make all runs of a protocol."""
    made = protocols.tiers(protocol)
    return " ".join(f"--run={tier}" for tier in protocols.TIERS if tier in made)


def _not_run(study, asked):
    """What is missing of the runs asked for, and how long it would take."""
    missing = len(runner.missing(study, asked))
    text = "Not run yet"
    if missing < len(asked):
        text += f", but for {len(asked) - missing} of {len(asked)} runs"
    hours = runner.hours(study, asked)
    if hours is None:
        return f"{text}."
    return (
        f"{text}: {missing} runs would take about {hours:.2g} hours on two "
        f"cores ({study.estimate['processor']})."
    )


def _made(study):
    """How many runs there are, where they were made, and what has changed."""
    runs, protocol, record = study.runs, study.protocol, study.record
    asked = protocols.all_settings(protocol)
    seeds = len({settings["seed"] for settings in asked})
    seeds = "1 seed" if seeds == 1 else f"{seeds} seeds"
    versions = record["versions"]
    stored = len(asked) - len(runner.missing(study, asked))
    beyond = len(runs) - stored
    more = f" and {beyond} at further learning rates" if beyond else ""
    made = [
        f"{stored} of {len(asked)} runs{more}, {seeds}",
        f"keras {versions['keras']}, tensorflow {versions['tensorflow']}",
    ]
    if record["took"]["runs"] == len(runs):
        minutes = record["took"]["seconds"] / 60
        made.append(f"{minutes:.0f} minutes, {record['machine']}")
    made += [part for part in _processors(study) if part != UNRECORDED]
    if any(record["protocol"][k] != protocol[k] for k in ("fixed", "grid")):
        made.append("the protocol has changed since")
    return "; ".join(made) + "."


def of_tiers(studies):
    """What each choice of `--run` makes, and what is stored."""
    rows = []
    for tier in protocols.TIERS:
        asked = [
            (study, settings)
            for study in studies.values()
            if (settings := protocols.all_settings(study.protocol, tier))
        ]
        missing = sum(len(runner.missing(*pair)) for pair in asked)
        runs = sum(len(settings) for _, settings in asked)
        counts = len(asked), runs, runs - missing
        rows.append([tier, *(f"{count:,}" for count in counts)])
    header = ["`--run=`", "protocols", "runs", "stored"]
    return {"tiers.md": results.markdown(header, rows)}


def of_claims(studies):
    """What is published, what was found, and the verdict.

    What tested a claim stands above its table; claims that were not tested
    are at the end.
    """
    pages = {}
    for name, study in studies.items():
        for claim in study.protocol["claims"]:
            parts, made_by = _tested(claim, study, name)
            verdict = verdicts.verdict([answer for *_, answer in parts])
            if not parts:
                verdict = made_by = verdicts.UNTESTED
                asked = protocols.settings_of(claim, study.protocol)
                why = claim.get("untested") or _not_run(study, asked)
                parts = [("", why, "")]
            rows = pages.setdefault(claim["about"], {}).setdefault(made_by, [])
            rows += _rows(claim, parts, verdict)
    header = ["claim, *source*", "found, *published*", "verdict"]
    return {
        f"{page}.md": "\n".join(
            f"{_above(made_by, studies)}\n\n"
            f"{results.markdown(header, rows, words=len(header))}"
            for made_by, rows in sorted(
                groups.items(), key=lambda item: item[0] == verdicts.UNTESTED
            )
        )
        for page, groups in pages.items()
    }


def of_texts(studies):
    """The claims of the three texts: at which size each was tested."""
    rows = []
    for name, study in studies.items():
        for claim in study.protocol["claims"]:
            of_a_text = claim["source"].startswith(TEXTS)
            if not of_a_text or claim["about"] not in SUBJECTS:
                continue
            parts, _ = _tested(claim, study, name)
            answers = [answer for *_, answer in parts]
            verdict = verdicts.verdict(answers) if parts else verdicts.UNTESTED
            size = claim.get("size", study.protocol.get("size", ""))
            cost = _cost(claim, study, bool(parts))
            order = (
                list(SUBJECTS).index(claim["about"]),
                verdict == verdicts.UNTESTED,
            )
            rows.append((*order, claim["statement"], size, verdict, *cost))
    rows.sort(key=lambda row: row[:2])
    header = ["text", "claim", "our size (published size)", "verdict"]
    header += ["hours on two cores", "processor"]
    cells = [[list(SUBJECTS.values())[text], *row] for text, _, *row in rows]
    table = results.markdown(header, cells, words=len(header))
    return {"texts.md": table}


def _cost(claim, study, tested):
    """The hours of what tested a claim, and the processor.

    Scripts take minutes. The hours of runs are those of their whole protocol;
    the estimated ones are those of the runs that the claim lacks.
    """
    if claim.get("results", "runs") != "runs":
        record = results.read(results.RESULTS / claim["results"])
        return "", record.get("processor", UNRECORDED)
    if not tested:
        if "untested" in claim:
            return "", ""
        asked = protocols.settings_of(claim, study.protocol)
        hours = runner.hours(study, asked)
        if hours is None:
            return "", ""
        return f"{hours:.2g} (estimated)", study.estimate["processor"]
    if not study.runs:
        return "", ""
    took, count = study.record["took"], len(study.runs)
    hours = UNRECORDED
    if took["runs"]:
        hours = f"{took['seconds'] / took['runs'] * count / 3600:.2g}"
    return hours, "; ".join(_processors(study))


def _processors(study):
    """On which processors the runs were made, each with its instructions."""
    found = {}
    for recorded in sorted({run.get("processor", "") for run in study.runs}):
        name, _, vectors = recorded.partition(", ")
        found.setdefault(name, []).extend([vectors] if vectors else [])
    rest = UNRECORDED_OF_SOME if len(found) > 1 else UNRECORDED
    last = [rest] if found.pop("", None) is not None else []
    return [
        f"{name} ({', '.join(vectors)})" if vectors else name
        for name, vectors in found.items()
    ] + last


def _above(made_by, studies):
    """What tested the claims of a table: a protocol or a script."""
    if made_by == verdicts.UNTESTED:
        return "**Not tested**"
    if made_by in studies:
        link = f"[{made_by.replace('_', ' ')}](#{made_by.replace('_', '-')})"
        return f"**{link}** {studies[made_by].protocol['question']}"
    return f"**`{made_by}`**"


def _rows(claim, parts, verdict):
    """The claim, what is published of it, and its parts if there are more."""
    found, more, source = "", parts, claim["source"]
    if "after" in claim:
        source += f"; defined after {claim['after']}"
    if len(parts) == 1:
        ((condition, found, _),), more = parts, []
        found = ": ".join(filter(None, [condition, found]))
    return [
        [claim["statement"], found, f"**{verdict}**"],
        [f"*{source}*", f"*{claim['published']}*", ""],
        *(
            [f"– {condition}", found, ANSWERS.get(answer, answer)]
            for condition, found, answer in more
        ),
    ]


def _tested(claim, study, name):
    """The parts of a claim, and what tested it.

    A part is a condition, what was found, and the answer. There are none
    where runs of each are missing.
    """
    if "untested" in claim:
        return [], name
    if "finding" not in claim:
        made = _compared(claim, study)
        if not any(made.values()):
            return [], name
        return [_part(claim, pair, made) for pair in made], name
    finding = findings.ALL[claim["finding"]]
    if "results" not in claim:
        return finding(None), findings.FILE
    if claim["results"] == "runs":
        where = {"where": claim["where"]} if "where" in claim else {}
        return (finding(study, **where) if study.runs else []), name
    record = results.read(results.RESULTS / claim["results"])
    return finding(record), record["tables"].replace(".", "/") + ".py"


def _compared(claim, study):
    """{pair of models: Comparison, or None where runs are missing}"""
    found = study.outcomes
    measure = operator.attrgetter(claim.get("measure", "losses"))
    pairs = [
        tuple(map(verdicts.model, pair))
        for pair in protocols.comparisons(
            claim, protocols.all_models(study.protocol)
        )
    ]
    return {
        pair: verdicts.compare(*(measure(found[model]) for model in pair))
        if found.keys() >= set(pair)
        else None
        for pair in pairs
    }


def _part(claim, pair, made):
    comparison, pairs = made[pair], [tuple(map(dict, each)) for each in made]
    of = condition(tuple(map(dict, pair)), pairs)
    if comparison is None:
        return of, "", verdicts.UNTESTED
    interval = tables.interval(comparison.interval())
    answer = comparison.says(claim["expect"], claim["within"])
    return of, f"{comparison.mean:+.2g} ({interval})", answer


def of_comparisons(studies):
    """How many comparisons there are, and how many hold."""
    p_values, answers = [], []
    for study in studies.values():
        for claim in study.protocol["claims"]:
            made = _compared(claim, study) if "compare" in claim else {}
            for comparison in filter(None, made.values()):
                asked = claim["expect"], claim["within"]
                answers.append(comparison.says(*asked))
                unsolved = answers[-1] == verdicts.UNSOLVED
                p = 1.0 if unsolved else comparison.p_value(*asked)
                p_values.append(p)
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
