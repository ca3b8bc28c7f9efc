"""Options of an effective matrix are warned of on a layer that stores U."""

import re
import warnings

import keras
import numpy as np
import pytest
from references import assert_same

from keras_rin import initializers
from keras_rin.constraints import Orthogonal
from keras_rin.initializers import Chain
from keras_rin.initializers import ChainIdentity
from keras_rin.initializers import FeedbackChain
from keras_rin.initializers import Offset
from keras_rin.initializers import PartialIdentity
from keras_rin.initializers import PerGate
from keras_rin.initializers import Ramp
from keras_rin.layers import RIN
from keras_rin.layers import DeepTransitionRINCell
from keras_rin.layers import LinearResidual
from keras_rin.layers import RINCell
from keras_rin.regularizers import IdentityOffsetL2

pytestmark = pytest.mark.one_backend

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
# Initializers that describe V, and the one that gives a RIN this V.
EFFECTIVE = {
    "chain": (Chain(1.0), "Chain(gain=1.0)"),
    "short chain": (Chain(0.001), "Chain(gain=0.001)"),
    "chain and identity": (
        ChainIdentity(0.9, 0.1),
        "ChainIdentity(chain_gain=0.9, identity_gain=0.1)",
    ),
    "feedback": (
        FeedbackChain(0.5, 0.1),
        "FeedbackChain(gain=0.5, feedback=0.1)",
    ),
    "part": (PartialIdentity(0.25), "PartialIdentity(fraction=0.25)"),
    "ramp": (Ramp(0.01), "Ramp(limit=0.01)"),
    "one gate": (PerGate([Chain(0.5)], gates=1), "Chain(gain=0.5)"),
    "every gate": (PerGate(Chain(0.5), gates=1), "Chain(gain=0.5)"),
    "Identity": (
        keras.initializers.Identity(0.9),
        "keras.initializers.Identity(gain=0.9)",
    ),
    "Orthogonal": (
        keras.initializers.Orthogonal(-0.9, seed=1),
        "keras.initializers.Orthogonal(gain=-0.9)",
    ),
    "glorot_uniform": ("glorot_uniform", "keras.initializers.GlorotUniform()"),
    "VarianceScaling": (
        keras.initializers.VarianceScaling(0.5, "fan_in", "uniform"),
        "keras.initializers.VarianceScaling(scale=0.5, mode='fan_in', "
        "distribution='uniform')",
    ),
}
MEANT = [
    {"recurrent_initializer": "zeros"},
    {"recurrent_initializer": "random_normal"},
    {"recurrent_initializer": keras.initializers.Identity(-0.5)},
    {"recurrent_initializer": keras.initializers.Orthogonal(0.01, seed=1)},
    {"recurrent_initializer": keras.initializers.VarianceScaling(1e-4)},
    {"recurrent_initializer": ChainIdentity(0.9, -0.5)},
    {"recurrent_initializer": Offset(Chain())},
    {"recurrent_initializer": PerGate(Offset(Chain()), gates=1)},
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


@pytest.mark.parametrize("make", LAYERS)
@pytest.mark.parametrize(
    ("initializer", "written"), EFFECTIVE.values(), ids=EFFECTIVE
)
def test_an_initializer_of_the_effective_matrix_is_named(
    make, initializer, written
):
    advice = f"Pass `recurrent_initializer=Offset({written})`"
    with pytest.warns(UserWarning, match=re.escape(advice)) as caught:
        make(4, recurrent_initializer=initializer)
    assert len(caught) == 1


@pytest.mark.parametrize("written", [w for _, w in EFFECTIVE.values()])
def test_the_line_of_the_warning_can_be_run(written):
    """And what it makes is what SimpleRNN has without `Offset`."""
    names = {"keras": keras, **vars(initializers)}
    inner = eval(written, names)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        layer = RIN(4, recurrent_initializer=Offset(inner))
    layer.build((None, None, 2))
    if "seed" not in inner.get_config():
        assert_same(layer.effective_recurrent_kernel, inner((4, 4)))


@pytest.mark.parametrize(
    ("options", "advice"),
    [
        ({"kernel_initializer": "identity"}, '_initializer="zeros"`'),
        (
            {"kernel_initializer": "orthogonal"},
            '_initializer=Offset("orthogonal")`',
        ),
        (
            {"kernel_initializer": Chain(0.5)},
            "_initializer=Offset(Chain(gain=0.5))",
        ),
        (
            {"kernel_regularizer": IdentityOffsetL2(0.3)},
            "_regularizer=keras.regularizers.L2(0.3)`",
        ),
        (
            {"kernel_constraint": Orthogonal()},
            "_constraint=Orthogonal(offset=True)`",
        ),
    ],
)
def test_a_linear_residual_stores_an_offset_too(options, advice):
    advice = f"LinearResidual stores .* `kernel{re.escape(advice)}"
    with pytest.warns(UserWarning, match=advice) as caught:
        LinearResidual(**options)
    assert len(caught) == 1
    assert caught[0].filename == __file__


@pytest.mark.parametrize("initializer", ["zeros", "he_normal", Offset(Chain())])
def test_a_linear_residual_with_an_offset_is_not_warned_of(initializer):
    LinearResidual(initializer)


class Own(RIN):
    """A layer of a user's, whose line is one of this file too."""

    def __init__(self, units, **kwargs):
        super().__init__(units, **kwargs)


CHAIN = {"recurrent_initializer": Chain(1.0)}


def quiet(make):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return make()


def saved(tmp_path, layer):
    model = keras.Sequential([keras.Input((5, 2)), layer])
    model.save(tmp_path / "model.keras")
    return model


def load(tmp_path):
    quiet(lambda: saved(tmp_path, keras.layers.Bidirectional(RIN(4, **CHAIN))))
    return lambda: keras.models.load_model(tmp_path / "model.keras")


def clone(tmp_path):
    model = quiet(lambda: saved(tmp_path, RIN(4, **CHAIN)))
    return lambda: keras.models.clone_model(model)


def from_config(tmp_path):
    config = quiet(lambda: RIN(4, **CHAIN)).get_config()
    return lambda: RIN.from_config(config)


def from_json(tmp_path):
    text = quiet(lambda: saved(tmp_path, RIN(4, **CHAIN))).to_json()
    return lambda: keras.models.model_from_json(text)


def wrapped(tmp_path):
    layer = quiet(lambda: RIN(4, **CHAIN))
    return lambda: keras.layers.Bidirectional(layer)


@pytest.mark.parametrize(
    "prepare",
    [
        *(lambda _, make=make: lambda: make(4, **CHAIN) for make in LAYERS),
        lambda _: lambda: Own(4, **CHAIN),
        lambda _: lambda: LinearResidual(Chain()),
        from_config,
        from_json,
        clone,
        wrapped,
        load,
    ],
    ids=[
        *(make.__name__ for make in LAYERS),
        "subclass",
        "LinearResidual",
        "from_config",
        "model_from_json",
        "clone_model",
        "Bidirectional",
        "load_model",
    ],
)
def test_the_warning_points_at_the_line_of_the_user(prepare, tmp_path):
    run = prepare(tmp_path)
    with pytest.warns(UserWarning, match="Offset") as caught:
        run()
    assert {warning.filename for warning in caught} == {__file__}


def test_an_effective_chain_as_offset_grows_out_of_range(rng):
    """What the warning is about: with `Offset` the state stays in range."""
    x = np.abs(rng.normal(size=(2, 100, 3)))
    offset = RIN(64, recurrent_initializer=Offset(Chain(1.0)))
    effective = quiet(lambda: RIN(64, **CHAIN))
    assert float(keras.ops.max(offset(x))) < 1e3
    assert float(keras.ops.max(effective(x))) > 1e20


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
