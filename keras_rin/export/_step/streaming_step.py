"""One time step of a model, as a model."""

from collections.abc import Sequence

import keras
from keras import ops

from keras_rin._layer_walk.functional_calls import record_calls
from keras_rin._layer_walk.layers import recurrent_layers
from keras_rin.export._step.cell_step import CellStep
from keras_rin.export._step.cell_step import ConvolutionStep
from keras_rin.export._step.checks import check_call
from keras_rin.export._step.checks import check_model
from keras_rin.export._step.checks import check_states
from keras_rin.export._step.checks import is_graph
from keras_rin.export._step.checks import steps_at_once
from keras_rin.export._step.stepwise import is_causal
from keras_rin.export._step.stepwise import refuse
from keras_rin.export._step.stepwise import tensors_of


def streaming_step(
    model: keras.Model, stepwise: Sequence[type] = ()
) -> keras.Model:
    """One time step of a model of sequences, as a model of its own.

    It maps a dictionary of `x`, of shape `(batch, ...)`, one step of the
    input, and of the states of the recurrent layers by name, to begin with
    zeros, to one of `y`, the answer after this step, and of the new states.
    An LSTM called `lstm` has the states `lstm_0` and `lstm_1`. The weights are
    those of the model.

    A causal `Conv1D` has a state as well, the samples before. If its `strides`
    are s, one step takes the next s samples, x of shape `(batch, s, ...)`, and
    answers to the first of them, as the model does.

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
    check_model(model)
    steps = steps_at_once(model)
    step_model, in_time = _step_model(model, stepwise, steps)
    check_states(model, step_model.input[1])
    shape = model.inputs[0].shape
    block = (steps, *shape[2:]) if steps > 1 else shape[2:]
    x = _input((shape[0], *block), model.inputs[0].dtype, "x")
    states = {
        name: _input(state.shape, state.dtype, name)
        for name, state in step_model.input[1].items()
    }
    in_block = x if steps > 1 else ops.expand_dims(x, 1)
    y, new_states = step_model([in_block, states])
    y = ops.squeeze(y, 1) if in_time else y
    return keras.Model(
        {"x": x, **states}, {"y": y, **new_states}, name=f"{model.name}_step"
    )


def _has_states(layer):
    is_model = is_graph(layer) and recurrent_layers(layer)
    return isinstance(layer, keras.layers.RNN) or is_model


def _step_model(model, stepwise, steps):
    """Maps `[x, states]` to `[y, states]`, x with so many time steps.

    Returns that model, and whether y has an axis of time as well.
    """
    (tensor,), calls, (y,) = record_calls(model)
    # The names of added inputs differ from those in a loaded model.
    shape = (tensor.shape[0], steps, *tensor.shape[2:])
    x = _input(shape, tensor.dtype, "one_step_x")
    step = _Step(x, stepwise)
    values = {id(tensor): x}
    for layer, args, kwargs, outputs in calls:
        args, kwargs = keras.tree.map_structure(
            lambda leaf: values.get(id(leaf), leaf), (args, kwargs)
        )
        results = keras.tree.flatten(step(layer, *args, **kwargs))
        values.update(zip(map(id, outputs), results, strict=True))
    y = values[id(y)]
    step_model = keras.Model(
        [x, step.states], [y, step.new_states], name=f"{model.name}_one_step"
    )
    return step_model, step.is_in_time(y)


def _input(shape, dtype, name):
    return keras.Input(batch_shape=shape, dtype=dtype, name=name)


class _Step:
    """Calls the layers of a model again, on one step in place of all."""

    def __init__(self, x, stepwise):
        self.states, self.new_states = {}, {}
        self._stepwise, self._batch = stepwise, x.shape[0]
        self._in_time = [x]

    def is_in_time(self, tensor):
        """Whether a tensor has a time axis: a last output has none."""
        return any(tensor is sequence for sequence in self._in_time)

    def __call__(self, layer, *args, **kwargs):
        tensors = tensors_of((args, kwargs))
        in_time = [self.is_in_time(tensor) for tensor in tensors]
        if not any(in_time) and not _has_states(layer):
            return layer(*args, **kwargs)
        steps = tensors[0].shape[1]
        check_call(layer, args, kwargs, in_time, steps, self._stepwise)
        if isinstance(layer, keras.layers.RNN):
            return self._call_recurrent(layer, *args, **kwargs)
        if isinstance(layer, keras.Model) and is_graph(layer):
            return self._call_model(layer, *args, **kwargs)
        if is_causal(layer):
            return self._mark(self._call_convolution(layer, *args))
        return self._mark(layer(*args, **kwargs))

    def _mark(self, y):
        self._in_time += keras.tree.flatten(y)
        return y

    def _add_states(self, layer, states):
        """Inputs for states, given by name."""
        taken = {"x", "y", *self.states}
        refuse(
            layer,
            {
                f"its states {list(states)} must have names that are not those "
                "of others, x or y, and a layer must not be used twice": (
                    taken & states.keys()
                )
            },
        )
        inputs = {
            name: _input((self._batch, *s.shape[1:]), s.dtype, name)
            for name, s in states.items()
        }
        self.states |= inputs
        return inputs

    def _call_convolution(self, layer, x):
        steps = layer.dilation_rate[0] * (layer.kernel_size[0] - 1)
        shape = (None, steps, x.shape[2])
        before = keras.KerasTensor(shape, layer.compute_dtype)
        states = self._add_states(layer, {layer.name: before})
        y, self.new_states[layer.name] = ConvolutionStep(layer)(
            x, states[layer.name]
        )
        return y

    def _call_model(self, model, x, training=None, mask=None):
        (x,), (mask,) = map(keras.tree.flatten, (x, mask))
        step_model, in_time = _step_model(model, self._stepwise, x.shape[1])
        states = self._add_states(model, step_model.input[1])
        masks = None if mask is None else [mask, dict.fromkeys(states)]
        y, new_states = step_model([x, states], mask=masks)
        self.new_states |= new_states
        return self._mark(y) if in_time else y

    def _call_recurrent(
        self, layer, x, initial_state=None, mask=None, training=None
    ):
        initial = layer.get_initial_state(batch_size=1)
        flat = keras.tree.flatten(initial)
        names = [layer.name]
        if len(flat) > 1:
            names = [f"{layer.name}_{number}" for number in range(len(flat))]
        states = self._add_states(layer, dict(zip(names, flat, strict=True)))
        states = keras.tree.pack_sequence_as(initial, list(states.values()))
        y, new_states = CellStep(layer)(x, states, x_mask=mask)
        new_states = keras.tree.flatten(new_states)
        self.new_states |= zip(names, new_states, strict=True)
        y = self._mark(y) if layer.return_sequences else y
        return [y, *new_states] if layer.return_state else y
