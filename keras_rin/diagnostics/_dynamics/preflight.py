"""A look at a model before it is trained."""

import contextlib
import typing

import keras
import numpy as np
from keras import ops
from numpy.typing import ArrayLike

from keras_rin import _arguments
from keras_rin.diagnostics._built_cell import built_cell
from keras_rin.diagnostics._built_cell import float64
from keras_rin.diagnostics._dynamics import autodiff
from keras_rin.diagnostics._dynamics import state_map
from keras_rin.diagnostics._dynamics.first_batch import first_inputs
from keras_rin.diagnostics._dynamics.first_batch import first_rows
from keras_rin.diagnostics._dynamics.gradients import gradient_norms
from keras_rin.diagnostics._dynamics.trajectories import state_trajectories

NOT_CENTERED = """\
Means that are not small beside the deviations accumulate in the hidden
state, which grows like T: center them with `keras_rin.adapt(model, x)`."""
EXPANDING = """\
A state that grows faster than T expands by itself, and one that is not finite
leaves the range of its dtype: choose an initializer that expands less."""
VANISHING = """\
Where the gradient at step 0 is near 0, the first time step hardly changes the
last state: choose another layer, or begin with shorter sequences. Training
can open the gates of a layer that has some."""
NOT_CLIPPED = """\
Adam remembers a large first gradient: pass `global_clipnorm=1.0` to it."""


class PreflightLayer(typing.NamedTuple):
    """What `preflight` measures of a recurrent layer.

    Attributes:
        name: String, its name.
        input_mean: Array `(features,)`, the mean of each feature it reads.
        input_std: Array `(features,)`, the standard deviations.
        state_norms: Array `(time + 1,)`, the root mean square of |h_t|.
        gradient_norms: Array `(time + 1,)`, see `gradient_norms`.
    """

    name: str
    input_mean: np.ndarray
    input_std: np.ndarray
    state_norms: np.ndarray
    gradient_norms: np.ndarray

    @property
    def growth(self) -> float:
        """p if |h_t| grows like t^p: with inputs of mean 0 about 1/2."""
        norms = np.trim_zeros(self.state_norms, "f")
        if len(norms) < 2:
            return 0.0
        with np.errstate(divide="ignore", over="ignore"):
            return float(np.log(norms[-1] / norms[0]) / np.log(len(norms)))


class Preflight(typing.NamedTuple):
    """What `preflight` measures. `print` shows it with what to do.

    Attributes:
        layers: Tuple of a `PreflightLayer` for each recurrent layer.
        loss: Float, the loss of the batch at update 0, with regularizers.
        gradient_norm: Float, the norm of the gradient over all weights.
        is_clipped: Boolean, whether the optimizer clips the gradient.
    """

    layers: tuple[PreflightLayer, ...]
    loss: float
    gradient_norm: float
    is_clipped: bool

    def __repr__(self):
        clipping = "clipped" if self.is_clipped else "not clipped"
        lines = [
            f"loss at update 0        {self.loss:.3g}",
            f"gradient norm           {self.gradient_norm:.3g}, {clipping}",
        ]
        for layer in self.layers:
            first, last = layer.state_norms[[1, -1]]
            lines += [
                f"{layer.name}: {len(layer.state_norms) - 1} time steps",
                f"  means of its inputs   {_range(layer.input_mean)}",
                f"  their deviations      {_range(layer.input_std)}",
                f"  state norm            {first:.2g} to {last:.2g}, "
                f"like T^{layer.growth:.2f}",
                f"  gradient norm, step 0 {layer.gradient_norms[0]:.2g}",
            ]
        return "\n".join([*lines, "", *self._advice()]).rstrip()

    def _advice(self):
        """What to do, where it applies."""
        layers = self.layers
        applies = {
            NOT_CENTERED: any(
                np.any(np.abs(layer.input_mean) > 0.1 * layer.input_std)
                for layer in layers
            ),
            EXPANDING: any(not layer.growth < 1.2 for layer in layers),
            VANISHING: any(
                not layer.gradient_norms[0] > 0.01 for layer in layers
            ),
            NOT_CLIPPED: not self.is_clipped,
        }
        return [text for text, holds in applies.items() if holds]


def preflight(
    model: keras.Model, x: "ArrayLike", y: "ArrayLike", *, batch_size: int = 32
) -> Preflight:
    """Measures a recurrent model on one batch, before it is trained.

    One batch is seen forward and backward, and nothing changes. Printed, the
    result says what to do where it applies: the loss, the means of what each
    recurrent layer reads, the growth of its hidden state, how much the first
    time step changes the last state, and the norm of the first gradient with
    whether the optimizer clips it.

    Whether the model can learn the data, and whether the learning rate suits
    a whole training, one batch does not show.

    Args:
        model: A compiled Sequential or functional model with at least one
            recurrent layer, of Keras or of this package.
        x: Its inputs, as for `model.fit`: an array `(samples, time,
            features)`, or a list or dict of arrays for several inputs.
        y: Its targets, an array of as many samples, or as `x` for several.
        batch_size: Positive integer, how many of the first samples to use.
            Defaults to 32.

    Raises:
        ValueError: If an argument is not as above, or not finite.

    Example:

    >>> rng = np.random.default_rng(0)
    >>> x, y = keras_rin.tasks.adding.generate(rng, samples=32, length=200)
    >>> rin = keras_rin.layers.RIN(50, seed=0)
    >>> layers = [keras.Input((None, 2)), rin, keras.layers.Dense(1)]
    >>> model = keras.Sequential(layers)
    >>> model.compile("adam", "mse")
    >>> report = keras_rin.diagnostics.preflight(model, x, y)
    >>> bool(report.layers[0].growth > 0.9), report.is_clipped
    (True, False)
    """
    batch_size = _arguments.integer("batch_size", batch_size)
    x, y = first_rows("x", x, batch_size), first_rows("y", y, batch_size)
    layer_inputs = first_inputs(model, x)
    if not layer_inputs or not model.compiled:
        raise ValueError(
            "`model` must be compiled, with a recurrent layer whose inputs are "
            f"known. Received: a model with {model.layers}"
        )
    variables = model.trainable_variables

    def batch_loss(values):
        mapping = zip(variables, values, strict=True)
        with keras.StatelessScope(state_mapping=list(mapping)):
            outputs = model(x, training=True)
            return model.compute_loss(x=x, y=y, y_pred=outputs)

    values = [ops.convert_to_tensor(variable.value) for variable in variables]
    loss, gradients = autodiff.value_and_gradients(batch_loss, values)
    loss = float(float64(loss))
    norms = [np.linalg.norm(float64(gradient)) for gradient in gradients]
    norm = float(np.linalg.norm(norms))
    # After the loss: on JAX a prediction deletes the values of before.
    layers = tuple(_layer_report(*inputs) for inputs in layer_inputs)
    return Preflight(layers, loss, norm, _is_clipped(model.optimizer))


def _layer_report(layer, read_inputs):
    x, mask = read_inputs()
    state_norms = gradients = np.full(x.shape[1] + 1, np.nan)
    units = state_map.sizes(built_cell(layer))[0]
    # Numbers may be beyond the range of the dtype.
    with contextlib.suppress(ValueError), np.errstate(over="ignore"):
        states = state_trajectories(layer, x, mask=mask, dtype="float64")
        h = ops.cast(states[..., :units], layer.compute_dtype)
        squares = (float64(h) ** 2).sum(axis=2)
        state_norms = np.sqrt(squares.mean(axis=0))
        # Five directions give an order of magnitude.
        gradients = gradient_norms(layer, x, mask=mask, directions=5)
    moments = x[mask].mean(axis=0), x[mask].std(axis=0)
    return PreflightLayer(layer.name, *moments, state_norms, gradients)


def _range(values):
    return f"{values.min():.2g} to {values.max():.2g}"


def _is_clipped(optimizer):
    # A LossScaleOptimizer clips by the optimizer within.
    inner = getattr(optimizer, "inner_optimizer", optimizer)
    options = "clipnorm", "global_clipnorm", "clipvalue"
    return any(getattr(o, n, None) for o in (optimizer, inner) for n in options)
