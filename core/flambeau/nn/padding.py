"""Padding of the borders."""

from __future__ import annotations

from typing import Any, ClassVar

from . import functional as F
from .module import Module
from .sizes import of_each

__all__ = [
    "CircularPad1d", "CircularPad2d", "CircularPad3d", "ConstantPad1d", "ConstantPad2d", "ConstantPad3d",
    "ReflectionPad1d",
    "ReflectionPad2d", "ReflectionPad3d", "ReplicationPad1d", "ReplicationPad2d", "ReplicationPad3d", "ZeroPad1d",
    "ZeroPad2d", "ZeroPad3d",
]  # fmt: skip


class _Pad(Module):
    """Adds elements at the borders of the last dimensions.

    Args:
        padding: one number for all sides, or (left, right, top, bottom, front, back).
    """

    dims: ClassVar[int]
    mode: ClassVar[str]

    def __init__(self, padding: Any) -> None:
        super().__init__()
        self.padding = of_each(padding, 2 * self.dims, "padding")

    def forward(self, input: Any) -> Any:
        return F.pad(input, self.padding, self.mode)

    def extra_repr(self) -> str:
        return str(self.padding)


class _Constant(_Pad):
    """Adds elements of one value at the borders of the last dimensions.

    Args:
        padding: one number for all sides, or (left, right, top, bottom, front, back).
        value: of the elements.
    """

    mode = "constant"

    def __init__(self, padding: Any, value: float) -> None:
        super().__init__(padding)
        self.value = value

    def forward(self, input: Any) -> Any:
        return F.pad(input, self.padding, "constant", self.value)

    def extra_repr(self) -> str:
        return f"padding={self.padding}, value={self.value}"


class _Zero(_Constant):
    __doc__ = _Pad.__doc__

    def __init__(self, padding: Any) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        return str(self.padding)


class ConstantPad1d(_Constant):
    __doc__ = _Constant.__doc__
    dims = 1


class ConstantPad2d(_Constant):
    __doc__ = _Constant.__doc__
    dims = 2


class ConstantPad3d(_Constant):
    __doc__ = _Constant.__doc__
    dims = 3


class ZeroPad1d(_Zero):
    """Adds zeros at both ends."""

    dims = 1


class ZeroPad2d(_Zero):
    """Adds zeros around images."""

    dims = 2


class ZeroPad3d(_Zero):
    """Adds zeros around volumes."""

    dims = 3


class ReflectionPad1d(_Pad):
    """Continues by reflection in the border elements."""

    dims, mode = 1, "reflect"


class ReflectionPad2d(_Pad):
    """Continues by reflection in the border elements."""

    dims, mode = 2, "reflect"


class ReflectionPad3d(_Pad):
    """Continues by reflection in the border elements."""

    dims, mode = 3, "reflect"


class ReplicationPad1d(_Pad):
    """Continues by repeating the border elements."""

    dims, mode = 1, "replicate"


class ReplicationPad2d(_Pad):
    """Continues by repeating the border elements."""

    dims, mode = 2, "replicate"


class ReplicationPad3d(_Pad):
    """Continues by repeating the border elements."""

    dims, mode = 3, "replicate"


class CircularPad1d(_Pad):
    """Continues periodically."""

    dims, mode = 1, "circular"


class CircularPad2d(_Pad):
    """Continues periodically."""

    dims, mode = 2, "circular"


class CircularPad3d(_Pad):
    """Continues periodically."""

    dims, mode = 3, "circular"
