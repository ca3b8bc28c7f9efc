"""The C functions of a header, of `functions.c` or `integer_functions.c`."""

import pathlib
import re
import string

_FUNCTION = re.compile(
    r"(?:^/\*(?:(?!\*/).)*\*/\n)?^static inline \w+ \$(\w+)\(.*?^}\n",
    re.M | re.S,
)
# Of a function of one value, and of parameters, that of each value of z.
_AT = re.compile(
    r"static inline (float|int32_t) \$(\w+)_at\(\1 x((?:, float \w+)*)\)"
)


def c_text(name):
    """The text of a file of C in this folder."""
    return pathlib.Path(__file__).with_name(name).read_text("ascii")


def c_template(name):
    """That of a file of which fields are filled."""
    return string.Template(c_text(name))


def _functions(name):
    """The functions of a file, and their loops."""
    text, loop = c_text(name), c_template("loop.c")
    functions = {match[1]: match[0] for match in _FUNCTION.finditer(text)}
    return functions | {
        name: loop.substitute(
            name=name,
            c_type=c_type,
            parameters=parameters,
            arguments=parameters.replace("float ", ""),
        )
        for c_type, name, parameters in _AT.findall(text)
    }


INTEGER_FUNCTIONS = _functions("integer_functions.c")
_FUNCTIONS = _functions("functions.c")
# Of `keras.activations`, without parameters.
ACTIVATIONS = ("softmax", "log_softmax") + tuple(
    name
    for name, text in _FUNCTIONS.items()
    if f"${name}(float z[], int n)\n" in text and f"{name}_at" in _FUNCTIONS
)


def functions_of(name, private, functions=_FUNCTIONS):
    """The texts of a function and, first, of those that it calls, by name.

    `private` begins their names in C. A template is filled once, so that no
    name can be taken for a part of it.
    """
    template = string.Template(functions[name])
    called = [used for used in template.get_identifiers() if used != name]
    texts: dict[str, str] = {}
    for used in called:
        if used in functions:
            texts |= functions_of(used, private, functions)
    names = {used: f"{private}_{used}" for used in (name, *called)}
    return texts | {name: template.substitute(names)}
