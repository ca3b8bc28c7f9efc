"""Which models, and which calls of their layers, can run step by step."""

import keras
import numpy as np
from keras import ops

from keras_rin._cell_descriptions import description_of
from keras_rin._layer_walk.functional_calls import record_calls
from keras_rin.export._step.stepwise import is_causal
from keras_rin.export._step.stepwise import is_stepwise
from keras_rin.export._step.stepwise import refuse
from keras_rin.export._step.stepwise import tensors_of
from keras_rin.layers import StreamFeatures


def is_graph(model):
    """Whether a model consists of its layers, from one input to one output."""
    counts = [len(getattr(model, ends, ())) for ends in ("inputs", "outputs")]
    return counts == [1, 1] and type(model).call.__module__.startswith("keras.")


def calls_its_cell_alone(layer):
    """Whether a recurrent layer is known to call its cell once a time step."""
    if not isinstance(layer, keras.layers.RNN):
        return False
    is_of_keras = type(layer).__module__.startswith("keras.")
    if is_of_keras or type(layer) is StreamFeatures:
        return True
    row = description_of(layer.cell)
    name = keras.saving.get_registered_name(type(layer))
    return row is not None and row.layer == name


def steps_at_once(model):
    """How many steps of its input a model takes for a step of its states.

    Strides of convolutions one above another multiply.
    """
    inputs, calls, _ = record_calls(model)
    steps = {id(inputs[0]): 1}  # of the sequences
    for layer, args, _, outputs in calls:
        of_inputs = [steps[id(x)] for x in tensors_of(args) if id(x) in steps]
        if of_inputs and getattr(layer, "return_sequences", True):
            is_model = isinstance(layer, keras.Model) and is_graph(layer)
            strides = steps_at_once(layer) if is_model else 1
            strides = layer.strides[0] if is_causal(layer) else strides
            steps |= dict.fromkeys(map(id, outputs), max(of_inputs) * strides)
    return max(steps.values())


def check_model(model):
    """Refuses a model whose calls of layers are not known."""
    if not is_graph(model):
        raise ValueError(
            "`model` must be a Sequential or functional model that is built, "
            "with one input and one output and the `call` of Keras. "
            f"Received: model={model!r}"
        )


def check_states(model, states):
    """Refuses a model that needs no states."""
    if not states:
        raise ValueError(
            "`model` must have a recurrent layer. "
            f"Received: a model with {model.layers}"
        )


def check_call(layer, args, kwargs, in_time, steps, stepwise=()):
    """Refuses a call of a layer or operation that one step cannot make.

    `in_time` has, for each tensor that it reads, whether that is a sequence,
    and not known only after the last step. A step is that of so many `steps` of
    its input. Layers of the classes `stepwise` are known to read no others.
    """
    masks = keras.tree.flatten(kwargs.get("mask"))
    masks = [mask for mask in masks if mask is not None]
    is_recurrent = isinstance(layer, keras.layers.RNN)
    states = *args[1:2], kwargs.get("initial_state")
    reasons = {
        "it is given an initial state": is_recurrent
        and any(state is not None for state in states),
        "it is called with `resets`; where a sequence begins, pass the step "
        "states of zeros": kwargs.get("resets") is not None,
        "its input is no longer a sequence": not any(in_time),
        "it combines a sequence with a value that is known only after the last "
        "step": not all(in_time),
        "it is called with `training=True`": kwargs.get("training"),
        "its mask is a constant": len(masks) > len(tensors_of(masks)),
    }
    refuse(layer, reasons)
    if is_recurrent:
        refuse(layer, _reasons_of_recurrent(layer, steps, stepwise))
    elif not (is_graph(layer) or isinstance(layer, stepwise)):
        tensors, options = tensors_of(args), set(kwargs)
        if isinstance(layer, keras.Layer):
            options -= {"training", "mask"}
        is_known = tensors and is_stepwise(layer, args, tensors[0].ndim)
        reason = (
            f"{type(layer).__name__}, as it is used here, is not known to "
            "compute each time step from that step alone; if it does, put it "
            "into `keras.layers.TimeDistributed`, or name its class in "
            "`stepwise`"
        )
        refuse(layer, {reason: options or not is_known})


def _reasons_of_recurrent(layer, steps, stepwise):
    is_known = isinstance(layer, stepwise) or calls_its_cell_alone(layer)
    adds_noise = getattr(layer, "inference_noise", False)
    states = keras.tree.flatten(layer.get_initial_state(batch_size=1))
    return {
        "it processes the sequence backwards": layer.go_backwards,
        "all strides must be those of convolutions that it is behind": (
            steps != 1
        ),
        "it adds noise in inference": (
            adds_noise and getattr(layer, "noise", 0) > 0
        ),
        "its state is its own; copy the weights to one with "
        "`stateful=False`": layer.stateful,
        f"{type(layer).__name__} may do more than call its cell at each time "
        "step; if it does not, name the class in `stepwise`": not is_known,
        "its initial state is not 0": any(
            np.any(ops.convert_to_numpy(state)) for state in states
        ),
    }
