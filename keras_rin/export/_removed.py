"""Names of before, which say what took their place."""

from typing import Any
from typing import NoReturn

VERBS = {
    "tf_saved_model": "export_saved_model(model, path)",
    "litert": "export_litert(model, path)",
    "onnx": "export_onnx(model, path)",
    "c": "export_c(model, path, arithmetic, calibration)",
}


def export_streaming(
    model: Any = None,
    path: Any = None,
    format: str = "tf_saved_model",
    *args: Any,
    **kwargs: Any,
) -> NoReturn:
    """Raises an error that says which function took its place."""
    verbs = [VERBS[format]] if format in VERBS else [*VERBS.values()]
    names = " or ".join(f"`keras_rin.export.{verb}`" for verb in verbs)
    raise NotImplementedError(
        f"`export_streaming` is now a function for each format: {names}. "
        f"Received: format={format!r}"
    )


def check_header(*args: Any, **kwargs: Any) -> NoReturn:
    """Raises an error: `Header(path).compare(model, x)` took its place."""
    raise NotImplementedError(
        "`check_header(model, path, x)` is now "
        "`keras_rin.export.Header(path).compare(model, x)`."
    )
