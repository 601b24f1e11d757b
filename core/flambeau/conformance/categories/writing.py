"""Results that are written where they should be: in place, and into ``out=``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, cast

import numpy as np

from ...dispatch.pointwise import finish_out
from ...tensor import Tensor, tensors_in
from ..compare import Fault, compare
from ..operands import Operand, place, placed, read
from ..samples import Sample
from ..subject import Subject, operands_in, placing
from .category import category, compared, said, with_kernel


def _in_place(subject: Subject) -> bool:
    return with_kernel(subject) and subject.op.kind == "pointwise" and subject.op.inplace is not None


def _written(subject: Subject, sample: Sample, how: str) -> None:
    """The in-place form, on a target that lies in a longer vector, whose rest must stay as it is."""
    convert = placing(subject.device)
    target, whole = placed(sample.args[0], subject.device, how)
    before, memory = read(whole), target.memory
    inplace: Any = subject.op.body_of_inplace
    result = inplace(target, *[convert(each) for each in sample.args[1:]])
    (wanted,) = subject.expected(sample)
    if result is not target or target.memory is not memory:
        raise said(sample, Fault("the target itself, written in its own memory", "another tensor or other memory"))
    _compared_in(subject, sample, target, wanted)
    written = np.zeros(before.shape, bool).reshape(-1)
    geometry = target.geometry
    np.lib.stride_tricks.as_strided(written[target.offset :], geometry.shape, geometry.strides)[...] = True
    after = read(whole)
    kept = (after == before) | ((after != after) & (before != before))  # NaN stays NaN
    if not (kept.reshape(-1) | written).all():
        raise said(sample, Fault("elements between those of the view to stay", "one of them written"))


def _compared_in(subject: Subject, sample: Sample, target: Tensor, wanted: Operand) -> None:
    try:
        compare(target, Operand(wanted.values, target.dtype), subject.device, subject.ulps)
    except Fault as fault:
        raise said(sample, fault) from None


_IN_PLACE: Final = (
    "The kernel was called with out=, its own first operand, and must leave the result there, in its strides."
)


@category("in-place", _IN_PLACE, _in_place)
def _(subject: Subject) -> None:
    for sample in subject.about():
        _written(subject, sample, "contiguous")


@category("in-place on a view", _IN_PLACE, _in_place)
def _(subject: Subject) -> None:
    for sample in subject.about():
        _written(subject, sample, "strided")
        _written(subject, sample, "offset")


@category(
    "in-place with itself as operand",
    "An operand may be out= itself: read an element before its place is written.",
    lambda subject: _in_place(subject) and len(operands_in(subject.about()[0].args)) == 2,
)
def _(subject: Subject) -> None:
    sample = subject.about()[0]
    both = operands_in(sample.args)[-1]  # the one that may be divided by
    twice = Sample(sample.about, tuple(both if isinstance(each, Operand) else each for each in sample.args), {})
    (wanted,) = subject.expected(twice)
    target = place(both, subject.device)
    inplace: Any = subject.op.body_of_inplace
    inplace(target, *[target if isinstance(each, Operand) else each for each in twice.args[1:]])
    _compared_in(subject, twice, target, wanted)


def _receives(subject: Subject) -> bool:
    if not with_kernel(subject) or not subject.main or subject.op.kind == "composite" or subject.writes:
        return False
    expected = subject.expected(subject.about()[0])
    return len(expected) == 1 and isinstance(expected[0], Operand)


def _into(subject: Subject, out: Callable[[Operand, list[Any]], Tensor]) -> None:
    for sample in subject.about(most=1):
        (wanted,) = subject.expected(sample)
        convert = placing(subject.device)
        args = [convert(each) for each in sample.args]
        target = out(wanted, args)
        if _called_with(subject, args, target) is not target:
            raise said(sample, Fault("out itself", "another tensor"))
        compared(subject, sample, [target])


def _called_with(subject: Subject, args: list[Any], out: Tensor) -> Tensor:
    """A call with ``out=``; primitives, called with canonical arguments, get it the way their public forms do."""
    if subject.op.kind == "pointwise":
        function: Any = subject.op.function
        return cast(Tensor, function(*args, out=out))
    return finish_out(subject.op.name, out, tensors_in(args), lambda: cast(Tensor, subject.call(args)))


_OUT: Final = (
    "out= takes the result by the kernels of the operator and of copy_: one of them does not write where it should."
)


@category("out=", _OUT, _receives)
def _(subject: Subject) -> None:
    _into(subject, lambda wanted, _: place(_blank(wanted, wanted.values.shape), subject.device, "contiguous"))


@category("out= with gaps", _OUT, _receives)
def _(subject: Subject) -> None:
    _into(subject, lambda wanted, _: place(_blank(wanted, wanted.values.shape), subject.device, "strided"))


@category("out= of another shape", _OUT, _receives)
def _(subject: Subject) -> None:
    _into(subject, lambda wanted, _: place(_blank(wanted, (0,)), subject.device, "contiguous"))


@category(
    "out= is an operand",
    _OUT,
    lambda subject: _receives(subject) and _fits_an_operand(subject),
)
def _(subject: Subject) -> None:
    _into(subject, lambda _, args: args[0])


def _fits_an_operand(subject: Subject) -> bool:
    sample = subject.about()[0]
    (result,), first = subject.expected(sample), sample.args[0]
    return isinstance(first, Operand) and (result.dtype, result.values.shape) == (first.dtype, first.values.shape)


def _blank(like: Operand, shape: tuple[int, ...]) -> Operand:
    return Operand(np.zeros(shape, like.values.dtype), like.dtype)
