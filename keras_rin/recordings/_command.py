"""The command `keras-rin`, which reads flags and data before it loads Keras."""

import argparse
import shlex
import sys

from keras_rin import _installed_backend
from keras_rin._extras import install_command

COLUMNS = {
    "channels": "Columns of numbers, with commas between.",
    "label": "Column of the class, which is text; of arrays y.",
    "target": "Column of a number to predict; of arrays y.",
    "recording": "Columns that tell recordings apart, with commas between. "
    "Without it the table is a log, with a label in each row.",
    "group": "Column of persons or days, which training, validation and test "
    "never share.",
    "time": "Column that rises in a recording, or in a group of a log: in ISO "
    "8601, in seconds or since 1970; t:ms has another unit.",
}
FORM = {
    "separator": (",", "Character between the cells of a CSV file."),
    "decimal": (".", "Decimal mark of a CSV file."),
}
# The default, whose type the flag has, and what it means.
TRAINING = {
    "minutes": (5.0, "Minutes, in which fewer candidates are trained."),
    "updates": (0, "Updates of each training, instead of minutes."),
    "seed": (0, "The first seed."),
}
COMMANDS = {
    "recordings": (
        "Compares RIN, GRU, LSTM and baselines on recordings.",
        {
            "seeds": (5, "Trainings of each layer for the test."),
            "units": (64, "Units of RIN; others have about as many weights."),
            "output": ("runs/recordings", "Folder to write to."),
        },
    ),
    "stream": (
        "Trains what follows an endless stream, and writes it in C.",
        {
            "seeds": (3, "Trainings of the best network for the test."),
            "window": (128, "Rows of a window; two are joined to train on."),
            "flash": (4096, "Bytes of flash of the device."),
            "unknown": (0.0, "Share of the validation to leave unanswered."),
            "output": ("runs/stream", "Folder to write to."),
        },
    ),
}
DATA = (
    "A .csv or .parquet file; a folder with a folder of such files for each "
    "class; a .npz file of x, y and perhaps group; a .ts file, or the name of "
    "a data set of sktime."
)


def main(arguments=None) -> int:
    """Runs the command; returns its exit status."""
    values = vars(_parser().parse_args(arguments))
    command = values.pop("command")
    try:
        print(_run(command, values))
    except KeyboardInterrupt:
        print("keras-rin: stopped; the same command resumes.", file=sys.stderr)
        return 130
    except ModuleNotFoundError as error:
        text = f"{error.name}: {install_command('recordings')}"
        print(f"keras-rin needs {text}", file=sys.stderr)
        return 1
    except (OSError, ValueError) as error:
        arguments = getattr(error, "arguments", None)
        is_asked = arguments is not None
        text = _proposal(command, values, error) if is_asked else str(error)
        print(f"keras-rin: {text}", file=sys.stderr)
        return 2 if is_asked else 1
    return 0


def _parser():
    parser = argparse.ArgumentParser(
        "keras-rin", description="Recurrent layers on recordings."
    )
    commands = parser.add_subparsers(dest="command", required=True)
    for command, (summary, options) in COMMANDS.items():
        added = commands.add_parser(
            command,
            help=summary,
            description=summary,
            formatter_class=argparse.ArgumentDefaultsHelpFormatter,
        )
        added.add_argument("data", metavar="DATA", help=DATA)
        for name, text in COLUMNS.items():
            added.add_argument(f"--{name}", help=text)
        for name, (default, text) in (FORM | TRAINING | options).items():
            kind = type(default)
            added.add_argument(
                f"--{name}", type=kind, default=default, help=text
            )
    _add_stream_flags(added)
    return parser


def _add_stream_flags(parser):
    parser.add_argument(
        "--join",
        action="store_true",
        help="Joins recordings of one class each to a stream.",
    )
    parser.add_argument(
        "--device",
        default="m0plus",
        choices=("uno", "m0plus", "m4f"),
        help="Processor whose flash, RAM and cycles are measured.",
    )
    parser.add_argument(
        "--layer",
        choices=("MinGRU", "GRU", "RIN"),
        help="Layer of which rin.h is made, whatever is best.",
    )


def _run(command, values):
    """Reads the data and checks what can be checked; then loads Keras."""
    from keras_rin.recordings import _read
    from keras_rin.recordings import _split

    values, is_stream = dict(values), command == "stream"
    columns = {name: values.pop(name) for name in (*COLUMNS, *FORM)}
    data = _read.recordings_of(values.pop("data"), columns, not is_stream)
    parts = _split.parts_of(data, is_stream, values.get("join"))
    print(f"{data}\n{_split.described(parts)}", flush=True)
    _installed_backend.load_package()
    from keras_rin import recordings

    job = recordings.train_stream if is_stream else recordings.compare
    result = job(data, **values)
    return f"{result}\n\n{result.output} has report.md."


def _proposal(command, values, error):
    """What is asked for, and a line to copy."""
    flags = [f"--{name}={value}" for name, value in error.arguments.items()]
    flags = [flag.removesuffix("=True").replace("\t", "\\t") for flag in flags]
    line = shlex.join(["keras-rin", command, values["data"], *flags])
    return f"{error.question}\n  {line}"
