"""The kit as a pytest plug-in: its options, its cases as test items, the summary, the exit status.

``pytest_flambeau`` loads it when pytest is called with ``--pyargs flambeau.conformance``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from ..errors import FlambeauError
from . import suite as suite_module
from .report import Report
from .suite import Case, Suite

__all__ = ["Cases", "Item"]

_PROPERTY: Final = "flambeau"


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options of the kit."""
    group = parser.getgroup("flambeau conformance")
    group.addoption("--device", metavar="NAME", help="the device type to prove")
    group.addoption("--provider", metavar="NAME", help="prove what this provider's kernels serve, and that they do")
    group.addoption("--operators", metavar="NAMES", default="", help="only these, separated by commas")
    group.addoption("--json", metavar="FILE", help="write the summary there")


def pytest_configure(config: pytest.Config) -> None:
    """Load the device."""
    if not config.option.device:
        raise pytest.UsageError("Name the device to prove: pytest --pyargs flambeau.conformance --device=NAME")
    only = [each.strip() for each in config.option.operators.split(",") if each.strip()]
    try:
        suite = Suite(config.option.device, config.option.provider, only)
    except FlambeauError as error:
        raise pytest.UsageError(str(error)) from error
    config.pluginmanager.register(_Session(config, suite), "flambeau-conformance")


class Cases(pytest.File):
    """The cases of a suite."""

    suite: Suite

    def collect(self) -> Iterator[Item]:
        for case in self.suite.cases():
            yield Item.from_parent(self, name=case.id, case=case)


class Item(pytest.Item):
    """One case."""

    def __init__(self, *, case: Case, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.case = case

    def runtest(self) -> None:
        assert isinstance(self.parent, Cases)
        outcome = self.parent.suite.run(self.case)
        entry = (*self.case[:1], self.case.dtype.name, self.case.category, outcome.status, outcome.detail)
        self.user_properties.append((_PROPERTY, [*entry, sorted(outcome.served)]))
        if outcome.status == "failed":
            raise _Failed(outcome.detail)
        if outcome.status != "passed":
            pytest.skip(f"{outcome.status}: {outcome.detail}")

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        if isinstance(excinfo.value, _Failed):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, None, str]:
        return self.path, None, self.case.id


class _Failed(Exception):
    """A case failed; the message says all there is to say."""


class _Session:
    """One run of the kit."""

    def __init__(self, config: pytest.Config, suite: Suite) -> None:
        self.config, self.suite = config, suite
        self.report = Report(suite)
        self.partial = False
        self.problems: list[str] = []

    def pytest_report_header(self) -> str:
        return f"flambeau conformance of {self.report.subject}"

    def pytest_collect_file(self, file_path: Path, parent: pytest.Collector) -> Cases | None:
        if file_path != Path(suite_module.__file__):
            return None
        cases = Cases.from_parent(parent, path=file_path)
        cases.suite = self.suite
        return cases

    def pytest_deselected(self) -> None:
        self.partial = True

    def pytest_report_teststatus(self, report: pytest.TestReport) -> Any:
        """One dot for each operator: ten thousand would say no more."""
        if report.when != "call" or report.failed or self.config.option.verbose > 0:
            return None
        operator = report.nodeid.split("::")[-1].split("-")[0]
        letter = "." if self.report.is_new(operator) else ""
        return report.outcome, letter, report.outcome.upper()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        entries = [entry for name, entry in report.user_properties if name == _PROPERTY]
        if report.failed and not entries:  # the process crashed: a worker of pytest-xdist
            self.report.failures.append({"id": report.nodeid.split("::")[-1], "message": str(report.longrepr)})
        for entry in entries if report.when == "call" else ():
            self.report.add(*entry)  # type: ignore[misc]

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if hasattr(self.config, "workerinput"):
            return
        self.problems = self.report.problems(self.partial)
        if self.problems and session.exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
        if self.config.option.json:
            text = json.dumps({**self.report.as_json(), "problems": self.problems}, indent=1)
            Path(self.config.option.json).write_text(text + "\n")

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        terminalreporter.section(f"flambeau conformance of {self.report.subject}")
        for line in self.report.lines():
            terminalreporter.write_line(line)
        for line in self.problems:
            terminalreporter.write_line(line, red=True)
