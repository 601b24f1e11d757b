"""Launchers of indexing.c: each operator as a plan of one walk.

An operator says how large the iteration is, how the target (what is indexed) and the
value step through it, and for each index tensor how far its places lie apart in the
target and how it steps.  All strides are in elements.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
from flambeau.backend import BoundsError, Kernel, Key, ShapeError, Tensor, broadcast_shapes, contiguous, empty, expanded, strided, view

from .._kernels import ffi, lib
from ..launch import find

_params: Final = ffi.typeof("int64_t[]")
_pointers: Final = ffi.typeof("void *[]")
_NULL: Final = ffi.NULL

WRAP: Final = 1
FRESH: Final = 2

#: (extent, distance of places in the target, the index as a dense tensor, its strides over the iteration)
Index = tuple[int, int, Any, Sequence[int]]


def dense(index: Any) -> tuple[Any, tuple[int, ...]]:
    """An index tensor whose values are stored without gaps, and its strides: repeated dimensions stay repeated."""
    geometry = index.geometry
    if geometry.contiguous:
        return index, geometry.strides
    shape, strides = geometry.shape, geometry.strides
    if 0 not in strides:
        return index.contiguous(), contiguous(shape).strides
    once = tuple(1 if step == 0 else size for size, step in zip(shape, strides, strict=True))
    kept = view(index, strided(once, strides)).contiguous()  # type: ignore[attr-defined]
    return kept, tuple(0 if step == 0 else own for step, own in zip(strides, kept.geometry.strides, strict=True))


def walk(
    name: str,
    key: Key,
    target: Tensor,
    value: Tensor,
    size: Sequence[int],
    target_strides: Sequence[int],
    value_strides: Sequence[int],
    indices: Sequence[Index],
    flags: int,
    problem: Callable[[int, int], Exception],
) -> None:
    """Run one of indexing.c's kernels; ``problem`` makes the error for (which index tensor, bad index)."""
    q = [len(size), len(indices), flags, *size, *target_strides, *value_strides]
    for extent, stride, each, steps in indices:
        q += (extent, stride, each.geometry.numel, *steps)
    kernel = find_cached(name, key)
    if len(indices) == 1:
        code = lib.fb_call(
            kernel, target.memory, value.memory, indices[0][2].memory, _NULL, _NULL, _NULL, _NULL, _NULL, ffi.new(_params, q)
        )
    else:
        p = ffi.new(_pointers, [target.memory, value.memory, *[each[2].memory for each in indices]])
        code = lib.fb_call_n(kernel, p, ffi.new(_params, q))
    if code:
        extent, _, each, _ = indices[code - 1]
        values = each.key.memory.to_numpy(each.memory, each.geometry.numel, each.key.dtype)
        low = -extent if flags & WRAP else 0
        raise problem(code - 1, int(values[np.flatnonzero((values < low) | (values >= extent))[0]]))


_found: Final[dict[tuple[str, Key], Any]] = {}


def find_cached(name: str, key: Key) -> Any:
    kernel = _found.get((name, key))
    if kernel is None:
        kernel = find(name, key.dtype)
        if kernel is None:
            raise NotImplementedError(f'"{name}" not implemented for {key.dtype.name} on {key.device}.')
        _found[name, key] = kernel
    return kernel


def unshared(target: Tensor, other: Any) -> Any:
    """A tensor that a write into the target cannot change."""
    if other.shared is not None and target.shared is not None and other.shared.memory is target.shared.memory:
        return other.clone()
    return other


# ---------------------------------------------------------------- along a dimension


def _one(geometry: Any) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Shape and strides with at least one dimension."""
    return (geometry.shape, geometry.strides) if geometry.ndim else ((1,), (1,))


def _out_of_dimension(dim: int, size: int, kind: type[Exception] = ShapeError, prefix: str = "") -> Callable[[int, int], Exception]:
    return lambda _, bad: kind(f"{prefix}index {bad} is out of bounds for dimension {dim} with size {size}")


def _positions(name: str, self: Tensor, index: Any, value: Tensor, dim: int, flags: int) -> None:
    """gather and scatter: the index has a value for every position."""
    shape, strides = _one(self.geometry)
    size = index.geometry.shape if index.geometry.ndim else (1,)
    steps = value.geometry.strides if value.geometry.ndim else (1,) * len(size)
    index, index_steps = dense(index)
    across = [0 if at == dim else each for at, each in enumerate(strides)]
    walk(
        name, self.key, self, value, size, across, steps, [(shape[dim], strides[dim], index, index_steps or (0,))], flags,
        _out_of_dimension(dim, shape[dim]),
    )  # fmt: skip


def gather(self: Tensor, index: Tensor, dim: int) -> Tensor:
    out = empty(self.key, contiguous(index.geometry.shape))
    if out.geometry.numel:
        _positions("index_get", self, index, out, dim, 0)
    return out


_SCATTER: Final = {"": "index_put", "add": "index_add", "mul": "index_mul", "max": "index_max", "min": "index_min"}


def scatter_(self: Tensor, index: Tensor, src: Tensor, dim: int, reduce: str) -> None:
    if index.geometry.numel:
        _positions(_SCATTER[reduce], self, unshared(self, index), unshared(self, src), dim, 0)


def _slices(name: str, self: Tensor, index: Any, value: Tensor, dim: int, flags: int, problem: Any) -> None:
    """index_select and its like: the index has a value for every slice."""
    shape, strides = _one(self.geometry)
    size = [*shape[:dim], index.geometry.numel, *shape[dim + 1 :]]
    index, steps = dense(index)
    own = [0] * len(size)
    own[dim] = steps[0] if steps else 0
    across = [0 if at == dim else each for at, each in enumerate(strides)]
    lying = value.geometry.strides if value.geometry.ndim == len(size) else (1,) * len(size)
    if not value.geometry.ndim:
        lying = (0,) * len(size)
    walk(name, self.key, self, value, size, across, lying, [(shape[dim], strides[dim], index, own)], flags, problem)


def _out_of_self(_: int, bad: int) -> Exception:
    return BoundsError(f"index out of range in self: got index {bad}")


def index_select(self: Tensor, index: Tensor, dim: int) -> Tensor:
    shape = self.geometry.shape
    if not shape:
        out = empty(self.key, contiguous(()))
    else:
        out = empty(self.key, contiguous((*shape[:dim], index.geometry.numel, *shape[dim + 1 :])))
    if out.geometry.numel:
        _slices("index_get", self, index, out, dim, 0, _out_of_self)
    return out


def _into_slices(name: str, flags: int, kind: type[Exception], prefix: str = "") -> Callable[..., None]:
    def launch(self: Tensor, index: Tensor, source: Tensor, dim: int) -> None:
        if index.geometry.numel and self.geometry.numel:
            size = self.geometry.shape[dim] if self.geometry.ndim else 1
            problem = _out_of_dimension(dim, size, kind, prefix)
            _slices(name, self, unshared(self, index), unshared(self, source), dim, flags, problem)

    return launch


# ---------------------------------------------------------------- flat, and general


def take(self: Any, index: Tensor) -> Tensor:
    out = empty(self.key, contiguous(index.geometry.shape))
    if out.geometry.numel:
        _flat("index_get", self.contiguous(), index.contiguous(), out)  # type: ignore[attr-defined]
    return out


def put_(self: Any, index: Any, source: Any, accumulate: bool) -> None:
    if index.geometry.numel:
        target = self.contiguous()
        _flat("index_add" if accumulate else "index_put", target, unshared(self, index).contiguous(), unshared(self, source).contiguous())
        if target is not self:
            self.copy_(target)


def _flat(name: str, target: Tensor, index: Tensor, value: Tensor) -> None:
    numel, count = target.geometry.numel, index.geometry.numel

    def problem(_: int, bad: int) -> Exception:
        return BoundsError(f"out of range: tried to access index {bad} on a tensor of {numel} elements.")

    walk(name, target.key, target, value, (count,), (0,), (1,), [(numel, 1, index, (1,))], WRAP, problem)


def _layout(self: Tensor, indices: Sequence[Any]) -> tuple[list[int], list[int], list[Index], Callable[[int, int], Exception]]:
    """Size of the iteration, strides of the indexed tensor in it, and its indices."""
    shape, strides = self.geometry.shape, self.geometry.strides
    used = [dim for dim, each in enumerate(indices) if each is not None]
    middle = broadcast_shapes(*[indices[dim].geometry.shape for dim in used])
    rest = [dim for dim in range(len(shape)) if dim not in used]
    before = rest[: used[0]] if used[-1] - used[0] == len(used) - 1 else []
    after = rest[len(before) :]
    size = [*(shape[dim] for dim in before), *middle, *(shape[dim] for dim in after)]
    across = [*(strides[dim] for dim in before), *[0] * len(middle), *(strides[dim] for dim in after)]
    found: list[Index] = []
    for dim in used:
        each, steps = dense(indices[dim])
        spread = expanded(strided(indices[dim].geometry.shape, steps), middle)
        found.append((shape[dim], strides[dim], each, (*[0] * len(before), *spread, *[0] * len(after))))

    def problem(which: int, bad: int) -> Exception:
        return BoundsError(f"index {bad} is out of bounds for dimension {used[which]} with size {shape[used[which]]}")

    return size, across, found, problem


def index(self: Tensor, indices: Sequence[Any]) -> Tensor:
    size, across, found, problem = _layout(self, indices)
    out = empty(self.key, contiguous(tuple(size)))
    if out.geometry.numel:
        walk("index_get", self.key, self, out, size, across, out.geometry.strides, found, WRAP, problem)
    return out


def index_put_(self: Tensor, indices: Sequence[Any], value: Any, accumulate: bool) -> None:
    size, across, found, problem = _layout(self, [None if each is None else unshared(self, each) for each in indices])
    if 0 in size:
        return
    value = unshared(self, value)
    name = "index_add" if accumulate else "index_put"
    walk(name, self.key, self, value, size, across, expanded(value.geometry, size), found, WRAP, problem)


KERNELS: Final[dict[str, Any]] = {
    "gather": Kernel(gather),
    "scatter_": Kernel(scatter_),
    "index_select": Kernel(index_select),
    "index_add_": Kernel(_into_slices("index_add", 0, ShapeError)),
    "index_copy_": Kernel(_into_slices("index_put", 0, BoundsError, "index_copy_(): ")),
    "index_fill_": Kernel(_into_slices("index_put", WRAP, BoundsError)),
    "take": Kernel(take),
    "put_": Kernel(put_),
    "index": Kernel(index),
    "index_put_": Kernel(index_put_),
}
