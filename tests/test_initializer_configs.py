"""A copy of a layer begins with the values of the original."""

import inspect
import json

import keras
import pytest
from references import assert_same
from references import to_numpy

from keras_rin.initializers import Offset
from keras_rin.initializers import PerGate
from keras_rin.layers import RIN
from keras_rin.layers import LinearResidual
from keras_rin.layers import MinGRU
from keras_rin.layers import RateRNN

pytestmark = pytest.mark.one_backend

Identity = keras.initializers.Identity


class Diagonal(keras.initializers.Initializer):
    """An initializer of a user, with the config of the base class."""

    def __init__(self, gain=1.0, seed=None):
        self.gain = gain

    def __call__(self, shape, dtype=None):
        return keras.ops.eye(*shape, dtype=dtype) * self.gain


class Stored(Diagonal):
    def __init__(self, gain=1.0):
        super().__init__(gain)


class Doubled(Diagonal):
    def __init__(self, gain=1.0):
        super().__init__(2 * gain)


class Described(Doubled):
    def get_config(self):
        return {"gain": self.gain / 2}


def copied(item, module=keras.initializers):
    """What a file brings back."""
    config = json.loads(json.dumps(module.serialize(item)))
    return module.deserialize(config)


def keras_initializers():
    """Those of matrices, their numbers unlike the defaults."""
    classes = {
        item
        for item in vars(keras.initializers).values()
        if inspect.isclass(item) and "STFT" not in item.__name__
    }
    for item in sorted(classes, key=lambda item: item.__name__):
        parameters = inspect.signature(item).parameters.values()
        numbers = {
            p.name: p.default + 0.25
            for p in parameters
            if isinstance(p.default, float)
        }
        if item is not keras.initializers.Initializer:
            has_seed = "seed" in inspect.signature(item).parameters
            yield item(**numbers, **({"seed": 1} if has_seed else {}))


@pytest.mark.parametrize(
    "initializer",
    [*keras_initializers(), Offset(Identity(0.95)), Stored(2.0), Described(3)],
    ids=lambda initializer: type(initializer).__name__,
)
def test_a_wrapper_brings_back_the_values(initializer):
    classes = {item.__name__: item for item in (Stored, Described)}
    with keras.saving.custom_object_scope(classes):
        for wrapper in (Offset(initializer), PerGate(initializer, gates=1)):
            matrix = to_numpy(copied(wrapper)((3, 3)))
            assert_same(wrapper((3, 3)), matrix, 0, 0)
        gates = PerGate([Identity(2.0), initializer], gates=2)
        assert_same(gates((3, 6)), to_numpy(copied(gates)((3, 6))), 0, 0)


@pytest.mark.parametrize(
    "initializer, lost", [(Doubled(2.0), "gain"), (Diagonal(2.0), "seed")]
)
def test_what_a_config_would_not_bring_back_is_refused(initializer, lost):
    name = type(initializer).__name__
    for wrap in (Offset, PerGate, lambda item: PerGate([item] * 4)):
        with pytest.raises(ValueError, match=f"of {name} lacks {lost}: a copy"):
            wrap(initializer)


@pytest.mark.parametrize(
    "layer, name",
    [
        (
            RIN(3, recurrent_initializer=Offset(Identity(0.9))),
            "recurrent_kernel",
        ),
        (RIN(3, recurrent_initializer=Identity(0.05)), "recurrent_kernel"),
        (RIN(3, kernel_initializer=Identity(0.9)), "kernel"),
        (
            RateRNN(3, 2.0, recurrent_initializer=Identity(0.9)),
            "recurrent_kernel",
        ),
        (MinGRU(3, kernel_initializer=Identity(0.9)), "kernel"),
        (LinearResidual(kernel_initializer=Identity(0.05)), "kernel"),
    ],
)
def test_a_copy_of_a_layer_begins_with_its_values(layer, name):
    weights = []
    for built in (layer, copied(layer, keras.layers)):
        built.build((None, 5, 3))
        (weight,) = (w for w in built.weights if w.name == name)
        weights.append(to_numpy(weight))
    assert abs(weights[0]).max() not in (0, 1)
    assert_same(*weights, 0, 0)
