"""How a tensor's elements are laid out."""

from __future__ import annotations

from typing import Final

__all__ = ["channels_last", "contiguous_format", "layout", "memory_format", "preserve_format", "sparse_coo", "strided"]


class layout:
    """A memory layout; kernels are registered for one."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"flambeau.{self.name}"

    def __reduce__(self) -> str:
        return self.name


strided: Final = layout("strided")
sparse_coo: Final = layout("sparse_coo")


class memory_format:
    """A wish about the strides of a result.  Results here are row-major or keep their input's order."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"flambeau.{self.name}"

    def __reduce__(self) -> str:
        return self.name


preserve_format: Final = memory_format("preserve_format")
contiguous_format: Final = memory_format("contiguous_format")
channels_last: Final = memory_format("channels_last")
