"""Which memory a kernel reads and which it writes: strides, offsets, aliases."""

from __future__ import annotations

from typing import Any, Final, cast

import numpy as np

from ...ops.conversion import host_array
from ...tensor import Tensor
from ..compare import Fault
from ..operands import Operand, bits, narrow, place, read
from ..samples import Sample
from ..subject import Subject, operands_in, placing, results_in
from .category import category, compared, said, with_kernel

#: Operators whose kernels are only ever given contiguous targets.
_CONTIGUOUS: Final = frozenset({"arange_", "linspace_"})
#: Operators whose results hold on to their operands.
_SHARING: Final = frozenset({"sparse_tensor"})
#: Memory that a kernel may use as it likes.
SCRATCH: Final = {"class_loss": 3, "class_loss_backward": 4, "recurrent_layer": 5}


def _viewed(subject: Subject, how: str) -> None:
    for sample in subject.about(most=3):
        subject.expected(sample)
        results, _ = subject.run(sample, how)
        try:
            compared(subject, sample, results)
        except Fault as fault:
            if not _right(subject, sample):
                fault.args = (f"{fault}\n  and likewise on contiguous tensors: see the case `values` first",)
            raise


def _right(subject: Subject, sample: Sample) -> bool:
    """Whether the results are right where tensors are contiguous."""
    try:
        compared(subject, sample, subject.run(sample)[0])
    except Fault:
        return False
    return True


@category(
    "strided view",
    "The kernel reads or writes elements as if they were contiguous: use tensor.geometry.strides (in elements).",
    lambda subject: with_kernel(subject) and subject.op.name not in _CONTIGUOUS,
)
def _(subject: Subject) -> None:
    _viewed(subject, "strided")


@category(
    "offset view",
    "The kernel starts at the wrong element: tensor.memory is the handle of the tensor's first element, inside its storage.",
)
def _(subject: Subject) -> None:
    _viewed(subject, "offset")


@category(
    "repeated view",
    "The kernel misreads a stride of 0, by which an expanded tensor repeats its elements.",
    lambda subject: with_kernel(subject) and not subject.writes and isinstance(subject.about()[0].args[0], Operand),
)
def _(subject: Subject) -> None:
    for sample in subject.about(most=2):
        flat, shape = sample.args[0], np.shape(getattr(sample.args[0], "values", ()))
        if not shape or shape[0] < 2:
            continue
        first = Operand(flat.values[:1], flat.dtype)
        repeated = Operand(np.array(np.broadcast_to(first.values, shape)), flat.dtype)
        whole = Sample(sample.about, (repeated, *sample.args[1:]), sample.kwargs)
        subject.expected(whole)
        convert = placing(subject.device)
        args = [convert(each) for each in whole.args]
        args[0] = place(first, subject.device).expand(shape)
        result = subject.call(args, {name: convert(each) for name, each in whole.kwargs.items()})
        compared(subject, whole, results_in(result))


@category(
    "inputs unchanged",
    "The kernel wrote into an operand: only out= and the first argument of an operator that writes may change.",
    # Steps of optimisers move their state too.
    lambda subject: with_kernel(subject) and not subject.op.name.startswith(("sgd_", "adam_")),
)
def _(subject: Subject) -> None:
    for sample in subject.about(most=2):
        subject.expected(sample)
        _, inputs = subject.run(sample)
        own = operands_in(sample.args)
        scratch = sample.args[SCRATCH[subject.op.name]] if subject.op.name in SCRATCH else None
        for tensor, given in list(zip(inputs, own, strict=True))[int(subject.op.mutates) :]:
            if given is scratch:
                continue
            if bits(tensor) != narrow(given.values, given.dtype).tobytes():
                raise said(
                    sample,
                    Fault(f"an operand to stay {given.values.reshape(-1)[:4]}", f"{read(tensor).reshape(-1)[:4]}"),
                )


def _shares(result: Tensor, given: Tensor) -> bool:
    """Whether two tensors share memory; where NumPy cannot see that, the result is overwritten to find out."""
    if result is given or result.memory is given.memory:
        return bool(result.geometry.numel)
    if result.key.memory.host:
        return np.shares_memory(host_array(result), host_array(given))
    before = bits(given)
    for number in (0, 1):
        cast(Any, result).fill_(number)
        if bits(given) != before:
            return True
    return False


@category(
    "result has its own memory",
    "The result is the input, or a view of it: writing to one would change the other. Copy, even where nothing changes.",
    lambda subject: with_kernel(subject) and not subject.writes and subject.op.name not in _SHARING,
)
def _(subject: Subject) -> None:
    for sample in subject.samples:
        subject.expected(sample)
        results, inputs = subject.run(sample)
        if any(_shares(result, each) for result in results for each in inputs):
            raise said(sample, Fault("a result with memory of its own", "one that shares its input's memory"))


@category("same bits twice", "Two runs on the same inputs differ: uninitialised memory, or a race.")
def _(subject: Subject) -> None:
    for sample in subject.about(most=2):
        subject.expected(sample)
        first, second = (subject.run(sample)[0] for _ in range(2))
        for one, other in zip(first, second, strict=True):
            if bits(one) != bits(other):
                raise said(
                    sample,
                    Fault(f"the same numbers twice, {read(one).reshape(-1)[:4]}", f"{read(other).reshape(-1)[:4]}"),
                )
