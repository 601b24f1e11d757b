"""A category: one thing that is proven of operators; and what categories have in common."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from ..compare import Fault, compare, expect, shown
from ..samples import Sample
from ..subject import Subject

__all__ = ["CATEGORIES", "Category", "category", "compared", "said", "with_kernel"]


class Category(NamedTuple):
    """One thing that is proven of operators.

    Attributes:
        titles: the names of its cases for a subject.
        check: proves it, or raises a :class:`Fault`.
        meaning: what a failure probably means.
        applies: whether there is anything to prove.
    """

    titles: Callable[[Any], list[str]]
    check: Callable[[Any, str], None]
    meaning: str
    applies: Callable[[Any], bool]


CATEGORIES: Final[list[Category]] = []


def with_kernel(subject: Subject) -> bool:
    """Whether a kernel is under test, with ordinary calls to test it on."""
    return subject.kernel and bool(subject.about())


def category(title: str, meaning: str, applies: Callable[[Subject], bool] = with_kernel) -> Callable[[Any], Any]:
    """Declare a category of one case."""

    def declare(check: Callable[[Subject], None]) -> Callable[[Subject], None]:
        CATEGORIES.append(Category(lambda _: [title], lambda subject, _: check(subject), meaning, applies))
        return check

    return declare


def said(sample: Sample, fault: Fault) -> Fault:
    """A fault that also says in which call."""
    fault.args = (f"{fault}\n  in ({shown(sample.args)})",)
    return fault


def compared(subject: Subject, sample: Sample, results: list[Any], exacting: str = "") -> None:
    """Results must be those of the reference.

    Raises:
        Fault: they are not.
    """
    try:
        expected = subject.expected(sample)
        expect("results:", len(expected), len(results))
        for got, wanted in zip(results, expected, strict=True):
            compare(got, wanted, subject.device, subject.ulps, exacting)
    except Fault as fault:
        raise said(sample, fault) from None
