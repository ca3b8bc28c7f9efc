"""The tables of a study: its contenders, and what they say of its claims."""

import operator
import statistics

from benchmarks.claims import findings
from benchmarks.claims import records
from benchmarks.claims import verdicts
from benchmarks.claims import wanted
from examples import outputs

UNTESTED = "not tested here"
NOT_RUN = {
    "core": "Not run yet.",
    "night": "Not run yet: two cores need a part of a night for it.",
    "gpu": "Not run yet: for a GPU, and none was to be had.",
}
SAID = {"number": "task"}  # other than in code: what readers of bAbI call it
PICTURES = {
    "contenders.png": "The same: each contender's median, interval and seeds",
    "settings.png": "Every setting: the median of its scores",
}


def of_contenders(record):
    """Each contender at its best, over the score of knowing nothing."""
    tuned = record["protocol"]["tuned"]
    rows = [
        [
            label(contender),
            f"{outcome.median:.2g} ({_range(outcome.interval)})",
            *_chosen(outcome),
            _learned(outcome.runs),
            f"{outcome.failed} of {len(outcome.runs)}",
        ]
        for contender, outcome in outcomes(record).items()
    ]
    chosen = [said(name) for name in tuned]
    header = ["contender", "score", *chosen, "learned", "failed"]
    return outputs.markdown(header, rows)


def of_settings(record):
    """Median on validation data and how many learned, over a tuned setting."""
    (name,) = record["protocol"]["tuned"]
    found = {
        contender: {
            value: f"{verdicts.median(runs):.2g}, {_learned(runs)}"
            for (value,), runs in outcome.groups.items()
        }
        for contender, outcome in outcomes(record).items()
    }
    tried = sorted({value for of in found.values() for value in of})
    rows = [
        [label(contender), *(of.get(value, "") for value in tried)]
        for contender, of in found.items()
    ]
    header = ["score, learned", *(_words(name, value) for value in tried)]
    return outputs.markdown(header, rows)


def of_rates(record):
    """Each model at each rate: solved, diverged, and loss over baseline."""
    rows = []
    for contender, outcome in outcomes(record).items():
        for values, runs in sorted(outcome.groups.items()):
            rows.append(
                [
                    label(contender),
                    ", ".join(f"{value:g}" for value in values),
                    _learned(runs),
                    str(verdicts.diverged(runs)),
                    _spread([verdicts.share(run, "test") for run in runs]),
                ]
            )
    chosen = [said(name) for name in record["protocol"]["tuned"]]
    header = ["model", *chosen, "solved", "diverged", "normalized loss"]
    return outputs.markdown(header, rows)


def of_departures(record):
    """How far from normal each recurrent matrix was, before and after."""
    rows = [
        [f"{label(contender)}: {matrix}", *map(_spread, before_and_after)]
        for contender, outcome in outcomes(record).items()
        for matrix, before_and_after in outcome.departures.items()
    ]
    header = ["Henrici departure", "before training", "after"]
    return outputs.markdown(header, rows)


SHOWN = {
    "contenders": of_contenders,
    "settings": of_settings,
    "departures": of_departures,
    "rates": of_rates,
}


def _learned(runs):
    return f"{verdicts.learned(runs)} of {len(runs)}"


def _spread(values):
    middle = f"{statistics.median(values):.3g}"
    return f"{middle} ({min(values):.3g} to {max(values):.3g})"


def _chosen(outcome):
    """The tuned settings; a star says that the best may lie beyond."""
    for name, value in outcome.tuned.items():
        tried = outcome.tried[name]
        edge = len(tried) > 1 and value in (tried[0], tried[-1])
        yield f"{value:g}{'*' if edge else ''}"


def label(contender):
    return ", ".join(_words(name, value) for name, value in contender)


def said(setting):
    """The name of a setting, in words."""
    return SAID.get(setting, setting.replace("_", " "))


def _words(name, value):
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return said(name) if value else f"not {said(name)}"
    return f"{said(name)} {value:g}"


def outcomes(record):
    """{contender: Outcome} of a results.json."""
    return verdicts.outcomes(record["protocol"], record["runs"])


def _range(interval):
    low, high = interval
    return f"{low:.2g} to {high:.2g}"


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
        f"{name}/{table}.md": SHOWN[table](record)
        for name, protocol in protocols.items()
        for table in protocol.get("files", ())
        if (record := records.read(folder / name)) and outcomes(record)
    }


def _section(name, protocol, folder):
    record = records.read(folder)
    parts = [
        f"### {name.replace('_', ' ')}",
        f"**{protocol['question']}** {protocol['setting']} "
        f"{protocol['differs']}",
        f"    python -m benchmarks.claims --run={protocol['tier']} "
        f"--protocol={name}",
    ]
    if record is None or not outcomes(record):
        return "\n\n".join([*parts, _not_run(protocol, record)]) + "\n"
    parts.append(_made(record))
    shown = protocol.get("tables", ["contenders"])
    parts += [SHOWN[table](record).strip() for table in shown]
    parts += [
        f"![{told}](results/claims/{name}/{picture})"
        for picture, told in PICTURES.items()
        if (folder / picture).exists()
    ]
    return "\n\n".join(parts) + "\n"


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
    header = ["`--run=`", "protocols", "runs", "made", "timed", "minutes"]
    return {"tiers.md": outputs.markdown(header, rows)}


def of_claims(protocols, folder):
    """{page: table}: what is published, what was found, and the verdict.

    What was not tested stands at the end.
    """
    header = ["claim", "published", "found", "verdict"]
    pages = {}
    for name, protocol in protocols.items():
        results = tested(name, protocol, folder)
        for claim, result in zip(protocol["claims"], results, strict=True):
            found, verdict, made_by = result
            told = f"{claim['statement']}<br>*{claim['source']}*"
            verdict = f"**{verdict}**" + (f"<br>{made_by}" if made_by else "")
            found = found or _not_run(protocol, records.read(folder / name))
            row = [told, claim["published"], found, verdict]
            pages.setdefault(claim["about"], []).append(row)
    return {
        f"{page}.md": outputs.markdown(
            header,
            sorted(rows, key=lambda row: UNTESTED in row[-1]),
            words=len(header),
        )
        for page, rows in pages.items()
    }


def tested(name, protocol, folder):
    """Of each claim what was found, the verdict, and what made it.

    Nothing was found where runs are missing.
    """
    link = f"[{name}](#{name.replace('_', '-')})"
    record = records.read(folder / name)
    contenders = {} if record is None else outcomes(record)
    for claim in protocol["claims"]:
        if "untested" in claim:
            yield claim["untested"], UNTESTED, ""
        elif "finding" in claim:
            yield _found(claim, record, link)
        else:
            yield *_compared(claim, contenders), link


def _compared(claim, contenders):
    measure = operator.attrgetter(claim.get("measure", "scores"))
    found, answers = [], []
    for pair in claim["pairs"]:
        one, other = map(verdicts.contender, pair)
        if not {one, other} <= contenders.keys():
            return "", UNTESTED
        difference = verdicts.difference(
            measure(contenders[one]), measure(contenders[other])
        )
        answers.append(difference.says(claim["expect"], claim["within"]))
        interval = _range((difference.low, difference.high))
        told = _which(pair, claim["pairs"])
        found.append(f"{told}{difference.mean:+.2g} ({interval})")
    return "<br>".join(found), verdicts.verdict(answers)


def _which(pair, pairs):
    """What tells a comparison from the others of its claim."""
    varied = [
        [
            (name, value)
            for name, value in settings.items()
            if len({others[side][name] for others in pairs}) > 1
        ]
        for side, settings in enumerate(pair)
    ]
    both = [item for item in varied[0] if item in varied[1]]
    one, other = (
        label(item for item in items if item not in both) for items in varied
    )
    words = [label(both), one, f"against {other}" if other else ""]
    told = " ".join(word for word in words if word)
    return f"{told}: " if told else ""


def _found(claim, own, link):
    """The same for a finding, in the runs of the protocol or elsewhere."""
    finding = getattr(findings, claim["finding"])
    if claim.get("results") == "runs":
        if own is None or len(own["runs"]) < wanted.count(own["protocol"]):
            return "", UNTESTED, link
        found, answers = finding(own)
        return found, verdicts.verdict(answers), link
    record = None
    if "results" in claim:
        record = records.read(records.RESULTS / claim["results"])
    found, answers = finding(record)
    script = record["command"].split()[1] if record else findings.FILE
    return found, verdicts.verdict(answers), f"`{script}`"
