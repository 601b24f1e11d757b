"""Values against the reference, in every kind of call that kernels get wrong."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from ..compare import Fault
from ..operands import Operand
from ..samples import VALUES
from ..subject import Subject
from .category import CATEGORIES, Category, category, compared, said

#: What a failure of samples about something probably means.
_MEANINGS: Final = {
    VALUES: "The kernel computes something else than the operator's reference.",
    "large": "Vector loops, their last elements, or the shares of threads go wrong where small tensors do not reach.",
    "0-dim": "A 0-dim tensor has shape () and one element: loops and reductions must accept it.",
    "empty": "A tensor with no elements has a result too: of the right shape, the identity of a reduction, no crash.",
    "broadcasting": "Operands of a pointwise kernel may differ in shape: sizes of 1 and missing dimensions repeat.",
    "NaN": "NaN is not handled as the reference does: it spreads through arithmetic and extremes, and equals nothing.",
    "infinity": "Infinities or numbers near the largest are not handled as the reference does.",
    "signed zero": "The sign of a zero is wrong: -0.0 is a number of its own, with 1 / -0.0 = -inf.",
    "denormals": "Numbers below the smallest normal one became 0: turn off flush-to-zero.",
    "integer overflow": "Integers wrap around at their limits: they neither saturate nor pass through floating point.",
    "rounding": "Rounding differs: round goes to the even neighbour, floor_divide and remainder go down, trunc_divide and fmod to 0.",
    "accumulation": "Too many digits were lost in a long sum: accumulate in a wider dtype, or pairwise.",
    "every bit": "Bits were lost on the way: numbers must not pass through another dtype.",
    "without history": "The kernel relies on memory that is only given where a backward pass may follow.",
    "conversion": "Values of another dtype are converted: numbers keep their value, true is 1, what is not 0 is true.",
    "coalesced": "Of a coalesced tensor, places rise and each is named once.",
    "repeated indices": "An index that comes twice must count twice: do not read all before the first is written.",
    "ties": "Of equal elements the wrong one was taken: the first counts (the last, for running extremes).",
}
_EXACTING: Final = {"NaN": "values", "infinity": "values", "denormals": "values", "signed zero": "signs"}


def _values(subject: Subject, about: str) -> None:
    for sample in subject.about(about):
        subject.expected(sample)  # what the core refuses is refused before a kernel runs
        try:
            results, _ = subject.run(sample)
        except NotImplementedError:
            raise
        except Exception as error:
            raise said(sample, Fault("a result", f"{type(error).__name__}: {str(error).splitlines()[0]}")) from error
        compared(subject, sample, results, _EXACTING.get(about, ""))


def _result(subject: Subject, fact: Callable[[Any], str], expected: Callable[[Operand], str]) -> None:
    for sample in subject.about(most=2):
        wanted = subject.expected(sample)
        results, _ = subject.run(sample)
        for got, each in zip(results, wanted, strict=True):
            if fact(got) != expected(each):
                raise said(sample, Fault(f"a result with {expected(each)}", fact(got)))


#: Operators that make tensors of another layout.
_LAYOUTS: Final = {"sparse_tensor": "sparse_coo"}


@category("result's device", "Make results with empty(key, ...), where key is that of an operand.")
def _(subject: Subject) -> None:
    here = f"device {subject.device}, layout {_LAYOUTS.get(subject.op.name, 'strided')}"
    _result(subject, lambda got: f"device {got.device}, layout {got.layout.name}", lambda _: here)


@category(
    "result's dtype",
    "A kernel gives its key's dtype, but bool, indices (int64) and what the operator's dtype argument says.",
)
def _(subject: Subject) -> None:
    _result(subject, lambda got: got.dtype.name, lambda wanted: wanted.dtype.name)


for _about, _meaning in _MEANINGS.items():
    CATEGORIES.append(
        Category(
            lambda subject, about=_about: [about],  # type: ignore[misc]
            _values,
            _meaning,
            lambda subject, about=_about: about in subject.abouts,  # type: ignore[misc]
        )
    )
