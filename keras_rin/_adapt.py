"""adapt: centers the inputs of recurrent layers by setting their biases."""

import contextlib
import itertools
from typing import Any

import keras
import numpy as np
from keras import ops
from numpy.typing import ArrayLike

from keras_rin import _arguments
from keras_rin._cell_descriptions import inherited_description
from keras_rin._layer_walk.functional_calls import order_by_inputs
from keras_rin._layer_walk.layers import cell_of
from keras_rin._layer_walk.layers import is_functional
from keras_rin._layer_walk.layers import recurrent_layers
from keras_rin._layer_walk.recurrent_inputs import recurrent_inputs


def adapt(
    layer: keras.Layer,
    data: Any,
    *,
    mask: "ArrayLike | None" = None,
    batch_size: int = 128,
    steps: int | None = None,
) -> None:
    """Centers the input drive of recurrent layers by setting their biases.

    b = -m W, m = E[x_t], the mean of the inputs over sequences and time steps

    If the effective recurrent matrix is close to the identity, a unit
    integrates its drive x_t W + b: a nonzero mean m W + b shifts the hidden
    state by T (m W + b) after T time steps, before any training. After
    `adapt` the mean drive of every unit is zero, and the hidden state grows
    like the square root of T (`docs/long_sequences.md`).

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
        ValueError: If there is no such layer whose inputs are known; if one is
            not built, has no bias, is called more than once or shares its
            cell; if the data are empty, of the wrong shape, integers, or not
            finite. In these cases no bias is changed.

    Example:

    >>> x = np.random.default_rng(0).random((32, 1000, 2), "float32")
    >>> rin = keras_rin.layers.RIN(16)
    >>> model = keras.Sequential([keras.Input((None, 2)), rin])
    >>> keras_rin.adapt(model, x)
    >>> drive = x.reshape(-1, 2) @ rin.cell.kernel + rin.cell.bias
    >>> bool(keras.ops.all(abs(keras.ops.mean(drive, axis=0)) < 1e-5))
    True
    """
    batch_size = _arguments.integer("batch_size", batch_size)
    _check_built(layer)
    if mask is not None:
        mask = _checked_mask(mask, data, layer)

    def batches():
        pairs = _batches(layer, data, mask, batch_size)
        return itertools.islice(pairs, steps)

    layer_inputs = [
        (cell_of(inner), inner.name, inner_batches)
        for inner, inner_batches in recurrent_inputs(layer, batches)
        if is_centered(inner)
    ]
    cells = [cell for cell, *_ in layer_inputs]
    _check_cells(layer, cells)
    with _restored_after_error([cell.bias for cell in cells]):
        for cell, name, inner_batches in layer_inputs:
            means = _feature_means(inner_batches(), cell, name)
            kernel = np.asarray(ops.convert_to_numpy(cell.kernel), "float64")
            cell.bias.assign(-means @ kernel)


def is_centered(layer):
    """Whether a recurrent layer has a drive x W + b to center."""
    row = inherited_description(cell_of(layer))
    return row is not None and row.is_centered


def _check_built(layer):
    if not layer.built:
        raise ValueError(
            f"{layer.name} has no weights yet: add a keras.Input to the "
            "model, or call the layer on data, before `adapt`."
        )


def _check_cells(layer, cells):
    """Refuses cells that cannot be adapted; a warning names layers left out."""
    skipped = [
        inner.name
        for inner in recurrent_layers(layer)
        if is_centered(inner) and cell_of(inner) not in cells
    ]
    advice = f"Adapt each of {skipped} by keras_rin.adapt(layer, its_inputs)."
    if not cells:
        raise ValueError(
            f"{layer.name} has no RIN or SimpleRNN layer whose inputs are "
            f"known. {advice * bool(skipped)} Received: layer={layer}"
        )
    if skipped:
        _arguments.warn(
            f"Some layers of {layer.name} are not adapted, since their inputs "
            f"within another layer are unknown. {advice}"
        )
    for cell in cells:
        _check_built(cell)
        if cell.bias is None:
            raise ValueError(
                f"{cell.name} has no bias to adapt (use_bias=False): add an "
                "adapted keras.layers.Normalization before it."
            )
        if cells.count(cell) > 1:
            raise ValueError(
                f"{cell.name} must be called exactly once, since it has one "
                "bias: neither twice by a model nor by several layers. "
                f"Received: layer={layer}"
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


def _batches(layer, data, mask, batch_size):
    """Pairs of inputs and masks, as lists; arrays are split into batches."""
    inputs = layer.inputs if is_functional(layer) else []
    arrays = (dict, list, tuple) if len(inputs) > 1 else dict
    if _is_array(data) or isinstance(data, arrays):
        data = order_by_inputs(inputs, data)
        for start in range(0, len(data[0]), batch_size):
            part = slice(start, start + batch_size)
            x = [array[part] for array in data]
            yield x, None if mask is None else [mask[part]]
        return
    if isinstance(data, keras.utils.PyDataset):
        # Its own iterator does not end in Keras 3.6.
        numbers = itertools.islice(itertools.count(), data.num_batches)
        data = map(data.__getitem__, numbers)
    for batch in data:
        x = keras.utils.unpack_x_y_sample_weight(batch)[0]
        yield order_by_inputs(inputs, x), None


def _is_array(data):
    return isinstance(data, np.ndarray) or ops.is_tensor(data)


@contextlib.contextmanager
def _restored_after_error(biases):
    values = [ops.copy(bias.value) for bias in biases]
    try:
        yield
    except BaseException:
        for bias, value in zip(biases, values, strict=True):
            bias.assign(value)
        raise


def _feature_means(batches, cell, name):
    """The mean of each feature over the unmasked time steps."""
    features = cell.kernel.shape[0]
    total, count = np.zeros(features), 0
    with contextlib.closing(batches):
        for x, mask in batches:
            x = _checked_array(x, features, name)
            if mask is not None:
                x = x[np.asarray(ops.convert_to_numpy(mask), bool)]
            x = x.reshape(-1, features).astype("float64")
            total += x.sum(axis=0)
            count += len(x)
    if not count or not np.isfinite(total).all():
        raise ValueError(
            "`data` must be finite, with at least one time step, and an "
            "iterator has them for one cell only. Received: for "
            f"{name} {count} time steps, whose sum is {total}"
        )
    return total / count


def _checked_array(x, features, name):
    dtype = keras.backend.standardize_dtype(x.dtype)
    has_shape = len(x.shape) == 3 and x.shape[-1] == features
    if not (has_shape and keras.backend.is_float_dtype(dtype)):
        raise ValueError(
            f"{name} expects floating-point data of shape (batch, time, "
            f"{features}), as in training. Received: data of shape "
            f"{tuple(x.shape)} and dtype {dtype}"
        )
    return ops.convert_to_numpy(x)
