"""A look at a model before it is trained."""

import contextlib
import typing

import keras
import numpy as np
from keras import ops
from numpy.typing import ArrayLike

from keras_rin import _arguments
from keras_rin._adapt import is_centered
from keras_rin._layer_walk.layers import cell_of
from keras_rin.diagnostics import _autodiff
from keras_rin.diagnostics import _cells
from keras_rin.diagnostics import _state_map
from keras_rin.diagnostics._baseline_loss import best_constant
from keras_rin.diagnostics._first_batch import first_inputs
from keras_rin.diagnostics._first_batch import first_rows
from keras_rin.diagnostics._gradients import gradient_norms
from keras_rin.diagnostics._recurrent_matrices import has_matrices
from keras_rin.diagnostics._recurrent_matrices import recurrent_matrices
from keras_rin.diagnostics._trajectories import state_trajectories

# What is beyond one of these is named.
FAST_GROWTH = 0.75  # exponent of the number of time steps
EXPANSION = 2.0  # exponent that no mean of the inputs explains
OFF_CENTER = 0.25  # mean of a feature over its standard deviation
VANISHED = 1e-4  # gradient norm at step 0 over that at the last step
LARGE_GRADIENT = 100.0  # norm of the gradient of the loss
NO_FINDING = """\
The states, the gradients and the optimizer show no problem at update 0; one
batch does not show whether this model can learn these data, nor whether the
learning rate suits a whole training."""


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


class PreflightFinding(typing.NamedTuple):
    """A reason why a model may not learn.

    Attributes:
        problem: String, what was measured.
        remedy: String, a line of code against it, or `""`.
    """

    problem: str
    remedy: str = ""


class Preflight(typing.NamedTuple):
    """What `preflight` measures. `print` shows it as a table.

    Attributes:
        layers: Tuple of a `PreflightLayer` for each recurrent layer.
        loss: Float, the loss of the batch at update 0, with regularizers.
        baseline_loss: Float, the same if every output is the best constant;
            `None` for losses other than mean squared and absolute error and
            the cross-entropies.
        gradient_norm: Float, the norm of the gradient over all weights.
        findings: Tuple of a `PreflightFinding` for each problem.
    """

    layers: tuple[PreflightLayer, ...]
    loss: float
    baseline_loss: float | None
    gradient_norm: float
    findings: tuple[PreflightFinding, ...]

    def __repr__(self):
        lines = [f"loss at update 0        {self.loss:.3g}"]
        if self.baseline_loss is not None:
            lines.append(f"loss of a constant      {self.baseline_loss:.3g}")
        lines.append(f"gradient norm           {self.gradient_norm:.3g}")
        for layer in self.layers:
            low, high = layer.input_mean.min(), layer.input_mean.max()
            first, last = layer.state_norms[[1, -1]]
            lines += [
                f"{layer.name}: {len(layer.state_norms) - 1} time steps",
                f"  means of its inputs   {low:.2g} to {high:.2g}",
                f"  state norm            {first:.2g} to {last:.2g}",
                f"  gradient norm, step 0 {layer.gradient_norms[0]:.2g}",
            ]
        for problem, remedy in self.findings or [(NO_FINDING, "")]:
            lines += ["", problem, *[f"    {remedy}"] * bool(remedy)]
        return "\n".join(lines)


def preflight(
    model: keras.Model, x: "ArrayLike", y: "ArrayLike", *, batch_size: int = 32
) -> Preflight:
    """What speaks against training a recurrent model, before it is trained.

    One batch is seen forward and backward, and nothing changes. Findings are,
    of each layer the first one,

    - a hidden state that is not finite, or grows faster than T^2;
    - one that grows like T rather than sqrt(T): the mean of the inputs
      accumulates, and `adapt` centers them where the layer has a bias;
    - the gradient of a layer without gates that vanishes: the first time step
      changes the last state by less than 1e-4 of what the last one does;
    - a loss that is not finite, or a first gradient that is large and not
      clipped, which Adam remembers for 1 / (1 - beta_2) updates.

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
    >>> for finding in keras_rin.diagnostics.preflight(model, x, y).findings:
    ...     print(finding.remedy)
    keras_rin.adapt(model, x)
    keras.optimizers.Adam(..., global_clipnorm=1.0)
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

    def batch_loss(values, output_layer=lambda outputs: outputs):
        mapping = zip(variables, values, strict=True)
        with keras.StatelessScope(state_mapping=list(mapping)):
            outputs = model(x, training=True)
            outputs = keras.tree.map_structure(output_layer, outputs)
            return model.compute_loss(x=x, y=y, y_pred=outputs)

    values = [ops.convert_to_tensor(variable.value) for variable in variables]
    loss, gradients = _autodiff.value_and_gradients(batch_loss, values)
    loss = float(_cells.float64(loss))
    norms = [np.linalg.norm(_cells.float64(gradient)) for gradient in gradients]
    norm = float(np.linalg.norm(norms))
    constant = best_constant(model, y)
    baseline_loss = constant and float(
        _cells.float64(batch_loss(values, constant))
    )
    # After the loss: on JAX a prediction deletes the values of before.
    layers = tuple(_layer_report(*inputs) for inputs in layer_inputs)
    findings: list[PreflightFinding] = []
    for inputs, layer in zip(layer_inputs, layers, strict=True):
        findings += _layer_findings(inputs[0], layer)
    findings += _gradient_findings(model.optimizer, loss, norm)
    return Preflight(layers, loss, baseline_loss, norm, tuple(findings))


def _layer_report(layer, read_inputs):
    x, mask = read_inputs()
    state_norms = gradients = np.full(x.shape[1] + 1, np.nan)
    units = _state_map.sizes(_cells.built_cell(layer))[0]
    # Numbers may be beyond the range of the dtype.
    with contextlib.suppress(ValueError), np.errstate(over="ignore"):
        states = state_trajectories(layer, x, mask=mask, dtype="float64")
        h = ops.cast(states[..., :units], layer.compute_dtype)
        squares = (_cells.float64(h) ** 2).sum(axis=2)
        state_norms = np.sqrt(squares.mean(axis=0))
        # Five directions give an order of magnitude.
        gradients = gradient_norms(layer, x, mask=mask, directions=5)
    moments = x[mask].mean(axis=0), x[mask].std(axis=0)
    return PreflightLayer(layer.name, *moments, state_norms, gradients)


def _layer_findings(layer, report):
    """The first problem of a layer, if it has one."""
    steps = len(report.state_norms) - 1
    has_bias = getattr(cell_of(layer), "use_bias", False)
    has_gates = not has_matrices(layer) or (
        "recurrent" not in recurrent_matrices(layer)
    )
    if not np.isfinite(report.state_norms).all():
        yield PreflightFinding(
            f"The hidden state of {layer.name} leaves the range of "
            f"{layer.compute_dtype} within {steps} time steps "
            "(docs/questions.md)."
        )
    elif growth := _fast_growth(report):
        cause = ": the mean of its inputs accumulates" * (growth < EXPANSION)
        yield PreflightFinding(
            f"The hidden state of {layer.name} grows like T^{growth:.2f} over "
            f"T = {steps} time steps{cause} (docs/long_sequences.md).",
            "keras_rin.adapt(model, x)"
            * (growth < EXPANSION and has_bias and is_centered(layer)),
        )
    # Training can open gates, behind which a gradient vanishes.
    elif report.gradient_norms[0] < VANISHED and not has_gates:
        yield PreflightFinding(
            f"The gradient of {layer.name} vanishes: the first of {steps} time "
            f"steps changes the last state by {report.gradient_norms[0]:.1g} "
            "of what the last one does (docs/choosing.md)."
        )


def _fast_growth(report):
    """p if the state grows like t^p, faster than without a mean, else 0."""
    norms = np.trim_zeros(report.state_norms, "f")
    if len(norms) < 10 or not norms[-1]:
        return 0.0
    exponent = np.log(norms[-1] / norms[0]) / np.log(len(norms))
    is_off_center = abs(report.input_mean) > OFF_CENTER * report.input_std
    least = FAST_GROWTH if is_off_center.any() else EXPANSION
    return float(exponent * (exponent > least))


def _gradient_findings(optimizer, loss, norm):
    # A LossScaleOptimizer clips by the optimizer within.
    inner = getattr(optimizer, "inner_optimizer", optimizer)
    options = "clipnorm", "global_clipnorm", "clipvalue"
    clips = [getattr(o, n, None) for o in (optimizer, inner) for n in options]
    if not np.isfinite([loss, norm]).all():
        yield PreflightFinding(
            f"At update 0 the loss is {loss:.3g}, and its gradient has "
            f"norm {norm:.3g} (docs/questions.md)."
        )
    if norm > LARGE_GRADIENT and not any(clips):
        name = type(inner).__name__
        yield PreflightFinding(
            f"The gradient of the loss has norm {norm:.2g} at update 0, and "
            "nothing clips it (docs/long_sequences.md).",
            f"keras.optimizers.{name}(..., global_clipnorm=1.0)",
        )
