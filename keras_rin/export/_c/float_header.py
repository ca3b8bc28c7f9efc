"""A model of sequences as a C header, which computes one time step."""

import re
from typing import Any

import keras

from keras_rin._layer_walk.functional_calls import record_calls
from keras_rin.export._c.cells import Cell
from keras_rin.export._c.cells import Features
from keras_rin.export._c.cells import cell_operations
from keras_rin.export._c.header_text import plain
from keras_rin.export._c.header_text import write_header
from keras_rin.export._c.layers import Convolution
from keras_rin.export._c.layers import Embedding
from keras_rin.export._c.layers import check_class
from keras_rin.export._c.layers import layer_operations
from keras_rin.export._c.layers import refuse
from keras_rin.export._c.program import PRIVATE
from keras_rin.export._c.program import Program
from keras_rin.export._step.checks import calls_its_cell_alone
from keras_rin.export._step.checks import check_call
from keras_rin.export._step.checks import check_model
from keras_rin.export._step.checks import check_states
from keras_rin.export._step.checks import is_graph
from keras_rin.export._step.checks import steps_at_once
from keras_rin.export._step.stepwise import is_causal
from keras_rin.export._step.stepwise import tensors_of

STATEFUL = Cell, Convolution, Features


def write_c_header(model, path, weights):
    """Writes the header in floats, with matrices of a type."""
    program = Program(prefix_of(path), weights)
    chain = Chain(model)
    operations, steps = chain.operations, chain.steps_at_once
    x_size = model.inputs[0].shape[2] if model.inputs[0].ndim > 2 else 1
    y_size = _write_step(program, operations, x_size)
    x = f"{steps} steps of the input" if steps > 1 else "one step of the input"
    x += ", in the units of the model's input"
    if isinstance(operations[0], Embedding):
        x = f"a token from 0 to {len(operations[0].rows) - 1}"
    functions = "".join(program.functions.values())
    needs_math = re.search(r"\wf\(", functions)  # the names of math.h end in f
    parts = {"x": x, "y": "the model's output after this step", "notes": ""}
    parts |= {
        "before": "#include <math.h>\n" if needs_math else "",
        "after": "",
    }
    sizes = steps * x_size, y_size
    write_header(program, model, path, *sizes, **parts)


# What C, POSIX and the libraries of compilers include, whose headers a file of
# the same name would take the place of.
TAKEN = """
    aio alloca argz ar assert complex cpio cpuid ctype dirent dlfcn elf endian
    envlock envz err errno error execinfo fcntl features fenv float fmtmsg
    fnmatch fstab ftw gconv getopt glob grp iconv ifaddrs inttypes iso646
    langinfo libgen libintl limits link locale malloc math mcheck memory mntent
    monetary mqueue ndbm netdb newlib nl_types nss obstack paths poll printf
    pthread pty pwd reent regex regexp resolv sched search semaphore setjmp
    sgtty shadow signal spawn stab stdalign stdarg stdatomic stdbit stdbool
    stdckdint stddef stdfix stdint stdio stdio_ext stdlib stdnoreturn string
    strings stropts syscall sysexits syslimits syslog tar termio termios
    tgmath thread_db threads time trace ttyent uchar ucontext ulimit unctrl
    unistd unwind utime utmp utmpx values varargs wait wchar wctype wordexp
    xlocale
""".split()


def prefix_of(path):
    is_prefix = re.fullmatch(r"[a-zA-Z]\w*\.h", path.name, re.ASCII)
    is_taken = path.stem.lower() in TAKEN or PRIVATE in path.stem.split("_")
    if is_taken or not is_prefix:
        raise ValueError(
            "The path of a C header must end in .h. Its stem is the prefix of "
            "all names: a letter, followed by letters, digits and underscores, "
            f"without the word {PRIVATE!r}, and no header of the library of C. "
            f"Received: path={str(path)!r}"
        )
    return path.stem


class Chain:
    """The operations of a chain of layers, which are added call by call.

    `is_masked` is whether the output so far has a mask, `in_time` whether it
    is a sequence, of which a step takes as many as `steps`, and of the input
    `steps_at_once`.
    """

    def __init__(self, model):
        check_model(model)
        self.operations: list[Any] = []
        self.is_masked, self.in_time = False, True
        self.steps = self.steps_at_once = steps_at_once(model)
        self._add_model(model)
        states = [o for o in self.operations if isinstance(o, STATEFUL)]
        check_states(model, states)

    def _add_model(self, model):
        """Adds its calls.

        As in Keras, a layer gets the mask of its call or, if that has none,
        the one that came with its input, and passes on the latter.
        """
        (tensor,), calls, (y,) = record_calls(model)
        for layer, *_ in calls:  # before an error names a mask's operation
            is_nested = isinstance(layer, keras.Model) and is_graph(layer)
            is_known = is_nested or calls_its_cell_alone(layer)
            if isinstance(layer, keras.Layer) and not is_known:
                check_class(layer)
        tokens, masks = tensor, [None]
        for layer, args, kwargs, outputs in calls:
            if _is_mask_of(tokens, layer, args):
                masks += outputs
                continue
            mask = kwargs.get("mask")
            is_another = all(mask is not known for known in masks)
            sources = tensors_of(args)
            refuse(
                layer,
                {
                    "it must read the output of the layer before it, alone": (
                        len(sources) != 1 or sources[0] is not tensor
                    ),
                    "it is called with `training=True`": kwargs.get("training"),
                    "its mask is not that of an Embedding of the model's "
                    "input; do not call the step for masked steps": is_another,
                },
            )
            self._add_call(layer, args, kwargs)
            tensor = outputs[0]
        if tensor is not y:
            raise ValueError(
                "In C the output of a model must be that of its last layer. "
                f"Received: a model with the output {model.outputs[0]}"
            )

    def _add_call(self, layer, args, kwargs):
        is_masked, has_mask = self.is_masked, kwargs.get("mask") is not None
        if self.in_time or isinstance(layer, keras.layers.RNN):
            check_call(layer, args, kwargs, [self.in_time], self.steps)
        if isinstance(layer, keras.Model):
            self.is_masked = is_masked or has_mask
            return self._add_model(layer)
        rank = tensors_of(args)[0].ndim
        self.operations += _operations(layer, is_masked or has_mask, rank)
        returns_steps = getattr(layer, "return_sequences", True)
        self.in_time = self.in_time and returns_steps
        self.is_masked = is_masked and layer.supports_masking and returns_steps
        if isinstance(layer, keras.layers.Embedding):
            self.is_masked = layer.mask_zero
        self.steps //= layer.strides[0] if is_causal(layer) else 1


def _is_mask_of(tokens, layer, args):
    """Whether an operation is the mask that an Embedding computes."""
    if isinstance(layer, keras.Layer) or len(args) != 2:
        return False
    is_comparison = type(layer).__name__ == "NotEqual" and tokens.ndim == 2
    is_with_zero = isinstance(args[1], int) and args[1] == 0
    return is_comparison and args[0] is tokens and is_with_zero


def _operations(layer, is_masked, rank):
    if isinstance(layer, keras.layers.RNN):
        has_zeros = is_masked and layer.zero_output_for_mask
        refuse(
            layer, {"it has `zero_output_for_mask=True` and a mask": has_zeros}
        )
        operations = cell_operations(layer, is_masked)
    else:
        operations = layer_operations(layer, is_masked, rank)
    for operation in operations:
        name = getattr(operation, "name", layer.name)
        operation.comment = f"{name}: {type(layer).__name__}"
    return operations


def _write_step(program, operations, x_size):
    """Adds the operations to a program, and returns the size of y."""
    if any(operation.is_masked for operation in operations):
        program.write("const int is_masked = !(x[0] >= 1.0f);")
    convolutions = [o for o in operations if isinstance(o, Convolution)]
    for operation in reversed(convolutions):
        is_first = operation is convolutions[0]
        operation.begin(program, f", x += {x_size}" if is_first else "")
    x, size = "x", x_size
    for number, operation in enumerate(operations, 1):
        is_late = isinstance(operation, Embedding) and number > 1
        refuse(operation, {"it must be the first layer": is_late})
        program.write(f"/* {plain(operation.comment)} */")
        is_last = number == len(operations)
        x, size = operation.write(program, x, size, is_last)
    return size
