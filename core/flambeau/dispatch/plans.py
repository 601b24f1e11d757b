"""From an operator's gradient formulas to what its nodes keep and compute."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Any, cast

from ..autograd.node import Plan
from ..errors import AutogradError
from ..tensor import Tensor

if TYPE_CHECKING:
    from .operator import Operator

__all__ = ["make_plan", "reads_of", "wants_all"]


def make_plan(op: Operator, needs: tuple[bool, ...], lengths: list[int]) -> Plan:
    """What a node of an operator keeps and computes; ``lengths`` of the arguments that are lists."""
    # All results, or only those after the first, which then may be written without harm to this node.
    names = (*op.parameters, "result", "others")
    if op.joint is not None:
        jobs: list[tuple[int, Callable[..., Any]]] = [(-1, functools.partial(op.joint, needs))]
    else:
        jobs = [
            (slot, op.formulas.get(op.parameters[position]) or _no_formula(op.name, op.parameters[position]))
            for slot, position in enumerate(op.tensors)
            if needs[slot]
        ]
    wanted: list[str] = []
    reads = [reads_of(formula) for _, formula in jobs]
    for each in reads:
        wanted += [name for name in each if name not in wanted]
    ways = ["" if name in names else "shape" for name in wanted]
    sources = [
        names.index(name.removesuffix("_shape") if way else name) for name, way in zip(wanted, ways, strict=True)
    ]
    result = next((place for place, name in enumerate(wanted) if name in ("result", "others")), None)
    skipped = 0
    if result is not None and wanted[result] == "others":
        sources[result], ways[result], skipped = len(op.parameters), "others", 1
    pick = _picker(sources, ways) if any(ways) else _getter(sources)
    picks = [_getter([wanted.index(name) for name in each]) for each in reads]
    steps = [(slot, formula, chosen) for (slot, formula), chosen in zip(jobs, picks, strict=True)]
    last = len(op.tensors)
    held = tuple(
        place
        for place, (source, way) in enumerate(zip(sources, ways, strict=True))
        if place == result or (source < last and not way)
    )
    lone = len(steps) == 1 and steps[0][0] >= 0 and not op.lists
    return Plan(pick, _runner(steps, last, op.lists, lengths), result, held, lone, skipped)


def reads_of(formula: Callable[..., Any]) -> tuple[str, ...]:
    """The names a formula reads, after ``grad``."""
    skip = 1
    if isinstance(formula, functools.partial):
        formula, skip = formula.func, 2
    code = formula.__code__
    return code.co_varnames[skip : code.co_argcount]


def _no_formula(op: str, name: str) -> Callable[..., Any]:
    def raises(grad: Any) -> Any:
        raise AutogradError(
            f"the derivative for {name!r} of {op} is not implemented.\n"
            f"Detach it ({name}.detach()) if its gradient is not wanted."
        )

    return raises


def wants_all(formula: Callable[..., Any]) -> bool:
    """Whether a formula takes the gradients of all outputs: its first parameter is ``grads``."""
    bare, position = (formula.func, 1) if isinstance(formula, functools.partial) else (formula, 0)
    return bool(bare.__code__.co_varnames[position] == "grads")


_WAYS = {"": "items[{}]", "shape": "shape(items[{}])", "others": "items[{}][1:]"}


def _picker(sources: Sequence[int], ways: Sequence[str]) -> Callable[[tuple[Any, ...]], tuple[Any, ...]]:
    """A function that chooses items, of some the shape alone; written out, as every recorded call runs it."""
    items = [_WAYS[way].format(i) for i, way in zip(sources, ways, strict=True)]
    return cast(
        "Callable[[tuple[Any, ...]], tuple[Any, ...]]", eval(f"lambda items: ({', '.join(items)},)", {"shape": _shape})
    )


def _shape(item: Any) -> Any:
    if isinstance(item, Tensor):
        return item.geometry.shape
    return (
        [each.shape if isinstance(each, Tensor) else None for each in item] if isinstance(item, (list, tuple)) else None
    )


def _getter(positions: Sequence[int]) -> Callable[[tuple[Any, ...]], tuple[Any, ...]]:
    """itemgetter that always gives a tuple."""
    if not positions:
        return lambda _: ()
    if len(positions) == 1:
        only = positions[0]
        return lambda items: (items[only],)
    return itemgetter(*positions)


def _runner(
    steps: list[tuple[int, Callable[..., Any], Callable[[tuple[Any, ...]], tuple[Any, ...]]]],
    inputs: int,
    lists: tuple[int, ...],
    lengths: list[int],
) -> Callable[[Any, tuple[Any, ...]], Sequence[Any]]:
    """Runs the formulas and lays their results out in the order of the edges."""
    if len(steps) == 1 and not lists:
        return _lone_runner(steps[0][1], steps[0][0], inputs)

    chosen = [(slot, formula, choose, wants_all(formula)) for slot, formula, choose in steps]

    def run(grad: Any, saved: tuple[Any, ...]) -> Sequence[Any]:
        results: list[Any] = [None] * inputs
        first = grad[0] if type(grad) is list else grad
        for slot, formula, choose, wants_all in chosen:
            given = grad if wants_all else first
            if slot < 0:
                results = list(formula(given, *choose(saved)))
            else:
                results[slot] = formula(given, *choose(saved))
        return results

    if not lists:
        return run

    def flat(grad: Any, saved: tuple[Any, ...]) -> Sequence[Any]:
        laid: list[Any] = []
        for slot, each in enumerate(run(grad, saved)):
            if slot not in lists:
                laid.append(each)
            else:
                laid += [None] * lengths[slot] if each is None else each
        return laid

    return flat


def _lone_runner(
    formula: Callable[..., Any], slot: int, inputs: int
) -> Callable[[Any, tuple[Any, ...]], Sequence[Any]]:
    """Runs the only formula, which reads all that is saved, in order."""
    if slot < 0:
        if wants_all(formula):
            return lambda grad, saved: list(formula(grad, *saved))
        return lambda grad, saved: list(formula(grad[0] if type(grad) is list else grad, *saved))
    before, after = (None,) * slot, (None,) * (inputs - slot - 1)
    if wants_all(formula):
        return lambda grad, saved: (*before, formula(grad, *saved), *after)
    return lambda grad, saved: (*before, formula(grad[0] if type(grad) is list else grad, *saved), *after)
