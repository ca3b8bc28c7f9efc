"""Which claims hold? Each is tested by a protocol fixed before its runs.

    python -m experiments                 # tables, from stored results
    python -m experiments --run=core      # first makes the missing runs
    python -m experiments --run=core --protocol=adding
    python -m experiments --run=core --protocol=adding --estimate
    python -m experiments --run=core --protocol=my.toml --output=runs/my

A file of experiments/protocols, or one of your own, names the models to train
and the claims. Each run is stored in OUTPUT/PROTOCOL/results.json when it ends,
diverged or not, and is not made again. The tables and pictures of models and of
claims are made from these files.
"""

import itertools
import pathlib
import sys

from absl import app
from absl import flags

from experiments import checks
from experiments import data
from experiments import pages
from experiments import pictures
from experiments import protocols
from experiments import results
from experiments import runner

FLAGS = flags.FLAGS


def chosen():
    """{name: protocol} of those that are asked for by name or file."""
    paths = [
        pathlib.Path(name)
        if name.endswith(".toml")
        else protocols.FOLDER / f"{name}.toml"
        for name in FLAGS.protocol
    ]
    return {path.stem: checks.read(path) for path in paths}


def make_runs(asked, output):
    """The missing runs of the protocols, or how long they take.

    A protocol whose data do not exist is skipped.
    """
    for name, protocol in asked.items():
        tiers = [protocols.all_settings(protocol, tier) for tier in FLAGS.run]
        settings = list(itertools.chain.from_iterable(tiers))
        if not settings:
            continue
        lack = data.what_lacks(settings)
        if lack:
            print(f"{name} is skipped: {lack}.", file=sys.stderr)
            continue
        folder = results.prepare(output / name)
        if FLAGS.estimate:
            missing = runner.missing(runner.stored(protocol, folder), settings)
            runner.estimate(protocol, folder, missing, FLAGS.jobs)
            continue
        while wanted := wanted_runs(runner.stored(protocol, folder), settings):
            runner.run(protocol, folder, wanted, FLAGS.jobs, FLAGS.ray_address)


def wanted_runs(study, settings):
    """Those beyond the edges of complete models if asked for, then missing."""
    beyond = runner.beyond_the_edges(study) if FLAGS.extend else []
    return beyond or runner.missing(study, settings)


def main(argv):
    if argv[1:]:
        raise app.UsageError(f"Flags begin with --. Received: {argv[1:]}")
    output = results.prepare(FLAGS.output)
    try:
        # Read before the runs, which may take a night and outlast an edit.
        every = checks.read_all()
        asked = chosen() if FLAGS.protocol else every
    except ValueError as error:
        raise app.UsageError(str(error)) from error
    try:
        make_runs(asked, output)
    except KeyboardInterrupt:
        print(
            "\nInterrupted: tables of the stored runs follow.", file=sys.stderr
        )
    shown = every | asked if FLAGS.output == FLAGS["output"].default else asked
    studies = {
        name: runner.stored(p, output / name) for name, p in shown.items()
    }
    for name in asked:
        for file, draw in pictures.of(studies[name]).items():
            results.save_picture(draw(studies[name]), output / name / file)
    for of in (
        pages.of_tiers,
        pages.of_comparisons,
        pages.of_texts,
        pages.of_claims,
        pages.of_protocols,
    ):
        for name, text in of(studies).items():
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
    flags.DEFINE_bool(
        "estimate",
        False,
        "Instead, time a few updates of each model: how long will runs take?",
    )
    flags.DEFINE_string(
        "ray_address", None, "Address of a Ray cluster that makes the runs."
    )
    flags.register_validator("output", str.strip, "Name a directory.")
    for name in ("run", "protocol"):
        flags.register_validator(
            name,
            lambda v: len({pathlib.Path(one).stem for one in v}) == len(v),
            "Give each name once.",
        )
    app.run(main)
