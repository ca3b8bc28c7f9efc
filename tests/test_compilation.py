"""What TensorFlow compiles of a RIN, and what XLA makes of it."""

import contextlib
import re

import keras
import pytest
import scripts
from cases import first_of
from references import MASKS

from keras_rin.layers import RIN

pytestmark = pytest.mark.skipif(
    keras.backend.backend() != "tensorflow",
    reason="reads what TensorFlow makes",
)


@pytest.mark.parametrize(
    "training, differentiated, loops",
    [(True, True, 1), (True, False, 0), (False, True, 0)],
)
def test_only_training_compiles_by_itself(training, differentiated, loops):
    import tensorflow as tf

    layer = RIN(3, fused=True)
    x = tf.ones((2, 5, 1))
    layer(x)

    def forward():
        with tf.GradientTape() if differentiated else contextlib.nullcontext():
            return layer(x, training=training)

    graph = tf.function(forward).get_concrete_function().graph
    functions = graph.as_graph_def().library.function
    compiled = [f for f in functions if f.attr["_XlaMustCompile"].b]
    assert len(compiled) == loops


@pytest.mark.parametrize(
    "mask, trips",
    first_of([("leading", [2, 25]), ("leading", [47]), ("none", [2, 25])]),
)
def test_nothing_is_hidden_from_the_compiler(mask, trips):
    import tensorflow as tf

    time = 47 if len(trips) == 1 else 50
    layer = RIN(5, return_sequences=True)
    x = tf.random.normal((3, time, 2))
    mask = MASKS[mask](time, 3)
    mask = None if mask is None else tf.constant(mask.T)
    layer(x)

    @tf.function(jit_compile=True, autograph=False)
    def training_step(x):
        with tf.GradientTape() as tape:
            states = layer(x, mask=mask, training=True)
        return tape.gradient(states, layer.trainable_weights)

    listing = training_step.experimental_get_compiler_ir(x)
    hlo = listing(stage="optimized_hlo")
    loops = re.findall(r" while\(.*", hlo)
    counts = re.findall(r'known_trip_count":{"n":"(\d+)"}', "".join(loops))
    assert sorted(map(int, counts)) == sorted(2 * trips)
    assert len(loops) == len(counts)
    for copy_to_host in ("outfeed", "infeed", "send(", "recv("):
        assert copy_to_host not in hlo


COUNT_COMPILATIONS = """
import pathlib, sys
import keras, numpy
from keras_rin.layers import RIN

model = keras.Sequential([RIN(4), keras.layers.Dense(1)])
model.compile("sgd", "mse")
for way in (model.fit, model.train_on_batch, model):
    for time in (8, 8, 16, 12, 20, 8, 10):
        x, y = numpy.ones((3, time, 2)), numpy.ones((3, 1))
        way(x, training=True) if way is model else way(x, y)
        dumped = pathlib.Path(sys.argv[1]).glob("*after_optimizations.txt")
        print("compiled:", len(list(dumped)))
"""


@pytest.mark.exhaustive
def test_lengths_that_vary_are_not_compiled_one_by_one(tmp_path):
    program = tmp_path / "count.py"
    program.write_text(COUNT_COMPILATIONS)
    flags = f"--xla_dump_to={tmp_path}"
    finished = scripts.Running(
        str(program), str(tmp_path), XLA_FLAGS=flags
    ).end()
    assert finished.returncode == 0, finished.stderr
    counts = [int(n) for n in re.findall(r"compiled: (\d+)", finished.stdout)]
    # The first length, forward and backward; Keras then leaves it undefined.
    assert counts == [2] * 21
