"""Einstein summation and tensordot: contractions as matrix products."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any, Final, NamedTuple, cast

from ..dispatch.operator import composite
from ..dispatch.pointwise import finish_out
from ..errors import ArgumentError, ArgumentTypeError, ShapeError, shown
from ..geometry import axis
from ..tensor import Tensor
from .linalg import same_key

__all__ = ["einsum", "tensordot"]

_LETTERS: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
#: Stands for the ellipsis in a parsed subscript.
_DOTS: Final = "."


class _Equation(NamedTuple):
    """Subscripts of the operands and of the result; each letter a label, ``.`` the ellipsis."""

    inputs: tuple[str, ...]
    output: str


@functools.lru_cache(maxsize=512)
def _parsed(equation: str) -> _Equation:
    left, arrow, right = equation.replace(" ", "").partition("->")
    inputs = tuple(_subscript(part, equation) for part in left.split(","))
    if arrow:
        output = _subscript(right, equation)
        for label in output:
            if output.count(label) > 1:
                raise ShapeError(f"einsum(): output subscript {label} appears more than once in {shown(equation)}.")
            if label != _DOTS and not any(label in each for each in inputs):
                raise ShapeError(
                    f"einsum(): output subscript {label} does not appear in the equation for any input operand: "
                    f"{shown(equation)}."
                )
    else:
        used = "".join(inputs)
        output = _DOTS * (_DOTS in used) + "".join(each for each in _LETTERS if used.count(each) == 1)
    return _Equation(inputs, output)


def _subscript(text: str, equation: str) -> str:
    plain = text.replace("...", _DOTS, 1)
    for at, each in enumerate(plain):
        if each not in _LETTERS and not (
            each == _DOTS and plain.find("...") < 0 and plain.count(_DOTS) == 1 and "..." in text
        ):
            raise ShapeError(
                f"einsum(): invalid subscript {shown(text)} in {shown(equation)} (at {at}): subscripts are letters and at "
                "most one ellipsis '...'."
            )
    return plain


def _from_lists(args: Sequence[Any]) -> tuple[str, list[Any]]:
    """The equation that operands alternating with lists of numbers spell."""
    operands, lists = list(args[0::2]), list(args[1::2])
    output = operands.pop() if len(args) % 2 else None

    def spell(labels: Sequence[Any]) -> str:
        parts = []
        for each in labels:
            if each is Ellipsis:
                parts.append("...")
            elif isinstance(each, int) and 0 <= each < len(_LETTERS):
                parts.append(_LETTERS[each])
            else:
                raise ShapeError(
                    f"einsum(): expected subscripts in a sublist to be in [0, 52) or Ellipsis, got {shown(each)}."
                )
        return "".join(parts)

    equation = ",".join(map(spell, lists))
    return equation if output is None else f"{equation}->{spell(output)}", operands


def _labelled(equation: str, subscript: str, operand: Any, dots: int) -> tuple[Any, list[str]]:
    """An operand with one dimension for each label: repeated labels are diagonals, the ellipsis becomes labels."""
    letters = len(subscript) - (_DOTS in subscript)
    extra = operand.ndim - letters
    if extra < 0 or (extra and _DOTS not in subscript):
        raise ShapeError(
            f"einsum(): the number of subscripts in {subscript.replace(_DOTS, '...')!r} ({letters}) does not "
            "match the number of "
            f"dimensions ({operand.ndim}) of the operand of shape {list(operand.shape)} in {shown(equation)}."
        )
    labels: list[str] = []
    for each in subscript:
        labels += [f"{_DOTS}{i}" for i in range(dots - extra, dots)] if each == _DOTS else [each]
    for label in dict.fromkeys(labels):
        while labels.count(label) > 1:
            first = labels.index(label)
            second = labels.index(label, first + 1)
            a, b = operand.shape[first], operand.shape[second]
            if a != b:
                raise ShapeError(
                    f"einsum(): subscript {label} is repeated for an operand but the sizes don't match, {a} != "
                    f"{b} in {shown(equation)}."
                )
            operand = operand.diagonal(0, first, second)  # the diagonal's dimension is the last
            del labels[second], labels[first]
            labels.append(label)
    return operand, labels


def _sum_away(operand: Any, labels: list[str], keep: set[str]) -> tuple[Any, list[str]]:
    gone = [dim for dim, label in enumerate(labels) if label not in keep]
    if not gone:
        return operand, labels
    return operand.sum(gone), [label for label in labels if label in keep]


def _arranged(operand: Any, labels: list[str], *groups: list[str]) -> Any:
    """The operand with its dimensions in the order of the groups, each group made one dimension."""
    order = [labels.index(label) for group in groups for label in group]
    if order != list(range(len(order))):
        operand = operand.permute(order)
    shape, at = [], 0
    for group in groups:
        shape.append(math.prod(operand.shape[at : at + len(group)]))
        at += len(group)
    return operand.reshape(shape) if list(operand.shape) != shape else operand


def _contract(a: Any, la: list[str], b: Any, lb: list[str], keep: set[str]) -> tuple[Any, list[str]]:
    """The product of two operands, summed over the labels that nothing else needs."""
    for label in [each for each in la if each in lb]:  # a size of 1 broadcasts
        m, n = a.shape[la.index(label)], b.shape[lb.index(label)]
        if m == 1 and n != 1:
            a, la = a.squeeze(la.index(label)), [each for each in la if each != label]
        elif n == 1 and m != 1:
            b, lb = b.squeeze(lb.index(label)), [each for each in lb if each != label]
    a, la = _sum_away(a, la, keep | set(lb))
    b, lb = _sum_away(b, lb, keep | set(la))
    both = [each for each in la if each in lb]
    batch, inner = [each for each in both if each in keep], [each for each in both if each not in keep]
    left, right = [each for each in la if each not in both], [each for each in lb if each not in both]
    result = [*batch, *left, *right]
    sizes = {label: size for labels, each in ((la, a), (lb, b)) for label, size in zip(labels, each.shape, strict=True)}
    if not inner:
        wide = _arranged(a, la, *[[each] for each in batch + left])
        wide = wide.reshape([*wide.shape, *[1] * len(right)])
        other = _arranged(b, lb, *[[each] for each in batch + right])
        other = other.reshape([*other.shape[: len(batch)], *[1] * len(left), *other.shape[len(batch) :]])
        return wide * other, result
    if batch:
        product = _arranged(a, la, batch, left, inner).bmm(_arranged(b, lb, batch, inner, right))
    else:
        product = _arranged(a, la, left, inner).mm(_arranged(b, lb, inner, right))
    shape = [sizes[label] for label in result]
    return product.reshape(shape) if list(product.shape) != shape else product, result


@composite(method=False)
def einsum(equation: Any, *operands: Any) -> Tensor:
    """Sum products of elements as an equation of subscripts says.

    Each letter names a dimension; equal letters run together; letters that the result leaves out are summed.
    ``...`` stands for any further dimensions, which broadcast.  Without ``->``, the result has the ellipsis and
    then the letters that appear once, in alphabetical order (capitals first).
    Operands are multiplied from left to right.

    Args:
        equation: such as ``"bij,bjk->bik"``; or the first operand, followed by a list of numbers for its dimensions,
            and so on, and at last perhaps such a list for the result.
        operands: tensors of one dtype, as arguments or as one list.

    Raises:
        RuntimeError: the equation is wrong, or does not fit the operands.
        ValueError: there are no operands.

    >>> import flambeau
    >>> flambeau.einsum("ij->ji", flambeau.tensor([[1, 2], [3, 4]])).tolist()
    [[1, 3], [2, 4]]
    """
    tensors: list[Any]
    if isinstance(equation, str):
        tensors = list(operands[0]) if len(operands) == 1 and isinstance(operands[0], (list, tuple)) else list(operands)
    elif isinstance(equation, Tensor):
        equation, tensors = _from_lists((equation, *operands))
    else:
        raise ArgumentTypeError(
            f"einsum(): the first argument must be an equation or a Tensor, got {type(equation).__name__}."
        )
    if not tensors:
        raise ArgumentError(f"einsum(): must provide at least one operand, got none for {shown(equation)}.")
    for each in tensors:
        if not isinstance(each, Tensor):
            raise ArgumentTypeError(f"einsum(): expected tensors, got {type(each).__name__}: {shown(each)}.")
    same_key("einsum", *tensors)
    parsed = _parsed(equation)
    if len(parsed.inputs) != len(tensors):
        raise ShapeError(
            f"einsum(): {shown(equation)} has subscripts for {len(parsed.inputs)} operands, but {len(tensors)} were "
            "provided."
        )
    dots = max(
        (
            each.ndim - len(subscript) + 1
            for each, subscript in zip(tensors, parsed.inputs, strict=True)
            if _DOTS in subscript
        ),
        default=0,
    )
    terms = [_labelled(equation, subscript, each, dots) for subscript, each in zip(parsed.inputs, tensors, strict=True)]
    sizes: dict[str, int] = {}
    for tensor, labels in terms:
        for label, size in zip(labels, tensor.shape, strict=True):
            known = sizes.setdefault(label, size)
            if known == 1:
                sizes[label] = size
            elif size not in (1, known):
                raise ShapeError(
                    f"einsum(): operands do not broadcast in {shown(equation)}: subscript "
                    f"{label.replace(_DOTS, '...')} has sizes "
                    f"{known} and {size} in shapes {' and '.join(str(list(each.shape)) for each in tensors)}."
                )
    wanted: list[str] = []
    for each in parsed.output:
        wanted += [f"{_DOTS}{i}" for i in range(dots)] if each == _DOTS else [each]
    result, labels = terms[0]
    if len(terms) == 1:
        result, labels = _sum_away(result, labels, set(wanted))
    for at in range(1, len(terms)):
        later = {label for _, each in terms[at + 1 :] for label in each}
        result, labels = _contract(result, labels, *terms[at], later | set(wanted))
    order = [labels.index(label) for label in wanted if label in labels]
    if order != list(range(len(order))):
        result = result.permute(order)
    return cast(Tensor, result)


@composite(method=False)
def tensordot(a: Tensor, b: Tensor, dims: Any = 2, out: Tensor | None = None) -> Tensor:
    """Sum the products of two tensors over pairs of dimensions.

    Args:
        dims: how many of ``a``'s last and ``b``'s first dimensions to pair, or a list of dimensions for each.

    Returns:
        The other dimensions of ``a``, then those of ``b``.

    Raises:
        RuntimeError: paired dimensions differ in size, or their numbers do.
    """
    if out is not None:
        return finish_out("tensordot", out, (a, b), lambda: cast(Tensor, tensordot(a, b, dims)))
    same_key("tensordot", a, b)
    if isinstance(dims, Tensor):
        dims = cast(Any, dims).tolist()
    if isinstance(dims, int):
        if not 0 <= dims <= min(a.ndim, b.ndim):
            raise ShapeError(
                "tensordot expects dims >= 0 and at most the number of dimensions of both tensors, got "
                f"dims={dims} for "
                f"{list(a.shape)} and {list(b.shape)}."
            )
        first, second = list(range(a.ndim - dims, a.ndim)), list(range(dims))
    else:
        if len(dims) != 2:
            raise ShapeError(f"tensordot expects a number or two lists of dimensions, got {shown(dims)}.")
        first, second = (
            [axis(each, tensor.ndim) for each in ([given] if isinstance(given, int) else given)]
            for given, tensor in zip(dims, (a, b), strict=True)
        )
    if len(first) != len(second):
        raise ShapeError(f"tensordot: both dimension lists should have same length, got {first} and {second}.")
    la = [str(dim) for dim in range(a.ndim)]
    lb = [f"b{dim}" for dim in range(b.ndim)]
    for i, j in zip(first, second, strict=True):
        lb[j] = la[i]
        if a.shape[i] != b.shape[j] and 1 not in (a.shape[i], b.shape[j]):
            raise ShapeError(
                f"tensordot: contracted dimensions need to match, but first has size {a.shape[i]} in dim {i} "
                "and second has "
                f"size {b.shape[j]} in dim {j}."
            )
    keep = {label for label in la if label not in lb} | {label for label in lb if label not in la}
    return cast(Tensor, _contract(a, la, b, lb, keep)[0])
