"""Sizes given as one number for all dimensions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..errors import ArgumentError

__all__ = ["of_each", "shown"]


def of_each(value: Any, count: int, what: str = "size") -> tuple[Any, ...]:
    """``count`` values, given as a sequence or as one number for all.

    Raises:
        ValueError: the sequence has another length.
    """
    if not isinstance(value, Sequence):
        return (value,) * count
    if len(value) != count:
        raise ArgumentError(f"{what}: expected one value or {count}, got {len(value)}: {value!r:.60}.")
    return tuple(value)


def shown(module: Any, *names: str, **defaults: Any) -> str:
    """``name=value`` for the attributes ``names``, and for those of ``defaults`` that have another value."""
    parts = [f"{name}={getattr(module, name)!r}" for name in names]
    parts += [
        f"{name}={getattr(module, name)!r}" for name, default in defaults.items() if getattr(module, name) != default
    ]
    return ", ".join(parts)
