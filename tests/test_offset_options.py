"""Options of an effective matrix are warned of on a layer that stores U."""

import functools
import re
import warnings

import keras
import numpy as np
import pytest
from references import assert_same
from references import built

from keras_rin import initializers
from keras_rin.constraints import Orthogonal
from keras_rin.initializers import Chain
from keras_rin.initializers import ChainIdentity
from keras_rin.initializers import Offset
from keras_rin.initializers import PerGate
from keras_rin.layers import RIN
from keras_rin.layers import DeepTransitionRINCell
from keras_rin.layers import LinearResidual
from keras_rin.layers import RINCell
from keras_rin.regularizers import IdentityOffsetL2

pytestmark = pytest.mark.one_backend

LAYERS = [RIN, RINCell, DeepTransitionRINCell]
# Options of V, by name without "recurrent_", and what to pass instead.
MISTAKEN = [
    ("initializer", "identity", '"zeros"'),
    ("initializer", keras.initializers.Identity(), '"zeros"'),
    ("initializer", "orthogonal", 'Offset("orthogonal")'),
    (
        "initializer",
        keras.initializers.Orthogonal(seed=1),
        'Offset("orthogonal")',
    ),
    ("regularizer", IdentityOffsetL2(0.3), "keras.regularizers.L2(0.3)"),
    ("constraint", Orthogonal(), "Orthogonal(offset=True)"),
]
# Initializers of V as the warning writes them.
WRITTEN = [
    "Chain(gain=1.0)",
    "Chain(gain=0.001)",
    "ChainIdentity(chain_gain=0.9, identity_gain=0.1)",
    "FeedbackChain(gain=0.5, feedback=0.1)",
    "PartialIdentity(fraction=0.25)",
    "Ramp(limit=0.01)",
    "keras.initializers.Identity(gain=0.11)",
    "keras.initializers.Orthogonal(gain=-0.11)",
    "keras.initializers.GlorotUniform()",
    "keras.initializers.VarianceScaling(scale=0.02, mode='fan_in', "
    "distribution='uniform')",
]


def run(written):
    return eval(written, {"keras": keras, **vars(initializers)})


EFFECTIVE = [
    *((run(written), written) for written in WRITTEN),
    ("glorot_uniform", "keras.initializers.GlorotUniform()"),
    (PerGate([Chain(0.5)], gates=1), "Chain(gain=0.5)"),
    (PerGate(Chain(0.5), gates=1), "Chain(gain=0.5)"),
]
MEANT = [
    {"recurrent_initializer": "zeros"},
    {"recurrent_initializer": "random_normal"},
    {"recurrent_initializer": keras.initializers.Identity(-0.5)},
    {"recurrent_initializer": keras.initializers.Orthogonal(0.1, seed=1)},
    {"recurrent_initializer": keras.initializers.VarianceScaling(0.01)},
    {"recurrent_initializer": ChainIdentity(0.9, -0.5)},
    {"recurrent_initializer": Offset(Chain())},
    {"recurrent_initializer": PerGate(Offset(Chain()), gates=1)},
    {"recurrent_initializer": Offset("orthogonal")},
    {"recurrent_regularizer": keras.regularizers.L2(0.3)},
    {"recurrent_constraint": Orthogonal(offset=True)},
    {"kernel_initializer": "identity", "kernel_constraint": Orthogonal()},
]


OPTIONS = [
    *MISTAKEN,
    *((("initializer", value, f"Offset({text})")) for value, text in EFFECTIVE),
]


@pytest.mark.parametrize("make", LAYERS)
@pytest.mark.parametrize(("name", "option", "replacement"), OPTIONS)
def test_one_warning_says_what_to_pass(make, name, option, replacement):
    advice = re.escape(f"`recurrent_{name}={replacement}")
    with pytest.warns(UserWarning, match=advice) as caught:
        make(4, **{f"recurrent_{name}": option})
    assert len(caught) == 1


@pytest.mark.parametrize(
    ("name", "option", "replacement"),
    [*MISTAKEN, ("initializer", Chain(0.5), "Offset(Chain(gain=0.5))")],
)
def test_a_linear_residual_stores_an_offset_too(name, option, replacement):
    advice = re.escape(f"`kernel_{name}={replacement}")
    match = f"LinearResidual stores .* {advice}"
    with pytest.warns(UserWarning, match=match) as caught:
        LinearResidual(**{f"kernel_{name}": option})
    assert len(caught) == 1
    assert caught[0].filename == __file__


@pytest.mark.parametrize("make", LAYERS)
@pytest.mark.parametrize("options", MEANT)
def test_options_of_an_offset_are_not_warned_of(make, options):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        make(4, **options)


@pytest.mark.parametrize("written", WRITTEN)
def test_the_line_of_the_warning_can_be_run(written):
    """And what it makes is what SimpleRNN has without `Offset`."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        layer = built(RIN(4, recurrent_initializer=Offset(run(written))))
    if "seed" not in run(written).get_config():
        assert_same(layer.effective_recurrent_kernel, run(written)((4, 4)))


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


def saved(folder, layer):
    model = keras.Sequential([keras.Input((5, 2)), layer])
    model.save(folder / "model.keras")
    return model


def chain():
    return RIN(4, **CHAIN)


# What is made without a warning, in this folder, and what warns of it.
WARNING = {
    "from_config": (lambda _: chain().get_config(), RIN.from_config),
    "model_from_json": (
        lambda folder: saved(folder, chain()).to_json(),
        keras.models.model_from_json,
    ),
    "clone_model": (
        lambda folder: saved(folder, chain()),
        keras.models.clone_model,
    ),
    "Bidirectional": (lambda _: chain(), keras.layers.Bidirectional),
    "load_model": (
        lambda folder: (
            saved(folder, keras.layers.Bidirectional(chain()))
            and folder / "model.keras"
        ),
        keras.models.load_model,
    ),
    "LinearResidual": (lambda _: Chain(), LinearResidual),
    **{
        make.__name__: (lambda _: 4, functools.partial(make, **CHAIN))
        for make in (*LAYERS, Own)
    },
}


@pytest.mark.parametrize(("prepare", "warn"), WARNING.values(), ids=WARNING)
def test_the_warning_points_at_the_line_of_the_user(prepare, warn, tmp_path):
    prepared = quiet(lambda: prepare(tmp_path))
    with pytest.warns(UserWarning, match="Offset") as caught:
        warn(prepared)
    assert {warning.filename for warning in caught} == {__file__}


def test_an_effective_chain_as_offset_grows_out_of_range(rng):
    """What the warning is about: with `Offset` the state stays in range."""
    x = np.abs(rng.normal(size=(2, 100, 3)))
    offset = RIN(64, recurrent_initializer=Offset(Chain(1.0)))
    effective = quiet(lambda: RIN(64, **CHAIN))
    assert float(keras.ops.max(offset(x))) < 1e3
    assert float(keras.ops.max(effective(x))) > 1e20


def test_a_file_that_has_them_all_still_loads(rng, tmp_path):
    options = {f"recurrent_{name}": option for name, option, _ in MISTAKEN}
    model = quiet(lambda: saved(tmp_path, RIN(4, **options)))
    with pytest.warns(UserWarning, match="RIN stores"):
        loaded = keras.models.load_model(tmp_path / "model.keras")
    x = rng.normal(size=(3, 5, 2)).astype("float32")
    assert_same(loaded(x), model(x))
