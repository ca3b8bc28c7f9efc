"""adapt: a bias that takes the mean of the data out of what a layer adds up."""

import contextlib
import itertools

import keras
import numpy as np
from keras import ops

from keras_rin import arguments

CHUNK = 2**20  # numbers of an array that are converted to float64 at a time


def adapt(layer, data, mask=None, batch_size=128, steps=None):
    """Centers the input drive of recurrent layers by setting their biases.

    b = -m W, m = E[x_t], the mean of the inputs over sequences and time steps

    At a recurrent matrix near the identity a unit integrates its drive
    x_t W + b: over T time steps a mean m W + b moves the hidden state by T
    times as much, before anything is learned. After `adapt` that mean is
    zero at every unit, and the state grows like the square root of T.
    Initialized as it is, an identity recurrence on inputs in [0, 1] diverges
    over a few hundred time steps; adapted, it trains over a thousand.

    Call it once, on the training data, before `fit`. Each bias is replaced
    and nothing else changes, so that a second call gives the same biases. A
    layer of a model sees what the layers before it, adapted first, make of
    the data. The layers that are adapted are RIN, `SimpleRNN`, `NoisyRNN`
    and `keras.layers.RNN` of their cells and of `DeepTransitionRINCell`,
    alone, stacked or in `keras.layers.Bidirectional`; of a deep transition
    it is the first bias, b_1. All other layers stay as they are.
    Gated layers need no centering, and chain and orthogonal initialization,
    which integrate nothing, gain nothing from it.

    Args:
        layer: A built recurrent layer, or a Sequential or functional model
            with at least one.
        data: What the layer or model is called on: an array or a tensor, for
            a layer of shape `(batch, time, features)`; for a model also a
            list or dict of arrays, one for each of several inputs; a
            `tf.data.Dataset`, a `keras.utils.PyDataset` or another iterable
            of batches, each `x` or, as for `fit`, `(x, y)`.
        mask: Boolean array `(batch, time)` beside an array of data for a
            layer: time steps where it is `False` do not count. Defaults to
            `None`: all count. In a model, masks come from its layers.
        batch_size: Positive integer, how many sequences of an array pass
            through a model at a time. Defaults to 128.
        steps: Positive integer, after how many batches to stop. Defaults to
            `None`: all data, which pass once for each layer; through what
            stands before it, if anything does.

    Raises:
        ValueError: If the layer is not built, has no bias, or is not one of
            those above; if a model is neither Sequential nor functional, or
            calls such a layer more than once; if the data are empty, of
            another shape, integers, or not finite. All biases are then as
            they were.

    Example:

    >>> x = np.random.default_rng(0).random((32, 1000, 2), "float32")
    >>> rin = keras_rin.layers.RIN(16)
    >>> model = keras.Sequential([keras.Input((None, 2)), rin])
    >>> keras_rin.adapt(model, x)
    >>> drive = x.reshape(-1, 2) @ rin.cell.kernel + rin.cell.bias
    >>> bool(keras.ops.all(abs(keras.ops.mean(drive, axis=0)) < 1e-5))
    True
    """
    if not isinstance(layer, keras.layers.Layer):
        raise ValueError(
            "`layer` must be a recurrent layer or a model of Keras. "
            f"Received: layer={layer!r}"
        )
    if steps is not None:
        steps = arguments.integer("steps", steps)
    batch_size = arguments.integer("batch_size", batch_size)
    _check_built(layer)
    cells = list(_cells(layer))
    if not cells:
        raise ValueError(
            f"{layer.name} has no RIN or SimpleRNN layer to adapt, or hides "
            "it in a model that is neither Sequential nor functional: adapt "
            f"that layer by itself. Received: layer={layer}"
        )
    for cell in cells:
        _check(cell)
    if mask is not None:
        _check_mask(mask, data, layer)
    if not hasattr(data, "__iter__") and not hasattr(data, "__getitem__"):
        raise ValueError(
            "`data` must be an array or an iterable of batches. "
            f"Received: data={data!r}"
        )
    if len(cells) > 1 and hasattr(data, "__next__"):
        raise ValueError(
            f"{layer.name} has {len(cells)} cells to adapt, each in a pass of "
            "its own: pass an array, a list of batches or a dataset. "
            f"Received: data={data!r}, which ends after one pass"
        )
    size = batch_size if _is_model(layer) else None
    inputs = len(layer.inputs) if _is_model(layer) else 1

    def batches():
        made = _batches(data, mask, size, inputs)
        return itertools.islice(made, steps)

    with _only_biases_change(layer, [cell.bias for cell in cells]):
        _adapt(layer, batches)


def _is_model(layer):
    return hasattr(layer, "layers") and bool(getattr(layer, "inputs", None))


def _inner(layer):
    """The layers within that read what the layer itself reads, or None."""
    if hasattr(layer, "forward_layer"):  # Bidirectional
        return [layer.forward_layer, layer.backward_layer]
    return None


def _cells(layer):
    """All cells within that have a drive x W + b to center."""
    if _is_model(layer):
        inner = layer.layers
    elif isinstance(layer, keras.layers.StackedRNNCells):
        inner = layer.cells
    elif isinstance(getattr(layer, "cell", None), keras.layers.Layer):
        inner = [layer.cell]
    else:
        inner = _inner(layer) or []
    if isinstance(layer, keras.layers.SimpleRNNCell):
        yield layer
    for one in inner:
        yield from _cells(one)


def _check_built(layer):
    if not layer.built:
        raise ValueError(
            f"{layer.name} has no weights yet: begin the model with a "
            "keras.Input, or call the layer on data, before `adapt`."
        )


def _check(cell):
    _check_built(cell)
    if not cell.use_bias:
        raise ValueError(
            f"{cell.name} has no bias to adapt (use_bias=False): put a "
            "keras.layers.Normalization, adapted to the data, before it."
        )


def _check_mask(mask, data, layer):
    if _is_model(layer) or not _is_array(data):
        raise ValueError(
            "`mask` stands beside an array of data for one layer. "
            f"Received: layer={layer}, data of type {type(data).__name__}"
        )
    if tuple(mask.shape) != tuple(data.shape[:2]):
        raise ValueError(
            f"`mask` must have the shape {tuple(data.shape[:2])}. "
            f"Received: mask of shape {tuple(mask.shape)}"
        )


@contextlib.contextmanager
def _only_biases_change(layer, biases):
    """Random and carried states stay; on an error the biases do as well."""
    states = [
        variable for variable in layer.variables if not variable.trainable
    ]
    before = [(v, ops.copy(v.value)) for v in (*biases, *states)]
    try:
        yield
        del before[: len(biases)]
    finally:
        for variable, value in before:
            variable.assign(value)


def _adapt(layer, batches):
    """`batches()` iterates anew over pairs of inputs and their mask."""
    if _is_model(layer):
        for one in layer.layers:
            if any(_cells(one)):
                _adapt(one, _reaching(layer, one, batches))
    elif inner := _inner(layer):
        for one in inner:
            _adapt(one, batches)
    else:
        _adapt_cells(layer, batches)


def _reaching(model, layer, batches):
    """What the layers before it make of the data, with their mask."""
    try:
        x, *others = keras.tree.flatten(layer.input)
        masks = [one for one in others if one.dtype == "bool"]  # by hand
        # A list of one would ask Torch's `predict_on_batch` for a list.
        inputs = model.inputs[0] if len(model.inputs) == 1 else model.inputs
        before = keras.Model(inputs, [x, *(masks or [_Mask()(x)])])
        if _calls(model, layer) > 1:
            raise ValueError(f"{layer.name} is called more than once.")
    except (AttributeError, ValueError) as error:
        raise ValueError(
            f"{layer.name} must be called once in a Sequential or functional "
            "model, for its data to be known: adapt it by itself."
        ) from error
    if not masks and x is inputs:
        return batches  # and spares a copy

    def outputs():
        for data, _ in batches():
            yield before.predict_on_batch(data)

    return outputs


def _calls(model, layer):
    """How often a functional model calls a layer; a Sequential does once."""
    for one in model.get_config()["layers"]:
        if one.get("name") == layer.name:
            return len(one["inbound_nodes"])
    return 1


class _Mask(keras.layers.Layer):
    """The mask that its input carries; ones where there is none."""

    def call(self, inputs, mask=None):
        if mask is None:
            mask = ops.ones(ops.shape(inputs)[:2], "bool")
        return mask


def _adapt_cells(layer, batches):
    cell = getattr(layer, "cell", layer)
    cells = getattr(cell, "cells", [cell])
    for number, cell in enumerate(cells):
        for simple in _cells(cell):
            below = _through(cells[:number], batches)
            means = _means(below, simple, layer.name)
            kernel = np.asarray(ops.convert_to_numpy(simple.kernel), "float64")
            simple.bias.assign(-means @ kernel)


def _through(cells, batches):
    """What the lower cells of a stack make of the data."""
    if not cells:
        yield from batches()
        return
    features = keras.Input((None, cells[0].kernel.shape[0]))
    mask = keras.Input((None,), dtype="bool")
    outputs = features
    for cell in cells:
        layer = keras.layers.RNN(cell, return_sequences=True)
        outputs = layer(outputs, mask=mask)
    below = keras.Model([features, mask], outputs)
    for x, counts in batches():
        counts = np.ones(x.shape[:2], "bool") if counts is None else counts
        yield below.predict_on_batch([x, counts]), counts


def _means(batches, cell, name):
    """The mean of each feature over the time steps that count."""
    features = cell.kernel.shape[0]
    total, count = np.zeros(features), 0
    for x, mask in batches:
        x = _checked(x, features, name)
        weights = np.ones(x.shape[:2])
        if mask is not None:
            weights = np.asarray(ops.convert_to_numpy(mask), "float64")
            x = np.where(weights[..., None], x, 0)
        total += weights.reshape(-1) @ x.reshape(-1, features).astype("float64")
        count += weights.sum()
    bad = np.flatnonzero(~np.isfinite(total)).tolist()
    if bad or not count:
        which = f"NaN or infinity in features {bad}" if bad else "no time step"
        raise ValueError(
            f"`data` must be finite, with at least one time step for {name}. "
            f"Received: {which}"
        )
    return total / count


def _checked(x, features, name):
    kind = keras.backend.standardize_dtype(x.dtype)
    if len(x.shape) != 3 or x.shape[-1] != features:
        raise ValueError(
            f"{name} reads data of shape (batch, time, {features}). "
            f"Received: data of shape {tuple(x.shape)}"
        )
    if not keras.backend.is_float_dtype(kind):
        raise ValueError(
            f"{name} must be adapted to floating-point data, as it will read "
            f"them in training. Received: data of dtype {kind}"
        )
    return ops.convert_to_numpy(x)


def _is_array(data):
    return isinstance(data, np.ndarray) or keras.ops.is_tensor(data)


def _batches(data, mask, size, inputs):
    """Pairs of inputs and mask; arrays in parts, all else as it comes."""
    kinds = (dict, list, tuple) if inputs > 1 else dict
    if not (_is_array(data) or isinstance(data, kinds)):
        for batch in data:
            yield keras.utils.unpack_x_y_sample_weight(batch)[0], None
        return
    first = keras.tree.flatten(data)[0]
    if size is None:
        size = max(1, CHUNK // max(1, int(np.prod(first.shape[1:]))))
    for start in range(0, len(first), size):
        part = slice(start, start + size)
        x = keras.tree.map_structure(lambda array, part=part: array[part], data)
        yield x, None if mask is None else mask[part]
