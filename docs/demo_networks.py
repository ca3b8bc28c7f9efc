"""Compiles the networks of the page demo.md while the site is built.

A hook of mkdocs. From docs/demo/NAME/network.keras it makes network.h and,
with clang and wasm-ld, network.wasm. Without these the build says so, and the
page in place of the networks. RIN and GRU are those of a seed of the study
`short_then_longer`: the one whose loss over 30,000 steps is nearest to the
median of its layer, RIN's 7 and GRU's 0. The SimpleRNN of seed 0 had the first
of the study's trainings.
"""

import functools
import logging
import pathlib
import re
import shutil
import subprocess
import tempfile

from mkdocs.structure.files import File

FOLDER = pathlib.Path(__file__).resolve().parent / "demo"
NAMES = sorted(path.parent.name for path in FOLDER.glob("*/network.keras"))
CLANG = (
    "clang --target=wasm32 -msimd128 -O2 -ffast-math -ffreestanding "
    "-fno-builtin -nostdlib -I {folder} -Wl,--no-entry -Wl,--strip-all "
    "-o {folder}/network.wasm {here}/network.c"
)
MISSING = (
    "The networks are not part of this copy of the site: it was built where "
    "the programs clang or wasm-ld are missing. Install Debian's packages "
    "clang and lld and build it again."
)
NETWORKS = re.compile("<link .*</script>", re.S)  # of the page

LOG = logging.getLogger("mkdocs.hooks.demo_networks")


def can_compile():
    return bool(shutil.which("clang") and shutil.which("wasm-ld"))


def on_files(files, config):
    if not can_compile():
        LOG.info("demo.md: %s", MISSING)
    for name in NAMES:
        for file, content in network_files(name, can_compile()).items():
            path = f"demo/{name}/{file}"
            files.append(File.generated(config, path, content=content))
    return files


def on_page_markdown(markdown, page, **kwargs):
    del kwargs
    if page.file.src_uri != "demo.md" or can_compile():
        return markdown
    return NETWORKS.sub(f"**{MISSING}**", markdown)


@functools.cache
def network_files(name, compiled):
    """{file: content} of a network; `mkdocs serve` makes them once."""
    import keras

    import keras_rin

    model = keras.saving.load_model(FOLDER / name / "network.keras")
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        keras_rin.export.export_c(model, folder / "network.h")
        if compiled:
            command = CLANG.format(folder=folder, here=FOLDER)
            subprocess.run(command.split(), check=True)
        return {path.name: path.read_bytes() for path in folder.iterdir()}
