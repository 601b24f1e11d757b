"""``python -m flambeau``: what is installed, where things are, who serves what."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from . import backends
from .device import device as Device
from .dispatch.operator import Operator, offers, operators, similar
from .dispatch.providers import place_of, registry, source_of
from .dtype import DTYPES
from .key import intern
from .plugins import CORE_VERSION, plugins

__all__ = ["main"]


def show_backends(options: argparse.Namespace) -> int:
    """List the installed plug-ins."""
    found = backends.report()
    rows = [
        {
            "device": each.device, "plugin": each.distribution, "version": each.version, "state": each.state,
            "providers": [b.name for b in each.backends], "problem": str(each.error) if each.error else "",
        }
        for each in found
    ]  # fmt: skip
    if options.json:
        print(json.dumps(rows, indent=1))
        return 0
    print(f"flambeau {CORE_VERSION}")
    if not rows:
        print("No backend is installed.\nInstall one, for example: pip install flambeau-cpu")
    for row in rows:
        print(f"{row['device']:<10} {row['plugin']} {row['version']:<10} {row['state']}")
        if row["problem"]:
            print("           " + str(row["problem"]).replace("\n", "\n           "))
    return 0


def show_where(options: argparse.Namespace) -> int:
    """Print where an operator is declared, computed and tested."""
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
        declared = op.declared_with
        print(f"{op.name}: {op.kind} operator, declared at {source_of(declared)}")
        for provider in registry.providers:
            if op.name in provider.kernels:
                print(
                    f"    {provider.name} {provider.version} on {provider.device}: {place_of(provider.kernels[op.name])}"
                )
        if op.kind == "composite" or op.body is not None:
            print(f"    composite body at {source_of(op.body)}")
        test = Path("tests/ops") / f"test_{Path(source_of(declared).rpartition(':')[0]).stem}.py"
        if test.exists():
            print(f"    tested in {test}")
    return 0


def _line(op: Operator) -> str:
    return (op.function.__doc__ or "").strip().split("\n")[0]


def show_primitives(options: argparse.Namespace) -> int:
    """List what a backend can bring kernels for."""
    for kind in ("pointwise", "primitive"):
        chosen = sorted((op for op in operators.values() if op.kind == kind), key=lambda op: op.name)
        print(f"{len(chosen)} {kind} operators")
        for op in chosen:
            mark = " (writes into its first argument)" if op.mutates else ""
            mark += " (has a composite body)" if op.body is not None else ""
            print(f"  {op.name}({', '.join(op.parameters)}){mark}\n      {_line(op)}")
    return 0


def matrix(device: str) -> dict[str, dict[str, str]]:
    """For each operator and dtype: the provider that serves it, ``composite`` or nothing."""
    plugins.find_memory(device)
    table: dict[str, dict[str, str]] = {}
    for op in sorted(operators.values(), key=lambda op: op.name):
        if op.kind in ("pointwise", "primitive"):
            row = table[op.name] = {}
            for dtype in DTYPES:
                found = registry.candidates(op.name, intern(Device(device), dtype=dtype))
                row[dtype.name] = found[0].provider.name if found else "composite" if op.body is not None else ""
    return table


def show_matrix(options: argparse.Namespace) -> int:
    """Print the support matrix of a device."""
    table = matrix(options.device)
    if options.json:
        print(json.dumps(table, indent=1))
        return 0
    width = max(map(len, table))
    print(" " * width + " " + " ".join(f"{each.name[:8]:>8}" for each in DTYPES))
    for name, row in table.items():
        print(f"{name:<{width}} " + " ".join(f"{(row[each.name] or '.')[:8]:>8}" for each in DTYPES))
    return 0


def show_version(options: argparse.Namespace) -> int:
    """Print the version of the core."""
    print(CORE_VERSION)
    return 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m flambeau", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def command(name: str, run: Any, text: str) -> argparse.ArgumentParser:
        added = commands.add_parser(name, help=text, description=text)
        added.set_defaults(run=run)
        return added

    command("backends", show_backends, "installed plug-ins: available, broken, and why").add_argument(
        "--json", action="store_true", help="as JSON"
    )
    command("where", show_where, "where an operator is declared, computed and tested").add_argument(
        "operator", help="its name, such as add"
    )
    command("primitives", show_primitives, "the operators that a backend can bring kernels for")
    added = command("matrix", show_matrix, "which operators a device has, for which dtypes")
    added.add_argument("--device", required=True, help="device type, such as that of an installed plug-in")
    added.add_argument("--json", action="store_true", help="as JSON")
    command("version", show_version, "the version of the core")
    options = parser.parse_args(arguments)
    try:
        return int(options.run(options))
    except BrokenPipeError:  # the reader, such as head, has seen enough
        sys.stderr.close()
        return 0


if __name__ == "__main__":
    sys.exit(main())
