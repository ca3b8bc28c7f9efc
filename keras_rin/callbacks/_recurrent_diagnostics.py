"""Diagnostics that follow a model while it trains."""

import collections
import math

import keras
import numpy as np
from numpy.typing import ArrayLike

from keras_rin import _arguments
from keras_rin import diagnostics
from keras_rin._layer_walk.layers import recurrent_layers
from keras_rin.diagnostics._built_cell import built_cell
from keras_rin.diagnostics._built_cell import float64
from keras_rin.diagnostics._built_cell import has_built_cell
from keras_rin.diagnostics._dynamics.first_batch import first_inputs
from keras_rin.diagnostics._dynamics.first_batch import first_rows
from keras_rin.diagnostics._matrices.recurrent_matrices import has_matrices

DISTANCES = ["distance_from_identity", "distance_from_orthogonal"]
MATRIX = ["spectral_radius", "henrici_departure", *DISTANCES]
MEMORY = ["total_memory"]
GRADIENT = ["gradient_at_start", "gradient_horizon"]
EXPONENT = ["lyapunov_exponent"]
THRESHOLD = 0.01


class RecurrentDiagnostics(keras.callbacks.Callback):
    """Adds what the recurrent kernels of a model are like to the epoch logs.

    Place it first in `callbacks`, since only those after it, such as
    `EarlyStopping` and `CSVLogger`, read its logs. `History` always has them.

    For each matrix W of `keras_rin.diagnostics.recurrent_matrices`, in every
    recurrent layer of the model, the logs gain `{layer}_{quantity}`, or
    `{layer}_{gate}_{quantity}` where there are gates. Of layers with the same
    name the second is `{layer}#2`:

    - `spectral_radius`: the largest modulus of an eigenvalue;
    - `henrici_departure`: the distance from normality, 0 where W is normal;
    - `distance_from_identity`: the Frobenius norm of W - I;
    - `distance_from_orthogonal`: that to the nearest orthogonal matrix;
    - `total_memory`, without gates: the Fisher memory of the linear network
      after as many time steps as it has units, a mean over the rows of the
      input kernel at length 1. It is 1 for an isometry;

    and with `x`, for the first call of each recurrent layer of a Sequential
    or functional model, also in `Bidirectional`, `TimeDistributed`, a stack
    of cells or a model inside. A warning names layers within other layers,
    whose inputs are unknown:

    - `gradient_at_start`: the norm of the gradient of the last state with
      respect to the initial one;
    - `gradient_horizon`: the steps before the last over which that size
      stays at 0.01 or more;
    - `lyapunov_exponent`, with `lyapunov=True`: the largest one along `x`, in
      units of 1 / time step, see `keras_rin.diagnostics.lyapunov_spectrum`.

    Of a cell that does more than multiply its state by W, such as a leaky one,
    the first list describes W alone, the second one the whole step.

    Measurements follow the first epoch and every n-th one after it; epochs
    between log nothing, so that `EarlyStopping` waits, with Keras's warning.
    What cannot be measured, such as the gradient of a layer whose inputs are
    not finite, is NaN. Weights, random and hidden states stay as they are, and
    masked time steps of `x` do not count.

    Args:
        x: Array `(batch, ...)`, or a list or dict of arrays as for `fit`: a
            few inputs of the model on which to follow the gradient. Defaults
            to `None`: the gradient is not followed.
        every: Positive integer n, of which epochs one is measured. Defaults
            to 1.
        lyapunov: Boolean, whether to follow the largest Lyapunov exponent of
            each layer along `x`. It takes about as long as the gradient.
            Defaults to `False`.

    Raises:
        ValueError: If an argument is not as above; in training, if the model
            has no layer with a recurrent kernel or, with `x`, no recurrent
            layer, or is neither Sequential nor functional; if the logs have
            one of the names.

    Example:

    >>> model = keras.Sequential([keras.layers.SimpleRNN(4, name="rnn")])
    >>> model.compile("sgd", "mse")
    >>> x, y = np.ones((8, 5, 1)), np.ones((8, 4))
    >>> callbacks = [keras_rin.callbacks.RecurrentDiagnostics()]
    >>> history = model.fit(x, y, verbose=0, callbacks=callbacks)
    >>> [name for name in history.history if "radius" in name]
    ['rnn_spectral_radius']
    """

    def __init__(
        self,
        x: "ArrayLike | None" = None,
        *,
        every: int = 1,
        lyapunov: bool = False,
    ):
        super().__init__()
        if lyapunov and x is None:
            raise ValueError("`lyapunov=True` needs inputs `x`.")
        self.x, self.lyapunov = x, lyapunov
        self.every = _arguments.integer("every", every)

    def on_train_begin(self, logs=None):
        self._layers: list = []
        if self.x is not None:
            first_rows("x", self.x)
        if self.model.built:
            self._find_layers()

    def on_epoch_end(self, epoch, logs=None):
        if logs is None or epoch % self.every:
            return
        values = self._measure()
        if duplicates := sorted(values.keys() & logs.keys()):
            raise ValueError(
                f"The logs have {duplicates[0]!r} already. A model may have "
                "one RecurrentDiagnostics."
            )
        logs.update(values)

    def _measure(self):
        values: dict = {}
        if not self._layers:
            self._find_layers()
        for name, layer, read_inputs in self._layers:
            values |= _matrix_logs(name, layer)
            if read_inputs:
                inputs = layer, *read_inputs()
                values |= _logs(name, GRADIENT, _gradient, *inputs)
                if self.lyapunov:
                    values |= _logs(name, EXPONENT, _exponent, *inputs)
        return values

    def _find_layers(self):
        """Each layer with its name in the logs and a function of its inputs."""
        recurrent = recurrent_layers(self.model)
        # A MinGRU has no recurrent matrix, and gradients.
        has_logs = has_matrices if self.x is None else has_built_cell
        layers = [*filter(has_logs, recurrent)]
        if not layers:
            raise ValueError(
                "RecurrentDiagnostics needs a layer with a recurrent kernel. "
                f"Received: a model with {self.model.layers}"
            )
        pairs = [] if self.x is None else first_inputs(self.model, self.x)
        inputs = {id(layer): read_inputs for layer, read_inputs in pairs}
        counts: collections.Counter = collections.Counter()
        for layer in layers:
            counts[layer.name] += 1
            number = counts[layer.name]
            suffix = f"#{number}" * (number > 1)
            name = f"{layer.name}{suffix}"
            self._layers.append((name, layer, inputs.get(id(layer))))
        unknown = [name for name, _, inputs in self._layers if not inputs]
        if unknown and self.x is not None:
            _arguments.warn(
                f"The gradients of {', '.join(unknown)} are not followed, "
                "since the inputs within another layer are unknown. Measure "
                "them by keras_rin.diagnostics.gradient_norms(layer, "
                "its_inputs)."
            )


def _logs(name, quantities, function, *arguments):
    """The values by name, NaN where weights or inputs are not finite."""
    try:
        values = [float(value) for value in function(*arguments)]
    except ValueError:
        values = [math.nan] * len(quantities)
    names = (f"{name}_{quantity}" for quantity in quantities)
    return dict(zip(names, values, strict=True))


def _gradient(layer, x, mask):
    norms = diagnostics.gradient_norms(layer, x, mask=mask)[::-1]
    small = np.flatnonzero(~(norms >= THRESHOLD))
    return norms[-1], small[0] - 1 if len(small) else len(norms) - 1


def _exponent(layer, x, mask):
    options = {"exponents": 1, "mask": mask}
    return diagnostics.lyapunov_spectrum(layer, x, **options).exponents


def _matrix_logs(name, layer):
    values: dict = {}
    if not has_matrices(layer):
        return values
    matrices = diagnostics.recurrent_matrices(layer)
    for gate, matrix in matrices.items():
        place = f"{name}_{gate}" if len(matrices) > 1 else name
        values |= _logs(place, MATRIX, _distances, matrix)
    if len(matrices) == 1:
        values |= _logs(name, MEMORY, _total_memory, layer, matrix)
    return values


def _distances(matrix):
    matrix = _arguments.finite_array("matrix", matrix)
    return (
        diagnostics.spectral_radius(matrix),
        diagnostics.henrici_departure(matrix),
        np.linalg.norm(matrix - np.eye(len(matrix))),
        np.linalg.norm(np.linalg.svd(matrix, compute_uv=False) - 1),
    )


def _total_memory(layer, matrix):
    kernel = getattr(built_cell(layer), "kernel", None)
    rows = np.zeros((0, 0)) if kernel is None else float64(kernel)
    rows = _arguments.finite_array("kernel", rows)[rows.any(axis=1)]
    if not len(rows):
        return [math.nan]
    rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    memory = diagnostics.spatial_memory_matrix(matrix, horizon=len(matrix))
    return [np.einsum("ri,ij,rj->r", rows, memory, rows).mean()]
