"""Launchers of indexing.c: each operator as a plan of one walk.

A plan says how large the iteration is, how the target (what is indexed) and the value
step through it, and for each index tensor how far its places lie apart in the target and
how it steps.  All strides are in elements.  Plans are remembered for the geometries they
were made for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from flambeau.backend import (
    BoundsError,
    Geometry,
    Kernel,
    Key,
    ShapeError,
    Tensor,
    broadcast_shapes,
    contiguous,
    empty,
    expanded,
    source_of,
    strided,
    view,
)

from .._kernels import ffi, lib
from ..launch import find
from ..memory import blocks_of

_new: Final = ffi.new
_params: Final = ffi.typeof("int64_t[]")
_pointers: Final = ffi.typeof("void *[]")
_NULL: Final = ffi.NULL
_call: Final = lib.fb_call4

#: Flags of a plan: negative indices count from the end; the target is fresh.
WRAP: Final = 1
FRESH: Final = 2

Error = type[Exception]


class Layout(NamedTuple):
    """An iteration: its sizes, the target's strides, and for each index (dimension, extent, distance, its own strides)."""

    size: Sequence[int]
    target: Sequence[int]
    indices: Sequence[tuple[int, int, int, Sequence[int]]]


class Plan(NamedTuple):
    """C's parameters, the geometry of the value, and the layout for error messages."""

    q: Any
    value: Geometry
    layout: Layout
    flags: int


_plans: Final[dict[Any, Plan]] = {}
_MOST_PLANS: Final = 2048


def planned(name: Any, make: Callable[[], tuple[Layout, Sequence[int], Geometry, int]], sizes: Sequence[int]) -> Plan:
    """Write a plan down: ``make`` gives layout, the value's strides and geometry, and flags; ``sizes`` are the indices' numels."""
    layout, value, geometry, flags = make()
    q = [len(layout.size), len(layout.indices), flags, *layout.size, *layout.target, *value]
    for (_, extent, stride, steps), numel in zip(layout.indices, sizes, strict=True):
        q += (extent, stride, numel, *steps)
    if len(_plans) > _MOST_PLANS:
        _plans.clear()
    plan = _plans[name] = Plan(_new(_params, q), geometry, layout, flags)
    return plan


_found: Final[dict[tuple[str, Key], Any]] = {}


def find_cached(name: str, key: Key) -> Any:
    """The C kernel for a key.

    Raises:
        NotImplementedError: there is none.
    """
    kernel = _found.get((name, key))
    if kernel is None:
        kernel = find(name, key.dtype)
        if kernel is None:
            raise NotImplementedError(f'"{name}" not implemented for {key.dtype.name} on {key.device}.')
        _found[name, key] = kernel
    return kernel


def fail(code: int, plan: Plan, indices: Sequence[Any], message: str, error: Error) -> None:
    """Say what is wrong with an index {bad} of dimension {dim} with {size} places."""
    each = indices[code - 1]
    dim, size, _, _ = plan.layout.indices[code - 1]
    values = each.key.memory.to_numpy(each.memory, each.geometry.numel, each.key.dtype)
    low = -size if plan.flags & WRAP else 0
    bad = int(values[np.flatnonzero((values < low) | (values >= size))[0]])
    raise error(message.format(bad=bad, dim=dim, size=size))


def run(
    name: str,
    plan: Plan,
    target: Tensor,
    value: Tensor,
    indices: Sequence[Any],
    message: str,
    error: Error = BoundsError,
) -> None:
    """Run a kernel of indexing.c that writes into the target."""
    kernel = find_cached(name, target.key)
    if len(indices) == 1:
        code = _call(kernel, target.memory, value.memory, indices[0].memory, _NULL, plan.q)
    else:
        pointers = _new(_pointers, [target.memory, value.memory, *[each.memory for each in indices]])
        code = lib.fb_call_n(kernel, pointers, plan.q)
    if code:
        fail(code, plan, indices, message, error)


class Read:
    """An operator that reads; ``launcher`` makes its kernel from a function that runs a plan into fresh memory."""

    predicate = None

    def __init__(self, launcher: Callable[[Callable[..., Tensor]], Callable[..., Tensor]]) -> None:
        self.launcher = launcher

    def build(self, key: Key) -> Callable[..., Tensor] | None:
        kernel = find("index_get", key.dtype)
        if kernel is None:
            return None
        blocks, new = blocks_of(key.dtype), object.__new__

        def read(self: Tensor, plan: Plan, indices: Sequence[Any], message: str, error: Error = BoundsError) -> Tensor:
            result = new(Tensor)
            result.key, result.geometry = key, plan.value
            count = plan.value.numel
            result.memory = memory = blocks[count]()
            result.node = result.shared = None
            if count:
                if len(indices) == 1:
                    code = _call(kernel, self.memory, memory, indices[0].memory, _NULL, plan.q)
                else:
                    pointers = _new(_pointers, [self.memory, memory, *[each.memory for each in indices]])
                    code = lib.fb_call_n(kernel, pointers, plan.q)
                if code:
                    fail(code, plan, indices, message, error)
            return result

        return self.launcher(read)

    def source(self) -> str:
        return source_of(self.launcher)


OUT_OF_DIMENSION: Final = "index {bad} is out of bounds for dimension {dim} with size {size}"


def unshared(target: Tensor, other: Any) -> Any:
    """A tensor that a write into the target cannot change."""
    if other.shared is None or target.shared is None:
        return other.clone() if other is target else other
    return other.clone() if other.shared.memory is target.shared.memory else other


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


def _one(geometry: Geometry) -> tuple[Sequence[int], Sequence[int]]:
    """Shape and strides with at least one dimension."""
    return (geometry.shape, geometry.strides) if geometry.ndim else ((1,), (1,))


# ---------------------------------------------------------------- along a dimension


def _positions(self: Geometry, shape: Sequence[int], steps: Sequence[int], value: Geometry, dim: int) -> Any:
    """gather and scatter: the index has a value for every position."""
    own, strides = _one(self)
    across = [0 if at == dim else each for at, each in enumerate(strides)]
    layout = Layout(shape or (1,), across, [(dim, own[dim], strides[dim], steps or (0,))])
    return layout, value.strides or [0] * len(layout.size), value, 0


def gather(read: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def launch(self: Tensor, index: Any, dim: int) -> Tensor:
        wanted = index.geometry
        plan = _plans.get(("gather", self.geometry, wanted, dim))
        if plan is None or not wanted.contiguous:
            index, steps = dense(index)
            out = contiguous(wanted.shape)
            name = ("gather", self.geometry, wanted, dim)
            plan = planned(
                name, lambda: _positions(self.geometry, wanted.shape, steps, out, dim), [index.geometry.numel]
            )
        return read(self, plan, (index,), OUT_OF_DIMENSION, ShapeError)

    return launch


_SCATTER: Final = {"": "index_put", "add": "index_add", "mul": "index_mul", "max": "index_max", "min": "index_min"}


def scatter_(self: Tensor, index: Any, src: Any, dim: int, reduce: str) -> None:
    wanted = index.geometry
    if not wanted.numel:
        return
    index, steps = dense(unshared(self, index))
    src = unshared(self, src)
    name = ("scatter", self.geometry, wanted, src.geometry, dim)
    plan = _plans.get(name) or planned(
        name, lambda: _positions(self.geometry, wanted.shape, steps, src.geometry, dim), [index.geometry.numel]
    )
    run(_SCATTER[reduce], plan, self, src, (index,), OUT_OF_DIMENSION, ShapeError)


def _slices(self: Geometry, count: int, step: int, value: Geometry, dim: int, flags: int) -> Any:
    """index_select and its like: the index has a value for every slice."""
    shape, strides = _one(self)
    size = [*shape[:dim], count, *shape[dim + 1 :]]
    across = [0 if at == dim else each for at, each in enumerate(strides)]
    steps = [step if at == dim else 0 for at in range(len(size))]
    layout = Layout(size, across, [(dim, shape[dim], strides[dim], steps)])
    return layout, value.strides if value.ndim == len(size) else [0] * len(size), value, flags


def index_select(read: Callable[..., Tensor]) -> Callable[..., Tensor]:
    message = "index out of range in self: {bad} for {size} slices of dimension {dim}"

    def launch(self: Tensor, index: Any, dim: int) -> Tensor:
        geometry = self.geometry
        if not index.geometry.contiguous:
            index = index.contiguous()
        plan = _plans.get(("index_select", geometry, index.geometry, dim))
        if plan is None:
            count, shape = index.geometry.numel, geometry.shape
            out = contiguous((*shape[:dim], count, *shape[dim + 1 :]) if shape else ())
            name = ("index_select", geometry, index.geometry, dim)
            plan = planned(name, lambda: _slices(geometry, count, 1, out, dim, 0), [count])
        return read(self, plan, (index,), message)

    return launch


def _into_slices(kernel: str, flags: int, error: Error, prefix: str = "") -> Callable[..., None]:
    message = prefix + OUT_OF_DIMENSION

    def launch(self: Tensor, index: Any, source: Any, dim: int) -> None:
        geometry = self.geometry
        count = index.geometry.numel  # more than are stored if one value is repeated
        if not count or not geometry.numel:
            return
        index, steps = dense(unshared(self, index))
        source = unshared(self, source)
        name = ("slices", geometry, count, steps, source.geometry, dim, flags)
        plan = _plans.get(name) or planned(
            name,
            lambda: _slices(geometry, count, steps[0] if steps else 0, source.geometry, dim, flags),
            [index.geometry.numel],
        )
        run(kernel, plan, self, source, (index,), message, error)

    return launch


# ---------------------------------------------------------------- flat, and general


def _flat(kernel: str, target: Tensor, index: Any, value: Tensor) -> None:
    numel, count = target.geometry.numel, index.geometry.numel
    name = ("flat", numel, count)
    plan = _plans.get(name) or planned(
        name, lambda: (Layout((count,), (0,), [(0, numel, 1, (1,))]), (1,), value.geometry, WRAP), [count]
    )
    run(
        kernel,
        plan,
        target,
        value,
        (index,),
        "out of range: tried to access index {bad} on a tensor of {size} elements.",
    )


def take(self: Any, index: Any) -> Tensor:
    out = empty(self.key, contiguous(index.geometry.shape))
    if out.geometry.numel:
        _flat("index_get", self.contiguous(), index.contiguous(), out)
    return out


def put_(self: Any, index: Any, source: Any, accumulate: bool) -> None:
    if index.geometry.numel:
        target = self.contiguous()
        _flat(
            "index_add" if accumulate else "index_put",
            target,
            unshared(self, index).contiguous(),
            unshared(self, source).contiguous(),
        )
        if target is not self:
            self.copy_(target)


def _layout(geometry: Geometry, indices: Sequence[tuple[int, Sequence[int], Sequence[int]]]) -> Layout:
    """The iteration of ``x[indices]``, for (dimension, shape, strides) of each index tensor."""
    shape, strides = geometry.shape, geometry.strides
    used = [dim for dim, _, _ in indices]
    middle = broadcast_shapes(*[each for _, each, _ in indices])
    rest = [dim for dim in range(len(shape)) if dim not in used]
    before = rest[: used[0]] if used[-1] - used[0] == len(used) - 1 else []
    after = rest[len(before) :]
    size = [*[shape[dim] for dim in before], *middle, *[shape[dim] for dim in after]]
    across = [*[strides[dim] for dim in before], *[0] * len(middle), *[strides[dim] for dim in after]]
    found = []
    for dim, own, steps in indices:
        spread = expanded(strided(tuple(own), tuple(steps)), middle)
        found.append((dim, shape[dim], strides[dim], (*[0] * len(before), *spread, *[0] * len(after))))
    return Layout(size, across, found)


def _used(indices: Sequence[Any]) -> tuple[list[Any], tuple[Any, ...], list[tuple[int, Sequence[int], Sequence[int]]]]:
    """The index tensors without gaps, what a plan for them depends on, and (dimension, shape, strides) of each."""
    tensors, names, parts = [], [], []
    for dim, each in enumerate(indices):
        if each is None:
            names.append(None)
            continue
        names.append(each.geometry)
        kept, steps = dense(each)
        tensors.append(kept)
        parts.append((dim, each.geometry.shape, steps))
    return tensors, tuple(names), parts


def index(read: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def launch(self: Tensor, indices: Sequence[Any]) -> Tensor:
        geometry = self.geometry
        if len(indices) == 1 and indices[0].geometry.contiguous:
            plan = _plans.get(("index", geometry, (indices[0].geometry,)))
            if plan is not None:
                return read(self, plan, indices, OUT_OF_DIMENSION)
        tensors, names, parts = _used(indices)
        plan = _plans.get(("index", geometry, names))
        if plan is None:
            layout = _layout(geometry, parts)
            out = contiguous(tuple(layout.size))
            plan = planned(
                ("index", geometry, names),
                lambda: (layout, out.strides, out, WRAP),
                [each.geometry.numel for each in tensors],
            )
        return read(self, plan, tensors, OUT_OF_DIMENSION)

    return launch


def index_put_(self: Tensor, indices: Sequence[Any], value: Any, accumulate: bool) -> None:
    geometry, value = self.geometry, unshared(self, value)
    tensors, names, parts = _used([None if each is None else unshared(self, each) for each in indices])
    name = ("index_put", geometry, names, value.geometry)
    plan = _plans.get(name)
    if plan is None:
        layout = _layout(geometry, parts)
        steps = expanded(value.geometry, layout.size)
        plan = planned(name, lambda: (layout, steps, value.geometry, WRAP), [each.geometry.numel for each in tensors])
    if 0 not in plan.layout.size:
        run("index_add" if accumulate else "index_put", plan, self, value, tensors, OUT_OF_DIMENSION)


def embedding(read: Callable[..., Tensor]) -> Callable[..., Tensor]:
    message = "index out of range in self: {bad} for {size} rows"

    def launch(weight: Tensor, indices: Any, padding_idx: int, scale_grad_by_freq: bool, sparse: bool) -> Tensor:
        if not indices.geometry.contiguous:
            indices = indices.contiguous()
        plan = _plans.get(("embedding", weight.geometry, indices.geometry))
        if plan is None:
            shape = indices.geometry.shape
            layout = _layout(weight.geometry, [(0, shape, indices.geometry.strides)])
            out = contiguous((*shape, weight.geometry.shape[1]))
            name = ("embedding", weight.geometry, indices.geometry)
            plan = planned(name, lambda: (layout, out.strides, out, 0), [indices.geometry.numel])
        return read(weight, plan, (indices,), message)

    return launch


KERNELS: Final[dict[str, Any]] = {
    "gather": Read(gather),
    "scatter_": Kernel(scatter_),
    "index_select": Read(index_select),
    "index_add_": Kernel(_into_slices("index_add", 0, ShapeError)),
    "index_copy_": Kernel(_into_slices("index_put", 0, BoundsError, "index_copy_(): ")),
    "index_fill_": Kernel(_into_slices("index_put", WRAP, BoundsError)),
    "take": Kernel(take),
    "put_": Kernel(put_),
    "index": Read(index),
    "index_put_": Kernel(index_put_),
    "embedding": Read(embedding),
}
