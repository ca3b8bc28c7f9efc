"""What TensorFlow compiles of a RIN, and what XLA makes of it."""

import contextlib
import re

import keras
import numpy as np
import pytest
import references
from cases import first_of
from cases import table
from references import MASKS

from keras_rin.layers import RIN

pytestmark = pytest.mark.skipif(
    keras.backend.backend() != "tensorflow",
    reason="reads what TensorFlow makes",
)


def count_compiled(functions):
    return sum(f.attr["_XlaMustCompile"].b for f in functions)


@pytest.mark.parametrize(
    "training, differentiated, loops",
    [(True, True, 1), (True, False, 0), (False, True, 1), (False, False, 0)],
)
def test_a_graph_that_is_differentiated_compiles(
    training, differentiated, loops
):
    import tensorflow as tf

    layer = RIN(3, fused=True)
    x = tf.ones((2, 5, 1))
    layer(x)

    def forward():
        with tf.GradientTape() if differentiated else contextlib.nullcontext():
            return layer(x, training=training)

    graph = tf.function(forward).get_concrete_function().graph
    assert count_compiled(graph.as_graph_def().library.function) == loops


class Traced(keras.layers.Layer):
    """Counts the compiled loops of each graph in which it is called."""

    loops: list = []
    supports_masking = True

    def call(self, inputs):
        import tensorflow as tf

        graph = tf.compat.v1.get_default_graph()
        self.loops.append(count_compiled(graph.as_graph_def().library.function))
        return inputs


def traced_model(time=7, **options):
    layers = keras.Input((time, 2)), RIN(3, **options), Traced()
    return keras.Sequential([*layers, keras.layers.Dense(1)])


X, Y = np.ones((4, 7, 2), "float32"), np.ones((4, 1), "float32")
STEPS = {
    "predict": lambda model: model.predict(X, 2, verbose=0),
    "predict_on_batch": lambda model: model.predict_on_batch(X),
    "evaluate": lambda model: model.evaluate(X, Y, 2, verbose=0),
    "test_on_batch": lambda model: model.test_on_batch(X, Y),
    "fit": lambda model: model.fit(X, Y, validation_data=(X, Y), verbose=0),
}


COMPILED: dict = {
    "default": {},
    "several steps": {"steps_per_execution": 2},
    "XLA": {"jit_compile": True},
}


@pytest.mark.parametrize(
    "step, fused, compiled",
    table(STEPS, ["auto", True], ["default", "several steps"]),
)
def test_each_step_of_keras_compiles_the_loop(step, fused, compiled):
    model = traced_model(fused=fused)
    model.compile("sgd", "mse", **COMPILED[compiled])
    Traced.loops.clear()
    STEPS[step](model)
    traces = Traced.loops
    assert traces and set(traces) == {1}


def test_the_loop_of_keras_is_not_compiled():
    model = traced_model(fused=False)
    model.compile("sgd", "mse", run_eagerly=False)
    Traced.loops.clear()
    model.predict_on_batch(X)
    assert Traced.loops == [0]


@pytest.mark.parametrize(
    "compiled, sequences",
    first_of([("default", True), ("default", False), ("XLA", False)]),
)
def test_predictions_of_lengths_that_vary_run_compiled_pieces(
    rng, compiled, sequences
):
    model = keras.Sequential(
        [
            keras.Input((None, 2)),
            keras.layers.Masking(1.0),
            RIN(3, return_sequences=sequences),
            Traced(),
            keras.layers.Dense(1),
        ]
    )
    model.compile("sgd", "mse", **COMPILED[compiled])
    Traced.loops.clear()
    for time in (3, 1, 128, 129, 300):
        x = rng.normal(size=(4, time, 2)).astype("float32")
        x[:2, time // 2 :] = 1.0  # masked
        # The call of a model, outside of `predict`, runs the plain loop.
        expected = references.to_numpy(model(x))
        references.assert_same(model.predict(x, verbose=0), expected, 1e-5)
        if not sequences:  # their loss leaves masked steps out
            loss = model.evaluate(x, 0 * expected, verbose=0)
            np.testing.assert_allclose(loss, np.mean(expected**2), 1e-4)
    counts = set(Traced.loops)
    assert counts - {0} == {1}


class Curved(keras.Model):
    """Its loss is a second derivative, in evaluation alone."""

    def test_step(self, data):
        import tensorflow as tf

        with tf.GradientTape() as outer:
            outer.watch(data[0])
            with tf.GradientTape() as inner:
                inner.watch(data[0])
                output = self(data[0], training=False) ** 2
            slope = inner.gradient(output, data[0])
        return {"curvature": tf.reduce_sum(outer.gradient(slope, data[0]))}


def test_an_evaluation_may_take_second_derivatives():
    inputs = keras.Input((7, 2))
    model = Curved(inputs, RIN(3, "tanh")(inputs))
    model.compile()
    value = model.evaluate(X, Y, verbose=0, return_dict=True)
    assert value["curvature"] != 0


@pytest.mark.parametrize("fused", first_of([("auto",), (True,)]))
def test_files_have_the_plain_loop(tmp_path, fused):
    model = traced_model(fused=fused)
    model.compile("sgd", "mse")
    model.predict(X, verbose=0)
    Traced.loops.clear()
    model.export(tmp_path / "file", verbose=False)
    assert Traced.loops and set(Traced.loops) == {0}
    written = [f for f in [*tmp_path.rglob("*")] if f.is_file()]
    assert b"XlaMustCompile" not in b"".join(f.read_bytes() for f in written)


def with_mask(layer):
    return [keras.layers.Masking(1.0), layer]


MODELS = {
    "mask": lambda: with_mask(RIN(3)),
    "recompute": lambda: [RIN(3, recompute=True, return_sequences=True)],
    "dropout": lambda: [RIN(3, dropout=0.5, recurrent_dropout=0.5)],
    "both directions": lambda: with_mask(keras.layers.Bidirectional(RIN(3))),
    "mask, all outputs": lambda: with_mask(RIN(3, return_sequences=True)),
    "zeros": lambda: with_mask(
        RIN(3, return_sequences=True, zero_output_for_mask=True)
    ),
    "backwards": lambda: [RIN(3, go_backwards=True, return_sequences=True)],
    "float16": lambda: [RIN(3, dtype="mixed_float16")],
    "nested": lambda: [keras.Sequential([keras.Sequential([RIN(3)])])],
    "within a wrapper": lambda: [
        keras.layers.Reshape((1, 7, 2)),
        keras.layers.TimeDistributed(RIN(3)),
    ],
}


@pytest.mark.parametrize(
    "name, compiled",
    first_of([case.values for case in table(MODELS, COMPILED)], 2),
)
def test_predictions_are_those_of_the_plain_loop(rng, name, compiled):
    """The call of a model, outside of `predict`, runs the loop of Keras."""
    model = keras.Sequential([keras.Input((7, 2)), *MODELS[name]()])
    model.compile("sgd", "mse", **COMPILED[compiled])
    x = rng.normal(size=(5, 7, 2)).astype("float32")
    x[:, 2] = x[1] = 1.0  # masked; one sequence is masked everywhere
    expected = references.to_numpy(model(x)).astype("float32")
    tolerance = 1e-2 if name == "float16" else 1e-5
    for predict in (model.predict_on_batch, model.predict):
        predicted = predict(x)
        references.assert_same(predicted, expected, tolerance, tolerance)
    losses = []
    for mode in COMPILED[compiled], {"run_eagerly": True}:
        model.compile("sgd", "mse", **mode)
        losses.append(model.evaluate(x, 0 * expected, 5, verbose=0))
    np.testing.assert_allclose(*losses, 10 * tolerance)


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
for way in (
    *(model.fit, model.train_on_batch, model),
    *(model.predict_on_batch, model.test_on_batch),
):
    for time in (8, 8, 16, 12, 20, 8, 10):
        x, y = numpy.ones((3, time, 2)), numpy.ones((3, 1))
        if way is model:
            way(x, training=True)
        else:
            way(x) if way == model.predict_on_batch else way(x, y)
        dumped = pathlib.Path(sys.argv[1]).glob("*after_optimizations.txt")
        print("compiled:", len(list(dumped)))
"""


@pytest.mark.exhaustive
def test_lengths_that_vary_are_not_compiled_one_by_one(run_script, tmp_path):
    flags = f"--xla_dump_to={tmp_path}"
    printed = run_script(COUNT_COMPILATIONS, str(tmp_path), XLA_FLAGS=flags)
    counts = [int(n) for n in re.findall(r"compiled: (\d+)", printed)]
    # The first length, forward and backward, and once more without a
    # gradient; Keras then leaves it undefined, and a piece is compiled.
    assert counts == [2] * 21 + [3] * 2 + [4] * 12
