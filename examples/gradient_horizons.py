"""How far does a gradient reach back before any training?

    python examples/gradient_horizons.py
    python examples/gradient_horizons.py --length=400

Follows the gradient of the last state back through sequences of the adding
problem, for layers as they start. Writes table.md and gradient_horizons.png
to --output.
"""

import keras
import numpy as np
import outputs
from absl import app
from absl import flags

from keras_rin import plots
from keras_rin.diagnostics import gradient_norms
from keras_rin.initializers import Chain
from keras_rin.initializers import Offset
from keras_rin.layers import RIN
from keras_rin.tasks import adding

LAYERS = {
    "RIN": RIN,
    "RIN, offset 0.01": lambda units: RIN(
        units, recurrent_initializer=keras.initializers.RandomNormal(0, 0.01)
    ),
    "RIN chain": lambda units: RIN(
        units, recurrent_initializer=Offset(Chain(1.0))
    ),
    "SimpleRNN": keras.layers.SimpleRNN,
    "LSTM": keras.layers.LSTM,
}

FLAGS = flags.FLAGS


def follow(name, x):
    keras.utils.set_random_seed(FLAGS.seed)
    layer = LAYERS[name](FLAGS.units)
    layer.build(x.shape)
    return gradient_norms(layer, x).tolist()


def main(argv):
    del argv
    output = outputs.prepare(FLAGS.output)
    length, samples = (10, 2) if FLAGS.smoke else (FLAGS.length, 16)
    x, _ = adding.generate(np.random.default_rng(FLAGS.seed), samples, length)
    sizes = {name: follow(name, x) for name in LAYERS}
    record = {"tables": "gradient_horizons", "sizes": sizes}
    outputs.write(output, record, tables)
    figure = plots.gradient_norms(sizes)
    outputs.save_picture(figure, output / "gradient_horizons.png")


def tables(record):
    """The size of the gradient, some steps before the last."""
    sizes = record["sizes"]
    length = len(next(iter(sizes.values()))) - 1
    backs = [back for back in (1, 10, 100, 200, 400, 1_000) if back <= length]
    header = ["layer", *(f"{back} back" for back in backs)]
    rows = [
        [name, *(f"{size[-1 - back]:.2g}" for back in backs)]
        for name, size in sizes.items()
    ]
    return {"table.md": outputs.markdown(header, rows)}


if __name__ == "__main__":
    flags.DEFINE_string("output", "runs/gradient_horizons", "Where to write.")
    flags.DEFINE_integer("length", 1_000, "Steps of a sequence.", lower_bound=2)
    flags.DEFINE_integer("units", 100, "Size of a layer.", lower_bound=1)
    flags.DEFINE_integer("seed", 0, "Draws the weights and the sequences.")
    flags.DEFINE_bool("smoke", False, "Two short sequences: does it run?")
    app.run(main)
