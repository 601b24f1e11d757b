"""Sharing memory with other libraries through DLPack."""

from ..exchange import from_dlpack, to_dlpack

__all__ = ["from_dlpack", "to_dlpack"]
