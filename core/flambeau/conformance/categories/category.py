"""A category: one thing that is proven of operators; and what categories have in common."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from ..compare import Fault, compare, expect, shown
from ..samples import Sample
from ..subject import Subject

__all__ = ["CATEGORIES", "Category", "category", "compared", "declaring", "said", "with_kernel"]


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


def with_kernel(subject: Subject) -> bool:
    """Whether a kernel is under test, with ordinary calls to test it on."""
    return subject.kernel and bool(subject.about())


def declaring(table: list[Category], usually: Callable[[Any], bool]) -> Callable[..., Callable[[Any], Any]]:
    """A decorator that declares a category of one case in a table: its title, meaning, and to what it applies."""

    def category(title: str, meaning: str, applies: Callable[[Any], bool] = usually) -> Callable[[Any], Any]:
        def declare(check: Callable[[Any], None]) -> Callable[[Any], None]:
            table.append(Category(lambda _: [title], lambda subject, _: check(subject), meaning, applies))
            return check

        return declare

    return category


CATEGORIES: Final[list[Category]] = []
category: Final = declaring(CATEGORIES, with_kernel)


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
