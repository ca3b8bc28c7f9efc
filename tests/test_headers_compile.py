"""A C header compiles: whatever its name, the compiler's flags, its layers."""

import functools

import keras
import numpy as np
import pytest
from hypothesis import HealthCheck
from hypothesis import Phase
from hypothesis import given
from hypothesis import settings
from hypothesis import strategies
from keras import layers
from step_files import run

from keras_rin.export import check_header
from keras_rin.export import export_streaming
from keras_rin.layers import RIN

pytestmark = pytest.mark.one_backend

STRICT = """-c -pedantic -Wall -Wextra -Werror -ffreestanding -Wconversion
    -Wdouble-promotion -Wfloat-equal -Wshadow -Wstrict-aliasing""".split()
COMPILERS = [
    "gcc -std=c99 -Wmissing-prototypes",
    "gcc -std=c11 -Wmissing-prototypes",
    "g++ -std=c++17",
    "clang -std=c99",
    "clang++ -std=c++11 -x c++",
]
# What templates of C may contain, and names that mean something to a compiler.
WORDS = """NAME PREFIX WEIGHT WEIGHTS SCALE SCALES SCALED TYPE SIZE VALUES name
    prefix private_ weights formula parameters int float z a b n t state
    step reset inputs linux unix main C""".split()
words = strategies.sampled_from(WORDS)
stems = strategies.one_of(
    words,
    strategies.builds("{}_{}".format, words, words),
    strategies.from_regex(r"[a-zA-Z][a-zA-Z0-9_]{0,20}", fullmatch=True),
).filter(lambda stem: "private" not in stem.split("_"))
finite = strategies.floats(0, 4, width=32)
limits = strategies.one_of(
    strategies.sampled_from([0.0, 1e-30, 1e30, np.inf]), finite
)
sizes = strategies.integers(1, 4)
booleans = strategies.booleans()


def partial(make, *arguments, **options):
    make = strategies.just(make)
    return strategies.builds(functools.partial, make, *arguments, **options)


def one_of(*values):
    return strategies.sampled_from(values)


CONVOLUTIONS = strategies.one_of(
    partial(
        layers.Conv1D,
        sizes,
        sizes,
        padding=one_of("causal"),
        activation=one_of(None, "tanh", "gelu"),
        dilation_rate=sizes,
    ),
    partial(
        layers.Conv1D,
        sizes,
        strategies.integers(2, 4),
        padding=one_of("causal"),
        strides=sizes,
    ),
)
LAYERS = strategies.one_of(
    partial(layers.ReLU, limits, finite, finite),
    partial(layers.LeakyReLU, finite),
    partial(layers.ELU, finite),
    partial(layers.Rescaling, finite, finite),
    partial(layers.LayerNormalization, epsilon=one_of(0.0, 1e-3)),
    partial(layers.BatchNormalization),
    partial(layers.Dense, sizes, use_bias=booleans),
)
# The GRU of Keras 3.15 fails without a bias if JAX has float64.
RECURRENT = strategies.one_of(
    partial(layers.GRU, sizes, return_sequences=one_of(True)),
    *(
        partial(make, sizes, return_sequences=one_of(True), use_bias=booleans)
        for make in (RIN, layers.LSTM, layers.SimpleRNN)
    ),
)
SOURCE = """
#include "NAME.h"
void call(NAME_state *, const float[], float[]);
void call(NAME_state *s, const float x[], float y[])
{
    NAME_reset(s);
    NAME_step(s, x, y);
}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("headers")


def chain(*parts):
    return keras.Sequential([keras.Input((None, 2)), *parts])


def compile_strictly(command, folder, stem):
    (folder / "call.c").write_text(SOURCE.replace("NAME", stem))
    command = [*command.split(), *STRICT, "-o", folder / "call.o"]
    run([*command, folder / "call.c"])


@settings(
    max_examples=10,
    deadline=None,
    derandomize=True,
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.too_slow],
)
@given(
    stem=stems,
    front=strategies.lists(CONVOLUTIONS, max_size=1),
    recurrent=RECURRENT,
    above=strategies.lists(LAYERS, max_size=2),
    names=strategies.lists(words, min_size=4, max_size=4, unique=True),
    weights=one_of("float32", "int8"),
    command=one_of(*COMPILERS),
    level=one_of("-O0", "-O2", "-Os", "-O3"),
)
def test_a_header_compiles_and_is_the_model(
    folder, stem, front, recurrent, above, names, weights, command, level
):
    parts = zip([*front, recurrent, *above], names, strict=False)
    model = chain(*(make(name=name) for make, name in parts))
    path = folder / f"{stem}.h"
    export_streaming(model, path, "c", False, weights=weights)
    compile_strictly(f"{command} {level}", folder, stem)
    if weights == "float32":
        x = np.linspace(-1, 1, 48).reshape(2, 12, 2)
        size = abs(model.predict(x, verbose=0)).max()
        assert check_header(model, path, x)[0] <= 1e-5 * (1 + size)


@pytest.mark.parametrize(
    "layer",
    [
        layers.Conv1D(4, 1),
        layers.ReLU(max_value=float("inf")),
        layers.ReLU(negative_slope=0.5, threshold=0.5),
    ],
    ids=lambda layer: type(layer).__name__,
)
def test_what_once_did_not_compile(layer, tmp_path):
    for weights, stem in (("float32", "my_SCALED_net"), ("int8", "WEIGHTS")):
        model = chain(layer, RIN(3))
        path = tmp_path / f"{stem}.h"
        export_streaming(model, path, "c", False, weights=weights)
        compile_strictly("gcc -O2 -std=c99", tmp_path, stem)
