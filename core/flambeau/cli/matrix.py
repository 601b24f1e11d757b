"""``python -m flambeau matrix``: which operators a device has, for which dtypes, and who serves them."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from typing import Any, Final

from ..device import device as Device
from ..dispatch.operator import Operator
from ..dispatch.providers import registry
from ..dtype import DTYPES
from ..errors import FlambeauError
from ..key import Key, intern
from ..layout import layout as Layout, sparse_coo, strided
from .output import chosen, print_json, table

__all__ = ["add", "matrix", "run"]

LAYOUTS: Final[dict[str, Layout]] = {each.name: each for each in (strided, sparse_coo)}


def add(commands: Any) -> None:
    parser = commands.add_parser(
        "matrix", help="which operators a device has, for which dtypes, and who serves them",
        description="For each operator that backends bring kernels for, and each dtype: the provider that serves it, "
        "'composite' if other operators do, or nothing. A '?' marks providers that may decline a call.",
    )  # fmt: skip
    parser.add_argument("operator", nargs="*", help="only these")
    parser.add_argument("--device", required=True, metavar="NAME", help="device type, such as that of a plug-in")
    parser.add_argument("--layout", choices=sorted(LAYOUTS), default="strided", help="of the tensors")
    parser.add_argument("--json", action="store_true", help="as JSON")
    parser.set_defaults(run=run)


def _cell(op: Operator, key: Key) -> dict[str, Any]:
    """Who serves an operator on a key: ``kernel``, ``composite`` or ``missing``, and the providers in order."""
    try:
        candidates = registry.candidates(op.name, key)
    except FlambeauError as error:
        return {"served": "broken", "providers": [], "conditional": False, "reason": str(error)}
    named = [each.provider.name for each in candidates]
    sure = any(each.family.predicate is None for each in candidates)
    served = "kernel" if named else "composite" if op.composes(key) else "missing"
    return {"served": served, "providers": named, "conditional": bool(named) and not sure}


def matrix(device: str, layout: str = "strided", names: tuple[str, ...] = ()) -> dict[str, Any] | None:
    """The support matrix of a device; None if a named operator does not exist.

    Raises:
        RuntimeError: no plug-in provides the device.
    """
    keys = {each.name: intern(Device(device), LAYOUTS[layout], each) for each in DTYPES}
    ops = chosen(names, ("pointwise", "primitive"))
    if ops is None:
        return None
    if not names:  # and the composites that somebody overrides
        overridden = {name for each in registry.providers if each.device == device for name in each.kernels}
        ops += chosen(sorted(overridden - {op.name for op in ops}), ()) or [] if overridden else []
    return {
        "device": device,
        "layout": layout,
        "providers": [
            {"name": each.name, "version": each.version, "priority": each.priority}
            for each in registry.providers if each.device == device and each.layout is LAYOUTS[layout]
        ],
        "operators": {op.name: {name: _cell(op, key) for name, key in keys.items()} for op in ops},
    }  # fmt: skip


def _text(cell: dict[str, Any]) -> str:
    if cell["served"] != "kernel":
        return {"missing": ".", "composite": "composite", "broken": "BROKEN"}[cell["served"]]
    return f"{cell['providers'][0]}{'?' if cell['conditional'] else ''}"


def run(options: argparse.Namespace) -> int:
    try:
        found = matrix(options.device, options.layout, tuple(options.operator))
    except FlambeauError as error:
        print(error, file=sys.stderr)
        return 1
    if found is None:
        return 1
    if options.json:
        print_json(found)
        return 0
    head = ["", *(each.name for each in DTYPES)]
    rows = [[name, *(_text(each) for each in cells.values())] for name, cells in found["operators"].items()]
    print("\n".join(table([head, *rows])))
    count = Counter(cell["served"] for cells in found["operators"].values() for cell in cells.values())
    kinds = ", ".join(f"{count[each]:,} {each}" for each in ("kernel", "composite", "missing", "broken") if count[each])
    print(f"{len(rows)} operators x {len(DTYPES)} dtypes on {found['device']} ({found['layout']}): {kinds}")
    return 0
