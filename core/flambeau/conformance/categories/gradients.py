"""Gradients on the device, to second order, against those of the same numbers on the reference.

The formulas are the core's; what is proven is that the kernels which they call give the right numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...autograd.engine import grad
from ...device import device as Device
from ...dtype import float64
from ...errors import FlambeauError
from ...tensor import Tensor
from ..compare import Fault, equal, tolerance
from ..operands import Array, Operand, place, read, rounded
from ..samples import Sample
from ..subject import Subject, placing, tensors_in
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
    convert = placing(device, wide=device is subject.reference)
    args = [convert(each) for each in sample.args]
    leaves = _leaves(subject, args)
    if subject.op.mutates and leaves:
        args[0] = args[0].clone()  # a leaf must not be written
    outcome = subject.call(args, {name: convert(each) for name, each in sample.kwargs.items()})
    results = [each for each in tensors_in(args[0] if subject.op.mutates else outcome) if each.requires_grad]
    for round_ in range(order):
        if not results or not leaves:
            return []
        seeds = _seeds(results, device, round_)
        last = round_ == order - 1
        found = list(grad(results, leaves, seeds, create_graph=not last, allow_unused=True))
        results = [each for each in found if each is not None and each.requires_grad]
    return found


def _proven(subject: Subject, order: int) -> None:
    for sample in (*subject.about(most=8), *subject.about("broadcasting", most=2)):
        try:
            expected = gradients(subject, sample, subject.reference, order)
        except (FlambeauError, NotImplementedError):
            continue  # there is no such gradient
        got = gradients(subject, sample, subject.device, order)
        relative = tolerance(subject.dtype, subject.ulps * (16 if subject.dtype is float64 else 8) * order)
        for number, (mine, wanted) in enumerate(zip(got, expected, strict=True)):
            try:
                if (mine is None) != (wanted is None):
                    raise Fault("no gradient" if wanted is None else "a gradient", "none" if mine is None else "one")
                if mine is not None and wanted is not None:
                    equal(read(mine), rounded(read(wanted), mine.dtype), relative)
            except Fault as fault:
                fault.args = (f"{fault} (gradient of order {order} for tensor {number})",)
                raise said(sample, fault) from None


category("gradient", _MEANING, differentiable)(lambda subject: _proven(subject, 1))
category("second gradient", _MEANING, lambda subject: subject.precise and differentiable(subject))(
    lambda subject: _proven(subject, 2)
)
