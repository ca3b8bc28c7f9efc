"""One time step of a model, as a model."""

import keras
import numpy as np
from keras import ops

from keras_rin.layers import NoisyRNN

STEPS = 3  # on which a layer shows that it works on each by itself


def streaming_step(model):
    """One time step of a model of sequences, as a model of its own.

    It maps a dictionary of `x`, of shape `(batch, ...)`, one step of the
    input, and of the states of the recurrent layers by name, to begin with
    zeros, to one of `y`, the answer after this step, and of the new states.
    A layer with more states than one, such as an LSTM, has `lstm_0`,
    `lstm_1`. The weights are those of the model.

    One step after another gives what the model gives: each of its outputs
    where it returns sequences; its only one, after the last step, where it
    does not. It may have any number of recurrent layers, in any graph of
    layers that work on each time step by itself.

    Args:
        model: A Sequential or functional `keras.Model` with one input, of
            shape `(batch, time, ...)`, and one output.

    Returns:
        A functional `keras.Model`.

    Raises:
        ValueError: If the model is not of that kind, or not built; or if it
            cannot run step by step, with the layer and the reason:
            `keras.layers.Bidirectional` and `go_backwards` begin at the last
            step, a stateful layer keeps its state to itself, other layers
            need more than one step, and a mask has no place in a stream.

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
    _check_model(model)
    one_step, in_time = _step_of(model)
    _check_names(["x", "y", *one_step.input[1]])
    shape = model.inputs[0].shape
    x = _input((shape[0], *shape[2:]), model.inputs[0].dtype, "x")
    states = _inputs_like(one_step.input[1])
    y, new_states = one_step([ops.expand_dims(x, 1), states])
    y = ops.squeeze(y, 1) if in_time else y
    return keras.Model(
        {"x": x, **states}, {"y": y, **new_states}, name=f"{model.name}_step"
    )


def _check_model(model):
    if not isinstance(model, keras.Model) or not model.built:
        raise ValueError(
            "`model` must be a Keras model that is built, as `keras.Input` for "
            f"its first layer does. Received: model={model!r}"
        )
    counts = [len(getattr(model, ends, ())) for ends in ("inputs", "outputs")]
    if counts != [1, 1]:
        raise ValueError(
            "`model` must be Sequential or functional with one input and one "
            f"output. Received: model={model!r}"
        )
    if not any(map(_is_recurrent, model.layers)):
        raise ValueError(
            "`model` must have a recurrent layer. "
            f"Received: a model with {model.layers}"
        )


def _is_recurrent(layer):
    if isinstance(layer, keras.Model):
        return any(map(_is_recurrent, layer.layers))
    return isinstance(layer, (keras.layers.RNN, keras.layers.Bidirectional))


def _step_of(model):
    """Maps `[x, states]` to `[y, states]`, x with an axis of time of length 1.

    Returns that model, and whether y has the axis as well.
    """
    shape = model.inputs[0].shape
    # A loaded model brings names along: what is added has names of its own.
    x = _input((shape[0], 1, *shape[2:]), model.inputs[0].dtype, "one_step_x")
    step = _Step(x, model.layers)
    # A clone has the inputs of its model: give the model those of the states.
    unused = [
        _input(state.shape, state.dtype, f"{name}_unused")
        for name, state in step.states.items()
    ]
    clone = keras.models.clone_model(
        keras.Model([model.inputs[0], *unused], model.outputs),
        input_tensors=[x, *step.states.values()],
        clone_function=lambda layer: layer,
        call_function=step,
    )
    y = clone.outputs[0]
    one_step = keras.Model(
        [x, step.states], [y, step.new_states], name=f"{model.name}_one_step"
    )
    return one_step, step.is_in_time(y)


def _input(shape, dtype, name=None):
    return keras.Input(batch_shape=shape, dtype=dtype, name=name)


def _inputs_like(states):
    return {
        name: _input((None, *state.shape[1:]), state.dtype, name)
        for name, state in states.items()
    }


def _check_names(names):
    for name in names:
        if names.count(name) > 1:
            raise ValueError(
                "Recurrent layers must have different names, and none of "
                f"them x or y. Received: {name!r} twice"
            )


class _Cell(keras.layers.Layer):
    """The cell of a layer by another name: Keras calls them all alike."""

    def __init__(self, layer):
        super().__init__(name=f"{layer.name}_step", dtype=layer.dtype_policy)
        self.cell = layer.cell
        self.return_sequences = layer.return_sequences

    def call(self, x, states):
        y, states = self.cell(x[:, 0], states)
        return ops.expand_dims(y, 1) if self.return_sequences else y, states


class _Step:
    """Calls the layers of a model again, on one step in place of all."""

    def __init__(self, x, layers):
        self.states, self.new_states = {}, {}
        self._in_time = [x]
        self._models, self._names = {}, {}
        for layer in dict.fromkeys(layers):
            if isinstance(layer, keras.Model):
                self._models[layer] = _step_of(layer)
                self._add_states(self._models[layer][0].input[1])
            elif isinstance(layer, keras.layers.RNN):
                initial = layer.get_initial_state(batch_size=1)
                flat = keras.tree.flatten(initial)
                if any(np.any(ops.convert_to_numpy(one)) for one in flat):
                    raise _refusal(layer, "its first state is not 0")
                names = _state_names(layer, len(flat))
                self._names[layer] = keras.tree.pack_sequence_as(initial, names)
                self._add_states(dict(zip(names, flat, strict=True)))

    def _add_states(self, states):
        _check_names([*self.states, *states])
        self.states |= _inputs_like(states)

    def is_in_time(self, tensor):
        """Whether it has an axis of time: a last output has none."""
        return any(tensor is one for one in self._in_time)

    def __call__(self, layer, *args, **kwargs):
        tensors = keras.tree.flatten((args, kwargs))
        tensors = [t for t in tensors if isinstance(t, keras.KerasTensor)]
        in_time = [self.is_in_time(tensor) for tensor in tensors]
        if layer in self._models and all(in_time):
            return self._through_model(layer, *tensors)
        if layer in self._names:
            self._check_recurrent(layer, in_time)
            return self._through_recurrent(layer, *tensors)
        if any(in_time):
            _check_each_step_alone(layer, args, kwargs)
        return self._mark(layer(*args, **kwargs), any(in_time))

    def _mark(self, y, in_time):
        if in_time:
            self._in_time += keras.tree.flatten(y)
        return y

    def _through_model(self, model, x):
        one_step, in_time = self._models[model]
        own = {name: self.states[name] for name in one_step.input[1]}
        y, new_states = one_step([x, own])
        self.new_states |= new_states
        return self._mark(y, in_time)

    def _through_recurrent(self, layer, x):
        names = self._names[layer]
        states = keras.tree.map_structure(self.states.get, names)
        y, new_states = _Cell(layer)(x, states)
        new_states = keras.tree.flatten(new_states)
        names = keras.tree.flatten(names)
        self.new_states |= zip(names, new_states, strict=True)
        y = self._mark(y, layer.return_sequences)
        return [y, *new_states] if layer.return_state else y

    def _check_recurrent(self, layer, in_time):
        first, *_ = keras.tree.flatten(self._names[layer])
        reasons = {
            "it begins at the last step": layer.go_backwards,
            "its state is its own; copy the weights to one with "
            "`stateful=False`": layer.stateful,
            "its noise is drawn for a whole sequence": isinstance(
                layer, NoisyRNN
            ),
            "it starts from the state of another": len(in_time) > 1,
            "it reads what is no longer a sequence": not all(in_time),
            "it is used twice": first in self.new_states,
        }
        for reason, holds in reasons.items():
            if holds:
                raise _refusal(layer, reason)


def _state_names(layer, count):
    if count == 1:
        return [layer.name]
    return [f"{layer.name}_{number}" for number in range(count)]


def _check_each_step_alone(layer, args, kwargs):
    """Refuses a layer whose answer to a step depends on the others."""
    if isinstance(layer, keras.layers.Bidirectional):
        raise _refusal(layer, "it begins at the last step as well")
    if isinstance(layer, keras.layers.Masking) or (
        getattr(layer, "mask_zero", False)
    ):
        raise _refusal(layer, "a mask has no place there; leave the steps out")
    rng = np.random.default_rng(0)
    examples = {}

    def call(steps):
        def example(one):
            if not isinstance(one, keras.KerasTensor):
                return one
            return examples.setdefault(id(one), _example(rng, one))[:, steps]

        a, k = keras.tree.map_structure(example, (args, kwargs))
        return [
            ops.convert_to_numpy(y) for y in keras.tree.flatten(layer(*a, **k))
        ]

    try:
        together = call(slice(0, STEPS))
        apart = [call(slice(t, t + 1)) for t in range(STEPS)]
    except Exception as error:  # of whatever layer, on whatever backend
        raise _refusal(layer, "it does not take one step alone") from error
    for y, *steps in zip(together, *apart, strict=True):
        one_each = all(step.shape[1] == 1 for step in steps)
        if (
            not one_each
            or y.shape[1] != STEPS
            or not np.allclose(
                y, np.concatenate(steps, axis=1), rtol=1e-3, atol=1e-5
            )
        ):
            raise _refusal(layer, "its answer to a step depends on the others")


def _example(rng, tensor):
    shape = (2, STEPS, *(size or 2 for size in tensor.shape[2:]))
    if keras.backend.is_float_dtype(tensor.dtype):
        return rng.normal(size=shape).astype("float32")
    return rng.integers(2, size=shape).astype(tensor.dtype)


def _refusal(layer, reason):
    return ValueError(
        f"A model with the layer {layer.name!r} cannot run step by step: "
        f"{reason}."
    )
