"""Launchers of arithmetic.c."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from flambeau.backend import DtypeError, Key, Tensor, bool_

from .._kernels import ffi, lib
from ..launch import Loop, find, packed

__all__ = ["KERNELS"]

_SAME: Final = "add sub mul div atan2 maximum minimum pow bitwise_and bitwise_or bitwise_xor"


class _IntegerDivision(Loop):
    """Division of integers, which asks first whether a divisor is zero."""

    def build(self, key: Key) -> Callable[..., Tensor] | None:
        launch, zero = super().build(key), find("has_zero", key.dtype)
        if launch is None or zero is None:
            return launch

        def checked(a: Tensor, b: Tensor, out: Tensor | None = None) -> Tensor:
            found = ffi.new("char[1]")
            divisor = packed(b)
            lib.fb_run2(zero, divisor.geometry.numel, found, divisor.memory)
            if found[0] != b"\0":
                raise DtypeError(
                    f"ZeroDivisionError: {self.name} of {key.dtype.name} by a divisor of shape {list(b.shape)} that contains zero.\n"
                    "Mask the zeros, or convert to floating point."
                )
            return launch(a, b, out)

        return checked


KERNELS: Final[dict[str, Any]] = {
    **{name: Loop(name, 2) for name in _SAME.split()},
    **{name: _IntegerDivision(name, 2) for name in ("floor_divide", "trunc_divide", "remainder", "fmod")},
    **{name: Loop(name, 2, bool_) for name in ("logical_and", "logical_or", "logical_xor")},
    "bitwise_left_shift": Loop("left_shift", 2),
    "bitwise_right_shift": Loop("right_shift", 2),
    "add_scaled": Loop("add_scaled", 3),
}
