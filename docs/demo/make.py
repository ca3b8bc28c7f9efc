"""Makes the files of the networks on the page demo.md.

    python docs/demo/make.py             # from rin/network.keras, ...
    python docs/demo/make.py rin FILE    # from another Keras file

The second form stores FILE as rin/network.keras first, without its optimizer.
Both write network.h and, with clang and wasm-ld, network.wasm beside it.

The networks are those of the study `short_then_longer`: of each layer the seed
whose loss over 30,000 steps is nearest to the median, RIN's 7 and GRU's 0. In
studies/, `train` of its ladder.py saves them:

    python -c "from short_then_longer.ladder import train
    train('RIN', 7, file='rin.keras')"
"""

import pathlib
import subprocess
import sys

import keras

import keras_rin

FOLDER = pathlib.Path(__file__).resolve().parent
NETWORKS = [path.parent.name for path in FOLDER.glob("*/network.keras")]
# A network with gates calls `expf` and `tanhf`, which JavaScript provides.
CLANG = (
    "clang --target=wasm32 -msimd128 -O2 -ffast-math -ffreestanding "
    "-fno-builtin -nostdlib -I {folder} -I {here} -Wl,--no-entry "
    "-Wl,--allow-undefined -Wl,--strip-all -o {folder}/network.wasm "
    "{here}/network.c"
)


def store(file, name):
    """Stores the layers of a trained model, without its optimizer."""
    trained = keras.saving.load_model(file, compile=False)
    model = keras.Sequential(
        [keras.Input((None, 2)), *trained.layers], name=name
    )
    (FOLDER / name).mkdir(exist_ok=True)
    model.save(FOLDER / name / "network.keras")


def write_header(name, folder):
    model = keras.saving.load_model(FOLDER / name / "network.keras")
    keras_rin.export.export_streaming(
        model, folder / "network.h", format="c", verbose=False
    )


def compile_header(folder):
    """Makes network.wasm of network.h in a folder."""
    command = CLANG.format(folder=folder, here=FOLDER)
    subprocess.run(command.split(), check=True)
    (folder / "network.wasm").chmod(0o644)


def main(name=None, file=None):
    if file:
        store(file, name)
    for network in [name] if name else NETWORKS:
        write_header(network, FOLDER / network)
        compile_header(FOLDER / network)


if __name__ == "__main__":
    main(*sys.argv[1:])
