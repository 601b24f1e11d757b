"""``python -m flambeau primitives``: what a backend can bring kernels for."""

from __future__ import annotations

import argparse
from typing import Any

from ..dispatch.operator import Operator
from .output import chosen

__all__ = ["add", "run"]


def add(commands: Any) -> None:
    parser = commands.add_parser(
        "primitives", help="the operators that a backend can bring kernels for",
        description="List the operators that a backend can bring kernels for, with the arguments that a kernel takes.",
    )  # fmt: skip
    parser.add_argument("operator", nargs="*", help="only these")
    parser.set_defaults(run=run)


def _summary(op: Operator) -> str:
    return (op.function.__doc__ or "").strip().split("\n")[0]


def run(options: argparse.Namespace) -> int:
    found = chosen(options.operator, ("pointwise", "primitive"))
    if found is None:
        return 1
    for kind in dict.fromkeys(op.kind for op in found):
        ops = [op for op in found if op.kind == kind]
        print(f"{len(ops)} {kind} operator{'s' if len(ops) > 1 else ''}")
        for op in ops:
            mark = " (writes into its first argument)" if op.mutates else ""
            mark += " (has a composite body)" if op.body is not None and kind != "composite" else ""
            names = op.parameters if kind != "composite" else op.binding.names
            print(f"  {op.name}({', '.join(names)}){mark}\n      {_summary(op)}")
    return 0
