"""Names of before, which say what took their place."""

from typing import Any
from typing import NoReturn


def check_header(*args: Any, **kwargs: Any) -> NoReturn:
    """Raises an error: `Header(path).compare(model, x)` took its place."""
    raise NotImplementedError(
        "`check_header(model, path, x)` is now "
        "`keras_rin.export.Header(path).compare(model, x)`."
    )
