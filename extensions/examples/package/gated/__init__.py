"""An operator in C++ as a part of a package."""

from ._gate import gate

__all__ = ["gate"]
