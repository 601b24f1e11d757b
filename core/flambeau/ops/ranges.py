"""Tensors whose values follow from the position: ranges and the identity."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, cast

from ..autograd.grad_mode import no_grad
from ..dispatch.operator import primitive
from ..dtype import default, dtype as Dtype, float64, int64
from ..errors import ArgumentError, ArgumentTypeError, DtypeError, ShapeError, shown
from ..geometry import contiguous
from ..layout import layout as Layout
from ..tensor import Tensor, empty as allocate, number_of
from .creation import finish, key_for, store

__all__ = ["arange", "eye", "linspace", "logspace", "range"]


@primitive("self | start step", name="arange_", mutates=True, method=False, namespaces=())
def arange_(self: Tensor, start: Any, step: Any) -> Tensor:
    """Fill a contiguous vector with ``start + position * step``; both are ints if the dtype is one."""
    return cast(Tensor, arange_.run(self, start, step))


@primitive("self | start step end half", name="linspace_", mutates=True, method=False, namespaces=())
def linspace_(self: Tensor, start: float, end: float) -> Tensor:
    """Fill a contiguous floating-point vector with evenly spaced numbers, both ends included."""
    count = self.geometry.numel
    step = (end - start) / (count - 1) if count > 1 else 0.0
    return cast(Tensor, linspace_.run(self, start, step, end, (count + 1) // 2))


arange_.nondifferentiable()
linspace_.nondifferentiable()


def _number(value: Any, name: str) -> Any:
    """A Python number for a number or a 0-dim tensor."""
    if isinstance(value, Tensor):
        if value.geometry.ndim:
            raise ShapeError(f"{name} only supports 0-dimensional tensors as limits, got shape {list(value.shape)}.")
        value = cast(Any, value).item()
    if hasattr(value, "item") and not isinstance(value, (int, float)):
        value = value.item()
    if not isinstance(value, (int, float)):
        raise ArgumentTypeError(f"{name}() expects numbers, got {type(value).__name__} {shown(value)}.")
    return value


def _filled(
    fill: Callable[[Tensor], Any], count: int, name: str, out: Tensor | None, dtype: Dtype | None, layout: Layout | None,
    device: Any, requires_grad: bool, pin_memory: bool,
) -> Tensor:  # fmt: skip
    """A vector, new or ``out``, that ``fill`` writes while it is contiguous."""
    if out is None:
        result = allocate(key_for(dtype, device, layout), contiguous((count,)))
        fill(result)
        result.shared = None
        return finish(result, requires_grad, pin_memory)
    with no_grad():
        fresh = allocate(out.key, contiguous((count,)))
        fill(fresh)
        return store(out, fresh if out.geometry.numel != count else cast(Any, fresh).view(out.shape), dtype, name)


def _stepped(start: Any, end: Any, step: Any, name: str) -> None:
    if step == 0:
        raise ShapeError("step must be nonzero")
    if not math.isfinite(start) or not math.isfinite(end):
        raise ShapeError(f"unsupported range: {start} -> {end}")
    if (end - start) * (1 if step > 0 else -1) < 0:
        raise ShapeError(f"upper bound and lower bound inconsistent with step sign in {name}({start}, {end}, {step})")


def arange(
    *args: Any, start: Any = None, end: Any = None, step: Any = 1, out: Tensor | None = None, dtype: Dtype | None = None,
    layout: Layout | None = None, device: Any = None, requires_grad: bool = False, pin_memory: bool = False,
) -> Tensor:  # fmt: skip
    """Numbers from ``start`` (0 if not given) up to, not including, ``end``: ``arange(end)``, ``arange(start, end, step)``.

    Args:
        dtype: int64 if all numbers are ints, else the default floating-point type.

    Raises:
        RuntimeError: the step is 0 or leads away from the end.

    >>> import flambeau
    >>> flambeau.arange(1, 2.5, 0.5)
    tensor([1.0000, 1.5000, 2.0000])
    """
    given = [_number(each, "arange") for each in args]
    if len(given) == 1 and end is None:
        end = given[0]
    elif given:
        names = [each for each, value in (("start", start), ("end", end)) if value is None] + ["step"]
        if len(given) > len(names):
            raise ArgumentTypeError(f"arange() takes at most start, end and step, got {shown(args)}.")
        for each, value in zip(names, given, strict=False):
            start, end, step = (
                value if each == "start" else start, value if each == "end" else end, value if each == "step" else step
            )  # fmt: skip
    if end is None:
        raise ArgumentTypeError("arange() expects an end: arange(5) or arange(start, end).")
    start, end, step = (_number(each, "arange") for each in (0 if start is None else start, end, step))
    _stepped(start, end, step, "arange")
    whole = all(isinstance(each, int) for each in (start, end, step))
    wanted = dtype or (out.dtype if out is not None else int64 if whole else default.dtype)
    if wanted is int64:  # the limits are taken in the dtype; other integers are counted in floating point
        start, end, step, whole = int(start), int(end), int(step), True
        if not step:
            raise ArgumentError("step must be nonzero: it truncates to 0 in int64.")
    count = -((start - end) // step) if whole else math.ceil((end - start) / step)
    if wanted.category < 2:
        start, step = int(start), int(step)
    return _filled(
        lambda target: arange_(target, start, step), count, "arange", out, wanted, layout, device, requires_grad,
        pin_memory,
    )  # fmt: skip


def range(
    start: Any = 0, end: Any = None, step: Any = 1, *, out: Tensor | None = None, dtype: Dtype | None = None,
    layout: Layout | None = None, device: Any = None, requires_grad: bool = False, pin_memory: bool = False,
) -> Tensor:  # fmt: skip
    """Numbers from ``start`` to ``end``, which is included; prefer :func:`arange`.

    Raises:
        RuntimeError: the step is 0 or leads away from the end.
    """
    start, end = (0, start) if end is None else (start, end)
    start, end, step = (_number(each, "range") for each in (start, end, step))
    _stepped(start, end, step, "range")
    count = int((end - start) / step) + 1
    wanted = dtype or (out.dtype if out is not None else default.dtype)
    if wanted.category < 2:
        start, step = int(start), int(step)
    return _filled(
        lambda target: arange_(target, start, step), count, "range", out, wanted, layout, device, requires_grad,
        pin_memory,
    )  # fmt: skip


def _spaced(target: Tensor, start: float, end: float, base: float | None = None) -> None:
    """Evenly spaced numbers, or powers of ``base`` with such exponents, in any real dtype."""
    if base is None and target.key.dtype.category == 2:
        linspace_(target, start, end)
        return
    if target.key.dtype.category < 2:
        start, end = (float(number_of(int64, each)) for each in (start, end))
    exact = allocate(target.key.of(float64), target.geometry)
    linspace_(exact, start, end)
    cast(Any, target).copy_(exact if base is None else cast(Any, base) ** cast(Any, exact))


def _steps(steps: Any) -> int:
    if isinstance(steps, Tensor):
        steps = cast(Any, steps).item()
    if not isinstance(steps, int):
        raise ArgumentTypeError(f"steps must be an int, got {type(steps).__name__} {shown(steps)}.")
    if steps < 0:
        raise ShapeError(f"number of steps must be non-negative, got {steps}")
    return steps


def linspace(
    start: Any, end: Any, steps: int = 100, *, out: Tensor | None = None, dtype: Dtype | None = None,
    layout: Layout | None = None, device: Any = None, requires_grad: bool = False, pin_memory: bool = False,
) -> Tensor:  # fmt: skip
    """``steps`` evenly spaced numbers from ``start`` to ``end``, both included.

    Raises:
        RuntimeError: ``steps`` is negative.
    """
    low, high = float(_number(start, "linspace")), float(_number(end, "linspace"))
    return _filled(
        lambda target: _spaced(target, low, high),
        _steps(steps),
        "linspace",
        out,
        _real(dtype, out),
        layout,
        device,
        requires_grad,
        pin_memory,
    )


def logspace(
    start: Any, end: Any, steps: int = 100, base: float = 10.0, *, out: Tensor | None = None, dtype: Dtype | None = None,
    layout: Layout | None = None, device: Any = None, requires_grad: bool = False, pin_memory: bool = False,
) -> Tensor:  # fmt: skip
    """``steps`` powers of ``base`` whose exponents are evenly spaced from ``start`` to ``end``, both included.

    Raises:
        RuntimeError: ``steps`` is negative.
    """
    low, high = float(_number(start, "logspace")), float(_number(end, "logspace"))
    return _filled(
        lambda target: _spaced(target, low, high, float(base)), _steps(steps), "logspace", out, _real(dtype, out), layout, device,
        requires_grad,
        pin_memory,
    )  # fmt: skip


def _real(dtype: Dtype | None, out: Tensor | None) -> Dtype:
    found = dtype or (out.dtype if out is not None else default.dtype)
    if found.is_complex:
        raise DtypeError(f"expected a real dtype, got {found.name}.\nCombine two real tensors with flambeau.complex().")
    return found


def eye(
    n: int, m: int | None = None, *, out: Tensor | None = None, dtype: Dtype | None = None, layout: Layout | None = None,
    device: Any = None, requires_grad: bool = False, pin_memory: bool = False,
) -> Tensor:  # fmt: skip
    """A matrix of ``n`` rows and ``m`` columns (``n`` if not given) with ones on the diagonal, else zeros.

    Raises:
        RuntimeError: a size is negative.
    """
    columns = n if m is None else m
    for name, each in (("n", n), ("m", columns)):
        if not hasattr(each, "__index__"):
            raise ArgumentTypeError(f"eye() expects an int as {name}, got {type(each).__name__} {shown(each)}.")
        if each < 0:
            raise ShapeError(f"{name} must be greater or equal to 0, got {each}")
    key = key_for(dtype, device, layout) if out is None else out.key
    result: Any = allocate(key, contiguous((n, columns)))
    result.zero_()
    result.diagonal().fill_(1)
    if out is not None:
        return store(out, result, dtype, "eye")
    result.shared = None
    return finish(result, requires_grad, pin_memory)
