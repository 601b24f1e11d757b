"""From tensors to C: the launchers of pointwise kernels, and plans for strided ones.

A launcher allocates the output and calls C.  Operands of one dense geometry take
the short way; anything else is walked by a plan, cached for each set of geometries.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any, Final

from flambeau.backend import (
    DTYPES,
    Geometry,
    Key,
    Tensor,
    broadcast,
    broadcast_shapes,
    contiguous,
    dtype,
    empty,
    expanded,
    make,
)

from ._kernels import ffi, lib
from .memory import blocks_of

__all__ = ["CODES", "Loop", "find", "packed", "plan_for", "unary", "walk"]

#: dtype codes of flambeau.h
CODES: Final = {each: code for code, each in enumerate(DTYPES)}
_MOST_PLANS: Final = 1024


def find(name: str, dtype: dtype) -> Any:
    """The C kernel of this name for a dtype, or None."""
    found = lib.fb_find(name.encode(), CODES[dtype])
    return None if found == ffi.NULL else found


def packed(tensor: Tensor) -> Tensor:
    """The tensor in row-major order: itself, or a copy without history."""
    if tensor.geometry.contiguous:
        return tensor
    return make(tensor.key, tensor.geometry, tensor.memory).contiguous()  # type: ignore[attr-defined,no-any-return]


def plan_for(shape: Sequence[int], strides: Sequence[Sequence[int]]) -> Any:
    """The parameter block of fb_walk: dimensions sorted innermost first and merged where they can be.

    Args:
        shape: sizes of the iteration, none of them 0.
        strides: for each operand, output first, its strides in elements.
    """
    dims = [dim for dim, size in enumerate(shape) if size != 1]
    # Innermost: where the operands move least; the output counts most.
    dims.sort(key=lambda dim: [abs(each[dim]) for each in strides] + [dim * -1])
    merged: list[list[int]] = []  # [size, stride of each operand...]
    for dim in dims:
        steps = [each[dim] for each in strides]
        if merged and all(step == last * merged[-1][0] for step, last in zip(steps, merged[-1][1:], strict=True)):
            merged[-1][0] *= shape[dim]
        else:
            merged.append([shape[dim], *steps])
    if not merged:
        merged = [[1, *[0] * len(strides)]]
    numel = 1
    for size in shape:
        numel *= size
    flat = [len(strides), len(merged), numel, *(each[0] for each in merged)]
    for operand in range(len(strides)):
        flat += [each[operand + 1] for each in merged]
    return ffi.new("int64_t[]", flat)


_PADDING: Final = [[ffi.NULL] * (5 - count) for count in range(6)]


class _Plans(dict[Any, Any]):
    """Plans by the operands' geometries; emptied when it grows large."""

    def walk(self, kernel: Any, operands: Sequence[Tensor]) -> None:
        """Run a pointwise kernel; the first operand is the output and has the full shape."""
        geometries = tuple([each.geometry for each in operands])
        plan = self.get(geometries)
        if plan is None:
            shape = geometries[0].shape
            if len(self) > _MOST_PLANS:
                self.clear()
            plan = self[geometries] = plan_for(shape, [expanded(each, shape) for each in geometries])
        lib.fb_walk(kernel, plan, *[each.memory for each in operands], *_PADDING[len(operands)])


_plans: Final = _Plans()
#: Run a pointwise kernel over (output, inputs...) of any strides; the output has the full shape.
walk: Final = _plans.walk


class Loop:
    """A pointwise C kernel under its operator's name.

    Args:
        name: of the C kernel.
        operands: number of inputs.
        result: the output's dtype if it is not the key's.
        predicate: accepts or declines a call.
    """

    def __init__(
        self,
        name: str,
        operands: int,
        result: dtype | None = None,
        predicate: Callable[..., bool] | None = None,
    ) -> None:
        self.name, self.operands, self.result, self.predicate = name, operands, result, predicate
        caller = sys._getframe(1)
        self.place = f"{caller.f_code.co_filename}:{caller.f_lineno}"

    def build(self, key: Key) -> Callable[..., Tensor] | None:
        kernel = find(self.name, key.dtype)
        if kernel is None:
            return None
        out_key = key if self.result is None else key.of(self.result)
        return (unary, _binary)[self.operands - 1](kernel, out_key) if self.operands < 3 else _many(kernel, out_key)

    def source(self) -> str:
        """Where the C kernel gets its operator's name; the C file of the same stem is beside it."""
        return self.place


def unary(kernel: Any, out_key: Key) -> Callable[..., Tensor]:
    """A launcher of a C kernel of one input."""
    run, blocks, new = lib.fb_run2, blocks_of(out_key.dtype), object.__new__

    def launch(a: Tensor, out: Tensor | None = None) -> Tensor:
        geometry = a.geometry
        if out is None:
            if geometry.dense:
                count = geometry.numel
                out = new(Tensor)
                out.key, out.geometry, out.memory = out_key, geometry, blocks[count]()
                out.node = out.shared = None
                run(kernel, count, out.memory, a.memory)
                return out
            out = empty(out_key, contiguous(geometry.shape))
        if geometry.dense and out.geometry is geometry:
            run(kernel, geometry.numel, out.memory, a.memory)
        elif geometry.numel:
            _plans.walk(kernel, (out, a))
        return out

    return launch


def _binary(kernel: Any, out_key: Key) -> Callable[..., Tensor]:
    run, spread, blocks, new = lib.fb_run3, lib.fb_spread3, blocks_of(out_key.dtype), object.__new__

    def launch(a: Tensor, b: Tensor, out: Tensor | None = None) -> Tensor:
        geometry, other = a.geometry, b.geometry
        if geometry is other:
            repeated = 0
        elif other.numel == 1 and other.ndim <= geometry.ndim:
            repeated = 4
        elif geometry.numel == 1 and geometry.ndim <= other.ndim:
            geometry, repeated = other, 2
        elif other.single and other.shape == geometry.shape:
            repeated = 4
        elif geometry.single and geometry.shape == other.shape:
            geometry, repeated = other, 2
        else:
            repeated = -1
        if repeated >= 0 and geometry.single and not geometry.dense:  # both are one element, repeated
            geometry, repeated = contiguous(geometry.shape), 6
        if repeated >= 0 and geometry.dense and (out is None or out.geometry is geometry):
            count = geometry.numel
            if out is None:
                out = new(Tensor)
                out.key, out.geometry, out.memory = out_key, geometry, blocks[count]()
                out.node = out.shared = None
            if repeated:
                spread(kernel, count, out.memory, a.memory, b.memory, repeated)
            else:
                run(kernel, count, out.memory, a.memory, b.memory)
            return out
        if out is None:
            out = empty(out_key, broadcast(a.geometry, other))
        if out.geometry.numel:
            _plans.walk(kernel, (out, a, b))
        return out

    return launch


def _many(kernel: Any, out_key: Key) -> Callable[..., Tensor]:
    common: dict[tuple[Geometry, ...], Geometry] = {}

    def launch(*operands: Tensor, out: Tensor | None = None) -> Tensor:
        if out is None:
            geometries = tuple([each.geometry for each in operands])
            geometry = common.get(geometries)
            if geometry is None:
                if len(common) > _MOST_PLANS:
                    common.clear()
                geometry = common[geometries] = contiguous(broadcast_shapes(*[each.shape for each in geometries]))
            out = empty(out_key, geometry)
        if out.geometry.numel:
            _plans.walk(kernel, (out, *operands))
        return out

    return launch
