"""A look at a model before it is trained."""

import typing

import keras
import numpy as np
from keras import ops
from numpy.typing import ArrayLike

from keras_rin import _arguments
from keras_rin._functional_calls import order_by_inputs
from keras_rin._layer_walk import layers_within
from keras_rin._layer_walk import restore_after
from keras_rin.diagnostics import _autodiff
from keras_rin.diagnostics import _recurrent_layers
from keras_rin.diagnostics._gradients import gradient_norms
from keras_rin.diagnostics._layer_inputs import LayerInputs
from keras_rin.diagnostics._state_growth import state_norms

DIRECTIONS = 5  # of the gradient norms: enough for an order of magnitude
# From the models of the study `preflight`, learned and not.
FAST_GROWTH = 0.75  # exponent of the number of time steps
VANISHED = 1e-4
LARGE_GRADIENT = 100.0


class LayerPreflight(typing.NamedTuple):
    """What `preflight` measures of one recurrent layer.

    Attributes:
        name: String, the name of the layer.
        input_mean: Array `(features,)`, the mean of what the layer reads.
        input_std: Array `(features,)`, its standard deviation.
        state_norms: Array `(time + 1,)`, as of `state_norms`.
        gradient_norms: Array `(time + 1,)`, as of `gradient_norms`.
    """

    name: str
    input_mean: np.ndarray
    input_std: np.ndarray
    state_norms: np.ndarray
    gradient_norms: np.ndarray


class Finding(typing.NamedTuple):
    """A reason why a model may not learn, and the line that removes it.

    Attributes:
        problem: String, what was measured.
        remedy: String, the line of code to write.
    """

    problem: str
    remedy: str


class Preflight(typing.NamedTuple):
    """What `preflight` measures. `print` shows it as a table.

    Attributes:
        layers: Tuple of a `LayerPreflight` for each recurrent layer.
        loss: Float, the loss of the batch at update 0.
        baseline_loss: Float, the loss of the best constant predictor of `y`,
            or `None` where the loss function has none in closed form.
        weight_gradient_norms: Dict of floats, the norm of the gradient of the
            loss by the path of each trainable weight.
        remembered_updates: Float, 1 / (1 - beta_2): for how many updates an
            optimizer such as Adam remembers the size of the first gradients;
            `None` for one without `beta_2`.
        findings: Tuple of `Finding`, empty if nothing speaks against
            training.
    """

    layers: tuple[LayerPreflight, ...]
    loss: float
    baseline_loss: float | None
    weight_gradient_norms: dict[str, float]
    remembered_updates: float | None
    findings: tuple[Finding, ...]

    @property
    def gradient_norm(self) -> float:
        """The norm of the gradient of the loss over all weights."""
        return float(np.linalg.norm([*self.weight_gradient_norms.values()]))

    def __str__(self):
        rows = [("loss at update 0", f"{self.loss:.3g}")]
        if self.baseline_loss is not None:
            rows.append(("loss of a constant", f"{self.baseline_loss:.3g}"))
        rows.append(("gradient norm", f"{self.gradient_norm:.3g}"))
        for path, norm in self.weight_gradient_norms.items():
            rows.append((f"  {path}", f"{norm:.3g}"))
        for layer in self.layers:
            rows += _layer_rows(layer)
        width = max(len(name) for name, _ in rows)
        lines = [f"{name:{width}}  {value}" for name, value in rows]
        for problem, remedy in self.findings:
            lines += ["", problem, f"    {remedy}"]
        if not self.findings:
            lines += ["", "Nothing speaks against training."]
        return "\n".join(lines)


def _layer_rows(layer):
    steps = len(layer.state_norms) - 1
    low, high = layer.input_mean.min(), layer.input_mean.max()
    return [
        (f"{layer.name}: time steps", f"{steps}"),
        ("  mean of its inputs", f"{low:.2g} to {high:.2g}"),
        (
            "  standard deviation",
            f"{layer.input_std.min():.2g} to {layer.input_std.max():.2g}",
        ),
        (
            "  state norm, step 1 and last",
            f"{layer.state_norms[1]:.2g}, {layer.state_norms[-1]:.2g}",
        ),
        ("  gradient norm at step 0", f"{layer.gradient_norms[0]:.2g}"),
    ]


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
      the inputs accumulates;
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
    _check_model(model)
    batch_size = _arguments.integer("batch_size", batch_size)
    y_all = _arguments.real_array("y", y)
    x = [
        _first_samples("x", array, batch_size, len(y_all))
        for array in order_by_inputs(model.inputs, x)
    ]
    y = _first_samples("y", y_all, batch_size, len(y_all))
    _check_targets(model, y)
    x = x[0] if len(x) == 1 else x
    report = Preflight(
        layers=tuple(_layer_preflight(*call) for call in LayerInputs(model)(x)),
        baseline_loss=_baseline_loss(model.loss, y_all),
        **_loss_and_gradients(model, x, y),
        remembered_updates=_remembered_updates(model.optimizer),
        findings=(),
    )
    return report._replace(findings=_findings(model, report))


def _check_model(model):
    if not isinstance(model, keras.Model) or not model.built:
        raise ValueError(
            "`model` must be a built Keras model: call it on data, or begin "
            f"it with `keras.Input`. Received: model={model!r}"
        )
    if not model.compiled:
        raise ValueError(
            "`model` must be compiled with a loss and an optimizer. "
            f"Received: model={model!r}"
        )
    if not LayerInputs(model).layers:
        raise ValueError(
            "`model` must have a recurrent layer whose inputs are known. "
            f"Received: a model with {model.layers}"
        )
    if len(model.outputs) != 1:
        raise ValueError(
            "`preflight` is for models with one output. Received: a model "
            f"with {len(model.outputs)} outputs"
        )


def _first_samples(name, array, batch_size, samples):
    if len(array) != samples:
        raise ValueError(
            "`x` and `y` must have as many samples. Received: "
            f"{len(array)} in `{name}` and {samples} in `y`"
        )
    batch = ops.convert_to_numpy(array[:batch_size])
    if not np.isfinite(batch).all():
        raise ValueError(
            f"`{name}` must be finite. Received: NaN or infinity in "
            f"{(~np.isfinite(batch)).sum()} of {batch.size} numbers"
        )
    return batch


def _check_targets(model, y):
    """Whether the targets have the shape, or the classes, of the outputs."""
    output = model.outputs[0].shape
    if _loss_name(model.loss) == "sparse_categorical_crossentropy":
        fits = y.size > 0 and 0 <= y.min() and y.max() < output[-1]
        expected = f"class numbers from 0 to {output[-1] - 1}"
    else:
        sizes, known = (
            [size for size in shape[1:] if size != 1]
            for shape in (y.shape, output)
        )
        fits = len(sizes) == len(known) and not any(
            map(_arguments.known_to_differ, sizes, known)
        )
        expected = f"the shape of the outputs, {output}"
    if not fits:
        raise ValueError(
            f"`y` must have {expected}. Received: y of shape {y.shape}, from "
            f"{y.min():.3g} to {y.max():.3g}"
        )


def _findings(model, report):
    """What speaks against training, the most serious first."""
    layers = {layer.name: layer for layer in layers_within(model)}
    findings = [
        finding
        for measured in report.layers
        for finding in _layer_findings(layers[measured.name], measured)
    ]
    if report.gradient_norm > LARGE_GRADIENT and not _clips(model.optimizer):
        findings.append(_unclipped(model.optimizer, report))
    return tuple(findings)


def _layer_findings(layer, measured):
    norms, steps = measured.state_norms, len(measured.state_norms) - 1
    if not np.isfinite(norms).all():
        cell = _recurrent_layers.built_cell(layer)
        stores_offset = hasattr(cell, "effective_recurrent_kernel")
        yield Finding(
            f"The hidden state of {layer.name} leaves the range of "
            f"{cell.compute_dtype} within {steps} time steps: its recurrent "
            "matrix expands.",
            "recurrent_initializer=keras_rin.initializers.Offset(...)"
            if stores_offset
            else 'recurrent_initializer="orthogonal"',
        )
        return
    growth = _growth_exponent(norms)
    if growth > FAST_GROWTH:
        yield Finding(
            f"The hidden state of {layer.name} grows like T^{growth:.2f} over "
            f"T = {steps} time steps: the mean of its inputs accumulates.",
            "scale = keras.layers.Normalization(); scale.adapt(x)  # the "
            "first layer",
        )
    if measured.gradient_norms[0] < VANISHED and not _has_gates(layer):
        yield Finding(
            f"The gradient of {layer.name} vanishes: the first of {steps} "
            "time steps changes the last state by "
            f"{measured.gradient_norms[0]:.1g} of what the last one does.",
            f"keras_rin.layers.RIN({_recurrent_layers.built_cell(layer).units}"
            ")  # or shorter sequences at first",
        )


def _has_gates(layer):
    """Whether training can open gates, behind which a gradient vanishes."""
    return "recurrent" not in _recurrent_layers.recurrent_matrices(layer)


def _growth_exponent(norms):
    """p where the norm grows like t^p from step 1 to the last."""
    steps = len(norms) - 1
    if steps < 2 or not norms[1] or not norms[-1]:
        return 0.0
    return float(np.log(norms[-1] / norms[1]) / np.log(steps))


def _clips(optimizer):
    names = "clipnorm", "global_clipnorm", "clipvalue"
    return any(getattr(optimizer, name, None) for name in names)


def _unclipped(optimizer, report):
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
        state_norms=_norms(state_norms, layer, x, mask=mask),
        gradient_norms=_norms(
            gradient_norms, layer, x, directions=DIRECTIONS, mask=mask
        ),
    )


def _norms(function, layer, x, **arguments):
    """The norms, or NaN where the states leave the range of the dtype."""
    try:
        return function(layer, x, **arguments)
    except ValueError:
        return np.full(x.shape[1] + 1, np.nan)


def _loss_and_gradients(model, x, y):
    weights = model.trainable_variables

    def loss_of(values):
        mapping = list(zip(weights, values, strict=True))
        with keras.StatelessScope(state_mapping=mapping):
            outputs = model(x, training=True)
            return model.compute_loss(x=x, y=y, y_pred=outputs)

    values = [ops.convert_to_tensor(weight.value) for weight in weights]
    with restore_after(model.metrics_variables):
        loss, gradients = _autodiff.value_and_gradients(loss_of, values)
    norms = {
        weight.path: float(np.linalg.norm(ops.convert_to_numpy(gradient)))
        for weight, gradient in zip(weights, gradients, strict=True)
    }
    loss = float(ops.convert_to_numpy(loss))
    return {"loss": loss, "weight_gradient_norms": norms}


def _remembered_updates(optimizer):
    beta_2 = getattr(optimizer, "beta_2", None)
    return None if beta_2 is None else 1 / (1 - beta_2)


def _baseline_loss(loss, y):
    """The loss of the best constant, `None` if it has no closed form."""
    name = _loss_name(loss)
    y = np.asarray(ops.convert_to_numpy(y))
    rows = y.reshape(-1, y.shape[-1]) if y.ndim > 1 else y[:, None]
    if name == "mean_squared_error":
        return float(rows.var(axis=0).mean())
    if name == "mean_absolute_error":
        return float(abs(rows - np.median(rows, axis=0)).mean())
    if name == "binary_crossentropy":
        p = rows.mean(axis=0)
        return float((_entropy(p) + _entropy(1 - p)).mean())
    if name == "categorical_crossentropy":
        return float(_entropy(rows.mean(axis=0)).sum())
    if name == "sparse_categorical_crossentropy":
        _, counts = np.unique(y, return_counts=True)
        return float(_entropy(counts / counts.sum()).sum())
    return None


def _entropy(p):
    return -p * np.log(np.where(p > 0, p, 1))


def _loss_name(loss):
    """The name of the function of a loss, `None` if there is no single one."""
    if not isinstance(loss, str | keras.losses.Loss) and not callable(loss):
        return None
    function = keras.losses.get(loss)
    return getattr(getattr(function, "fn", function), "__name__", None)
