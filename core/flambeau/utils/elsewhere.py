"""Parts of :mod:`flambeau.utils` that a distribution of their own provides."""

from __future__ import annotations

import importlib
from types import ModuleType

__all__ = ["provided"]


def provided(module: str, distribution: str) -> ModuleType:
    """A module of another distribution.

    Raises:
        ImportError: the distribution is not installed.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name != module.partition(".")[0]:  # it is installed, and something else is missing
            raise
        raise ModuleNotFoundError(
            f"This part of flambeau is in the distribution {distribution}, which is not installed.\n"
            f"Install it: pip install {distribution}",
            name=error.name,
        ) from error
