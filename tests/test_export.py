"""Exported models give in their runtimes what they give in Keras."""

import pathlib

import keras
import numpy as np
import pytest
from references import assert_same
from step_files import BACKEND
from step_files import LOAD
from step_files import NEEDS_ONNX
from step_files import ON_TENSORFLOW
from step_files import WRITES
from step_files import assert_exported_serves
from step_files import assert_near
from step_files import run_micro
from step_files import write
from step_files import write_and_run

from keras_rin.export import export_c
from keras_rin.export import export_litert
from keras_rin.export import export_onnx
from keras_rin.export import export_saved_model
from keras_rin.layers import RIN
from keras_rin.models import residual_convnet


def recurrent():
    inputs = keras.Input((None, 2))
    h = keras.layers.Bidirectional(RIN(4))(
        RIN(8, return_sequences=True)(inputs)
    )
    return keras.Model(inputs, keras.layers.Dense(3)(h)), (1, 1, 2), (7, 30, 2)


def residual():
    # JAX cannot tell whether a stride divides a size that it does not know.
    size, shape = (None, None), (1, 6, 4, 1)
    if BACKEND == "jax":
        size, shape = (8, 8), (1, 8, 8, 1)
    model = residual_convnet(
        (*size, 1), stem_filters=4, filters=(4, 8), blocks=1
    )
    return model, shape, (3, 8, 8, 1)


def masked(wrapper=lambda layer: layer):
    above = [keras.layers.Masking(), wrapper(RIN(3))]
    return keras.Sequential([keras.Input((4, 2)), *above]), (3, 4, 2)


def masked_both_ways():
    return masked(keras.layers.Bidirectional)


EXHAUSTIVE = [WRITES, pytest.mark.exhaustive]
EXPORTED = [
    pytest.param("onnx", recurrent, marks=[NEEDS_ONNX, ON_TENSORFLOW]),
    pytest.param("tf_saved_model", masked, marks=WRITES),
    pytest.param("tf_saved_model", masked_both_ways, marks=EXHAUSTIVE),
    pytest.param("tf_saved_model", recurrent, marks=EXHAUSTIVE),
    pytest.param("tf_saved_model", residual, marks=EXHAUSTIVE),
]


@pytest.mark.filterwarnings("ignore:.*np.object:FutureWarning")
@pytest.mark.parametrize(("format", "make"), EXPORTED)
def test_an_exported_model_serves(format, make, tmp_path):
    """`test_layer_contract.py` exports each layer to ONNX."""
    assert_exported_serves(*make(), format=format, folder=tmp_path)


@pytest.fixture
def model():
    return keras.Sequential(
        [
            keras.Input((None, 2)),
            keras.layers.Dropout(0.5),
            RIN(8, return_sequences=True, dropout=0.5, name="rin"),
            keras.layers.LSTM(4, return_sequences=True, name="lstm"),
            keras.layers.Dense(3),
        ]
    )


@pytest.mark.parametrize(
    ("format", "name", "batch", "time"),
    [
        pytest.param(*("tf_saved_model", "streaming", 5, 30), marks=WRITES),
        pytest.param(*("litert", "a.tflite", 1, 30), marks=ON_TENSORFLOW),
        pytest.param(
            *("litert", "a.tflite", 1, 1),
            marks=[ON_TENSORFLOW, pytest.mark.exhaustive],
        ),
    ],
)
def test_a_file_serves_and_steps(
    model, rng, tmp_path, format, name, batch, time
):
    written = write(model, tmp_path / name, format)
    assert f"{name}: serve(x), and step of x, rin, lstm_0, lstm_1; " in str(
        written
    )
    assert [entry.name for entry in tmp_path.iterdir()] == [name]
    x = rng.normal(size=(batch, time, 2)).astype("float32")
    expected = model.predict(x, verbose=0)
    serve, step = LOAD[format](tmp_path / name)
    assert_same(serve(x), expected, rtol=1e-4, atol=1e-5)
    sizes = {"rin": 8, "lstm_0": 4, "lstm_1": 4}
    state = {n: np.zeros((batch, s), "float32") for n, s in sizes.items()}
    for t in range(time):
        state = dict(step({"x": x[:, t], **state}))
        assert_same(state.pop("y"), expected[:, t], rtol=1e-4, atol=1e-5)


@WRITES
def test_a_saved_step_refuses_a_state_of_another_batch_size(tmp_path):
    import tensorflow as tf

    model = keras.Sequential([keras.Input((None, 2)), RIN(4, name="rin")])
    export_saved_model(model, tmp_path, step_only=True)
    served = tf.saved_model.load(tmp_path)
    assert not hasattr(served, "serve")
    for batch in (1, 10):
        inputs = {"x": np.ones((5, 2)), "rin": np.zeros((batch, 4))}
        with pytest.raises((tf.errors.OpError, ValueError)):
            served.step({k: v.astype("float32") for k, v in inputs.items()})


@ON_TENSORFLOW
def test_large_matrices_of_8_bits_with_states_of_floats(rng, tmp_path):
    wide = keras.Sequential([keras.Input((None, 64)), RIN(128, "tanh")])
    x = rng.normal(size=(1, 20, 64)).astype("float32")
    sizes, path = [], tmp_path / "step.tflite"
    for arithmetic in ("float32", "int8"):
        y = write_and_run(wide, "litert", tmp_path, x, arithmetic=arithmetic)
        assert_near(y, wide, x, tolerance=0.05)
        sizes.append(path.stat().st_size)
    assert sizes[1] < 0.5 * sizes[0]
    with pytest.raises(RuntimeError, match="failed to allocate"):
        run_micro(path, x)


class Confused(keras.layers.Layer):
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
    return keras.Sequential([inputs, keras.layers.Embedding(2, 3), RIN(4)])


def nested():
    inputs = keras.Input((None, 4))
    return keras.Sequential([inputs, distributed()], name="inner")


def distributed():
    return keras.layers.TimeDistributed(keras.layers.Dense(2), name="each")


@pytest.mark.one_backend
@pytest.mark.parametrize(
    ("format", "name"),
    [
        pytest.param("tf_saved_model", "model", marks=WRITES),
        pytest.param(
            *("litert", "model.tflite"),
            marks=[ON_TENSORFLOW, pytest.mark.exhaustive],
        ),
    ],
)
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
@pytest.mark.one_backend
@pytest.mark.parametrize(
    ("make", "layer"),
    [
        (lambda: stack(Confused(name="mine"), keras.layers.Dense(2)), "mine"),
        (lambda: stack(nested()), "inner"),
    ],
)
def test_the_layer_is_named_or_the_model_that_has_it(make, layer, tmp_path):
    options = {"stepwise": (Confused,)}
    with pytest.raises(ValueError, match=f"layer '{layer}.*does not answer"):
        export_saved_model(make(), tmp_path, **options)


def with_noise():
    inputs = keras.Input((None, 3))
    y = keras.layers.Dropout(0.5)(RIN(4)(inputs), training=True)
    return keras.Model(inputs, y)


@WRITES
@pytest.mark.one_backend
@pytest.mark.parametrize(
    "make",
    [
        lambda: stack(keras.layers.Dense(2, dtype="mixed_bfloat16")),
        lambda: stack(keras.layers.Dense(2), batch_size=2),
        *(tokens, with_noise),
    ],
)
def test_right_models_of_any_kind_are_written(make, tmp_path):
    export_saved_model(make(), tmp_path)
    assert (tmp_path / "saved_model.pb").exists()


@WRITES
@pytest.mark.one_backend
def test_the_bytes_are_those_of_the_files_written(tmp_path):
    (tmp_path / "notes").write_bytes(b"0" * 10**6)
    for output in (keras.layers.Dense(2), keras.layers.Dense(2, name="other")):
        written = export_saved_model(stack(output), tmp_path, step_only=True)
        assert written.file_bytes < 10**6


@WRITES
@pytest.mark.one_backend
def test_an_output_in_a_dictionary_is_served(tmp_path):
    import tensorflow as tf

    inputs = keras.Input((None, 3))
    model = keras.Model(inputs, {"answer": RIN(4)(inputs)})
    export_saved_model(model, tmp_path)
    served = tf.saved_model.load(tmp_path)
    answers = served.serve(np.ones((2, 5, 3), "float32"))
    y = model.predict(np.ones((2, 5, 3)), verbose=0)["answer"]
    np.testing.assert_allclose(answers["answer"], y, rtol=1e-4, atol=1e-5)


X = np.arange(40).reshape(1, 20, 2)
NO_PREFIX = """rin.c math.h Math.h stddef.h stdio.h features.h 3rin.h my-rin.h
    r\u00fcn.h _rin.h a_private.h private_a.h""".split()
REFUSED = [
    (export_saved_model, "m.tflite", {}, "call `export_litert`"),
    (export_saved_model, "m.onnx", {}, "call `export_onnx`"),
    (export_saved_model, "m.h", {}, "call `export_c`"),
    (export_litert, "m", {}, "ending in .tflite"),
    (export_onnx, "m", {}, "ending in .onnx"),
    (export_c, "m.h", {"arithmetic": "int4"}, "`arithmetic` must be one of"),
    (export_c, "m.h", {"calibration": X}, "`calibration` is for"),
    (export_c, "m.h", {"arithmetic": "integer"}, "calibration=None"),
    *(
        (export_c, name, {}, f"stem is the prefix.*{name}")
        for name in NO_PREFIX
    ),
    *(
        pytest.param(export_litert, "m.tflite", *case, marks=ON_TENSORFLOW)
        for case in (
            ({"arithmetic": "int16"}, "`arithmetic` must be one of"),
            ({"calibration": X}, "`calibration` is for"),
            ({"arithmetic": "integer8"}, "needs `calibration`.*shape .0,"),
        )
    ),
]


@pytest.mark.parametrize(("export", "name", "options", "message"), REFUSED)
def test_what_a_function_cannot_write_is_refused(
    model, tmp_path, export, name, options, message
):
    with pytest.raises(ValueError, match=message):
        export(model, tmp_path / name, **options)
    assert not list(tmp_path.iterdir())
