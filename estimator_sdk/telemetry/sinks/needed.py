"""What a sink needs that may not be installed."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from ...errors import EstimatorError


def library(name: str, extra: str, purpose: str = "") -> Any:  # noqa: ANN401 - a module of somebody else's, without types
    """That module, which the extra installs. Raises EstimatorError where it is missing, with the command for that."""
    try:
        return import_module(name)
    except ImportError as error:
        raise EstimatorError(
            f"{purpose or f'exporting to {extra}'} needs a package that cannot be imported: {error}; "
            f"install it with `pip install 'estimator-sdk[{extra}]'`"
        ) from None
