"""Gradients on the device, to second order, against those of the same numbers on the reference.

The formulas are the core's; what is proven is that the kernels which they call give the right numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from ...autograd.engine import grad
from ...device import device as Device
from ...dtype import float64
from ...errors import AutogradError, MissingKernelError
from ...tensor import Tensor, tensors_in
from ..compare import Fault, equal, tolerance
from ..operands import Array, Operand, place, read, rounded
from ..samples import Sample
from ..subject import NotApplicable, Subject, operands_in, placing
from .category import category, said
from .memory import SCRATCH

_MEANING = "A kernel that the backward pass runs gives wrong numbers; the gradient's formula stands beside the operator in flambeau/ops."


def differentiable(subject: Subject) -> bool:
    op = subject.op
    claimed = op.differentiable if op.kind != "composite" else True
    return bool(claimed) and bool(subject.about()) and subject.dtype.is_floating_point


def _leaves(subject: Subject, args: list[Any]) -> list[Tensor]:
    """The arguments whose gradients are compared, marked as such."""
    op: Any = subject.op
    found = []
    for position, each in enumerate(args):
        named = op.parameters[position] if position < len(op.parameters) else ""
        if SCRATCH.get(op.name) == position:
            continue
        if op.kind == "composite" or op.joint is not None or named in op.formulas:
            found += [one for one in tensors_in(each) if one.dtype.is_floating_point]
    for one in found:
        one.requires_grad_()
    return found


def weights(shapes: Sequence[Sequence[int]], seed: int) -> list[Array]:
    """Gradients of results of some shapes: the same numbers on any device."""
    rng = np.random.default_rng(seed)
    return [np.rint(rng.uniform(-2, 2, tuple(each)) * 4) / 4 for each in shapes]


def _seeds(results: list[Any], device: Device, seed: int) -> list[Tensor]:
    numbers = weights([each.shape for each in results], seed)
    return [place(Operand(each, result.dtype), device) for each, result in zip(numbers, results, strict=True)]


def gradients(subject: Subject, sample: Sample, device: Device, order: int) -> list[Tensor | None]:
    """The gradients of some order of a call's results, in its arguments and in the gradients of lower order."""
    convert = placing(device, wide=device is subject.reference)
    args = [convert(each) for each in sample.args]
    leaves = _leaves(subject, args)
    in_place = subject.op.name.endswith("_")
    if in_place and leaves:
        args[0] = args[0].clone()  # a leaf must not be written
    outcome = subject.call(args, {name: convert(each) for name, each in sample.kwargs.items()})
    results = [each for each in tensors_in(args[0] if in_place else outcome) if each.requires_grad]
    found: list[Tensor | None] = []
    for round_ in range(order):
        if not results or not leaves:
            return []
        seeds = _seeds(results, device, round_)
        last = round_ == order - 1
        if not last:  # what is linear has second gradients in these alone
            seeds = [cast(Any, each).requires_grad_() for each in seeds]
        found = list(grad(results, leaves, seeds, create_graph=not last, allow_unused=True))
        results = [each for each in found if each is not None and cast(Any, each).requires_grad]
        leaves = leaves + seeds
    return found


def _proven(subject: Subject, order: int) -> None:
    compared = 0
    for sample in (*subject.about(most=8), *subject.about("broadcasting", most=2)):
        try:
            expected = gradients(subject, sample, subject.reference, order)
        except (AutogradError, NotImplementedError) as error:
            assert not isinstance(error, MissingKernelError), error  # the reference has every kernel
            continue  # there is no such gradient
        got = gradients(subject, sample, subject.device, order)
        relative = tolerance(subject.dtype, subject.ulps * (16 if subject.dtype is float64 else 8) * order)
        for number, (mine, wanted) in enumerate(zip(got, expected, strict=True)):
            try:
                if (mine is None) != (wanted is None):
                    raise Fault("no gradient" if wanted is None else "a gradient", "none" if mine is None else "one")
                if mine is not None and wanted is not None:
                    equal(read(mine), rounded(read(wanted), mine.dtype), relative)
                    compared += 1
            except Fault as fault:
                fault.args = (f"{fault} (gradient of order {order} for tensor {number})",)
                raise said(sample, fault) from None
    if not compared:
        raise NotApplicable("There is no such gradient.")


def _elsewhere(subject: Subject) -> bool:
    """Whether operands or results are of another layout than the reference has."""
    return subject.op.name == "to_sparse" or any(each.sparse for each in operands_in(subject.about()[0].args))


def by_differences(subject: Subject) -> None:
    """Gradients against differences of the reference's values: where formulas are for another layout than it has."""
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
                equal(np.where(held, read(mine), 0), wanted, max(1e-6, tolerance(subject.dtype, subject.ulps * 8)))
            except Fault as fault:
                raise said(sample, fault) from None


def _differences(subject: Subject, sample: Sample, operand: Operand) -> Any:
    """The gradient in one operand."""

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


@category("gradient", _MEANING, differentiable)
def _(subject: Subject) -> None:
    if _elsewhere(subject):
        by_differences(subject)
    else:
        _proven(subject, 1)


category(
    "second gradient",
    _MEANING,
    lambda subject: subject.precise and differentiable(subject) and not _elsewhere(subject),
)(lambda subject: _proven(subject, 2))
