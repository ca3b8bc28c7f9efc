"""The command `keras-rin`, whose flags are the arguments of functions."""

import argparse
import inspect
import re
import sys
import typing

from keras_rin import recordings

# The functions of each command: the first one gets DATA, the next its result.
COMMANDS = {
    "recordings": ("read", "compare"),
    "stream": ("train_stream",),
}


class Parser(argparse.ArgumentParser):
    """A wrong flag is one sentence, without the help of all flags."""

    def error(self, message) -> typing.NoReturn:
        self.exit(2, f"{self.prog}: {message}. --help lists all flags.\n")


def main(arguments=None) -> int:
    """Runs the command; returns its exit status."""
    parser = Parser("keras-rin", description=recordings.__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    for command, names in COMMANDS.items():
        functions = [getattr(recordings, name) for name in names]
        summary = str(inspect.getdoc(functions[-1])).partition("\n")[0]
        added = commands.add_parser(command, help=summary, description=summary)
        added.add_argument("data", metavar="DATA", help=_help(functions[0])[0])
        for function in functions:
            _add_flags(added, function)
    values = vars(parser.parse_args(arguments))
    try:
        result = values.pop("data")
        for name in COMMANDS[values.pop("command")]:
            function = getattr(recordings, name)
            known = {*inspect.signature(function).parameters} & {*values}
            result = function(result, **{key: values[key] for key in known})
        print(result)
    except (OSError, ValueError, ModuleNotFoundError) as error:
        print(f"keras-rin: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt as error:
        text = error.args[0] if error.args else "stopped, nothing is kept."
        print(f"keras-rin: {text}", file=sys.stderr)
        return 130
    return 0


def _help(function):
    """The descriptions of the arguments in a docstring, in order."""
    text = str(inspect.getdoc(function)).split("\nArgs:\n")[1].split("\n\n")[0]
    entries = re.findall(
        r"^    \w+: ((?:.*\n?(?:        )?)*?)(?=^    \w|\Z)", text, re.M
    )
    return [" ".join(entry.split()).replace("%", "%%") for entry in entries]


def _add_flags(parser, function):
    parameters = inspect.signature(function).parameters.values()
    for parameter, text in zip(parameters, _help(function), strict=True):
        negation = "no-" if parameter.default is True else ""
        flag = f"--{negation}{parameter.name.replace('_', '-')}"
        if parameter.kind != parameter.KEYWORD_ONLY:
            continue
        options: dict = {"default": parameter.default, "help": text}
        annotation = str(parameter.annotation)
        if parameter.annotation is bool:
            options["action"] = (
                "store_false" if parameter.default else "store_true"
            )
        elif "Sequence" in annotation:
            options["type"] = lambda value: value.split(",")
        elif parameter.annotation in (int, float):
            options["type"] = parameter.annotation
        parser.add_argument(flag, dest=parameter.name, **options)
