"""Launchers of arithmetic.c."""

from __future__ import annotations

from typing import Any, Final

from ..launch import Loop

KERNELS: Final[dict[str, Any]] = {name: Loop(name, 2) for name in ("add", "mul")}
