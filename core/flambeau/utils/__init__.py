"""Data loading, checkpoints, exchange with other libraries; each part is imported when it is first used."""

from __future__ import annotations

import importlib
from typing import Any

_PARTS = ("bottleneck", "checkpoint", "cpp_extension", "data", "dlpack", "ffi", "hooks", "model_zoo")


def __getattr__(name: str) -> Any:
    if name in _PARTS:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
