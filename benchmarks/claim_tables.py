"""The tables of a study: its contenders, and what they say of its claims."""

import json
import pathlib

from benchmarks import findings
from benchmarks import verdicts
from examples import outputs

UNTESTED = "not tested here"
RESULTS = pathlib.Path(__file__).parents[1] / "docs" / "results"


def tables(record):
    """Each contender at its best, over the score of knowing nothing."""
    tuned = record["protocol"]["tuned"]
    rows = [
        [
            label(contender),
            f"{outcome.median:.2g} ({_range(outcome.interval)})",
            *(f"{value:g}" for value in outcome.tuned.values()),
            f"{outcome.failed} of {outcome.runs}",
        ]
        for contender, outcome in outcomes(record).items()
    ]
    chosen = [name.replace("_", " ") for name in tuned]
    header = ["contender", "score", *chosen, "failed"]
    return {"contenders.md": outputs.markdown(header, rows)}


def label(contender):
    return ", ".join(_words(name, value) for name, value in contender)


def _words(name, value):
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return name if value else f"not {name}"
    return f"{name} {value:g}"


def outcomes(record):
    """{contender: Outcome} of a results.json."""
    return verdicts.outcomes(record["protocol"], record["runs"])


def _range(interval):
    low, high = interval
    return f"{low:.2g} to {high:.2g}"


def of_claims(protocols, folder):
    """{page: table}: what is published, what was found, and the verdict.

    What was not tested stands at the end.
    """
    header = ["claim", "source", "published", "found", "verdict", "made by"]
    pages = {}
    for name, protocol in protocols.items():
        for claim in protocol["claims"]:
            found, verdict, made_by = tested(claim, name, folder)
            told = [claim[key] for key in ("statement", "source", "published")]
            row = [*told, found, f"**{verdict}**", made_by]
            pages.setdefault(claim["about"], []).append(row)
    return {
        f"{page}.md": outputs.markdown(
            header,
            sorted(rows, key=lambda row: UNTESTED in row[4]),
            words=len(header),
        )
        for page, rows in pages.items()
    }


def tested(claim, protocol, folder):
    """What was found, the verdict, and what made it."""
    if "untested" in claim:
        return claim["untested"], UNTESTED, ""
    if "finding" in claim:
        record = read(RESULTS / claim.get("results", "none"))
        found, answers = getattr(findings, claim["finding"])(record)
        script = record["command"].split()[1] if record else findings.FILE
        return found, verdicts.verdict(answers), f"`{script}`"
    link = f"[{protocol}](#{protocol.replace('_', '-')})"
    record = read(folder / protocol)
    contenders = {} if record is None else outcomes(record)
    pairs = [map(verdicts.contender, pair) for pair in claim["pairs"]]
    found, answers = [], []
    for one, other in pairs:
        if not {one, other} <= contenders.keys():
            return "runs are missing", UNTESTED, link
        difference = verdicts.difference(contenders[one], contenders[other])
        answers.append(difference.says(claim["expect"], claim["within"]))
        interval = _range((difference.low, difference.high))
        found.append(f"{difference.mean:+.2g} ({interval})")
    return "; ".join(found), verdicts.verdict(answers), link


def read(folder):
    """The results of a folder, None where there are none yet."""
    path = folder / "results.json"
    return json.loads(path.read_text()) if path.exists() else None
