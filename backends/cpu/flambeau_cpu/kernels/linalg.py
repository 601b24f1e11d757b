"""Launchers of linalg.c: every product of matrices is one C kernel behind a plan.

A plan says what C needs to know of the operands' geometries; it is made once for
each combination of them.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from itertools import product
from typing import Any, Final

from flambeau.backend import (
    AllocationError,
    Geometry,
    Key,
    Size,
    Tensor,
    broadcast_shapes,
    contiguous,
    contiguous_strides,
    empty,
    expanded,
    strided,
)

from .._kernels import ffi, lib
from ..launch import find
from ..memory import blocks_of

__all__ = ["KERNELS", "Routine"]

_MOST_PLANS: Final = 1024
_NULL: Final = ffi.NULL


class Routine:
    """An operator computed by a C routine.

    Args:
        name: of the C kernel.
        launcher: makes, from the C kernel and the key, the function that takes the operator's arguments.
    """

    predicate = None

    def __init__(self, name: str, launcher: Callable[[Any, Key], Callable[..., Any]]) -> None:
        self.name, self.launcher = name, launcher

    def build(self, key: Key) -> Callable[..., Any] | None:
        kernel = find(self.name, key.dtype)
        return None if kernel is None else self.launcher(kernel, key)


def out_of_memory(name: str) -> AllocationError:
    """The error for a routine that found no memory for its scratch."""
    return AllocationError(f"{name}: the host has no memory for intermediate results.\nUse smaller batches.")


class _Batches:
    """The batch dimensions of a product: one that C walks, and shifts (in elements) for what does not merge into it."""

    def __init__(self, shape: Sequence[int], strides: Sequence[Sequence[int]]) -> None:
        merged: list[list[int]] = []  # innermost first: [size, step of each operand...]
        for dim in reversed(range(len(shape))):
            steps = [each[dim] for each in strides]
            if shape[dim] == 1:
                continue
            if merged and all(step == merged[-1][0] * last for step, last in zip(steps, merged[-1][1:], strict=True)):
                merged[-1][0] *= shape[dim]
            else:
                merged.append([shape[dim], *steps])
        inner = merged.pop(0) if merged else [1] + [0] * len(strides)
        self.size, self.steps = inner[0], inner[1:]
        self.shifts = [
            [
                sum(at * each[1 + operand] for at, each in zip(index, merged, strict=True))
                for operand in range(len(strides))
            ]
            for index in product(*[range(each[0]) for each in merged])
        ]


class Plan:
    """How C computes ``alpha * a @ b + beta * bias`` for operands of these geometries."""

    __slots__ = ("geometry", "numel", "params", "shifts")

    def __init__(
        self, a: Geometry, b: Geometry, bias: Geometry | None, alpha: float, beta: float, floating: bool
    ) -> None:
        row, column = a.ndim == 1, b.ndim == 1
        a_shape, a_strides = ((1, *a.shape), (0, *a.strides)) if row else (a.shape, a.strides)
        b_shape, b_strides = ((*b.shape, 1), (*b.strides, 0)) if column else (b.shape, b.strides)
        m, k, n = a_shape[-2], a_shape[-1], b_shape[-1]
        batch = tuple(broadcast_shapes(a_shape[:-2], b_shape[:-2]))
        self.geometry = contiguous(batch + (m,) * (not row) + (n,) * (not column))
        self.numel = self.geometry.numel
        c = contiguous_strides((*batch, m, n))
        full = (*batch, m, n)
        d = [0] * len(full)
        if bias is not None:
            squeezed = iter(expanded(bias, self.geometry.shape))
            d = [
                0 if (row and dim == len(batch)) or (column and dim == len(batch) + 1) else next(squeezed)
                for dim in range(len(full))
            ]
        lead = len(batch)
        steps = [
            expanded(strided(Size(shape[:-2]), tuple(strides[:-2])), batch)
            for shape, strides in ((a_shape, a_strides), (b_shape, b_strides))
        ]
        batches = _Batches(batch, [*steps, c[:lead], d[:lead]])
        size, (sa, sb, sc, sd) = batches.size, batches.steps
        a_rows, c_rows, d_rows = a_strides[-2], c[-2], d[-2]
        if size > 1 and sb == 0 and (m == 1 or (sa == m * a_rows and sd == m * d_rows)):
            # One matrix b for all: their rows are those of one tall product.
            if m == 1:
                a_rows, c_rows, d_rows = sa, sc, sd
            m, size = m * size, 1
        self.shifts = None if len(batches.shifts) == 1 else batches.shifts
        scalars = (
            [int.from_bytes(struct.pack("<d", each), "little", signed=True) for each in (alpha, beta)]
            if floating
            else [int(alpha), int(beta)]
        )
        self.params = ffi.new("int64_t[]", [
            size, m, n, k, sa, a_rows, a_strides[-1], sb, b_strides[-2], b_strides[-1],
            sc, c_rows, c[-1], sd, d_rows, d[-1], *scalars,
        ])  # fmt: skip

    def run(self, kernel: Any, out: Any, a: Any, b: Any, bias: Any) -> int:
        """Call C; memory handles in, an error code out."""
        if self.shifts is None:
            return lib.fb_call4(kernel, out, a, b, bias, self.params)  # type: ignore[no-any-return]
        for da, db, dc, dd in self.shifts:
            code = lib.fb_call4(kernel, out + dc, a + da, b + db, bias + dd if bias else bias, self.params)
            if code:
                return code  # type: ignore[no-any-return]
        return 0


def _store(plans: dict[Any, Plan], key: Any, plan: Plan) -> Plan:
    if len(plans) >= _MOST_PLANS:
        plans.clear()
    plans[key] = plan
    return plan


def _product(name: str) -> Callable[[Any, Key], Callable[..., Tensor]]:
    def launcher(kernel: Any, key: Key) -> Callable[..., Tensor]:
        plans: dict[Any, Plan] = {}
        blocks, new, call, floating = blocks_of(key.dtype), object.__new__, lib.fb_call4, key.dtype.category == 2
        null = _NULL

        def launch(a: Tensor, b: Tensor) -> Tensor:
            geometries = a.geometry, b.geometry
            plan = plans.get(geometries)
            if plan is None:
                plan = _store(plans, geometries, Plan(*geometries, None, 1, 0, floating))
            out = new(Tensor)
            out.key, out.geometry, out.memory = key, plan.geometry, blocks[plan.numel]()
            out.node = out.shared = None
            if plan.numel:
                if plan.shifts is None:
                    code = call(kernel, out.memory, a.memory, b.memory, null, plan.params)
                else:
                    code = plan.run(kernel, out.memory, a.memory, b.memory, null)
                if code:
                    raise out_of_memory(name)
            return out

        return launch

    return launcher


def _sum_of_products(name: str) -> Callable[[Any, Key], Callable[..., Tensor]]:
    def launcher(kernel: Any, key: Key) -> Callable[..., Tensor]:
        plans: dict[Any, Plan] = {}
        floating = key.dtype.category == 2

        def launch(bias: Tensor, a: Tensor, b: Tensor, beta: float, alpha: float) -> Tensor:
            which = a.geometry, b.geometry, bias.geometry, alpha, beta
            plan = plans.get(which)
            if plan is None:
                plan = _store(plans, which, Plan(*which, floating))
            out = empty(key, plan.geometry)
            if plan.numel and plan.run(kernel, out.memory, a.memory, b.memory, bias.memory):
                raise out_of_memory(name)
            return out

        return launch

    return launcher


def _linear(kernel: Any, key: Key) -> Callable[..., Tensor]:
    plans: dict[Any, Plan] = {}
    blocks, new, call = blocks_of(key.dtype), object.__new__, lib.fb_call4
    floating, null = key.dtype.category == 2, _NULL

    def make(x: Geometry, weight: Geometry, bias: Geometry | None) -> Plan:
        turned = Geometry(type(weight.shape)(reversed(weight.shape)), weight.strides[::-1])
        return Plan(x, turned, bias, 1, 1, floating)

    def launch(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        which = x.geometry, weight.geometry, None if bias is None else bias.geometry
        plan = plans.get(which)
        if plan is None:
            plan = _store(plans, which, make(*which))
        out = new(Tensor)
        out.key, out.geometry, out.memory = key, plan.geometry, blocks[plan.numel]()
        out.node = out.shared = None
        if plan.numel:
            add = null if bias is None else bias.memory
            if plan.shifts is None:
                code = call(kernel, out.memory, x.memory, weight.memory, add, plan.params)
            else:
                code = plan.run(kernel, out.memory, x.memory, weight.memory, add)
            if code:
                raise out_of_memory("linear")
        return out

    return launch


def _dot(kernel: Any, key: Key) -> Callable[..., Tensor]:
    scalar = contiguous(())

    def launch(a: Tensor, b: Tensor) -> Tensor:
        out = empty(key, scalar)
        params = ffi.new("int64_t[]", [a.geometry.numel, a.geometry.strides[0], b.geometry.strides[0]])
        if lib.fb_call4(kernel, out.memory, a.memory, b.memory, _NULL, params):
            raise out_of_memory("dot")
        return out

    return launch


def _matmul(kernel: Any, key: Key) -> Callable[..., Tensor]:
    """Also the product of two vectors, which has a kernel of its own."""
    product_of = _product("matmul")(kernel, key)
    dot = _dot(find("dot", key.dtype), key)

    def launch(a: Tensor, b: Tensor) -> Tensor:
        return dot(a, b) if a.geometry.ndim == 1 and b.geometry.ndim == 1 else product_of(a, b)

    return launch


KERNELS: Final[dict[str, Any]] = {
    "mm": Routine("gemm", _product("mm")),
    "bmm": Routine("gemm", _product("bmm")),
    "mv": Routine("gemm", _product("mv")),
    "matmul": Routine("gemm", _matmul),
    "dot": Routine("dot", _dot),
    "addmm": Routine("gemm", _sum_of_products("addmm")),
    "baddbmm": Routine("gemm", _sum_of_products("baddbmm")),
    "linear": Routine("gemm", _linear),
}
