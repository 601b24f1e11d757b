"""How a tensor's elements are laid out."""

from __future__ import annotations

from typing import Final

__all__ = ["layout", "sparse_coo", "strided"]


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
