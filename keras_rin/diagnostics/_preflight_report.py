"""What `preflight` returns, and how it is printed."""

import typing

import numpy as np


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
        name_width = max(len(name) for name, _ in rows)
        lines = [f"{name:{name_width}}  {value}" for name, value in rows]
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
