"""Comparing what a device gave with what it should have given, and saying so in a few lines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..dtype import bfloat16, dtype as Dtype, float16
from ..tensor import Tensor
from .operands import EPSILON, SUBNORMAL, Array, Operand, read, rounded

__all__ = ["Fault", "compare", "equal", "expect", "shown", "tolerance"]


class Fault(Exception):
    """A device did something else than it should have."""

    def __init__(self, expected: Any, got: Any, where: str = "") -> None:
        super().__init__(f"expected {expected}\n     got {got}" + (f"\n{where}" if where else ""))


def expect(what: str, expected: Any, got: Any) -> None:
    """Two facts must be equal."""
    if expected != got:
        raise Fault(f"{what} {expected}", got)


def tolerance(dtype: Dtype, ulps: float) -> float:
    """A relative tolerance; half precision, where kernels compute wider and round once, is held to less."""
    if dtype.category < 2:
        return 0.0
    return EPSILON[dtype] * (min(ulps, 4) if dtype in (float16, bfloat16) else ulps)


def compare(got: Any, expected: Any, device: Any, ulps: float, exacting: str = "") -> None:
    """A result must have the expected shape, dtype, device and values.

    Args:
        got: the result.
        expected: what it should hold, or what it should be if it is no tensor.
        device: where it should be.
        ulps: how many units in the last place of the largest of them values may differ.
        exacting: ``"values"``: in their own last place instead; ``"signs"``: and signs of zeros count.

    Raises:
        Fault: something differs.
    """
    if not isinstance(expected, Operand):
        return expect("a result that is", expected, got)
    if not isinstance(got, Tensor):
        raise Fault("a tensor", f"{type(got).__name__} {got!r:.60}")
    expect("a result on the device", str(device), str(got.device))
    expect("a result of dtype", expected.dtype.name, got.dtype.name)
    expect("a result of shape", list(expected.values.shape), list(got.shape))
    least = 2 * SUBNORMAL[expected.dtype] if exacting and expected.dtype in SUBNORMAL else None
    equal(
        read(got), rounded(expected.values, expected.dtype), tolerance(expected.dtype, ulps), least, exacting == "signs"
    )


def equal(got: Array, expected: Array, relative: float = 0.0, least: float | None = None, signs: bool = False) -> None:
    """Two arrays of one shape must be equal, NaN where NaN is.

    Args:
        got: numbers.
        expected: what they should be.
        relative: how much they may differ, relative to the larger of the number and the largest of them (at least 1);
            or, with ``least``, relative to the number alone.
        least: how much numbers may differ in any case.
        signs: whether signs of zeros count.

    Raises:
        Fault: an element is wrong.
    """
    if got.dtype.kind in "biu" and expected.dtype.kind in "biu":
        wrong = got != expected
    else:
        with np.errstate(all="ignore"):
            size = np.abs(expected)
            if least is None:
                size = size + max(1.0, float(np.max(size, initial=0, where=np.isfinite(size))))
            close = np.isfinite(expected) & (np.abs(got - expected) <= relative * size + (least or 0.0))
            wrong = ~((got == expected) | (np.isnan(got) & np.isnan(expected)) | close)
            if signs and not np.iscomplexobj(got):
                wrong = wrong | ((got == 0) & (expected == 0) & (np.signbit(got) != np.signbit(expected)))
    if wrong.any():
        at = tuple(int(each) for each in np.argwhere(wrong)[0])
        raise Fault(
            f"{expected[at]!s}" + (f" at {list(at)}" if at else ""),
            f"{got[at]!s} ({int(wrong.sum())} of {wrong.size} elements are wrong)",
        )


def shown(args: Sequence[Any]) -> str:
    """The arguments of a call, short."""
    parts = []
    for each in args:
        if isinstance(each, Operand):
            few = each.values.size <= 4
            values = " ".join(str(np.round(each.values, 4).tolist()).split()) if few else list(each.values.shape)
            parts.append(f"{each.dtype.name}{'' if few else ' '}{values}")
        elif isinstance(each, list):
            parts.append(f"[{shown(each)}]")
        else:
            parts.append(str(each) if not isinstance(each, Dtype) else each.name)
    return ", ".join(parts)
