"""What a run showed: for each operator and dtype, what works, what is composite, what is missing."""

from __future__ import annotations

import textwrap
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import Any, Final

from ..dtype import DTYPES
from .categories import DEVICE
from .suite import Suite

__all__ = ["Report"]

_SHORT: Final = {
    "bool": "b", "uint8": "u8", "int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64", "float16": "f16",
    "bfloat16": "bf16", "float32": "f32", "float64": "f64", "complex64": "c64", "complex128": "c128",
}  # fmt: skip


class Report:
    """Outcomes of cases, gathered by operator and dtype."""

    def __init__(self, suite: Suite) -> None:
        self.device = str(suite.device)
        self.providers = list(dict.fromkeys((each.name, each.version) for each in suite.providers))
        self.declared = {(name, each.name) for name, dtypes in suite.declared.items() for each in dtypes}
        self.views = {label for label, (op, _) in suite.subjects.items() if op.kind == "view"}
        #: of one provider, only what it brings is of interest
        self.operators = [label for label, dtypes in suite.declared.items() if dtypes or suite.provider is None]
        self.counts: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
        self.executed: set[tuple[str, str]] = set()
        self.failures: list[dict[str, str]] = []
        self.needs: dict[str, Counter[str]] = defaultdict(Counter)
        self._seen: set[str] = set()

    @property
    def subject(self) -> str:
        """Device and providers in words."""
        return f"{self.device} ({', '.join(f'{name} {version}'.strip() for name, version in self.providers)})"

    def is_new(self, operator: str) -> bool:
        """Whether an operator is named for the first time."""
        new = operator not in self._seen
        self._seen.add(operator)
        return new

    def add(
        self, operator: str, dtype: str, category: str, status: str, detail: str, served: Sequence[Sequence[str]]
    ) -> None:
        """Take in one outcome."""
        self.counts[operator, dtype][status] += 1
        self.executed.update((name, each) for name, each in served)
        if status == "failed":
            self.failures.append({"id": f"{operator}-{dtype}-{category}", "message": detail})
        elif status == "missing":
            self.needs[operator][detail.removeprefix("needs ")] += 1

    # -- judging ------------------------------------------------------------

    def untested(self) -> list[tuple[str, str]]:
        """Declared kernels that no case ran, although the core lets calls reach them."""
        unreachable = {each for each, counts in self.counts.items() if set(counts) == {"unreachable"}}
        return sorted(self.declared - self.executed - unreachable)

    def problems(self, partial: bool = False) -> list[str]:
        """What makes the run fail although no case failed; ``partial`` if only some cases were selected."""
        found = []
        if not self.executed:
            found.append("No kernel under test ran: nothing is proven.")
        elif not partial:
            for operator, dtype in self.untested():
                found.append(f"The kernel {operator} for {dtype} is declared, but no case ran it.")
        return found

    def status(self, operator: str) -> str:
        """``kernel``, ``composite``, ``view``, ``missing`` or ``failed``."""
        mine = [counts for (name, _), counts in self.counts.items() if name == operator]
        if any(counts["failed"] for counts in mine):
            return "failed"
        if any(name == operator for name, _ in self.declared):
            return "kernel"
        if operator == "move":  # what the device's own cases do
            mine = [counts for (name, _), counts in self.counts.items() if name == DEVICE]
        if operator in self.views:
            return "view"
        return "composite" if any(counts["passed"] for counts in mine) else "missing"

    # -- telling ------------------------------------------------------------

    def lines(self) -> Iterator[str]:
        """The summary as lines of text."""
        by_status = defaultdict(list)
        for operator in self.operators:
            by_status[self.status(operator)].append(operator)
        with_kernels = sorted({operator for operator, _ in self.declared})
        if with_kernels:
            width = max(map(len, with_kernels))
            columns = [each.name for each in DTYPES if any(dtype == each.name for _, dtype in self.declared)]
            yield " " * width + " " + " ".join(f"{_SHORT[each]:>4}" for each in columns) + "   cases"
            for operator in with_kernels:
                marks = [self._mark(operator, each) for each in columns]
                total = sum(
                    sum(self.counts[operator, each].values()) for each in columns if (operator, each) in self.counts
                )
                yield f"{operator:{width}} " + " ".join(f"{each:>4}" for each in marks) + f"{total:>8}"
            yield "+ proven   F failed   - declined   ! never ran   ~ in part: other kernels are missing   o the core refuses it"
        by_status["failed"] = [each for each in by_status["failed"] if each not in with_kernels]
        for status, what in (
            ("failed", "composites that fail"), ("composite", "composites, proven on this device"), ("missing", "missing"),
            ("view", "views, which need no kernel"),
        ):  # fmt: skip
            if by_status[status]:
                yield f"{len(by_status[status])} {what}:"
                yield textwrap.fill(", ".join(by_status[status]), 118, initial_indent="  ", subsequent_indent="  ")
        totals = sum(self.counts.values(), Counter[str]())
        yield (
            f"{len(with_kernels)} operators with {len(self.declared)} kernels, {len(self.declared & self.executed)} of them run. "
            f"Cases: " + ", ".join(f"{totals[each]} {each}" for each in ("passed", "failed", "declined", "missing"))
        )

    def _mark(self, operator: str, dtype: str) -> str:
        counts = self.counts.get((operator, dtype), Counter())
        if (operator, dtype) not in self.declared:
            return "."
        for status, mark in (
            ("failed", "F"),
            ("missing", "~"),
            ("passed", "+"),
            ("declined", "-"),
            ("unreachable", "o"),
        ):
            if counts[status]:
                return mark
        return "!"

    def as_json(self) -> dict[str, Any]:
        """The summary for programs."""
        found: dict[str, Any] = {}
        for operator in self.operators:
            dtypes = {
                dtype: {"kernel": (name, dtype) in self.declared, "ran": (name, dtype) in self.executed, **counts}
                for (name, dtype), counts in self.counts.items()
                if name == operator
            }
            needs = [each for each, _ in self.needs[operator].most_common()]
            found[operator] = {"status": self.status(operator), "needs": needs, "dtypes": dtypes}
        totals = sum(self.counts.values(), Counter[str]())
        return {
            "device": self.device,
            "providers": [{"name": name, "version": version} for name, version in self.providers],
            "cases": dict(totals),
            "kernels": {"declared": len(self.declared), "ran": len(self.declared & self.executed)},
            "operators": found,
            "failures": self.failures,
        }
