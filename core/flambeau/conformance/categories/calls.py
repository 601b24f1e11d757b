"""How an operator is called: with mixed dtypes, with wrong arguments, with a seed."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from ...dtype import DTYPES
from ...errors import FlambeauError, MissingKernelError
from ...generator import default_generators
from ...tensor import tensors_in
from ..compare import Fault, compare
from ..operands import Draw, Operand, bits, narrow, read
from ..samples import DRAWS, Sample, faults_of, samples_of
from ..subject import Subject, operands_in, placing
from .category import CATEGORIES, Category, category, said

# ---------------------------------------------------------------- promotion


def _mixes(subject: Subject) -> bool:
    return subject.kernel and subject.op.kind == "pointwise" and len(operands_in(subject.about()[0].args)) > 1


@category(
    "promotion",
    "Operands of two dtypes are converted by the kernel of cast before the operator's own kernel runs in their common dtype.",
    _mixes,
)
def _(subject: Subject) -> None:
    mine = subject.about()[0]
    for other in DTYPES:
        if other is subject.dtype or other not in subject.suite.declared[subject.label]:
            continue
        theirs = next(iter(samples_of(subject.op.name, Draw(other))))
        for args in ((mine.args[0], *theirs.args[1:]), (theirs.args[0], *mine.args[1:])):
            _promoted(subject, Sample(mine.about, args, {}))


def _promoted(subject: Subject, sample: Sample) -> None:
    there = placing(subject.reference)
    try:
        wanted = subject.call([there(each) for each in sample.args])
    except FlambeauError:
        return  # these do not go together
    here = placing(subject.device)
    got = subject.call([here(each) for each in sample.args])
    try:
        compare(got, Operand(read(wanted), wanted.dtype), subject.device, subject.ulps)
    except Fault as fault:
        raise said(sample, fault) from None


# ---------------------------------------------------------------- errors


def _faults(subject: Subject) -> list[Sample]:
    return list(faults_of(subject.op.name, subject.draw)) if subject.kernel else []


def _refused(subject: Subject, title: str) -> None:
    convert = placing(subject.device)
    for sample in _faults(subject):
        if f"error: {sample.about}" != title:
            continue
        args = [convert(each) for each in sample.args]
        try:  # a device whose kernels run later finds the fault when the result is waited for
            result = subject.call(args)
            numbers = [read(each).reshape(-1)[:4] for each in tensors_in(args[0] if subject.op.mutates else result)]
        except MissingKernelError:
            raise
        except (IndexError, RuntimeError, ValueError) as error:
            if not isinstance(error, FlambeauError) or not str(error):
                raise said(sample, Fault("an error of flambeau.backend with a message", repr(error))) from None
        else:
            raise said(sample, Fault("an IndexError or RuntimeError", f"a result: {numbers}"))
        if subject.op.mutates and bits(args[0]) != narrow(sample.args[0].values, subject.dtype).tobytes():
            raise said(sample, Fault("nothing to be written when a call is refused", "a half-written target"))


CATEGORIES.append(
    Category(
        lambda subject: list(dict.fromkeys(f"error: {each.about}" for each in _faults(subject))),
        _refused,
        "A bad call raises BoundsError or ShapeError of flambeau.backend before anything is written; it never reads out of bounds.",
        lambda subject: bool(_faults(subject)),
    )
)

# ---------------------------------------------------------------- random numbers

_COUNT: Final = 4000
_MEANING: Final = (
    "Drawing kernels compute number i of a stream from (seed, offset) alone: the same pair gives the same numbers."
)


def _draws(subject: Subject) -> bool:
    return subject.op.name in DRAWS


def _drawn(subject: Subject, seed: int, offset: int, count: int = 500) -> Any:
    args, _ = DRAWS[subject.op.name](subject.draw, count)
    placed = [placing(subject.device)(each) for each in args]
    if "seed" not in subject.op.parameters:
        return _by_default_generator(subject, placed, seed, offset)
    result = subject.call([*placed, seed, offset])
    return placed[0] if subject.op.mutates else tensors_in(result)[0]


def _by_default_generator(subject: Subject, args: list[Any], seed: int, offset: int) -> Any:
    generator = default_generators[subject.device]
    before = generator.clone_state()
    generator.seed_, generator.offset = seed, offset
    try:
        function: Any = subject.op.function
        return function(*args)
    finally:
        generator.seed_, generator.offset = before.seed_, before.offset


@category("same seed", _MEANING, _draws)
def _(subject: Subject) -> None:
    first, second = (_drawn(subject, 7, 32) for _ in range(2))
    if bits(first) != bits(second):
        raise Fault("the same numbers from the same seed", f"{read(first)[:4]} and {read(second)[:4]}")


@category("other seed", _MEANING + " Another seed gives others.", _draws)
def _(subject: Subject) -> None:
    if bits(_drawn(subject, 7, 32)) == bits(_drawn(subject, 8, 32)):
        raise Fault("other numbers from another seed", "the same: the seed is ignored")


@category("next numbers", _MEANING + " A later offset gives others.", _draws)
def _(subject: Subject) -> None:
    if bits(_drawn(subject, 7, 0)) == bits(_drawn(subject, 7, 256)):
        raise Fault("other numbers from a later offset", "the same: the offset is ignored")


@category("distribution", "Too many or too few numbers fall into a range: the distribution is another one.", _draws)
def _(subject: Subject) -> None:
    numbers = read(_drawn(subject, 12345, 64, _COUNT)).reshape(-1)
    _, events = DRAWS[subject.op.name](subject.draw, _COUNT)
    for event in events:
        happened = np.asarray(event.happens(numbers))
        share, p = float(happened.mean()), event.probability
        if abs(share - p) > 5 * np.sqrt(p * (1 - p) / happened.size) + (0.01 if 0 < p < 1 else 0):
            raise Fault(f"{event.what} for a share of {p:.4g}", f"{share:.4g} of {happened.size}")
