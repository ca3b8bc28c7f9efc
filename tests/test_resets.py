"""Sequences in a row, and where each begins: the call argument `resets`."""

from functools import partial

import keras
import numpy as np
import pytest
from references import assert_same
from references import built
from references import to_numpy
from step_files import ON_TENSORFLOW
from step_files import assert_exported_serves

from keras_rin import layers
from keras_rin.export import streaming_step

pytestmark = pytest.mark.each_backend
LAYERS = {
    "MinGRU": layers.MinGRU,
    "MinGRU, parallel": partial(layers.MinGRU, parallel=True),
    "RIN": partial(layers.RIN, activation="tanh"),
    "ResidualRNN": partial(layers.ResidualRNN, inner_units=5),
    "RateRNN": partial(layers.RateRNN, tau=3.0, noise=1.0),
}
TIME = 9
BEGINNINGS = [[0, 4], [0, 1, 8], [0]]  # of each row
RESETS = np.array([np.isin(np.arange(TIME), row) for row in BEGINNINGS])
RESETS[2, 0] = False  # the beginning of a batch needs none
MASK = np.array([[1, 0, 1, 1, 0, 1, 1, 1, 0], [1] * 9, [0, 0, *[1] * 7]], bool)


def one_by_one(layer, x, mask, **options):
    """(outputs, last state) of each sequence in a call of its own."""
    for row, beginnings in enumerate(BEGINNINGS):
        ends = [*beginnings[1:], TIME]
        yield [
            layer(
                x[row : row + 1, begin:end],
                mask=None if mask is None else mask[row : row + 1, begin:end],
                **options,
            )
            for begin, end in zip(beginnings, ends, strict=True)
        ]


@pytest.mark.parametrize("backwards", [False, True])
@pytest.mark.parametrize("mask", [None, MASK], ids=["", "masked"])
@pytest.mark.parametrize("name", LAYERS)
def test_each_sequence_is_read_as_if_alone(rng, name, mask, backwards):
    options = {"return_sequences": True, "return_state": True}
    layer = built(LAYERS[name](4, go_backwards=backwards, **options))
    layer.set_weights([rng.normal(size=w.shape) for w in layer.get_weights()])
    x = rng.normal(size=(3, TIME, 2)).astype("float32")
    outputs, last = map(to_numpy, layer(x, resets=RESETS, mask=mask))
    order = -1 if backwards else 1
    for row, pieces in enumerate(one_by_one(layer, x, mask)):
        expected = np.concatenate([p[0][0] for p in pieces[::order]])
        known = np.ones(TIME, bool) if mask is None else mask[row, ::order]
        assert_same(outputs[row][known], expected[known])
        assert_same(last[row], pieces[::order][-1][1][0])
    layer.return_sequences = False
    assert_same(layer(x, resets=RESETS, mask=mask)[1], last)


def test_the_penalty_is_summed_over_all_sequences(rng):
    layer = built(layers.ResidualRNN(4, 5))
    x = rng.normal(size=(1, TIME, 2)).astype("float32")
    layer(x, resets=RESETS[:1], training=True)
    (penalty,) = map(float, layer.losses)
    of_parts = []
    for part in (x[:, :4], x[:, 4:]):
        layer(part, training=True)
        of_parts += map(float, layer.losses)
    assert_same(penalty, sum(of_parts))


@pytest.mark.parametrize("name", LAYERS)
def test_a_model_has_resets_as_a_second_input(rng, name, tmp_path):
    x = keras.Input((TIME, 2))
    resets = keras.Input((TIME,), dtype="bool")
    layer = LAYERS[name](4, return_sequences=True)
    model = keras.Model([x, resets], layer(x, resets=resets))
    data = [rng.normal(size=(3, TIME, 2)).astype("float32"), RESETS]
    expected = layer(data[0], resets=data[1])
    assert_same(model.predict(data, verbose=0), expected)
    model.compile("sgd", "mse")
    model.save(tmp_path / "model.keras")
    model = keras.models.load_model(tmp_path / "model.keras")
    assert_same(model.predict(data, verbose=0), expected)
    assert np.isfinite(model.evaluate(data, np.zeros((3, TIME, 4)), verbose=0))
    assert np.isfinite(model.train_on_batch(data, np.zeros((3, TIME, 4))))


@pytest.mark.parametrize("name", ["resets", "initial_state"])
def test_a_mask_of_the_layer_before_is_kept_beside_a_tensor(name, tmp_path):
    """Keras drops it beside an `initial_state`."""
    tokens = keras.Input((5,), dtype="int32")
    other = {
        "resets": keras.Input((5,), dtype="bool"),
        "initial_state": keras.Input((4,)),
    }[name]
    x = keras.layers.Embedding(5, 3, mask_zero=True)(tokens)
    y = layers.MinGRU(4)(x, **{name: other})
    model = keras.Model([tokens, other], y)
    model.save(tmp_path / "model.keras")
    other = np.zeros((1, *other.shape[1:]), other.dtype)
    data = np.array([[1, 2, 3, 0, 0]]), np.array([[0, 0, 1, 2, 3]])
    for tried in model, keras.models.load_model(tmp_path / "model.keras"):
        after, before = (tried([tokens, other]) for tokens in data)
        assert_same(after, before)


@pytest.mark.one_backend
@pytest.mark.parametrize(
    "options", [{"fused": True}, {"recompute": True}], ids=str
)
def test_the_fused_loop_has_no_resets(options):
    layer = layers.RIN(4, **options)
    with pytest.raises(ValueError, match="create rin.* without `fused=True`"):
        layer(np.ones((3, TIME, 2)), resets=RESETS)


@pytest.mark.one_backend
def test_resets_of_another_shape_are_refused():
    with pytest.raises(ValueError, match=r"`resets` must have.*\(3, 9, 1\)"):
        layers.MinGRU(4)(np.ones((3, TIME, 2)), resets=RESETS[..., None])


@pytest.mark.one_backend
def test_a_step_says_how_it_begins_anew():
    x = keras.Input((None, 2))
    y = layers.MinGRU(4, return_sequences=True)(x, resets=x[..., 0] > 0)
    with pytest.raises(ValueError, match="`resets`; where.*states of zeros"):
        streaming_step(keras.Model(x, y))


@ON_TENSORFLOW
@pytest.mark.parametrize("name", ["MinGRU", "RIN"])
def test_a_saved_model_computes_resets(name, tmp_path):
    x = keras.Input((TIME, 2))
    y = LAYERS[name](4, return_sequences=True)(x, resets=x[..., 0] > 0)
    shape = 3, TIME, 2
    assert_exported_serves(
        keras.Model(x, y), shape, format="tf_saved_model", folder=tmp_path
    )


def test_stream_features_take_no_resets():
    with pytest.raises(ValueError, match="call it on each sequence"):
        layers.StreamFeatures()(np.ones((3, TIME, 2)), resets=RESETS)
