"""What is proven of kernels for tensors of another layout than strided.

The reference is the same, on dense tensors: a layout changes how numbers are held, not what they are.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from ..compare import Fault
from ..operands import read
from ..samples import VALUES
from ..subject import Subject, operands_in
from .category import Category, compared, declaring, said
from .gradients import by_differences, differentiable

__all__ = ["LAYOUT_CATEGORIES"]

LAYOUT_CATEGORIES: Final[list[Category]] = []
_category: Final = declaring(LAYOUT_CATEGORIES, lambda subject: bool(subject.about()))


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
    by_differences(subject)
