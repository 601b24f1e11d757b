"""What the commands have in common: JSON, tables, and names that do not exist."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import Any

from ..dispatch.operator import Operator, operators, similar

__all__ = ["chosen", "print_json", "table"]


def print_json(value: Any) -> None:
    """Print a value as JSON that people can read too."""
    print(json.dumps(value, indent=1))


def table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Lines of columns, each as wide as its widest cell; the first row is the head."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def chosen(names: Sequence[str], kinds: Sequence[str]) -> list[Operator] | None:
    """The operators of some kinds with these names, all if there are none; None, and a message, if one does not exist."""
    for name in names:
        if name not in operators:
            print(f"There is no operator {name!r}. Similar names: {similar(name)}.", file=sys.stderr)
            return None
    found = [op for op in operators.values() if (op.name in names if names else op.kind in kinds)]
    return sorted(found, key=lambda op: op.name)
