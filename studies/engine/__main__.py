"""Makes the runs of a study, and its page.

    python -m engine run adding/layers    # the missing runs, then the page
    python -m engine pages                # all pages, from stored runs
    python -m engine measure fixed_points/three_bits  # a program

A study is a folder with a protocol.toml, here or elsewhere, or its part
FOLDER/PART of a protocol_PART.toml. Each run is stored in its runs.jsonl when
it ends, diverged or not, and is not made again.
"""

import argparse
import pathlib
import sys
import tempfile

from engine import claims
from engine import measurement
from engine import page
from engine import protocol as protocols
from engine.measurement import Measurement
from engine.study import Study
from engine.study import load


def parser():
    form = argparse.RawDescriptionHelpFormatter
    main = argparse.ArgumentParser(description=__doc__, formatter_class=form)
    commands = main.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run", help="Make the missing runs of a study.")
    run.add_argument("study", help="Its folder, or FOLDER/PART.")
    run.add_argument("--jobs", type=int, help="Parallel runs; one a core.")
    run.add_argument(
        "--ray_address", help="Address of a Ray cluster that makes the runs."
    )
    pages = commands.add_parser("pages", help="Write pages from stored runs.")
    flag = {"action": "store_true"}
    pages.add_argument("--pictures", **flag, help="Draw all pictures as well.")
    measure = commands.add_parser("measure", help="Run a program of a study.")
    measure.add_argument("study", help="FOLDER/PART.")
    measure.add_argument("--variant", default="", help="What to measure.")
    text = "Check with the smallest settings."
    measure.add_argument("--smallest", **flag, help=text)
    text = "Write page and pictures of stored results."
    measure.add_argument("--page", **flag, help=text)
    return main


def main(arguments=None):
    options = parser().parse_args(arguments)
    {"run": run, "pages": pages, "measure": run_program}[options.command](
        options
    )


def pages(options):
    studies = list(map(load, protocols.every()))
    for study in studies if options.pictures else []:
        page.draw(study)
    page.write_all(studies, measurement.claims_of_programs())


def run_program(options):
    program = Measurement.load(options.study)
    if options.smallest:
        with tempfile.TemporaryDirectory() as folder:
            program.run(pathlib.Path(folder), options.variant, smallest=True)
    else:
        program.run(variant=options.variant, page=options.page)


def run(options):
    """Makes the missing runs, whose protocol and claims are read before."""
    from engine import data
    from engine import runner

    try:
        protocol = protocols.read(options.study)
        claims.evaluate(Study(protocol))
    except ValueError as error:
        sys.exit(str(error))
    if missing := data.missing_data(protocol.settings):
        sys.exit(f"{protocol.name} cannot be run: {missing}.")
    runner.run(protocol, options.jobs, options.ray_address)
    study = load(protocol)
    page.draw(study)
    page.write(study, claims.evaluate(study))
    print((protocol.folder / "README.md").read_text())


if __name__ == "__main__":
    main()
