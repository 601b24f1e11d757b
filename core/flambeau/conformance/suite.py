"""The cases for a device: generated from what operators are declared and from what the device's plug-ins bring."""

from __future__ import annotations

import re
import warnings
from collections.abc import Collection, Iterator
from contextlib import ExitStack
from typing import NamedTuple

import numpy as np

from ..backends import Call, prefer, trace
from ..device import device as Device
from ..dispatch.operator import Operator, operators, similar
from ..dispatch.providers import registry
from ..dtype import DTYPES, dtype as Dtype, float32
from ..errors import ArgumentError, MissingKernelError
from ..key import devices, intern
from ..layout import layout as Layout, strided
from .categories import CATEGORIES, DEVICE, DEVICE_CATEGORIES, LAYOUT_CATEGORIES
from .compare import Fault
from .reference import reference_device
from .subject import NotApplicable, Place, Subject

__all__ = ["Case", "Outcome", "Suite"]


def labelled(operator: str, layout: str) -> str:
    """An operator's name in reports: with the layout of the tensors, if that is not the usual one."""
    return operator if layout == strided.name else f"{operator} ({layout})"


class Case(NamedTuple):
    """One thing to prove of one operator (by its label) in one dtype."""

    operator: str
    dtype: Dtype
    category: str

    @property
    def id(self) -> str:
        """Names the fault, should there be one: ``add-float32-offset view``."""
        return f"{self.operator}-{self.dtype.name}-{self.category}"


class Outcome(NamedTuple):
    """What became of a case.

    Attributes:
        status: ``passed``; ``failed``; ``missing``: it needs a kernel that the device lacks; ``declined``: no
            kernel under test served it; ``unreachable``: the core refuses such a call on any device,
            or there is no such gradient.
        detail: what was expected, what came, what it probably means; or what is missing, or who served instead.
        served: the kernels under test that ran: pairs of operator and dtype.
    """

    case: Case
    status: str
    detail: str = ""
    served: frozenset[tuple[str, str]] = frozenset()


class Suite:
    """Everything there is to prove of a device, or of one provider on it.

    Args:
        device: the device type.
        provider: only what this provider's kernels serve.
        only: names of operators; all if not given.

    Raises:
        RuntimeError: nothing provides the device.
        ValueError: the provider or an operator does not exist.
    """

    def __init__(self, device: str, provider: str | None = None, only: Collection[str] = ()) -> None:
        unknown = sorted(set(only) - operators.keys() - {DEVICE})
        if unknown:
            raise ArgumentError(f"There is no operator {unknown[0]!r}. Similar names: {similar(unknown[0])}.")
        place = Device(device)
        self.device = devices(place).canonical(place)
        registry.load(self.device.type)
        here = [each for each in registry.providers if each.device == self.device.type]
        self.providers = [each for each in here if provider in (None, each.name)]
        if not self.providers:
            names = ", ".join(each.name for each in here) or "none"
            raise ArgumentError(f"No provider {provider or ''!r} serves the device {device!r}; there are: {names}.")
        self.provider, self.reference = provider, reference_device()
        self.only = frozenset(only)
        self._subject: Subject | None = None
        #: what is proven, by label: an operator on tensors of a layout, and the dtypes that have a kernel
        self.subjects: dict[str, tuple[Operator, Layout]] = {}
        self.declared: dict[str, list[Dtype]] = {}
        layouts = dict.fromkeys([strided, *[each.layout for each in self.providers]])
        for layout in layouts:
            for name, op in operators.items():
                dtypes = [] if only and name not in self.only else self._declares(op, layout)
                if dtypes or (layout is strided and (not only or name in self.only)):
                    label = labelled(name, layout.name)
                    self.subjects[label], self.declared[label] = (op, layout), dtypes

    def _declares(self, op: Operator, layout: Layout) -> list[Dtype]:
        """The dtypes for which a provider under test has a kernel."""
        bring = [each for each in self.providers if each.layout is layout and op.name in each.kernels]
        keys = [intern(self.device, layout, each) for each in DTYPES] if bring else []
        return [key.dtype for key in keys if any(each.kernel(op.name, key) is not None for each in bring)]

    @property
    def dtypes(self) -> list[Dtype]:
        """Those for which there is some kernel."""
        served = {dtype for op in operators.values() for dtype in self._declares(op, strided)}
        return [each for each in DTYPES if each in served]

    def by_composition(self, op: Operator) -> bool:
        """Whether an operator without a kernel runs by its body: then that is proven too."""
        return self.provider is None and op.body is not None and not self.declared[op.name]

    # -- cases --------------------------------------------------------------

    def cases(self) -> Iterator[Case]:
        """Every case: those of the device, then operator by operator."""
        if self.provider is None and (not self.only or DEVICE in self.only):
            for dtype in self.dtypes:
                for category in DEVICE_CATEGORIES:
                    if category.applies(place := Place(dtype, self)):
                        for title in category.titles(place):
                            yield Case(DEVICE, dtype, title)
        for name, dtypes in self.declared.items():
            op, layout = self.subjects[name]
            if self.by_composition(op) or (name == "normal" and self.provider is None):  # which has no kernel
                dtypes = [float32]
            for dtype in dtypes:
                subject = self.subject(name, dtype)
                for category in CATEGORIES if layout is strided else LAYOUT_CATEGORIES:
                    if category.applies(subject):
                        for title in category.titles(subject):
                            yield Case(name, dtype, title)

    def subject(self, operator: str, dtype: Dtype) -> Subject:
        """An operator in a dtype on the device; cases come in runs of the same one, so the last is kept."""
        if self._subject is None or (self._subject.label, self._subject.dtype) != (operator, dtype):
            self._subject = Subject(operator, dtype, self)
        return self._subject

    # -- running ------------------------------------------------------------

    def run(self, case: Case) -> Outcome:
        """Run a case; whatever happens is in the outcome."""
        subject: Place
        if case.operator == DEVICE:
            subject, known = Place(case.dtype, self), DEVICE_CATEGORIES
        else:
            subject = self.subject(case.operator, case.dtype)
            known = CATEGORIES if subject.layout is strided else LAYOUT_CATEGORIES
        category = next(each for each in known if case.category in each.titles(subject))
        with ExitStack() as stack:
            if self.provider is not None:
                stack.enter_context(prefer(self.provider))
            calls = stack.enter_context(trace()).calls
            # Kernels written with NumPy warn of special numbers, old names of their age: the results say all.
            stack.enter_context(np.errstate(all="ignore"))
            stack.enter_context(warnings.catch_warnings())
            warnings.simplefilter("ignore")
            try:
                category.check(subject, case.category)
            except NotApplicable as reason:
                return Outcome(case, "unreachable", str(reason))
            except MissingKernelError as error:
                return self._missing(case, error, calls)
            except Fault as fault:
                return Outcome(case, "failed", f"{fault}\n{category.meaning}", self._served(calls))
            except Exception as error:
                got = f"{type(error).__name__}: {error}".splitlines()[0]
                detail = f"expected a result\n     got {got:.300}\n{category.meaning}"
                return Outcome(case, "failed", detail, self._served(calls))
        return self._proven(case, calls)

    def _missing(self, case: Case, error: MissingKernelError, calls: list[Call]) -> Outcome:
        found = re.match(r'"(\w+)" not implemented for (\w+)', str(error))
        what = f"{found[1]} for {found[2]}" if found else str(error).splitlines()[0]
        own = found is not None and (found[1], found[2]) == (case.operator.split()[0], case.dtype.name)
        return Outcome(
            case, "declined" if own and self._is_declared(case) else "missing", f"needs {what}", self._served(calls)
        )

    def _is_declared(self, case: Case) -> bool:
        return case.dtype in self.declared.get(case.operator, ())

    def _served(self, calls: list[Call]) -> frozenset[tuple[str, str]]:
        names, here = {each.name for each in self.providers}, str(self.device)
        return frozenset(
            (labelled(each.operator, each.layout), each.dtype)
            for each in calls
            if each.provider in names and each.device == here
        )

    def _proven(self, case: Case, calls: list[Call]) -> Outcome:
        served = self._served(calls)
        at_home = (str(self.device), str(self.reference))
        elsewhere = sorted({f"{each.operator} on {each.device}" for each in calls if each.device not in at_home})
        if elsewhere:
            detail = f"expected kernels of {self.device} alone\n     got {', '.join(elsewhere)}"
            return Outcome(case, "failed", detail, served)
        own = [
            each
            for each in calls
            if labelled(each.operator, each.layout) == case.operator and each.device == str(self.device)
        ]
        mixed = case.category == "promotion" and any(operator == case.operator for operator, _ in served)
        if not self._is_declared(case) or (case.operator, case.dtype.name) in served or mixed:
            return Outcome(case, "passed", "", served)
        others = sorted({each.provider or each.how for each in own})
        return Outcome(case, "declined", f"served by {', '.join(others) or 'no kernel'}", served)
