"""Does it hold? Every claim, from a protocol fixed before its runs.

    python -m benchmarks.claims                 # tables, from stored records
    python -m benchmarks.claims --run=core      # first makes the runs missing
    python -m benchmarks.claims --run=core --protocol=adding

A file of benchmarks/protocols says what is trained and what is claimed. Each
run that ends, well or not, is at once in OUTPUT/PROTOCOL/results.json, and is
not made again. Tables of contenders and the table of claims are made of these.
"""

import os
import sys

from absl import app
from absl import flags

from benchmarks.claims import pictures
from benchmarks.claims import records
from benchmarks.claims import study
from benchmarks.claims import tables
from benchmarks.claims import wanted
from examples import outputs

FLAGS = flags.FLAGS


def make_runs(protocols, output):
    """Those missing of the protocols asked for, if their data are there."""
    for name, protocol in protocols.items():
        asked = name in (FLAGS.protocol or [name])
        if not asked or protocol["tier"] not in FLAGS.run:
            continue
        lack = what_lacks(protocol)
        if lack:
            print(f"{name} is left out: {lack}.", file=sys.stderr)
        else:
            study.run(protocol, outputs.prepare(output / name), FLAGS.jobs)


def what_lacks(protocol):
    """Of the data that a protocol reads, in words; "" where it has all."""
    if "needs" not in protocol:
        return ""
    variable = protocol["needs"]
    path = os.environ.get(variable)
    if not path:
        return f"{variable} is not set"
    if not os.path.exists(path):
        return f"{variable} names {path}, and nothing is there"
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
        print("\nInterrupted: here is what there is.", file=sys.stderr)
    for name, protocol in protocols.items():
        draw(records.read(output / name), protocol, output / name)
    sections = tables.of_protocols(protocols, output)
    for name, text in {
        **tables.of_tiers(protocols, output),
        **tables.of_claims(protocols, output),
        **sections,
    }.items():
        outputs.save_text(text, output / name)
        print(f"\n{output / name}\n\n{text}")


if __name__ == "__main__":
    flags.DEFINE_string("output", "docs/results/claims", "Where to write.")
    flags.DEFINE_multi_enum("run", [], ["core", "night", "gpu"], "To make.")
    flags.DEFINE_multi_string("protocol", [], "Only these.")
    flags.DEFINE_integer("jobs", None, "Runs at a time, else one a core.", 1)
    app.run(main)
