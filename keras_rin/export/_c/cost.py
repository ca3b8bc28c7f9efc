"""What a C header takes of a processor, compiled for it and run emulated."""

import pathlib
import re
import shutil
import subprocess
import tempfile
from typing import NamedTuple

from keras_rin.export._c.functions import c_template
from keras_rin.export._c.functions import c_text

STEPS = 20


class Cost(NamedTuple):
    """What a header takes of one processor. Printed, it is a line.

    Attributes:
        processor: String, its name.
        flash: Integer, by how many bytes a program grows, compiled with `-Os`,
            that has `memset` and `memcpy` without the header; these take up to
            340 bytes. `None` if it was not measured, as are the others.
        ram: Integer, the bytes of hidden states, inputs, outputs and stack.
        per_step: Integer, the instructions of a step, or the cycles on an AVR,
            in an emulator. `None` where that is not installed, or the program
            exceeds the memory of the processor.
        unit: String, what was counted.
        megahertz: Integer, a usual clock.
        problem: String, why it was not measured, or `None`.
    """

    processor: str
    flash: int | None
    ram: int | None
    per_step: int | None
    unit: str
    megahertz: int
    problem: str | None = None

    def __str__(self):
        if self.problem is not None:
            return f"{self.processor}: not measured: {self.problem}"
        text = f"{self.processor}: flash {self.flash:,} bytes beside memset "
        text += f"and memcpy, RAM {self.ram:,} bytes"
        if self.per_step is None:
            return text
        microseconds = self.per_step / self.megahertz
        return (
            f"{text}, a step {self.per_step:,} {self.unit}, "
            f"{microseconds:,.0f} µs at {self.megahertz} MHz"
        )


class _Processor(NamedTuple):
    source: str  # a file of C
    compiler: str
    emulator: str
    packages: str  # of Debian
    tick: int  # instructions or cycles
    limits: tuple[int, int]  # bytes of flash and RAM
    unit: str
    megahertz: int


def _arm(cpu, megahertz):
    return _Processor(
        "cost_arm.c",
        f"arm-none-eabi-gcc -mthumb -mcpu=cortex-{cpu} -nostartfiles "
        "-Wl,-e,vectors,-Ttext=0x400,-Tdata=0x20000000 "
        "-Wl,--section-start=.vectors=0 -Wl,--no-warn-rwx-segments",
        "qemu-system-arm -M mps2-an386 -nographic -semihosting "
        "-icount shift=0 -kernel",
        "gcc-arm-none-eabi libnewlib-arm-none-eabi qemu-system-arm",
        40,  # a nanosecond for an instruction, and a timer of 25 MHz
        (2**22, 2**22),
        "instructions",
        megahertz,
    )


PROCESSORS = {
    "Cortex-M0+": _arm("m0plus", 48),
    "Cortex-M4F": _arm("m4 -mfloat-abi=hard -mfpu=fpv4-sp-d16", 64),
    "ATmega328P": _Processor(
        "cost_avr.c",
        "avr-gcc -mmcu=atmega328p -Wl,--defsym=__DATA_REGION_LENGTH__=0x7f0000 "
        "-Wl,--defsym=__TEXT_REGION_LENGTH__=0x7f0000",  # any size is linked
        "simavr -m atmega328p -f 16000000",
        "gcc-avr avr-libc simavr",
        64,
        (32_256, 2_048),
        "cycles",
        16,
    ),
}


def cost_of(header, name: str) -> Cost:
    """The cost of a `HeaderProgram` on a processor, or what was in the way."""
    if name not in PROCESSORS:
        raise ValueError(
            f"`processor` must be one of {tuple(PROCESSORS)}. "
            f"Received: processor={name!r}"
        )
    processor = PROCESSORS[name]
    compiler, *_ = processor.compiler.split()
    numbers, problem = (None, None, None), None
    if shutil.which(compiler) is None:
        problem = f"it needs {processor.packages} of Debian"
    else:
        with tempfile.TemporaryDirectory() as folder:
            try:
                numbers = _numbers(processor, header, pathlib.Path(folder))
            except subprocess.CalledProcessError as error:
                problem = _first_error(error)
    return Cost(name, *numbers, processor.unit, processor.megahertz, problem)


def _first_error(error):
    """The line of a compiler that says why, or its last one."""
    lines = error.stderr.decode(errors="replace").splitlines() or [str(error)]
    return next((line for line in lines if "error" in line), lines[-1])


def _memory(processor, header, folder):
    """Flash and RAM of a program, and by how much the header makes it grow."""
    without = _compile(processor, header, folder)
    memory = _compile(processor, header, folder, "-DNETWORK")
    return memory, [a - b for a, b in zip(memory, without, strict=True)]


def _numbers(processor, header, folder):
    """Flash, RAM and what a step takes, or None."""
    memory, (flash, ram) = _memory(processor, header, folder)
    has_room = all(a < b for a, b in zip(memory, processor.limits, strict=True))
    emulator, count = processor.emulator.split(), None
    if has_room and shutil.which(emulator[0]):
        _compile(processor, header, folder, "-DNETWORK", f"-DSTEPS={STEPS}")
        printed = subprocess.run(
            [*emulator, folder / "program.elf"],
            capture_output=True,
            timeout=120,
        )
        ticks = re.search(rb"\d{10}", printed.stdout + printed.stderr)
        count = processor.tick * int(ticks[0]) // STEPS if ticks else None
    return flash, ram, count


def _compile(processor, header, folder, *options):
    """Bytes of flash and of RAM, with the stack of the program's functions."""
    source, program = folder / "program.c", folder / "program.elf"
    text = c_template("cost_program.c").substitute(name=header.name)
    source.write_text(c_text(processor.source) + text)
    header.write_into(folder)
    gcc = f"{processor.compiler} -std=gnu99 -Os -fstack-usage -fdata-sections "
    gcc += "-ffunction-sections -Wl,--gc-sections"
    command = [*gcc.split(), *options, source]
    subprocess.run(
        [*command, "-lm", "-o", program],
        check=True,
        cwd=folder,
        stderr=subprocess.PIPE,
    )
    size = gcc.split()[0].replace("gcc", "size")
    sizes = subprocess.check_output([size, program]).split(b"\n")[1].split()
    text, data, bss = map(int, sizes[:3])
    usage = "".join(file.read_text() for file in folder.glob("*.su"))
    stack = sum(map(int, re.findall(r"\t(\d+)\t", usage)))
    return text + data, data + bss + stack
