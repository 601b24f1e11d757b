"""``python -m flambeau where``: where an operator is declared, computed and tested."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from .. import backends
from ..dispatch.operator import offers, operators, similar
from ..dispatch.providers import place_of, registry, source_of

__all__ = ["add", "run"]


def add(commands: Any) -> None:
    parser = commands.add_parser(
        "where", help="where an operator is declared, computed and tested",
        description="Print the file and line of an operator's declaration, kernels and composite body, and its tests.",
    )  # fmt: skip
    parser.add_argument("operator", help="its name, such as add")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    name = options.operator
    chosen = [op for op in operators.values() if op.name in (name, f"{name}_")]
    public = [each for each in offers if each.name == name]
    if not chosen and not public:
        print(f"There is no operator {name!r}. Similar names: {similar(name)}.", file=sys.stderr)
        return 1
    backends.available()
    for each in public:
        print(f"{each.name}: public function at {source_of(each.function)}")
    for op in chosen:
        declared = source_of(op.declared_with)
        print(f"{op.name}: {op.kind} operator, declared at {declared}")
        for provider in registry.providers:
            if op.name in provider.kernels:
                place = place_of(provider.kernels[op.name])
                print(f"    {provider.name} {provider.version} on {provider.device}: {place}")
        if op.body is not None:
            print(f"    composite body at {source_of(op.body)}")
        test = Path("tests/ops") / f"test_{Path(declared.rpartition(':')[0]).stem}.py"
        if test.exists():
            print(f"    tested in {test}")
    return 0
