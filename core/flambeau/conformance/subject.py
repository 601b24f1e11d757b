"""One operator in one dtype, on a device and on the reference."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from ..device import device as Device
from ..dispatch.operator import Operator
from ..dispatch.providers import registry
from ..dtype import DTYPES, complex128, default, dtype as Dtype, float64
from ..errors import ArgumentError, AutogradError, DtypeError, MissingKernelError, ShapeError
from ..key import intern
from ..layout import strided
from ..tensor import Tensor, tensors_in
from .operands import Draw, Operand, place, read
from .samples import VALUES, Sample, samples_of

if TYPE_CHECKING:
    from .suite import Suite

__all__ = ["NotApplicable", "Place", "Subject", "operands_in", "placing"]


class NotApplicable(Exception):
    """The core itself refuses a call, on whatever device."""


#: How many units in the last place results may differ, where not 32.
ULPS: Final = {"lgamma": 256, "digamma": 256, "polygamma": 1024, "erfinv": 128, "tan": 64, "pow": 64, "prod": 64}


def placing(device: Device, how: str = "contiguous", wide: bool = False) -> Callable[[Any], Any]:
    """A function from an argument with operands to one with tensors on a device; wide ones, if asked."""

    def convert(each: Any) -> Any:
        if isinstance(each, Operand):
            return place(Operand(each.values, _wide(each.dtype)) if wide else each, device, how)
        if isinstance(each, Dtype):
            return _wide(each) if wide else each
        return [convert(one) for one in each] if isinstance(each, list) else each

    return convert


def operands_in(args: Sequence[Any]) -> list[Operand]:
    """The operands among arguments, those of lists too."""
    found: list[Operand] = []
    for each in args:
        if isinstance(each, Operand):
            found.append(each)
        elif isinstance(each, list):
            found += operands_in(each)
    return found


def _dtypes_in(args: Sequence[Any]) -> Iterator[Dtype]:
    for each in args:
        if isinstance(each, (Operand, Dtype)):
            yield each.dtype if isinstance(each, Operand) else each


def results_in(result: Any) -> list[Any]:
    """The tensors and Python numbers that a call gave, one after another."""
    if isinstance(result, (list, tuple)):
        return [one for each in result for one in results_in(each)]
    return [] if result is None else [result]


def _wide(dtype: Dtype) -> Dtype:
    return dtype if dtype.category < 2 else complex128 if dtype.is_complex else float64


class Place:
    """A dtype on the device under test, and on the reference."""

    def __init__(self, dtype: Dtype, suite: Suite) -> None:
        self.dtype, self.suite = dtype, suite
        self.device, self.reference = suite.device, suite.reference
        self.draw = Draw(dtype)


class Subject(Place):
    """An operator there: inputs, calls, expected results."""

    op: Operator

    def __init__(self, label: str, dtype: Dtype, suite: Suite) -> None:
        super().__init__(dtype, suite)
        self.label = label
        self.op, self.layout = suite.subjects[label]
        self.ulps = ULPS.get(self.op.name, 32)
        self._expected: dict[int, tuple[Sample, list[Any]]] = {}

    @cached_property
    def samples(self) -> list[Sample]:
        """All inputs of the operator; of those that convert, the ones between dtypes that the device converts."""
        found = samples_of(self.label, self.draw)
        if self.op.name not in ("cast", "copy_"):
            return list(found)
        keys = [intern(self.device, self.layout, each) for each in DTYPES]
        known = {each.dtype for each in keys if registry.has(self.op.name, each)}
        return [each for each in found if {*_dtypes_in(each.args)} <= known]

    @cached_property
    def abouts(self) -> list[str]:
        """What they are about, each once, ordinary calls first."""
        return sorted(dict.fromkeys(each.about for each in self.samples), key=lambda each: each != VALUES)

    def about(self, what: str = VALUES, most: int | None = None) -> list[Sample]:
        """The inputs of one kind."""
        return [each for each in self.samples if each.about == what][:most]

    @property
    def kernel(self) -> bool:
        """Whether a kernel is under test, not a body of other operators."""
        return self.dtype in self.suite.declared[self.label]

    @property
    def main(self) -> bool:
        """Whether this is the dtype in which what hardly depends on dtypes is proven."""
        dtypes = [each for each in self.suite.declared[self.label] if each.is_floating_point]
        dtypes = dtypes or self.suite.declared[self.label]
        widest = [each for each in dtypes if each.itemsize >= 4] or dtypes
        return not widest or self.dtype is widest[0]

    @property
    def precise(self) -> bool:
        """Whether this is the dtype in which gradients are proven."""
        declared = self.suite.declared[self.label]
        return self.dtype is float64 if float64 in declared else self.main

    # -- calling ------------------------------------------------------------

    def call(self, args: Sequence[Any], kwargs: dict[str, Any] | None = None) -> Any:
        """Call the operator the way its samples are meant."""
        function: Any = self.op.function
        if self.op.kind == "primitive" and not self.op.name.endswith("_steps_"):
            return function.run(*args)
        return function(*args, **(kwargs or {}))

    def run(self, sample: Sample, how: str = "contiguous") -> tuple[list[Any], list[Tensor]]:
        """Results on the device under test, and the arguments that were tensors.

        An operator that writes into its arguments gives those.
        """
        convert = placing(self.device, how)
        args = [convert(each) for each in sample.args]
        result = self.call(args, {name: convert(each) for name, each in sample.kwargs.items()})
        inputs = tensors_in(args)
        return (inputs if self.writes else results_in(result)), inputs

    @property
    def writes(self) -> bool:
        """Whether the operator writes into its arguments."""
        return self.op.mutates or self.op.name.endswith("_steps_")

    def expected(self, sample: Sample) -> list[Any]:
        """The results on the reference, computed wide."""
        found = self._expected.get(id(sample))
        if found is None:  # the sample is kept, so that no other one gets its id
            found = self._expected[id(sample)] = (sample, self.compute(sample))
        return found[1]

    def compute(self, sample: Sample) -> list[Any]:
        """Likewise, not remembered."""
        convert = placing(self.reference, wide=True)
        args = [convert(each) for each in sample.args]
        kwargs = {name: convert(each) for name, each in sample.kwargs.items()}
        try:
            if self.op.kind == "primitive" and self.layout is not strided:  # the reference is that of dense tensors
                result = self.op.resolve(args[0].key)(*args)
            else:
                result = self.call(args, kwargs)
        except (ArgumentError, AutogradError, DtypeError, MissingKernelError, ShapeError) as error:
            assert f"on {self.reference}" not in str(error), error
            raise NotApplicable(str(error).splitlines()[0]) from None
        named = next((each for each in sample.args if isinstance(each, Dtype)), self.dtype)
        if self.writes:
            own = operands_in(sample.args)
            return [Operand(read(each), given.dtype) for each, given in zip(tensors_in(args), own, strict=True)]
        return [
            Operand(read(each), self._narrow(each.dtype, named)) if isinstance(each, Tensor) else each
            for each in results_in(result)
        ]

    def _narrow(self, wide: Dtype, named: Dtype) -> Dtype:
        """The dtype of a result that is of dtype ``wide`` where all is computed wide."""
        if wide.category < 2 or wide not in (float64, complex128):
            return wide
        own = named if named.category >= 2 else default.dtype
        return own if wide.is_complex == own.is_complex else own.to_real()
