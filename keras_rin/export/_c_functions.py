"""The C functions of a header, which `functions.c` has."""

import pathlib
import re
import string

_FUNCTION = re.compile(
    r"(?:^/\*(?:(?!\*/).)*\*/\n)?^static inline \w+ \$(\w+)\(.*?^}\n",
    re.M | re.S,
)
# Of a function of one value, and of parameters, that of each value of z.
_AT = re.compile(r"static inline float \$(\w+)_at\(float x((?:, float \w+)*)\)")
_LOOP = """\
static inline void ${name}(float z[], int n{parameters})
{{
    for (int i = 0; i < n; i++)
        z[i] = ${name}_at(z[i]{arguments});
}}
"""

_TEXT = pathlib.Path(__file__).with_name("functions.c").read_text("ascii")
_FUNCTIONS = {match[1]: match[0] for match in _FUNCTION.finditer(_TEXT)} | {
    name: _LOOP.format(
        name=name,
        parameters=parameters,
        arguments=parameters.replace("float ", ""),
    )
    for name, parameters in _AT.findall(_TEXT)
}
# Of `keras.activations`.
ACTIVATIONS = ("softmax", "log_softmax") + tuple(
    name for name, parameters in _AT.findall(_TEXT) if not parameters
)


def functions_of(name, private):
    """The texts of a function and, first, of those that it calls, by name.

    `private` begins their names in C. A template is filled once, so that no
    name can be taken for a part of it.
    """
    template = string.Template(_FUNCTIONS[name])
    called = [used for used in template.get_identifiers() if used != name]
    texts = {}
    for used in called:
        texts |= functions_of(used, private)
    names = {used: f"{private}_{used}" for used in (name, *called)}
    return texts | {name: template.substitute(names)}
