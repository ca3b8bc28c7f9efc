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


def has_data(name, protocol):
    """Whether the variable is set that names what a protocol reads."""
    variable = protocol.get("needs")
    found = variable is None or os.environ.get(variable)
    if not found:
        print(f"{name} is left out: {variable} is not set.", file=sys.stderr)
    return found


def draw(record, protocol, folder):
    if record is None:
        return
    drawn = pictures.draw(record, protocol.get("panels"))
    for file, picture in drawn.items():
        picture.savefig(folder / file, dpi=120)


def main(argv):
    del argv
    output = outputs.prepare(FLAGS.output)
    protocols = wanted.protocols()
    try:
        for name, protocol in protocols.items():
            chosen = name in (FLAGS.protocol or [name])
            chosen = chosen and protocol["tier"] in FLAGS.run
            if chosen and has_data(name, protocol):
                folder = outputs.prepare(output / name)
                study.run(protocol, folder, FLAGS.jobs)
    except KeyboardInterrupt:
        print("\nInterrupted: here is what there is.", file=sys.stderr)
    for name, protocol in protocols.items():
        draw(records.read(output / name), protocol, output / name)
    sections = tables.of_protocols(protocols, output)
    for name, text in {
        **tables.of_claims(protocols, output),
        **sections,
    }.items():
        (output / name).write_text(text)
        print(f"\n{output / name}\n\n{text}")


if __name__ == "__main__":
    flags.DEFINE_string("output", "docs/results/claims", "Where to write.")
    flags.DEFINE_multi_enum("run", [], ["core", "night", "gpu"], "To make.")
    flags.DEFINE_multi_string("protocol", [], "Only these.")
    flags.DEFINE_integer("jobs", None, "Runs at a time, else one a core.", 1)
    app.run(main)
