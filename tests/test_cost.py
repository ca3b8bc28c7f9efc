"""A header in integers on emulated processors, and what it costs there."""

import re
import shutil
import subprocess

import keras
import numpy as np
import pytest
from headers import COMPILERS
from headers import MODELS
from headers import counts
from headers import extremes
from headers import integer_header
from headers import model_of
from step_files import run
from step_files import run_c

from keras_rin.export import export_c
from keras_rin.layers import RIN

pytestmark = [pytest.mark.one_backend, pytest.mark.runtime]
UNO = """
#include <avr/interrupt.h>
#include <avr/io.h>
#include <avr/sleep.h>
#include <stdio.h>
#include "rin.h"
static const int16_t stream[][rin_inputs] PROGMEM = {ROWS};
static int put(char letter, FILE *file)
{
    (void)file;
    while (!(UCSR0A & 1 << UDRE0)) {}
    UDR0 = (uint8_t)letter;
    return 0;
}
static FILE out = FDEV_SETUP_STREAM(put, 0, _FDEV_SETUP_WRITE);
static rin_state state;
static int16_t x[rin_inputs];
static int32_t y[rin_outputs];
int main(void)
{
    UCSR0B = 1 << TXEN0;
    rin_reset(&state);
    for (unsigned t = 0; t < sizeof stream / sizeof stream[0]; t++) {
        memcpy_P(x, stream[t], sizeof x);
        rin_step(&state, x, y);
        for (int i = 0; i < rin_outputs; i++)
            fprintf(&out, "%ld,", (long)y[i]);
        fprintf(&out, "%d;", rin_answer(y));
    }
    put('\\n', &out); /* the emulator prints whole lines */
    cli();
    sleep_mode();
}
"""


@pytest.mark.parametrize("name", ["RIN", "GRU", "LSTM", "MinGRU", "RateRNN"])
def test_an_emulated_uno_answers_as_the_computer(name, rng, tmp_path):
    x, path = counts(rng, 1, 40), tmp_path / "rin.h"
    integer_header(model_of(MODELS[name](), x), path, x)
    x = np.concatenate([x, extremes(10)[3:]], axis=1)
    rows = [f"{{{','.join(map(str, row))}}}" for row in x[0]]
    program = UNO.replace("{ROWS}", f"{{{','.join(rows)}}}")
    (tmp_path / "uno.c").write_text(program)
    elf = tmp_path / "uno.elf"
    options = ["-Os", "-include", "avr/pgmspace.h", "-o", elf]
    run([*COMPILERS["avr"].split(), *options, tmp_path / "uno.c"])
    simavr = "simavr -m atmega328p -f 16000000".split()
    printed = run([*simavr, elf], stderr=subprocess.STDOUT)
    printed = re.sub(r"\x1b\[\d*m|\n", "", printed)  # colors, long lines
    steps = re.findall(r"((?:-?\d+,)+)(\d+);", printed)
    y = [np.array(outputs[:-1].split(","), "int64") for outputs, _ in steps]
    expected = run_c(path, x)[0][0]
    np.testing.assert_array_equal(y, expected)
    answers = [int(answer) for _, answer in steps]
    np.testing.assert_array_equal(answers, expected.argmax(axis=-1))


# Of a step at most: instructions on a Cortex-M0+, cycles on an ATmega328P, and
# bytes of flash on the former and of states.
LIMITS = {
    "RIN": (4_800, 32_000, 800, 30),
    "GRU": (79_398 / 3, 80_000, 1_300, 16),
    "MinGRU": (5_500, 52_000, 1_050, 34),
}
PROGRAMS = "arm-none-eabi-gcc", "qemu-system-arm", "avr-gcc"


@pytest.fixture
def programs():
    for program in PROGRAMS:
        if not shutil.which(program):
            pytest.skip(f"needs {program}")


@pytest.mark.parametrize("name", LIMITS)
@pytest.mark.usefixtures("programs")
def test_the_cost_of_a_header_in_integers(name, rng, tmp_path):
    x = counts(rng)
    written = integer_header(model_of(MODELS[name](), x), tmp_path / "rin.h", x)
    instructions, cycles, flash, state = LIMITS[name]
    m0, uno = map(written.cost, ("Cortex-M0+", "ATmega328P"))
    assert written.weight_bytes < m0.flash <= flash
    assert written.state_bytes <= state
    m4 = written.cost("Cortex-M4F")
    assert m4.per_step < m0.per_step <= instructions
    assert uno.per_step <= cycles and uno.ram < 2_048
    assert m0.problem is None
    assert f"Cortex-M0+: flash {m0.flash:,} bytes beside memset" in str(m0)
    assert f"a step {m0.per_step:,} instructions" in str(m0)


def written_in_floats(tmp_path, units=4):
    layer = RIN(units, return_sequences=True)
    model = keras.Sequential([keras.Input((None, 6)), layer])
    return model, export_c(model, tmp_path / "rin.h")


@pytest.mark.parametrize("units", [25, 110])
@pytest.mark.usefixtures("programs")
def test_the_cost_of_a_network_beyond_an_uno(units, tmp_path):
    """First beyond its memory, then with an array beyond its compiler."""
    model, written = written_in_floats(tmp_path, units)
    uno = written.cost("ATmega328P")
    assert uno.per_step is None
    if units == 25:
        assert uno.ram > 4 * model.count_params()
    else:
        assert uno.flash is None
        assert "not measured: " in str(uno) and "is too large" in str(uno)


def test_a_compiler_without_its_library_is_a_problem(tmp_path, monkeypatch):
    written = written_in_floats(tmp_path)[1]
    folder = tmp_path / "bin"
    folder.mkdir()
    compiler = folder / "arm-none-eabi-gcc"
    reason = "program.c:3:10: fatal error: string.h: No such file or directory"
    compiler.write_text(f"#!/bin/sh\necho In file >&2\necho '{reason}' >&2\n")
    with compiler.open("a") as script:
        script.write("echo compilation terminated. >&2\nexit 1\n")
    compiler.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder))
    cost = written.cost("Cortex-M0+")
    assert str(cost) == f"Cortex-M0+: not measured: {reason}"
    assert cost[1:4] == (None, None, None)
    monkeypatch.setenv("PATH", "")
    needed = "gcc-avr avr-libc simavr of Debian"
    assert needed in str(written.cost("ATmega328P"))
    with pytest.raises(ValueError, match="Cortex-M4F.*Received.*'M7'"):
        written.cost("M7")


def test_a_file_is_printed_without_a_compiler(tmp_path, monkeypatch):
    """After it was removed, too, and its cost is measured then."""
    written = written_in_floats(tmp_path)[1]
    monkeypatch.setattr(subprocess, "run", None)
    monkeypatch.setattr(subprocess, "check_output", None)
    for _ in range(2):
        assert f"{written.weight_bytes} bytes of weights" in str(written)
        assert "rin.h" in repr(written)
        written.path.unlink(missing_ok=True)
    monkeypatch.undo()
    if shutil.which("arm-none-eabi-gcc"):
        assert written.cost().flash > written.weight_bytes
