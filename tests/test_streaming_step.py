"""One step after another is the whole sequence."""

import keras
import numpy as np
import pytest
from keras import layers
from keras import ops
from models import FEATURES
from models import MARKS
from models import MODELS
from models import WITHOUT_STEPS
from models import blocks_of
from models import rin
from models import some_input
from models import stack
from references import outputs_of_steps
from step_files import assert_near

from keras_rin.export import streaming_step


def assert_steps_are_the_sequence(model, x, tolerance=1e-4, stepped=None):
    stepped = stepped or model
    y = outputs_of_steps(streaming_step(stepped), blocks_of(stepped, x))
    assert_near(y, model, x, tolerance)


@pytest.mark.one_backend
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=MARKS.get(name, ())) for name in MODELS]
)
def test_steps_give_what_the_sequence_gives(rng, name):
    model = MODELS[name]()
    x = some_input(rng, model, batch=2, time=model.inputs[0].shape[1] or 12)
    assert_steps_are_the_sequence(model, x)


@pytest.mark.one_backend
def test_a_loaded_model_may_have_any_names(rng, tmp_path):
    """Names count up in each process: one that loads begins anew."""
    x = keras.Input((None, FEATURES), name="input_layer")
    inner = keras.Model(x, layers.Dense(4)(x), name="functional")
    h = rin(4, return_sequences=True, name="rin")(inner(x))
    h = ops.add(h, ops.expand_dims(h[:, :, 0], 2) + h[..., :1])
    model = keras.Model(x, rin(4, name="rin_1")(h), name="functional_1")
    model.save(tmp_path / "model.keras")
    keras.backend.clear_session()
    loaded = keras.models.load_model(tmp_path / "model.keras")
    x = some_input(rng, model, 2, 5)
    assert_steps_are_the_sequence(model, x, stepped=loaded)


def test_the_weights_are_those_of_the_model():
    model = MODELS["in a model"]()
    step = streaming_step(model)
    assert {id(w) for w in step.weights} == {id(w) for w in model.weights}


@pytest.mark.one_backend
def test_states_in_half_precision(rng):
    model = stack(rin(4, dtype="mixed_float16", name="rin"), layers.Dense(2))
    step = streaming_step(model)
    assert (step.input["x"].dtype, step.input["rin"].dtype) == (
        "float32",
        "float16",
    )
    x = some_input(rng, model, 2, 5)
    assert_steps_are_the_sequence(model, x, 1e-2)


@pytest.mark.one_backend
@pytest.mark.parametrize("reason", WITHOUT_STEPS)
def test_what_cannot_run_step_by_step_is_refused(reason):
    with pytest.raises(ValueError, match=reason):
        streaming_step(WITHOUT_STEPS[reason]())


def test_a_model_can_be_trained_after_its_step_is_made():
    model = MODELS["with dropout"]()
    streaming_step(model)
    x = np.ones((2, 5, FEATURES), "float32")
    dropped = [ops.convert_to_numpy(model(x, training=True)) for _ in range(2)]
    assert np.isfinite(dropped).all() and (dropped[0] != dropped[1]).any()
