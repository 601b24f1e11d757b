"""Devices: a type, which a plug-in serves, and an index.

The core holds no list of device types; whether one exists is decided by the
installed plug-ins when it is first used.
"""

from __future__ import annotations

import re
from typing import Any, Final

from .errors import ArgumentTypeError, DeviceError, shown

__all__ = ["device"]

_SPELLING: Final = re.compile(r"([A-Za-z_]\w*)(?::(\d+))?")
_interned: Final[dict[tuple[str, int | None], device]] = {}


class device:
    """Where a tensor's memory lies: ``device("cuda:1")``, ``device("cuda", 1)`` or ``device("cpu")``.

    Equal devices are one object.

    Raises:
        RuntimeError: the text is no device, or the index is negative.
        TypeError: ``type`` is neither text nor a device.
    """

    __slots__ = ("index", "type")

    type: str
    index: int | None

    def __new__(cls, type: str | device, index: int | None = None) -> device:
        if isinstance(type, device):
            return type
        if isinstance(type, int) and not isinstance(type, bool):
            raise ArgumentTypeError(
                f"device() expects a device type, got the number {type}.\nWrite the type too: device('TYPE', {type})."
            )
        if not isinstance(type, str):
            raise ArgumentTypeError(f"device() expects text such as 'cpu' or a device, got {shown(type)}.")
        match = _SPELLING.fullmatch(type)
        if not match or (index is not None and match[2] is not None):
            raise DeviceError(f"Expected a device such as 'cpu' or 'cuda:1', got {type!r} with index {index}.")
        if match[2] is not None:
            index = int(match[2])
        if index is not None and index < 0:
            raise DeviceError(f"A device index counts from 0, got {index}.")
        found = _interned.get((match[1], index))
        if found is None:
            found = object.__new__(cls)
            found.type, found.index = match[1], index
            found = _interned.setdefault((match[1], index), found)
        return found

    def __repr__(self) -> str:
        return (
            f"device(type={self.type!r})" if self.index is None else f"device(type={self.type!r}, index={self.index})"
        )

    def __str__(self) -> str:
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __reduce__(self) -> tuple[Any, tuple[str, int | None]]:
        return device, (self.type, self.index)
