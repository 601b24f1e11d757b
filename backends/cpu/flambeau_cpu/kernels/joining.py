"""Launchers of joining.c."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, Final

from flambeau.backend import Geometry, Kernel, Key, Tensor, contiguous, empty, uint8

from .._kernels import ffi, lib
from ..launch import find, plan_for
from ..memory import blocks_of

_new: Final = ffi.new
_params: Final = ffi.typeof("int64_t[]")
_pointers: Final = ffi.typeof("void *[]")


_NULL: Final = ffi.NULL
_cat: Final = find("cat", uint8)
_triangle: Final = find("triangle", uint8)
#: NULLs after so many inputs of cat, up to the seven that fb_call takes beside the output.
_REST: Final = [(_NULL,) * (7 - count) for count in range(8)]


_MOST_PLANS: Final = 1024


class Cat:
    """Rows of the inputs copied beside each other, by a plan remembered for their geometries."""

    predicate = None

    def build(self, key: Key) -> Callable[..., Tensor]:
        size, blocks, new = key.dtype.itemsize, blocks_of(key.dtype), object.__new__
        call, call4 = lib.fb_call, lib.fb_call4
        plans: dict[Any, tuple[Geometry, Any] | None] = {}

        def plan(geometries: tuple[Geometry, ...], dim: int) -> tuple[Geometry, Any] | None:
            """The output's geometry and C's parameters; None if an input has gaps or there is nothing to do."""
            shape = geometries[0].shape
            out = contiguous((*shape[:dim], sum([each.shape[dim] for each in geometries]), *shape[dim + 1 :]))
            found = None
            if out.numel and all(each.contiguous for each in geometries):
                rows = prod(shape[:dim])
                parts = [each.numel * size // rows for each in geometries]
                found = out, _new(_params, [len(parts), rows, sum(parts), *parts])
            if len(plans) > _MOST_PLANS:
                plans.clear()
            plans[dim, geometries] = found
            return found

        def launch(tensors: Sequence[Any], dim: int) -> Tensor:
            count = len(tensors)
            if count == 2:
                a, b = tensors
                geometries = a.geometry, b.geometry
            else:
                geometries = tuple([each.geometry for each in tensors])
            found = plans.get((dim, geometries)) or plan(geometries, dim)
            if found is None:
                dense = [each.contiguous() for each in tensors]
                found = plan(tuple([each.geometry for each in dense]), dim)
                if found is None:
                    shape = geometries[0].shape
                    return empty(
                        key,
                        contiguous((*shape[:dim], sum([each.shape[dim] for each in geometries]), *shape[dim + 1 :])),
                    )
                tensors = dense
            geometry, q = found
            out = new(Tensor)
            out.key, out.geometry = key, geometry
            out.memory = memory = blocks[geometry.numel]()
            out.node = out.shared = None
            if count == 2:
                call4(_cat, memory, tensors[0].memory, tensors[1].memory, _NULL, q)
            elif count < 8:
                call(_cat, memory, *[each.memory for each in tensors], *_REST[count], q)
            else:
                lib.fb_call_n(_cat, _new(_pointers, [memory, *[each.memory for each in tensors]]), q)
            return out

        return launch


def triangle(upper: bool) -> Any:
    def launch(self: Any, diagonal: int) -> Tensor:
        dense = self.contiguous()
        out = empty(self.key, dense.geometry)
        rows, columns = dense.geometry.shape[-2:]
        if out.geometry.numel:
            q = _new(
                _params,
                (
                    prod(dense.geometry.shape[:-2]),
                    rows,
                    columns,
                    max(min(diagonal, columns), -rows),
                    self.key.dtype.itemsize,
                    upper,
                ),
            )
            lib.fb_call(_triangle, out.memory, dense.memory, _NULL, _NULL, _NULL, _NULL, _NULL, _NULL, q)
        return out

    return launch


def flip(self: Any, dims: tuple[int, ...]) -> Tensor:
    """A copy that walks the flipped dimensions backwards."""
    geometry = self.geometry
    out = empty(self.key, contiguous(geometry.shape))
    if geometry.numel:
        strides = [-step if dim in dims else step for dim, step in enumerate(geometry.strides)]
        last = sum((geometry.shape[dim] - 1) * geometry.strides[dim] for dim in dims)
        start = self.key.shift(self.memory, last) if last else self.memory
        null = ffi.NULL
        lib.fb_walk(
            find("copy", self.key.dtype),
            plan_for(geometry.shape, [out.geometry.strides, strides]),
            out.memory,
            start,
            null,
            null,
            null,
        )
    return out


KERNELS: Final[dict[str, Any]] = {
    "cat": Cat(),
    "flip": Kernel(flip),
    "tril": Kernel(triangle(False)),
    "triu": Kernel(triangle(True)),
}
