"""`serve` in a file answers as the model, or the model is refused."""

import pathlib

import keras
import numpy as np
import pytest
from keras import layers
from step_files import write
from test_export import LOAD
from test_export import ON_TENSORFLOW
from test_export import WRITES

from keras_rin.export import export_saved_model
from keras_rin.layers import RIN

pytestmark = pytest.mark.one_backend
FORMATS = [
    pytest.param("tf_saved_model", "model", marks=WRITES),
    pytest.param(
        *("litert", "model.tflite"),
        marks=[ON_TENSORFLOW, pytest.mark.exhaustive],
    ),
]


class Confused(layers.Layer):
    """It takes the number of sequences for that of steps, if traced."""

    def call(self, x):
        batch = keras.ops.shape(x)[0]
        return x + (0.0 if isinstance(batch, int) else 1.0)

    def compute_output_shape(self, input_shape):
        return input_shape


def stack(*above, time=None, **options):
    inputs = keras.Input((time, 3), **options)
    rin = RIN(4, "tanh", return_sequences=True, name="rin")
    return keras.Sequential([inputs, rin, *above])


def tokens():
    inputs = keras.Input((None,), dtype="int32")
    return keras.Sequential([inputs, layers.Embedding(2, 3), RIN(4)])


def nested():
    inputs = keras.Input((None, 4))
    return keras.Sequential([inputs, distributed()], name="inner")


def distributed():
    return layers.TimeDistributed(layers.Dense(2), name="each")


@pytest.mark.parametrize(("format", "name"), FORMATS)
def test_an_open_number_of_steps_that_keras_confuses(format, name, tmp_path):
    with pytest.raises(ValueError, match="'each'.*step_only=True"):
        write(stack(distributed()), tmp_path / name, format)
    assert not list(tmp_path.iterdir())
    model = stack(distributed(), time=7)
    write(model, tmp_path / name, format)
    serve, _ = LOAD[format](tmp_path / name)
    x = np.random.default_rng(0).normal(size=(1, 7, 3)).astype("float32")
    y = model.predict(x, verbose=0)
    np.testing.assert_allclose(serve(x), y, rtol=1e-4, atol=1e-5)
    files = filter(pathlib.Path.is_file, tmp_path.rglob("*"))
    assert b"XlaMustCompile" not in b"".join(f.read_bytes() for f in files)


@WRITES
@pytest.mark.parametrize(
    ("make", "layer"),
    [
        (lambda: stack(Confused(name="mine"), layers.Dense(2)), "mine"),
        (lambda: stack(nested()), "inner"),
    ],
)
def test_the_layer_is_named_or_the_model_that_has_it(make, layer, tmp_path):
    options = {"stepwise": (Confused,)}
    with pytest.raises(ValueError, match=f"layer '{layer}.*does not answer"):
        export_saved_model(make(), tmp_path, **options)


def with_noise():
    inputs = keras.Input((None, 3))
    y = layers.Dropout(0.5)(RIN(4)(inputs), training=True)
    return keras.Model(inputs, y)


@WRITES
@pytest.mark.parametrize(
    "make",
    [
        lambda: stack(layers.Dense(2, dtype="mixed_bfloat16")),
        lambda: stack(layers.Dense(2), batch_size=2),
        *(tokens, with_noise),
    ],
)
def test_right_models_of_any_kind_are_written(make, tmp_path):
    export_saved_model(make(), tmp_path)
    assert (tmp_path / "saved_model.pb").exists()


@WRITES
def test_the_bytes_are_those_of_the_files_written(tmp_path):
    (tmp_path / "notes").write_bytes(b"0" * 10**6)
    for output in (layers.Dense(2), layers.Dense(2, name="other")):
        written = export_saved_model(stack(output), tmp_path, step_only=True)
        assert written.file_bytes < 10**6


@WRITES
def test_an_output_in_a_dictionary_is_served(tmp_path):
    import tensorflow as tf

    inputs = keras.Input((None, 3))
    model = keras.Model(inputs, {"answer": RIN(4)(inputs)})
    export_saved_model(model, tmp_path)
    served = tf.saved_model.load(tmp_path)
    answers = served.serve(np.ones((2, 5, 3), "float32"))
    y = model.predict(np.ones((2, 5, 3)), verbose=0)["answer"]
    np.testing.assert_allclose(answers["answer"], y, rtol=1e-4, atol=1e-5)
