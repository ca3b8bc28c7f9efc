"""Which claims hold? Each is tested by a protocol fixed before its runs.

    python -m experiments                 # tables, from stored results
    python -m experiments --run=core      # first makes the missing runs
    python -m experiments --run=core --protocol=adding
    python -m experiments --run=core --protocol=my.toml --output=runs/my

A file of experiments/protocols, or one of your own, names the models to train
and the claims. Each run is stored in OUTPUT/PROTOCOL/results.json when it ends,
diverged or not, and is not made again. The tables and pictures of models and of
claims are made from these files.
"""

import functools
import pathlib
import sys

from absl import app
from absl import flags

from experiments import data
from experiments import pages
from experiments import pictures
from experiments import protocols
from experiments import results
from experiments import runner

FLAGS = flags.FLAGS


def chosen():
    """{name: protocol} that are asked for; all, if none is named."""
    if not FLAGS.protocol:
        return protocols.read_all()
    paths = [
        pathlib.Path(name)
        if name.endswith(".toml")
        else protocols.FOLDER / f"{name}.toml"
        for name in FLAGS.protocol
    ]
    return {path.stem: protocols.read(path) for path in paths}


def make_runs(asked, output):
    """The missing runs of the protocols, if their data exist."""
    for name, protocol in asked.items():
        for tier in FLAGS.run:
            if not protocols.all_settings(protocol, tier):
                continue
            lack = data.what_lacks(protocol)
            if lack:
                print(f"{name} is skipped: {lack}.", file=sys.stderr)
                continue
            folder = results.prepare(output / name)
            run = functools.partial(
                runner.run,
                jobs=FLAGS.jobs,
                ray_address=FLAGS.ray_address,
            )
            run(protocol, folder, runner.missing_runs(protocol, folder, tier))
            while FLAGS.extend and (
                beyond := runner.beyond_the_edges(protocol, folder)
            ):
                run(protocol, folder, beyond)


def main(argv):
    del argv
    output = results.prepare(FLAGS.output)
    try:
        asked = chosen()
    except ValueError as error:
        raise app.UsageError(str(error)) from error
    try:
        make_runs(asked, output)
    except KeyboardInterrupt:
        print(
            "\nInterrupted: tables of the stored runs follow.", file=sys.stderr
        )
    for name, protocol in asked.items():
        record = pages.record_of(protocol, output / name)
        drawn = pictures.draw(record, protocol.get("panels")) if record else {}
        for file, picture in drawn.items():
            results.save_picture(picture, output / name / file)
    if FLAGS.protocol and FLAGS.output == FLAGS["output"].default:
        asked = protocols.read_all()  # the pages show all of them
    for name, text in {
        **pages.of_tiers(asked, output),
        **pages.of_comparisons(asked, output),
        **pages.of_claims(asked, output),
        **pages.of_protocols(asked, output),
    }.items():
        results.save_text(text, output / name)
        print(f"\n{output / name}\n\n{text}")


if __name__ == "__main__":
    flags.DEFINE_string(
        "output", "docs/results/claims", "Directory of results and tables."
    )
    flags.DEFINE_multi_enum(
        "run", [], protocols.TIERS, "Tier whose missing runs to make."
    )
    flags.DEFINE_multi_string(
        "protocol", [], "Name or TOML file of a protocol; all by default."
    )
    flags.DEFINE_integer(
        "jobs", None, "Parallel runs; one per core by default.", 1
    )
    flags.DEFINE_bool(
        "extend",
        False,
        "Also try learning rates beyond the best one until a worse is found.",
    )
    flags.DEFINE_string(
        "ray_address", None, "Address of a Ray cluster that makes the runs."
    )
    app.run(main)
