"""Launchers of special.c."""

from __future__ import annotations

from typing import Any, Final

from ..launch import Loop

__all__ = ["KERNELS"]

KERNELS: Final[dict[str, Any]] = {
    **{name: Loop(name, 1) for name in ("lgamma", "digamma", "erfinv")},
    "polygamma": Loop("polygamma", 2),
}
