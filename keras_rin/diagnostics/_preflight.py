"""A look at a model before it is trained."""

import keras
import numpy as np
from keras import ops
from numpy.typing import ArrayLike

from keras_rin.diagnostics import _autodiff
from keras_rin.diagnostics import _cells
from keras_rin.diagnostics import _recurrent_matrices
from keras_rin.diagnostics._baseline_loss import baseline_loss
from keras_rin.diagnostics._gradients import gradient_norms
from keras_rin.diagnostics._layer_inputs import first_inputs
from keras_rin.diagnostics._preflight_arguments import check_model
from keras_rin.diagnostics._preflight_arguments import first_samples
from keras_rin.diagnostics._preflight_report import Finding
from keras_rin.diagnostics._preflight_report import LayerPreflight
from keras_rin.diagnostics._preflight_report import Preflight
from keras_rin.diagnostics._state_growth import state_norms

# A gradient norm over so many directions has the right order of magnitude.
DIRECTIONS = 5
# These thresholds separate the models of the study `preflight` that learned
# from those that did not.
FAST_GROWTH = 0.75  # exponent of the number of time steps
OFF_CENTER = 0.25  # mean of a feature over its standard deviation
VANISHED = 1e-4  # gradient norm at step 0 over that at the last step
LARGE_GRADIENT = 100.0  # norm of the gradient of the loss


def preflight(
    model: keras.Model, x: ArrayLike, y: ArrayLike, *, batch_size: int = 32
) -> Preflight:
    """Whether a recurrent model will train at this length, before it does.

    One batch is seen once, forward and backward. Nothing changes: neither
    weights nor states, seeds or the optimizer. Four findings are possible:

    - the hidden state or the loss is not finite, because the recurrence
      expands: often an initializer of V was passed to a layer that stores the
      offset U = V - I;
    - the hidden state grows like T rather than sqrt(T), because the mean of
      the inputs, which is not 0, accumulates;
    - the gradient of a layer without gates vanishes: the first time step
      changes the last state by less than 1e-4 of what the last one does. In
      LSTM and GRU it does, too, but training opens their gates;
    - the first gradient is large and the optimizer does not clip it. Adam
      then remembers it for 1 / (1 - beta_2) updates, in which the model
      hardly changes.

    Args:
        model: A compiled Sequential or functional model with at least one
            recurrent layer, of Keras or of this package.
        x: Its inputs, as for `model.fit`: an array `(samples, time,
            features)`, or a list or dict of arrays for several inputs.
        y: Its targets, an array of as many samples.
        batch_size: Positive integer, how many of the first samples to use.
            Defaults to 32.

    Returns:
        A `Preflight`; `print` shows it, and `findings` is empty if nothing
        speaks against training.

    Raises:
        ValueError: If the model is not built or not compiled, has no
            recurrent layer whose inputs are known, or several outputs; if
            `x` or `y` is not finite, or their numbers of samples differ; if
            the targets do not fit the outputs; or if `batch_size` is not a
            positive integer.

    Example:

    >>> rng = np.random.default_rng(0)
    >>> x, y = keras_rin.tasks.adding.generate(rng, samples=32, length=200)
    >>> model = keras.Sequential(
    ...     [
    ...         keras.Input((None, 2)),
    ...         keras_rin.layers.RIN(50, seed=0),
    ...         keras.layers.Dense(1),
    ...     ]
    ... )
    >>> model.compile("adam", "mse")
    >>> report = keras_rin.diagnostics.preflight(model, x, y)
    >>> for finding in report.findings:
    ...     print(finding.remedy)
    scale = keras.layers.Normalization(); scale.adapt(x)  # the first layer
    keras.optimizers.Adam(..., global_clipnorm=1.0)
    """
    check_model(model)
    inputs, targets, all_targets = first_samples(model, x, y, batch_size)
    inputs = inputs[0] if len(inputs) == 1 else inputs
    layer_inputs = [
        (layer, *read()) for layer, read in first_inputs(model, inputs)
    ]
    report = Preflight(
        layers=tuple(
            _layer_preflight(layer, x, mask) for layer, x, mask in layer_inputs
        ),
        baseline_loss=baseline_loss(model.loss, all_targets),
        **_loss_and_gradients(model, inputs, targets),
        remembered_updates=_remembered_updates(model.optimizer),
        findings=(),
    )
    layers = [layer for layer, *_ in layer_inputs]
    return report._replace(findings=_findings(model, layers, report))


def _findings(model, layers, report):
    """What speaks against training, the most serious first."""
    findings = [
        finding
        for layer, layer_report in zip(layers, report.layers, strict=True)
        for finding in _layer_findings(layer, layer_report, report.loss)
    ]
    clips = _clips_gradients(model.optimizer)
    if report.gradient_norm > LARGE_GRADIENT and not clips:
        findings.append(_clipping_finding(model.optimizer, report))
    return tuple(findings)


def _layer_findings(layer, layer_report, loss):
    norms = layer_report.state_norms
    steps = len(norms) - 1
    growth = _growth_exponent(norms)
    overflows = not np.isfinite(loss) and growth > FAST_GROWTH
    if overflows or not np.isfinite(norms).all():
        cell = _cells.built_cell(layer)
        stores_offset = hasattr(cell, "effective_recurrent_kernel")
        yield Finding(
            f"The hidden state of {layer.name}, or the loss, leaves the range "
            f"of {cell.compute_dtype} within {steps} time steps: its recurrent "
            "matrix expands.",
            "recurrent_initializer=keras_rin.initializers.Offset(...)"
            if stores_offset
            else 'recurrent_initializer="orthogonal"',
        )
        return
    is_off_center = (
        abs(layer_report.input_mean) > OFF_CENTER * layer_report.input_std
    )
    if growth > FAST_GROWTH and is_off_center.any():
        yield Finding(
            f"The hidden state of {layer.name} grows like T^{growth:.2f} over "
            f"T = {steps} time steps: the mean of its inputs accumulates.",
            "scale = keras.layers.Normalization(); scale.adapt(x)  # the "
            "first layer",
        )
    first_norm = layer_report.gradient_norms[0]
    if first_norm < VANISHED and not _has_gates(layer):
        yield Finding(
            f"The gradient of {layer.name} vanishes: the first of {steps} "
            "time steps changes the last state by "
            f"{first_norm:.1g} of what the last one does.",
            f"keras_rin.layers.RIN({_cells.built_cell(layer).units}"
            ")  # or shorter sequences at first",
        )


def _has_gates(layer):
    """Whether training can open gates, behind which a gradient vanishes."""
    return "recurrent" not in _recurrent_matrices.recurrent_matrices(layer)


def _growth_exponent(norms):
    """p where the norm grows like t^p from step 1 to the last."""
    steps = len(norms) - 1
    if steps < 2 or not norms[1] or not norms[-1]:
        return 0.0
    return float(np.log(norms[-1] / norms[1]) / np.log(steps))


def _clips_gradients(optimizer):
    names = "clipnorm", "global_clipnorm", "clipvalue"
    return any(getattr(optimizer, name, None) for name in names)


def _clipping_finding(optimizer, report):
    name = type(optimizer).__name__
    memory = ""
    if report.remembered_updates is not None:
        memory = (
            f", and {name} remembers it for {report.remembered_updates:,.0f} "
            "updates"
        )
    return Finding(
        f"The gradient of the loss has norm {report.gradient_norm:.2g} at "
        f"update 0{memory}.",
        f"keras.optimizers.{name}(..., global_clipnorm=1.0)",
    )


def _layer_preflight(layer, x, mask):
    unmasked = x[mask]
    return LayerPreflight(
        name=layer.name,
        input_mean=unmasked.mean(axis=0),
        input_std=unmasked.std(axis=0),
        state_norms=_norms_or_nan(state_norms, layer, x, mask=mask),
        gradient_norms=_norms_or_nan(
            gradient_norms, layer, x, directions=DIRECTIONS, mask=mask
        ),
    )


def _norms_or_nan(function, layer, x, **arguments):
    """The norms, or NaN where the states leave the range of the dtype."""
    try:
        return function(layer, x, **arguments)
    except ValueError:
        return np.full(x.shape[1] + 1, np.nan)


def _loss_and_gradients(model, x, y):
    weights = model.trainable_variables

    def batch_loss(values):
        mapping = list(zip(weights, values, strict=True))
        with keras.StatelessScope(state_mapping=mapping):
            outputs = model(x, training=True)
            return model.compute_loss(x=x, y=y, y_pred=outputs)

    values = [ops.convert_to_tensor(weight.value) for weight in weights]
    loss, gradients = _autodiff.value_and_gradients(batch_loss, values)
    norms = {
        weight.path: float(np.linalg.norm(_cells.float64(gradient)))
        for weight, gradient in zip(weights, gradients, strict=True)
    }
    loss = float(ops.convert_to_numpy(loss))
    return {"loss": loss, "weight_gradient_norms": norms}


def _remembered_updates(optimizer):
    beta_2 = getattr(optimizer, "beta_2", None)
    return None if beta_2 is None else 1 / (1 - beta_2)
