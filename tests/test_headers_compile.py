"""A C header compiles: whatever its name, the compiler's flags, its layers."""

import re

import pytest
from chains import random_chain
from headers import COMPILERS
from headers import chain
from headers import compile_object
from headers import header
from keras import layers
from step_files import run

from keras_rin.export import export_c
from keras_rin.layers import RIN

pytestmark = [
    pytest.mark.one_backend,
    pytest.mark.filterwarnings("ignore:.*does not support masking"),
]

STRICTER = """-Wconversion -Wdouble-promotion -Wfloat-equal -Wshadow
    -Wstrict-aliasing"""
LEVELS = {"gcc": "-O0", "g++": "-O2", "clang": "-O3", "clang++": "-Os"}
# What templates of C may contain, and names that mean something to a compiler.
STEMS = """NAME PREFIX_name WEIGHTS SCALES_TYPE SIZE VALUE private2 formula
    float_z state_step reset_inputs linux""".split()


@pytest.mark.exhaustive
@pytest.mark.runtime
@pytest.mark.parametrize("compiler", LEVELS)
def test_headers_compile_together_without_a_warning(compiler, tmp_path):
    """And need nothing but functions of `math.h`, and memcpy."""
    for seed, stem in enumerate(STEMS):
        weights = ["float32", "int8"][seed % 2]
        header(random_chain(seed)[0], tmp_path, stem, arithmetic=weights)
    command = f"{COMPILERS[compiler]} {STRICTER} {LEVELS[compiler]}"
    compile_object(tmp_path, command, *STEMS)
    needed = set(run(["nm", "-u", tmp_path / "headers.o"]).split())
    needed -= {"U", "_GLOBAL_OFFSET_TABLE_"}
    possible = """memcpy memset memmove erff expf expm1f fabsf log1pf logf
        sqrtf tanhf"""
    assert {"expf", "tanhf"} <= needed <= set(possible.split())


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
        header(chain(layer, RIN(3)), tmp_path, stem, arithmetic=weights)
        compile_object(tmp_path, f"gcc -std=c99 {STRICTER}", stem)


@pytest.mark.parametrize(
    "stem", ["features", "stddef", "stdio", "Math", "2rin", "a-b", "a_private"]
)
def test_a_stem_that_c_has_is_refused(stem, tmp_path):
    with pytest.raises(ValueError, match=f"library of C.*{stem}"):
        header(chain(RIN(3)), tmp_path, stem)
    assert not list(tmp_path.iterdir())


def named(layer, activation):
    dense = layers.Dense(2, activation, name="private")
    return chain(RIN(3, name=layer), dense)


# Of each header the stem, a layer and an activation.
TOGETHER = {
    "functions": (
        ("gait", "rin", "log_softmax"),
        ("gait_log", "rin", "softmax"),
    ),
    "guards": (("Net", "rin", "relu"), ("NET", "rin", "relu")),
    "public names": (("a", "step", "relu"), ("a_step", "state", "relu")),
}


@pytest.mark.parametrize("case", TOGETHER)
def test_names_of_two_headers_do_not_meet(case, tmp_path):
    stems = [stem for stem, *_ in TOGETHER[case]]
    for stem, *layer in TOGETHER[case]:
        header(named(*layer), tmp_path, stem)
    for prefixes in (stems, stems[::-1]):
        compile_object(tmp_path, COMPILERS["g++"], *prefixes)


@pytest.mark.parametrize(
    ("activation", "include"), [("tanh", ""), ("elu", "#include <math.h>\n")]
)
def test_a_header_in_a_namespace_of_cpp(activation, include, tmp_path):
    """It has to find `math.h` included, if it needs it, as its comment says."""
    text = header(named("rin", activation), tmp_path, "net").read_text()
    assert "namespace" in text
    before, after = f"{include}namespace gesture {{\n", "}\n"
    command = COMPILERS["g++"]
    compile_object(tmp_path, command, "net", before=before, after=after)


@pytest.mark.exhaustive
@pytest.mark.parametrize("compiler", ["gcc", "riscv"])
def test_names_of_layers_become_different_identifiers(compiler, tmp_path):
    """Debian's compiler for RISC-V has no `math.h`, so none is needed."""
    names = ["a", "a-b", "a_b", "3", "\u00fc", "double", "a_recurrent", "x_h"]
    header(
        chain(*(RIN(3, return_sequences=True, name=name) for name in names)),
        tmp_path,
    )
    compile_object(tmp_path, COMPILERS[compiler], "rin")


@pytest.mark.exhaustive
@pytest.mark.runtime
@pytest.mark.parametrize("weights", ["float32", "int8"])
def test_the_bytes_on_a_cortex_m4(weights, tmp_path):
    """Constants, but for the gaps before the next word, one state, the code.

    Beside the weights is the table of tanh, of 19 floats.
    """
    path = tmp_path / "rin.h"
    model = chain(RIN(20, "tanh", return_sequences=True), layers.Dense(1))
    written = export_c(model, path, weights)
    text = path.read_text()
    assert f"Flash: {written.weight_bytes:,} bytes" in text
    assert f"RAM: {written.state_bytes:,} bytes" in text
    compile_object(tmp_path, f"{COMPILERS['m4']} -O0", "rin")
    sizes = run(["arm-none-eabi-size", "-A", tmp_path / "headers.o"])
    sizes = dict(re.findall(r"^(\.\w+)\S*\s+(\d+)", sizes, re.M))
    gaps = int(sizes[".rodata"]) - written.weight_bytes - 4 * 19
    assert 0 <= gaps <= 3 * text.count("const signed char")
    assert int(sizes[".bss"]) == written.state_bytes
    assert sizes[".data"] == "0"
    code_bytes = written.cost("Cortex-M4F").flash - written.weight_bytes
    assert 100 < code_bytes < int(sizes[".text"])
    assert written.path == path
