"""What is proven of kernels for tensors of another layout than strided.

The reference is the same, on dense tensors: a layout changes how numbers are held, not what they are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from ..compare import Fault, equal
from ..operands import Operand, read
from ..samples import VALUES, Sample
from ..subject import Subject, operands_in
from .category import Category, compared, said
from .gradients import differentiable, gradients, weights

__all__ = ["LAYOUT_CATEGORIES"]

LAYOUT_CATEGORIES: Final[list[Category]] = []


def _category(
    title: str, meaning: str, applies: Callable[[Subject], bool] = lambda subject: bool(subject.about())
) -> Callable[[Any], Any]:
    def declare(check: Callable[[Subject], None]) -> Callable[[Subject], None]:
        LAYOUT_CATEGORIES.append(Category(lambda _: [title], lambda subject, _: check(subject), meaning, applies))
        return check

    return declare


def _computed(subject: Subject, about: str, how: str) -> None:
    for sample in subject.about(about):
        subject.expected(sample)
        try:
            results, _ = subject.run(sample, how)
        except NotImplementedError:
            raise
        except Exception as error:
            raise said(sample, Fault("a result", f"{type(error).__name__}: {str(error).splitlines()[0]}")) from error
        compared(subject, sample, results)


@_category("values", "The kernel computes something else than the operator's reference does on dense tensors.")
def _(subject: Subject) -> None:
    _computed(subject, VALUES, "contiguous")


@_category("uncoalesced", "Places that are named twice hold the sum: coalesce where the operator is not linear.")
def _(subject: Subject) -> None:
    _computed(subject, VALUES, "uncoalesced")


@_category(
    "empty",
    "A tensor that holds nothing, or has no elements, has a result too.",
    lambda subject: "empty" in subject.abouts,
)
def _(subject: Subject) -> None:
    _computed(subject, "empty", "contiguous")


@_category(
    "coalesced",
    "Of a coalesced tensor, places rise and each is named once.",
    lambda subject: "coalesced" in subject.abouts,
)
def _(subject: Subject) -> None:
    _computed(subject, "coalesced", "contiguous")


@_category("inputs unchanged", "The kernel wrote into an operand.")
def _(subject: Subject) -> None:
    for sample in subject.about(most=2):
        subject.expected(sample)
        _, inputs = subject.run(sample, "uncoalesced")
        for tensor, given in list(zip(inputs, operands_in(sample.args), strict=True))[int(subject.op.mutates) :]:
            if not np.array_equal(read(tensor), given.values, equal_nan=given.dtype.category >= 2):
                raise said(sample, Fault("an operand to stay as it is", "another value"))


@_category("same bits twice", "Two runs on the same inputs differ: uninitialised memory, or a race.")
def _(subject: Subject) -> None:
    for sample in subject.about(most=2):
        first, second = ([read(each) for each in subject.run(sample, "uncoalesced")[0]] for _ in range(2))
        if any(one.tobytes() != other.tobytes() for one, other in zip(first, second, strict=True)):
            raise said(sample, Fault("the same numbers twice", "others"))


@_category(
    "gradient",
    "A kernel that the backward pass runs gives wrong numbers.",
    lambda subject: subject.precise and differentiable(subject),
)
def _(subject: Subject) -> None:
    for sample in subject.about(most=3):
        floating = [each for each in operands_in(sample.args) if each.dtype.is_floating_point]
        for number, mine in enumerate(gradients(subject, sample, subject.device, 1)):
            if mine is None:
                continue
            operand = floating[number]
            # A sparse tensor's gradient is that of the elements which it holds.
            held = operand.values != 0 if operand.sparse else np.ones(operand.values.shape, bool)
            try:
                wanted = np.where(held, _differences(subject, sample, operand), 0)
                equal(np.where(held, read(mine), 0), wanted, 1e-6)
            except Fault as fault:
                raise said(sample, fault) from None


def _differences(subject: Subject, sample: Sample, operand: Operand) -> Any:
    """The gradient in one operand, by the reference's values alone: its formulas may be for the layout only."""

    def total(values: Any) -> float:
        moved = operand._replace(values=values)
        args = tuple(moved if each is operand else each for each in sample.args)
        results = subject.compute(Sample(sample.about, args, sample.kwargs))[: 1 if subject.writes else None]
        seeds = weights([each.values.shape for each in results], 0)
        return float(sum((each.values * seed).sum() for each, seed in zip(results, seeds, strict=True)))

    step = 1e-5
    found = np.zeros(operand.values.shape)
    for at in np.ndindex(found.shape):
        shift = np.zeros(found.shape)
        shift[at] = step
        found[at] = (total(operand.values + shift) - total(operand.values - shift)) / (2 * step)
    return found
