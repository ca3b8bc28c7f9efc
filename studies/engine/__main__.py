"""Makes the runs of a study, and its page.

    python -m engine run adding        # the missing runs, then the page
    python -m engine estimate adding   # how long would these take?
    python -m engine pages             # all pages, from stored runs
    python -m engine measure peers     # a program of a study

A study is a folder with a protocol.toml, here or elsewhere. Each run is stored
in its runs.jsonl when it ends, diverged or not, and is not made again.
"""

import argparse
import pathlib
import sys

from engine import claims
from engine import page
from engine import protocol as protocols
from engine import record
from engine.study import Study
from engine.study import load


def parser():
    main = argparse.ArgumentParser(
        prog="python -m engine",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = main.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run", help="Make the missing runs of a study.")
    _add_flag(run, "--extend", "Also try rates beyond the best one.")
    run.add_argument(
        "--ray_address", help="Address of a Ray cluster that makes the runs."
    )
    estimate = commands.add_parser(
        "estimate", help="Time a few updates of each model that lacks runs."
    )
    for command in (run, estimate):
        command.add_argument("study", type=pathlib.Path, help="Its folder.")
        command.add_argument(
            "--jobs", type=_positive, help="Parallel runs; one a core."
        )
    pages = commands.add_parser("pages", help="Write pages from stored runs.")
    _add_flag(pages, "--pictures", "Draw all pictures as well.")
    measure = commands.add_parser("measure", help="Run a program of a study.")
    measure.add_argument("study", help="Its name, STUDY or STUDY/PART.")
    measure.add_argument("--variant", default="", help="What to measure.")
    measure.add_argument("--output", help="Another folder to write to.")
    _add_flag(measure, "--smallest", "Check with the smallest settings.")
    _add_flag(measure, "--page", "Write page and pictures of stored results.")
    return main


def _add_flag(command, name, text):
    command.add_argument(name, action="store_true", help=text)


def _positive(text):
    if int(text) < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return int(text)


def checked(folder):
    """The protocol of a folder, its claims read once before any run."""
    protocol = protocols.read(folder)
    claims.of(Study(protocol))
    return protocol


def main(arguments=None):
    options = parser().parse_args(arguments)
    if options.command == "pages":
        paths = sorted(record.STUDIES.glob("*/protocol.toml"))
        folders = [path.parent for path in paths]
        studies = [load(checked(folder), folder) for folder in folders]
        if options.pictures:
            for study, study_folder in zip(studies, folders, strict=True):
                page.draw(study, study_folder)
        page.write_all(studies)
        return
    if options.command == "measure":
        from engine.measurement import Measurement  # imports Keras

        study = Measurement.of(options.study)
        how = options.variant, options.smallest, options.page
        study.run(options.output, *how)
        return
    folder = options.study
    try:
        protocol = checked(folder)
    except ValueError as error:
        sys.exit(str(error))
    from engine import data  # these two import TensorFlow
    from engine import runner

    if missing := data.missing_data(protocol.settings):
        sys.exit(f"{folder} cannot be run: {missing}.")
    try:
        if options.command == "estimate":
            runner.estimate(protocol, folder, options.jobs)
        else:
            choices = options.jobs, options.ray_address, options.extend
            runner.run(protocol, folder, *choices)
    except KeyboardInterrupt:
        print("\nInterrupted: the page of stored runs.", file=sys.stderr)
    page.write(load(protocol, folder), folder)
    print((folder / "README.md").read_text())


if __name__ == "__main__":
    main()
