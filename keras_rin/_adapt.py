"""adapt: centers the inputs of recurrent layers by setting their biases."""

import contextlib
import itertools
import warnings
from typing import Any

import keras
import numpy as np
from keras import ops
from numpy.typing import ArrayLike

from keras_rin import _arguments
from keras_rin._functional_calls import has_masked_steps
from keras_rin._functional_calls import mask_or_ones
from keras_rin._functional_calls import merge_steps
from keras_rin._functional_calls import order_by_inputs
from keras_rin._functional_calls import record_calls
from keras_rin._layer_walk import hidden_states
from keras_rin._layer_walk import is_functional
from keras_rin._layer_walk import layers_within
from keras_rin._layer_walk import restore_after
from keras_rin._layer_walk import wrapped_layers

CHUNK = 2**20  # number of values that are converted to float64 at a time


def adapt(
    layer: keras.Layer,
    data: Any,
    *,
    mask: ArrayLike | None = None,
    batch_size: int = 128,
    steps: int | None = None,
) -> None:
    """Centers the input drive of recurrent layers by setting their biases.

    b = -m W, m = E[x_t], the mean of the inputs over sequences and time steps

    If the effective recurrent matrix is close to the identity, a unit
    integrates its drive x_t W + b: a nonzero mean m W + b shifts the hidden
    state by T (m W + b) after T time steps, before any training. After
    `adapt` the mean drive of every unit is zero, and the hidden state grows
    like the square root of T. Without `adapt`, an identity recurrence on
    inputs in [0, 1] often diverges over a few hundred time steps; with it,
    five of five solve the adding problem over 400 (`docs/long_sequences.md`).

    Call `adapt` once, on the training data, before `fit`. Only the biases
    change, and a second call gives the same biases. A layer of a model is
    adapted to the output of the layers before it, which are adapted first.
    The following layers are adapted: RIN, `SimpleRNN`, `NoisyRNN` and
    `keras.layers.RNN` of their cells and of `DeepTransitionRINCell` (its
    first bias, b_1), alone, stacked, or in `keras.layers.Bidirectional`,
    `keras.layers.TimeDistributed` or a model inside. Inside another layer,
    such as one of your own, their inputs are unknown: a warning names them.
    All other layers are unchanged. Gated layers need no centering, and chain
    and orthogonal initialization, which do not integrate, do not benefit.

    Args:
        layer: A built recurrent layer, or a Sequential or functional model
            with at least one.
        data: The input of the layer or model: an array or a tensor, of shape
            `(batch, time, features)` for a layer; for a model with several
            inputs a list or dict of arrays; or a `tf.data.Dataset`, a
            `keras.utils.PyDataset` or another iterable of batches, each `x`
            or, as for `fit`, `(x, y)`.
        mask: Boolean array `(batch, time)` that accompanies an array for a
            layer. Time steps where it is `False` are ignored. Defaults to
            `None`. In a model, masks are computed by its layers.
        batch_size: Positive integer, number of sequences per batch when an
            array is passed through a model. Defaults to 128.
        steps: Positive integer, number of batches to use. Defaults to `None`:
            all batches. The data are iterated over once per adapted cell.

    Raises:
        ValueError: If the layer is not built, has no bias, or is not one of
            the supported layers; if a model is neither Sequential nor
            functional, or calls such a layer more than once; if layers share
            a cell; if the data are empty, of the wrong shape, of an integer
            dtype, or not finite. In these cases no bias is changed.

    Example:

    >>> x = np.random.default_rng(0).random((32, 1000, 2), "float32")
    >>> rin = keras_rin.layers.RIN(16)
    >>> model = keras.Sequential([keras.Input((None, 2)), rin])
    >>> keras_rin.adapt(model, x)
    >>> drive = x.reshape(-1, 2) @ rin.cell.kernel + rin.cell.bias
    >>> bool(keras.ops.all(abs(keras.ops.mean(drive, axis=0)) < 1e-5))
    True
    """
    if steps is not None:
        steps = _arguments.integer("steps", steps)
    batch_size = _arguments.integer("batch_size", batch_size)
    cells = _checked_cells(layer)
    mask = None if mask is None else _checked_mask(mask, data, layer)
    _check_data(data, layer, cells)
    size = batch_size if is_functional(layer) else None
    inputs = layer.inputs if is_functional(layer) else []

    def batches():
        pairs = _batches(data, mask, size, inputs)
        return itertools.islice(pairs, steps)

    with _only_biases_change(layer, [cell.bias for cell in cells]):
        _adapt_layer(layer, batches)


def _checked_cells(layer):
    """The cells to adapt, each of which is built and has a bias of its own."""
    if not isinstance(layer, keras.layers.Layer):
        raise ValueError(
            "`layer` must be a recurrent layer or a model. "
            f"Received: layer={layer!r}"
        )
    _check_built(layer)
    cells = list(_cells(layer))
    _check_skipped(layer, cells)
    for number, cell in enumerate(cells):
        _check_cell(cell)
        if any(cell is previous for previous in cells[:number]):
            raise ValueError(
                f"{cell.name} is the cell of several layers, and has one bias "
                f"for all of them. Received: layer={layer}"
            )
    return cells


def _check_data(data, layer, cells):
    if not hasattr(data, "__iter__") and not hasattr(data, "__getitem__"):
        raise ValueError(
            "`data` must be an array or an iterable of batches. "
            f"Received: data={data!r}"
        )
    if len(cells) > 1 and hasattr(data, "__next__"):
        raise ValueError(
            f"{layer.name} has {len(cells)} cells to adapt, each of which "
            "takes one pass over the data: pass an array, a list of batches "
            f"or a dataset. Received: data={data!r}, an iterator"
        )


def _cells(layer):
    """All cells inside that have a drive x W + b to center."""
    if is_functional(layer):
        inner = layer.layers
    elif isinstance(layer, keras.layers.StackedRNNCells):
        inner = layer.cells
    elif isinstance(getattr(layer, "cell", None), keras.layers.Layer):
        inner = [layer.cell]
    else:
        inner = wrapped_layers(layer)
    if isinstance(layer, keras.layers.SimpleRNNCell):
        yield layer
    for inner_layer in inner:
        yield from _cells(inner_layer)


def _check_skipped(layer, cells):
    skipped = ", ".join(_skipped_names(layer, cells))
    if not cells:
        remedy = f" whose inputs are known: adapt {skipped} one by one"
        raise ValueError(
            f"{layer.name} has no RIN or SimpleRNN layer to adapt"
            f"{remedy * bool(skipped)}. Received: layer={layer}"
        )
    if skipped:
        warnings.warn(
            f"Layers of {layer.name} are not adapted: {skipped}, since their "
            "inputs within another layer are unknown. Adapt each by "
            "keras_rin.adapt(layer, its_inputs).",
            stacklevel=2,
        )


def _skipped_names(layer, cells):
    """Names of the recurrent layers within that have none of these cells."""
    known = set(map(id, cells))
    for inner in layers_within(layer, is_leaf=_is_recurrent):
        if _is_recurrent(inner) and not known & set(map(id, _cells(inner))):
            yield inner.name


def _is_recurrent(layer):
    kinds = (keras.layers.RNN, keras.layers.SimpleRNNCell)
    return isinstance(layer, kinds) and any(_cells(layer))


def _check_built(layer):
    if not layer.built:
        raise ValueError(
            f"{layer.name} has no weights yet: add a keras.Input to the "
            "model, or call the layer on data, before `adapt`."
        )


def _check_cell(cell):
    _check_built(cell)
    if not cell.use_bias:
        raise ValueError(
            f"{cell.name} has no bias to adapt (use_bias=False): add an "
            "adapted keras.layers.Normalization before it."
        )


def _checked_mask(mask, data, layer):
    wraps = isinstance(layer, keras.layers.TimeDistributed)
    if wraps or is_functional(layer) or not _is_array(data):
        raise ValueError(
            "`mask` is supported for an array of data and one layer only. "
            f"Received: layer={layer}, data of type {type(data).__name__}"
        )
    mask = np.asarray(ops.convert_to_numpy(mask), bool)
    _arguments.check_shape("mask", mask.shape, tuple(data.shape[:2]))
    return mask


@contextlib.contextmanager
def _only_biases_change(layer, biases):
    """Restores the states and, after an error, the biases."""
    bias_ids = set(map(id, biases))  # not trainable in a frozen layer
    states = [
        variable
        for variable in (
            *layer.variables,
            *layer.metrics_variables,
            *hidden_states(layer),
        )
        if not variable.trainable and id(variable) not in bias_ids
    ]
    with restore_after([*biases, *states]) as copies:
        yield
        del copies[: len(biases)]


def _adapt_layer(layer, batches):
    """Adapts all cells within a layer.

    `batches()` returns a new iterator over pairs of inputs and mask.
    """
    if is_functional(layer):
        layers = [inner for inner in layer.layers if any(_cells(inner))]
        inputs, calls = record_calls(layers, layer)
        for inner, layer_calls in zip(layers, calls, strict=True):
            _adapt_layer(
                inner, _layer_inputs(inner, inputs, layer_calls, batches)
            )
    elif isinstance(layer, keras.layers.TimeDistributed):
        _adapt_layer(
            layer.layer, lambda: itertools.starmap(merge_steps, batches())
        )
    elif inner_layers := wrapped_layers(layer):
        for inner in inner_layers:
            _adapt_layer(inner, batches)
    else:
        _adapt_cells(layer, batches)


def _layer_inputs(layer, inputs, calls, batches):
    """The inputs of `layer` in a model, with their mask."""
    if len(calls) != 1:
        raise ValueError(
            f"{layer.name} must be called exactly once by its model, for its "
            f"inputs to be known. Received: {len(calls)} calls"
        )
    ((tensors, masks),) = calls
    unchanged = len(inputs) == len(tensors) == 1 and tensors[0] is inputs[0]
    if unchanged and masks == [None]:
        return batches  # without a copy
    masks = list(map(mask_or_ones, tensors, masks))
    outputs = [_unwrap_single(tensors), _unwrap_single(masks)]
    preceding_model = keras.Model(_unwrap_single(inputs), outputs)
    # It returns the masks itself, so Keras need not warn of losing them.
    preceding_model.supports_masking = True

    def input_batches():
        with restore_after(hidden_states(preceding_model)):
            for data, mask in batches():
                # Only a model inside another one has a mask here.
                if has_masked_steps(mask):
                    yield preceding_model(data, training=False, mask=mask)
                else:
                    yield preceding_model.predict_on_batch(data)

    return input_batches


def _adapt_cells(layer, batches):
    cell = getattr(layer, "cell", layer)
    stack = getattr(cell, "cells", [cell])
    backwards = getattr(layer, "go_backwards", False)
    for number, stacked_cell in enumerate(stack):
        for cell in _cells(stacked_cell):
            inputs = _stack_outputs(stack[:number], batches, backwards)
            means = _feature_means(inputs, cell, layer.name)
            kernel = np.asarray(ops.convert_to_numpy(cell.kernel), "float64")
            cell.bias.assign(-means @ kernel)


def _stack_outputs(cells, batches, backwards):
    """The outputs of the lower cells of a stack, in their order."""
    if not cells:
        yield from batches()
        return
    dtype = cells[0].compute_dtype
    features = keras.Input((None, cells[0].kernel.shape[0]), dtype=dtype)
    mask = keras.Input((None,), dtype="bool")
    outputs = features
    for cell in cells:
        layer = keras.layers.RNN(
            cell, return_sequences=True, dtype=cell.dtype_policy
        )
        outputs = layer(outputs, mask=mask)
    stack_model = keras.Model([features, mask], outputs)
    for x, is_unmasked in batches():
        if is_unmasked is None:
            is_unmasked = np.ones(x.shape[:2], "bool")
        if backwards:
            x, is_unmasked = (
                np.flip(ops.convert_to_numpy(array), 1)
                for array in (x, is_unmasked)
            )
        yield stack_model.predict_on_batch([x, is_unmasked]), is_unmasked


def _feature_means(batches, cell, name):
    """The mean of each feature over the unmasked time steps."""
    features = cell.kernel.shape[0]
    total, count = np.zeros(features), 0
    for x, mask in batches:
        x = _checked_array(x, features, name)
        weights = np.ones(x.shape[:2])
        if mask is not None:
            weights = np.asarray(ops.convert_to_numpy(mask), "float64")
            x = np.where(weights[..., None], x, 0)
        total += weights.reshape(-1) @ x.reshape(-1, features).astype("float64")
        count += weights.sum()
    not_finite = np.flatnonzero(~np.isfinite(total)).tolist()
    if not_finite or not count:
        fault = "no time step"
        if not_finite:
            fault = f"NaN or infinity in features {not_finite}"
        raise ValueError(
            f"`data` must be finite, with at least one time step for {name}. "
            f"Received: {fault}"
        )
    return total / count


def _checked_array(x, features, name):
    dtype = keras.backend.standardize_dtype(x.dtype)
    if len(x.shape) != 3 or x.shape[-1] != features:
        raise ValueError(
            f"{name} expects data of shape (batch, time, {features}). "
            f"Received: data of shape {tuple(x.shape)}"
        )
    if not keras.backend.is_float_dtype(dtype):
        raise ValueError(
            f"{name} must be adapted to floating-point data, as in training. "
            f"Received: data of dtype {dtype}"
        )
    return ops.convert_to_numpy(x)


def _is_array(data):
    return isinstance(data, np.ndarray) or keras.ops.is_tensor(data)


def _unwrap_single(values):
    """The value of a list of length 1, a longer list unchanged.

    On Torch, `predict_on_batch` does not take a single array for a model that
    was created with a list of length 1.
    """
    return values[0] if len(values) == 1 else values


def _batches(data, mask, size, inputs):
    """Pairs of inputs and mask; arrays are split into batches."""
    kinds = (dict, list, tuple) if len(inputs) > 1 else dict
    if not (_is_array(data) or isinstance(data, kinds)):
        if isinstance(data, keras.utils.PyDataset):
            # Its own iterator does not end in Keras 3.6.
            data = itertools.islice(
                map(data.__getitem__, itertools.count()), data.num_batches
            )
        for batch in data:
            x = keras.utils.unpack_x_y_sample_weight(batch)[0]
            yield _unwrap_single(order_by_inputs(inputs, x)), None
        return
    data = _unwrap_single(order_by_inputs(inputs, data))
    array = keras.tree.flatten(data)[0]
    if size is None:
        size = max(1, CHUNK // max(1, int(np.prod(array.shape[1:]))))
    for start in range(0, len(array), size):
        part = slice(start, start + size)
        x = keras.tree.map_structure(lambda array, part=part: array[part], data)
        yield x, None if mask is None else mask[part]
