"""How much the channels of a stream move, in Keras, in steps and in C."""

import keras
import numpy as np
import pytest
from references import assert_same
from references import outputs_of_steps
from references import to_numpy
from step_files import write_and_run

from keras_rin.export import export_c
from keras_rin.export import streaming_step
from keras_rin.layers import RIN
from keras_rin.layers import StreamFeatures


def expected(x, window, mask=None):
    """The formula in a loop of float64; masked steps are left out."""
    rows = []
    for sequence, steps in zip(x.astype("float64"), mask, strict=True):
        outputs, last, mean = np.zeros((len(steps), 3 * x.shape[2])), None, None
        for t in np.flatnonzero(steps):
            now = sequence[t]
            last, mean = (now, now) if last is None else (last, mean)
            mean = mean + (now - mean) / window
            outputs[t] = np.concatenate(
                [now, np.abs(now - last), np.abs(now - mean)]
            )
            last = now
        rows.append(outputs)
    return np.stack(rows)


@pytest.mark.parametrize("window", [1, 2.5, 16, 1_000])
@pytest.mark.parametrize("is_masked", [False, True])
@pytest.mark.parametrize("order", [1, -1])
def test_outputs_are_the_formula(rng, window, is_masked, order):
    x = rng.normal(5, 1, size=(3, 64, 2)).astype("float32")
    mask = np.ones((3, 64), bool)
    if is_masked:
        mask = rng.random((3, 64)) < 0.7
    layer = StreamFeatures(window, go_backwards=order < 0)
    y = to_numpy(layer(x, mask=mask if is_masked else None))
    mask = mask[:, ::order]
    y_expected = expected(x[:, ::order], window, mask)
    assert_same(y[mask], y_expected[mask])
    last = StreamFeatures(window, return_sequences=False)(x)
    assert_same(to_numpy(last), to_numpy(StreamFeatures(window)(x))[:, -1])


def test_a_stream_goes_on_with_its_states(rng):
    x = rng.normal(size=(2, 30, 3)).astype("float32")
    whole = expected(x, 16, np.ones((2, 30)))
    layer = StreamFeatures(return_state=True)
    first, *states = layer(x[:, :11])
    second, *_ = layer(x[:, 11:], initial_state=states)
    assert_same(np.concatenate([to_numpy(first), to_numpy(second)], 1), whole)
    stateful = StreamFeatures(stateful=True)
    parts = [to_numpy(stateful(part)) for part in (x[:, :11], x[:, 11:])]
    assert_same(np.concatenate(parts, axis=1), whole)
    stateful.reset_state()
    assert_same(to_numpy(stateful(x[:, 11:]))[:, 0, 3:], 0)


def model_of(x, *above):
    """Features, scaled, and a network that reads them."""
    features = StreamFeatures(8)
    normalization = keras.layers.Normalization()
    normalization.adapt(to_numpy(features(x.astype("float32"))))
    return keras.Sequential(
        [keras.Input((None, x.shape[2])), features, normalization, *above]
    )


@pytest.mark.one_backend
@pytest.mark.parametrize("format", ["c", "litert", "onnx", "tf_saved_model"])
def test_steps_are_those_of_the_model(rng, format, tmp_path):
    x = rng.normal(size=(2, 25, 3)).astype("float32")
    identity = keras.initializers.Identity(-0.5)
    rin = RIN(4, recurrent_initializer=identity, return_sequences=True)
    model = model_of(x, rin)
    y = model.predict(x, verbose=0)
    assert_same(outputs_of_steps(streaming_step(model), x), y)
    assert_same(write_and_run(model, format, tmp_path, x), y)


def integer_features(x, shift):
    """Exact features: the mean times 2^shift is a whole number."""
    last, total, rows = x[0], x[0] << shift, []
    for now in x:
        total = total + now - (total >> shift)
        sizes = np.abs(now - last), np.abs(now - (total >> shift))
        rows.append(np.concatenate([now, *np.minimum(sizes, 32_767)]))
        last = now
    return np.array(rows)


@pytest.mark.one_backend
@pytest.mark.parametrize("shift", [0, 3, 14])
def test_integers_lose_nothing(rng, shift, tmp_path):
    """A dense layer of ones and codes shows each feature as it is in C."""
    x = rng.integers(-300, 300, size=(1, 4_000, 2)).cumsum(axis=1)
    x = np.clip(x, -32_768, 32_767).astype("int64")
    x[0, 2_000:2_004] = [[32_767, -32_768], [-32_768, 32_767]] * 2
    model = keras.Sequential(
        [
            keras.Input((None, 2)),
            StreamFeatures(2**shift),
            keras.layers.Dense(6, kernel_initializer="identity"),
        ]
    )
    header = export_c(model, tmp_path / "move.h", "integer", calibration=x)
    in_c = integer_features(x[0], shift)
    unit = np.abs(in_c).max() / 2**15
    assert np.abs(header.predict(x)[0] - in_c).max() <= unit
    outputs = model.predict(x.astype("float32"), verbose=0)[0]
    assert header.compare(model, x).saturated == 0  # of no layer's states
    is_within = np.abs(in_c) < 32_767  # else it is saturated
    assert np.abs(in_c - outputs)[is_within].max() < 1.01


@pytest.mark.one_backend
def test_what_has_no_form_in_c_is_refused(rng, tmp_path):
    x = rng.integers(-9, 9, size=(1, 50, 2))
    for window in (3, 2**15):
        model = keras.Sequential(
            [keras.Input((None, 2)), StreamFeatures(window), RIN(3)]
        )
        with pytest.raises(ValueError, match="no power of two up to 2"):
            export_c(model, tmp_path / "x.h", "integer", calibration=x)
    model = keras.Sequential([keras.Input((None, 2)), StreamFeatures()])
    with pytest.raises(ValueError, match="no layer with weights follows"):
        export_c(model, tmp_path / "x.h", "integer", calibration=x)
