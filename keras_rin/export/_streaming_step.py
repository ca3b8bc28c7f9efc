"""One time step of a model, as a model."""

from collections.abc import Sequence

import keras
import numpy as np
from keras import ops

from keras_rin._layer_walk.layers import recurrent_layers
from keras_rin.export._cell_step import CellStep
from keras_rin.export._stepwise import is_stepwise
from keras_rin.export._stepwise import refuse
from keras_rin.export._stepwise import tensors_of
from keras_rin.layers import RIN
from keras_rin.layers import NoisyRNN


def streaming_step(
    model: keras.Model, stepwise: Sequence[type] = ()
) -> keras.Model:
    """One time step of a model of sequences, as a model of its own.

    It maps a dictionary of `x`, of shape `(batch, ...)`, one step of the
    input, and of the states of the recurrent layers by name, to begin with
    zeros, to one of `y`, the answer after this step, and of the new states.
    An LSTM called `lstm` has the states `lstm_0` and `lstm_1`. The weights are
    those of the model.

    One step after another gives what the model gives: each of its outputs
    where it returns sequences; its only one, after the last step, where it
    does not. A masked step leaves the states as they are. Which layers answer
    a time step from that step alone is decided by their class and options:
    [the list](../saving.md#streaming).

    Args:
        model: A Sequential or functional `keras.Model` with one input, of
            shape `(batch, time, ...)`, and one output.
        stepwise: Classes of other layers that do, such as a layer of your own
            or `keras.layers.Lambda`, and of recurrent layers that call their
            cell once a step. Defaults to `()`.

    Returns:
        A functional `keras.Model`.

    Raises:
        ValueError: The model is not of that kind, or a layer cannot run step by
            step: the error has the reason.

    Example:

    >>> model = keras.Sequential(
    ...     [keras.Input((None, 2)), keras_rin.layers.RIN(4, name="rin")]
    ... )
    >>> step = keras_rin.export.streaming_step(model)
    >>> inputs = {"x": np.ones((1, 2)), "rin": np.zeros((1, 4))}
    >>> state = step.predict_on_batch(inputs)
    >>> y = state.pop("y")
    >>> np.allclose(y, model.predict_on_batch(np.ones((1, 1, 2))))
    True
    """
    stepwise = (stepwise,) if isinstance(stepwise, type) else tuple(stepwise)
    if not is_graph(model):
        raise ValueError(
            "`model` must be a Sequential or functional model that is built, "
            "with one input and one output and the `call` of Keras. "
            f"Received: model={model!r}"
        )
    step_model, in_time = _step_model(model, stepwise)
    if not step_model.input[1]:
        raise ValueError(
            "`model` must have a recurrent layer. "
            f"Received: a model with {model.layers}"
        )
    _check_names(["x", "y", *step_model.input[1]])
    shape = model.inputs[0].shape
    x = _input((shape[0], *shape[2:]), model.inputs[0].dtype, "x")
    states = _inputs_like(step_model.input[1], shape[0])
    y, new_states = step_model([ops.expand_dims(x, 1), states])
    y = ops.squeeze(y, 1) if in_time else y
    return keras.Model(
        {"x": x, **states}, {"y": y, **new_states}, name=f"{model.name}_step"
    )


def is_graph(model):
    """Whether a model consists of its layers, from one input to one output."""
    counts = [len(getattr(model, ends, ())) for ends in ("inputs", "outputs")]
    return counts == [1, 1] and type(model).call.__module__.startswith("keras.")


def calls_its_cell_alone(layer):
    """Whether a recurrent layer is known to call its cell once a time step."""
    is_of_keras = type(layer).__module__.startswith("keras.")
    is_known = is_of_keras or type(layer) is RIN
    return isinstance(layer, keras.layers.RNN) and is_known


def _step_model(model, stepwise):
    """Maps `[x, states]` to `[y, states]`, x with one time step.

    Returns that model, and whether y has an axis of time as well.
    """
    shape = model.inputs[0].shape
    # The names of added inputs differ from those in a loaded model.
    x = _input((shape[0], 1, *shape[2:]), model.inputs[0].dtype, "one_step_x")
    step = _Step(x, model.layers, stepwise)
    # A clone has the inputs of its model, which so needs some for the states.
    unused = [
        _input(state.shape, state.dtype, f"{name}_unused")
        for name, state in step.states.items()
    ]
    for tensor in unused:
        ops.copy(tensor)  # Keras 3.10 refuses inputs that nothing reads
    clone = keras.models.clone_model(
        keras.Model([model.inputs[0], *unused], model.outputs),
        input_tensors=[x, *step.states.values()],
        clone_function=lambda layer: layer,
        call_function=step,
    )
    y = clone.outputs[0]
    step_model = keras.Model(
        [x, step.states], [y, step.new_states], name=f"{model.name}_one_step"
    )
    return step_model, step.is_in_time(y)


def _input(shape, dtype, name=None):
    return keras.Input(batch_shape=shape, dtype=dtype, name=name)


def _inputs_like(states, batch):
    return {
        name: _input((batch, *state.shape[1:]), state.dtype, name)
        for name, state in states.items()
    }


def _check_names(names):
    for name in names:
        if names.count(name) > 1:
            raise ValueError(
                "Recurrent layers must have different names, other than x and "
                f"y. Received: {name!r} twice"
            )


class _Step:
    """Calls the layers of a model again, on one step in place of all."""

    def __init__(self, x, layers, stepwise):
        self.states, self.new_states = {}, {}
        self._stepwise, self._batch = stepwise, x.shape[0]
        self._in_time = [x]
        self._models, self._names = {}, {}
        for layer in dict.fromkeys(layers):
            if isinstance(layer, keras.layers.RNN):
                self._add_recurrent(layer)
            elif is_graph(layer) and recurrent_layers(layer):
                self._models[layer] = _step_model(layer, stepwise)
                self._add_states(self._models[layer][0].input[1])

    def _add_recurrent(self, layer):
        self._check_recurrent(layer)
        initial = layer.get_initial_state(batch_size=1)
        flat = keras.tree.flatten(initial)
        names = [layer.name]
        if len(flat) > 1:
            names = [f"{layer.name}_{number}" for number in range(len(flat))]
        self._names[layer] = keras.tree.pack_sequence_as(initial, names)
        self._add_states(dict(zip(names, flat, strict=True)))

    def _add_states(self, states):
        _check_names([*self.states, *states])
        self.states |= _inputs_like(states, self._batch)

    def is_in_time(self, tensor):
        """Whether a tensor has a time axis: a last output has none."""
        return any(tensor is sequence for sequence in self._in_time)

    def __call__(self, layer, *args, **kwargs):
        tensors = tensors_of((args, kwargs))
        in_time = [self.is_in_time(tensor) for tensor in tensors]
        if layer in self._names:
            return self._call_recurrent(layer, in_time, *args, **kwargs)
        if not any(in_time) and layer not in self._models:
            return layer(*args, **kwargs)
        self._check_call(layer, in_time, **kwargs)
        if isinstance(layer, keras.Model) and is_graph(layer):
            return self._call_model(layer, *args, **kwargs)
        self._check_stepwise(layer, args, kwargs)
        return self._mark(layer(*args, **kwargs))

    def _check_call(
        self, layer, in_time, training=None, mask=None, state=None, **kwargs
    ):
        masks = [m for m in keras.tree.flatten(mask) if m is not None]
        refuse(
            layer,
            {
                "it is given an initial state": state is not None,
                "its input is no longer a sequence": not any(in_time),
                "it combines a sequence with a value that is known only after "
                "the last step": not all(in_time),
                "it is called with `training=True`": training,
                "its mask is a constant": len(masks) > len(tensors_of(masks)),
            },
        )

    def _check_stepwise(self, layer, args, kwargs):
        if isinstance(layer, self._stepwise):
            return
        tensors = tensors_of(args)
        options = set(kwargs)
        if isinstance(layer, keras.Layer):
            options -= {"training", "mask"}
        is_known = tensors and is_stepwise(layer, args, tensors[0].ndim)
        is_bidirectional = isinstance(layer, keras.layers.Bidirectional)
        refuse(
            layer,
            {
                "it also processes the sequence backwards": is_bidirectional,
                f"{type(layer).__name__}, as it is used here, is not known to "
                "compute each time step from that step alone; if it does, put "
                "it into `keras.layers.TimeDistributed`, or name its class in "
                "`stepwise`": options or not is_known,
            },
        )

    def _mark(self, y):
        self._in_time += keras.tree.flatten(y)
        return y

    def _call_model(self, model, x, training=None, mask=None):
        if model not in self._models:
            self._models[model] = _step_model(model, self._stepwise)
        step_model, in_time = self._models[model]
        states = {name: self.states[name] for name in step_model.input[1]}
        refuse(model, {"it is used twice": states.keys() & self.new_states})
        (x,), (mask,) = map(keras.tree.flatten, (x, mask))
        masks = None if mask is None else [mask, dict.fromkeys(states)]
        y, new_states = step_model([x, states], mask=masks)
        self.new_states |= new_states
        return self._mark(y) if in_time else y

    def _call_recurrent(
        self, layer, in_time, x, initial_state=None, mask=None, training=None
    ):
        names = self._names[layer]
        self._check_call(layer, in_time, training, mask, initial_state)
        is_used = self.new_states.keys() & keras.tree.flatten(names)
        refuse(layer, {"it is used twice": is_used})
        states = keras.tree.map_structure(self.states.get, names)
        y, new_states = CellStep(layer)(x, states, x_mask=mask)
        new_states = keras.tree.flatten(new_states)
        names = keras.tree.flatten(names)
        self.new_states |= zip(names, new_states, strict=True)
        y = self._mark(y) if layer.return_sequences else y
        return [y, *new_states] if layer.return_state else y

    def _check_recurrent(self, layer):
        is_named = isinstance(layer, self._stepwise)
        states = keras.tree.flatten(layer.get_initial_state(batch_size=1))
        refuse(
            layer,
            {
                "it processes the sequence backwards": layer.go_backwards,
                "its state is its own; copy the weights to one with "
                "`stateful=False`": layer.stateful,
                "its noise is drawn for a whole sequence": isinstance(
                    layer, NoisyRNN
                ),
                f"{type(layer).__name__} may do more than call its cell at "
                "each time step; if it does not, name the class in "
                "`stepwise`": not (is_named or calls_its_cell_alone(layer)),
                "its initial state is not 0": any(
                    np.any(ops.convert_to_numpy(state)) for state in states
                ),
            },
        )
