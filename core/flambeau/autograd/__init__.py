"""Reverse-mode differentiation over the operators.

The layers below the operators import this package's parts, so its public names are
put in place when the rest of the core stands: :func:`complete`.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from .anomaly import detect_anomaly, set_detect_anomaly
    from .engine import backward, grad
    from .function import Function
    from .grad_mode import enable_grad, is_grad_enabled, no_grad, set_grad_enabled
    from .gradcheck import GradcheckError, gradcheck, gradgradcheck
    from .variable import Variable

__all__ = [
    "Function", "GradcheckError", "Variable", "backward", "complete", "detect_anomaly", "enable_grad", "grad",
    "gradcheck", "gradgradcheck", "is_grad_enabled", "no_grad", "set_detect_anomaly", "set_grad_enabled",
]  # fmt: skip

_HOMES: Final = {
    "anomaly": ("detect_anomaly", "set_detect_anomaly"),
    "engine": ("backward", "grad"),
    "function": ("Function",),
    "grad_mode": ("enable_grad", "is_grad_enabled", "no_grad", "set_grad_enabled"),
    "gradcheck": ("GradcheckError", "gradcheck", "gradgradcheck"),
    "variable": ("Variable",),
}


def complete() -> None:
    """Put the public names in place; the function ``gradcheck`` takes the place of its module."""
    for home, names in _HOMES.items():
        module = importlib.import_module(f"{__name__}.{home}")
        globals().update({name: getattr(module, name) for name in names})
