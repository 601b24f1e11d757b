"""Kernels that run elsewhere: here they are called, and their results get names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flambeau import device
from flambeau.backend import Geometry, Key, Tensor, intern, make, results_of, source_of, tensors_in

from .hosted import HOSTED
from .link import LINK, Owned
from .streams import current

__all__ = ["RemoteKernel"]


def _unfilled(key: Key, geometry: Geometry) -> Tensor:
    """A tensor whose memory the worker makes when the kernel has run."""
    return make(key, geometry, (Owned(), 0))


class RemoteKernel:
    """A kernel of the hosted backend; its predicate may ask for shapes and types, not for values."""

    def __init__(self, operator: str, family: Any) -> None:
        self.operator, self.family, self.predicate = operator, family, family.predicate
        self.gradient = getattr(family, "gradient", None)

    def source(self) -> str:
        """Where the kernel is."""
        return str(self.family.source()) if hasattr(self.family, "source") else source_of(self.family.build)

    def build(self, key: Key) -> Callable[..., Any] | None:
        if self.family.build(intern(device(HOSTED), dtype=key.dtype)) is None:
            return None
        operator, dtype = self.operator, key.dtype.name

        def call(*args: Any, out: Tensor | None = None) -> Any:
            results = results_of(operator, args, _unfilled) if out is None else None
            if results is NotImplemented:
                return LINK.ask("run_and_tell", current().number, operator, dtype, args)
            LINK.send("run", current().number, operator, dtype, tensors_in(results), args, out)
            return results if out is None else out

        return call
