"""Which claims hold? Each is tested by a protocol fixed before its runs.

    python -m benchmarks.claims                 # tables, from stored results
    python -m benchmarks.claims --run=core      # first makes the missing runs
    python -m benchmarks.claims --run=core --protocol=adding

A file of benchmarks/protocols names the models to train and the claims. Each
run is stored in OUTPUT/PROTOCOL/results.json when it ends, diverged or not, and
is not made again. The tables of models and of claims are made from these files.
"""

import os
import sys

from absl import app
from absl import flags

from benchmarks.claims import pages
from benchmarks.claims import pictures
from benchmarks.claims import records
from benchmarks.claims import study
from benchmarks.claims import wanted
from examples import outputs

FLAGS = flags.FLAGS


def make_runs(protocols, output):
    """The missing runs of the protocols asked for, if their data exist."""
    for name, protocol in protocols.items():
        asked = name in (FLAGS.protocol or [name])
        if not asked or protocol["tier"] not in FLAGS.run:
            continue
        lack = what_lacks(protocol)
        if lack:
            print(f"{name} is skipped: {lack}.", file=sys.stderr)
        else:
            study.run(protocol, outputs.prepare(output / name), FLAGS.jobs)


def what_lacks(protocol):
    """Which data of a protocol are missing, in words; "" if none."""
    if "needs" not in protocol:
        return ""
    variable = protocol["needs"]
    path = os.environ.get(variable)
    if not path:
        return f"{variable} is not set"
    if not os.path.exists(path):
        return f"{variable} names {path}, which does not exist"
    return ""


def draw(record, protocol, folder):
    if record is None:
        return
    drawn = pictures.draw(record, protocol.get("panels"))
    for file, picture in drawn.items():
        outputs.save_picture(picture, folder / file)


def main(argv):
    del argv
    output = outputs.prepare(FLAGS.output)
    protocols = wanted.protocols()
    try:
        make_runs(protocols, output)
    except KeyboardInterrupt:
        print(
            "\nInterrupted: tables of the stored runs follow.", file=sys.stderr
        )
    for name, protocol in protocols.items():
        draw(records.read(output / name), protocol, output / name)
    sections = pages.of_protocols(protocols, output)
    for name, text in {
        **pages.of_tiers(protocols, output),
        **pages.of_claims(protocols, output),
        **sections,
    }.items():
        outputs.save_text(text, output / name)
        print(f"\n{output / name}\n\n{text}")


if __name__ == "__main__":
    flags.DEFINE_string(
        "output", "docs/results/claims", "Directory of results and tables."
    )
    flags.DEFINE_multi_enum(
        "run", [], ["core", "night", "gpu"], "Tier whose missing runs to make."
    )
    flags.DEFINE_multi_string(
        "protocol", [], "Protocol to run; all of the tier by default."
    )
    flags.DEFINE_integer(
        "jobs", None, "Parallel runs; one per core by default.", 1
    )
    app.run(main)
