"""The exceptions of flambeau.

Each is also the built-in exception that NumPy and PyTorch users expect, so
``except RuntimeError`` written for PyTorch keeps working::

    FlambeauError
    ├── ShapeError            RuntimeError         sizes do not fit together
    ├── DtypeError            RuntimeError         an element type that is not allowed here
    ├── DeviceError           RuntimeError         tensors on different devices, or an unknown device
    ├── ArgumentError         ValueError           a value outside its range
    ├── ArgumentTypeError     TypeError            an argument of the wrong Python type
    ├── BoundsError           IndexError           an index or dimension out of range
    ├── AutogradError         RuntimeError         gradients that cannot be computed
    ├── AllocationError       MemoryError, RuntimeError   a device is out of memory
    ├── MissingKernelError    NotImplementedError  no backend serves this call
    ├── PluginError           RuntimeError         a plug-in that cannot be used
    ├── FileError             RuntimeError         a file that is not what it should be
    └── FatalError            RuntimeError         the C code of an extension gave up

A message has two or three lines: what was expected, what came, what to do.
"""

from __future__ import annotations

__all__ = [
    "AllocationError",
    "ArgumentError",
    "ArgumentTypeError",
    "AutogradError",
    "BoundsError",
    "DeviceError",
    "DtypeError",
    "FatalError",
    "FileError",
    "FlambeauError",
    "MissingKernelError",
    "PluginError",
    "ShapeError",
    "shown",
]


def shown(value: object, width: int = 60) -> str:
    """A value as messages show it: one line of at most ``width`` characters."""
    text = " ".join(repr(value).split())
    return text if len(text) <= width else text[: width - 3] + "..."


class FlambeauError(Exception):
    """What all errors of flambeau have in common."""


class ShapeError(FlambeauError, RuntimeError):
    """Sizes or strides that do not fit together."""


class DtypeError(FlambeauError, RuntimeError):
    """An element type that is not allowed here."""


class DeviceError(FlambeauError, RuntimeError):
    """Tensors on different devices, or a device that nothing serves."""


class ArgumentError(FlambeauError, ValueError):
    """An argument whose value is outside the allowed range."""


class ArgumentTypeError(FlambeauError, TypeError):
    """An argument of the wrong Python type."""


class BoundsError(FlambeauError, IndexError):
    """An index or a dimension out of range."""


class AutogradError(FlambeauError, RuntimeError):
    """Gradients that were asked for and cannot be computed."""


class AllocationError(FlambeauError, MemoryError, RuntimeError):
    """A device has not enough memory."""


class MissingKernelError(FlambeauError, NotImplementedError):
    """No installed backend serves this operator, element type and device."""


class PluginError(FlambeauError, RuntimeError):
    """A plug-in that is broken, incompatible or contradicts another one."""


class FileError(FlambeauError, RuntimeError):
    """A file that is truncated, corrupt or of another format."""


class FatalError(FlambeauError, RuntimeError):
    """The C code of an extension gave up, with ``THError`` or ``THArgCheck``."""
