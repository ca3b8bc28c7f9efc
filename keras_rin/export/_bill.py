"""What a C header takes of a processor, compiled for it and run emulated."""

import pathlib
import re
import shutil
import subprocess
import tempfile
from typing import NamedTuple

STEPS = 20
_PROGRAM = """
#include <stdint.h>
#include <string.h>
#ifdef NETWORK
#include "NAME.h"
#ifdef NAME_output_scale
int16_t x[NAME_inputs];
int32_t y[NAME_outputs];
#else
float x[NAME_inputs], y[NAME_outputs];
#endif
static NAME_state state;
#endif
static volatile int sink;
static char bytes[2];

int main(void)
{
    /* A program that has no network may have these functions as well. */
    memset(bytes, sink, (size_t)sink);
    memcpy(bytes, bytes + sink, (size_t)sink);
#ifdef NETWORK
    NAME_reset(&state);
#ifdef STEPS
    unsigned long count = 0;
    START
    for (int t = 0; t < STEPS; t++) {
        for (int i = 0; i < NAME_inputs; i++)
            x[i] = (int16_t)((t + i) & 3);
        const uint32_t begin = TIMER;
        NAME_step(&state, x, y);
        count += (TIMER - begin) & LARGEST;
    }
    for (unsigned long unit = 1000000000; unit; unit /= 10)
        print((char)('0' + count / unit % 10));
    print('\\n');
    STOP
#else
    NAME_step(&state, x, y);
#endif
    sink = y[0] > 0;
#endif
    return 0;
}
"""
# With -icount shift=0 an instruction takes QEMU a nanosecond, and the timer
# counts at 25 MHz.
_ARM = """\
#include <stdint.h>
#define LARGEST 0xFFFFFF
#define START timer[1] = LARGEST; timer[2] = 0; timer[0] = 5;
#define TIMER (LARGEST - timer[2])
#define STOP call(0x18, (void *)0x20026);
static volatile uint32_t *const timer = (volatile uint32_t *)0xE000E010;
static inline void call(int number, const void *argument)
{
    register int r0 __asm__("r0") = number;
    register const void *r1 __asm__("r1") = argument;
    __asm volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
}
static inline void print(char digit) { call(3, &digit); }
int main(void);
static void start(void)
{
#ifdef __ARM_FP
    *(volatile uint32_t *)0xE000ED88 |= 0xFu << 20; /* the FPU is on */
    __asm volatile("dsb\\nisb");
#endif
    main();
    for (;;) {}
}
const void *const vectors[] __attribute__((section(".vectors"))) = {
    (void *)0x20400000, (void *)start
};
"""
_AVR = """\
#include <avr/interrupt.h>
#include <avr/io.h>
#include <avr/sleep.h>
#define LARGEST 0xFFFF
#define START UCSR0B = 1 << TXEN0; TCCR1A = 0; TCCR1B = 3; /* clock / 64 */
#define TIMER TCNT1
#define STOP cli(); sleep_mode();
static inline void print(char digit)
{
    while (!(UCSR0A & 1 << UDRE0)) {}
    UDR0 = digit;
}
"""


class Cost(NamedTuple):
    """What a header takes of one processor.

    Attributes:
        flash: Integer, by how many bytes a program grows, compiled with `-Os`.
        ram: Integer, the bytes of hidden states, inputs, outputs and stack.
        per_step: Integer, the instructions of a step, or the cycles on an AVR,
            in an emulator. `None` where that is not installed, or the program
            exceeds the memory of the processor.
        unit: String, what was counted.
        megahertz: Integer, a usual clock.
    """

    flash: int
    ram: int
    per_step: int | None
    unit: str
    megahertz: int

    def __str__(self):
        text = f"flash {self.flash:,} bytes, RAM {self.ram:,} bytes"
        if self.per_step is None:
            return text
        microseconds = self.per_step / self.megahertz
        return (
            f"{text}, a step {self.per_step:,} {self.unit}, "
            f"{microseconds:,.0f} µs at {self.megahertz} MHz"
        )


class _Processor(NamedTuple):
    text: str
    compiler: str
    emulator: str
    packages: str  # of Debian
    tick: int  # instructions or cycles
    limits: tuple[int, int]  # bytes of flash and RAM
    unit: str
    megahertz: int

    @property
    def has_compiler(self):
        return shutil.which(self.compiler.split()[0]) is not None


def _arm(cpu, megahertz):
    return _Processor(
        _ARM,
        f"arm-none-eabi-gcc -mthumb -mcpu=cortex-{cpu} -nostartfiles "
        "-Wl,-e,vectors,-Ttext=0x400,-Tdata=0x20000000 "
        "-Wl,--section-start=.vectors=0 -Wl,--no-warn-rwx-segments",
        "qemu-system-arm -M mps2-an386 -nographic -semihosting "
        "-icount shift=0 -kernel",
        "gcc-arm-none-eabi libnewlib-arm-none-eabi qemu-system-arm",
        40,
        (2**22, 2**22),
        "instructions",
        megahertz,
    )


PROCESSORS = {
    "Cortex-M0+": _arm("m0plus", 48),
    "Cortex-M4F": _arm("m4 -mfloat-abi=hard -mfpu=fpv4-sp-d16", 64),
    "ATmega328P": _Processor(
        _AVR,
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


def bill(path: pathlib.Path) -> dict[str, Cost | None]:
    """The cost on each processor, or None where its compiler is missing.

    A processor whose compiler has no arrays of such a size is left out.
    """
    costs: dict[str, Cost | None] = {}
    for name, processor in PROCESSORS.items():
        if not processor.has_compiler:
            costs[name] = None
            continue
        with tempfile.TemporaryDirectory() as folder:
            try:
                costs[name] = _cost(processor, path, pathlib.Path(folder))
            except subprocess.CalledProcessError as error:
                if b"is too large" not in error.stderr:
                    raise
    return costs


def cost_lines(costs):
    """Lines that say each cost, or what to install for it."""
    return "\n".join(
        f"{name}: {cost or f'needs {PROCESSORS[name].packages} of Debian'}"
        for name, cost in costs.items()
    )


def flash_of(path, name):
    """The bytes of flash on a processor; None without its compiler."""
    processor = PROCESSORS[name]
    if not processor.has_compiler:
        return None
    with tempfile.TemporaryDirectory() as folder:
        return _memory(processor, path, pathlib.Path(folder))[1][0]


def _memory(processor, path, folder):
    """Flash and RAM of a program, and by how much the header makes it grow."""
    without = _compile(processor, path, folder)
    memory = _compile(processor, path, folder, "-DNETWORK")
    return memory, [a - b for a, b in zip(memory, without, strict=True)]


def _cost(processor, path, folder):
    memory, (flash, ram) = _memory(processor, path, folder)
    has_room = all(a < b for a, b in zip(memory, processor.limits, strict=True))
    emulator, count = processor.emulator.split(), None
    if has_room and shutil.which(emulator[0]):
        _compile(processor, path, folder, "-DNETWORK", f"-DSTEPS={STEPS}")
        printed = subprocess.run(
            [*emulator, folder / "program.elf"],
            capture_output=True,
            timeout=120,
        )
        ticks = re.search(rb"\d{10}", printed.stdout + printed.stderr)
        count = processor.tick * int(ticks[0]) // STEPS if ticks else None
    return Cost(flash, ram, count, processor.unit, processor.megahertz)


def _compile(processor, path, folder, *options):
    """Bytes of flash and of RAM, with the stack of the program's functions."""
    source, program = folder / "program.c", folder / "program.elf"
    source.write_text((processor.text + _PROGRAM).replace("NAME", path.stem))
    gcc = f"{processor.compiler} -std=gnu99 -Os -fstack-usage -fdata-sections "
    gcc += "-ffunction-sections -Wl,--gc-sections"
    command = [*gcc.split(), *options, "-I", path.resolve().parent, source]
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
