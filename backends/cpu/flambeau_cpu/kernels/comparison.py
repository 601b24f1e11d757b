"""Launchers of comparison.c."""

from __future__ import annotations

from typing import Any, Final

from flambeau.backend import bool_

from ..launch import Loop

__all__ = ["KERNELS"]

KERNELS: Final[dict[str, Any]] = {name: Loop(name, 2, bool_) for name in ("eq", "ne", "lt", "le", "gt", "ge")}
