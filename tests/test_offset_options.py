"""Options of an effective matrix are warned of on a layer that stores U."""

import warnings

import keras
import pytest
from witnesses import assert_same

from keras_rin.constraints import Orthogonal
from keras_rin.initializers import Offset
from keras_rin.layers import RIN
from keras_rin.layers import DeepTransitionRINCell
from keras_rin.layers import RINCell
from keras_rin.regularizers import IdentityOffsetL2

LAYERS = [RIN, RINCell, DeepTransitionRINCell]
MISTAKEN = {
    "identity": ("recurrent_initializer", "identity", '="zeros"'),
    "Identity": (
        "recurrent_initializer",
        keras.initializers.Identity(),
        '="zeros"',
    ),
    "orthogonal": (
        "recurrent_initializer",
        "orthogonal",
        r'=Offset\("orthogonal"\)',
    ),
    "Orthogonal": (
        "recurrent_initializer",
        keras.initializers.Orthogonal(seed=1),
        r'=Offset\("orthogonal"\)',
    ),
    "IdentityOffsetL2": (
        "recurrent_regularizer",
        IdentityOffsetL2(0.3),
        r"=keras.regularizers.L2\(0.3\)",
    ),
    "constraint": (
        "recurrent_constraint",
        Orthogonal(),
        r"=Orthogonal\(offset=True\)",
    ),
}
MEANT = [
    {"recurrent_initializer": "zeros"},
    {"recurrent_initializer": keras.initializers.Identity(-0.5)},
    {"recurrent_initializer": keras.initializers.Orthogonal(0.01, seed=1)},
    {"recurrent_initializer": Offset("orthogonal")},
    {"recurrent_regularizer": keras.regularizers.L2(0.3)},
    {"recurrent_constraint": Orthogonal(offset=True)},
    {"kernel_initializer": "identity", "kernel_constraint": Orthogonal()},
]


@pytest.mark.parametrize("make", LAYERS)
@pytest.mark.parametrize(
    ("name", "option", "advice"), MISTAKEN.values(), ids=MISTAKEN
)
def test_one_warning_says_what_to_pass(make, name, option, advice):
    with pytest.warns(UserWarning, match=f"`{name}{advice}`") as caught:
        make(4, **{name: option})
    assert len(caught) == 1


@pytest.mark.parametrize("make", LAYERS)
@pytest.mark.parametrize("options", MEANT)
def test_options_of_an_offset_are_not_warned_of(make, options):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        make(4, **options)


def test_a_file_that_has_them_all_still_loads(rng, tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        layer = RIN(
            4,
            recurrent_initializer="orthogonal",
            recurrent_regularizer=IdentityOffsetL2(0.3),
            recurrent_constraint=Orthogonal(),
        )
    model = keras.Sequential([keras.Input((5, 2)), layer])
    model.save(tmp_path / "model.keras")
    with pytest.warns(UserWarning, match="RIN stores"):
        loaded = keras.models.load_model(tmp_path / "model.keras")
    x = rng.normal(size=(3, 5, 2)).astype("float32")
    assert_same(loaded(x), model(x))
