"""The kernels by family: each module's KERNELS maps operator names to kernel families."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules
from typing import Any, Final

__all__ = ["KERNELS"]


def _collect() -> dict[str, Any]:
    found: dict[str, Any] = {}
    for module in sorted(each.name for each in iter_modules(__path__)):
        found.update(getattr(import_module(f"{__name__}.{module}"), "KERNELS", {}))
    return found


#: Every kernel of the plug-in by operator name.
KERNELS: Final = _collect()
