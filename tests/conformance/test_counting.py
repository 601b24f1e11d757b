"""What counts as run: kernels of the provider under test, and nothing else."""

from __future__ import annotations

import numpy as np

import flambeau
from flambeau.backend import Backend, Kernel, MissingKernelError
from flambeau.backends import register
from flambeau.conformance.suite import Suite

from .good import FLOATS, Good, outcomes


def test_one_provider_of_several():
    """It is preferred, its own kernels alone are looked at, and calls that it declines are not put to its account."""
    small = Kernel(Good().pointwise(np.exp), FLOATS, predicate=lambda a: a.geometry.numel != 17)
    second = Backend(name="second", device="subject", version="2.0", priority=-1, kernels={"exp": small})
    with register(Good().backend("subject")), register(second):
        suite = Suite("subject", "second")
        assert {name for name, dtypes in suite.declared.items() if dtypes} == {"exp"}
        found = {each.id: suite.run(each) for each in suite.cases()}
        assert found["exp-float32-0-dim"].status == "passed"
        assert {each.status for each in found.values()} == {"passed"}
        second.kernels["exp"].predicate = lambda a: False
        refused = suite.run(next(each for each in suite.cases() if each.category == "0-dim"))
        assert (refused.status, refused.detail) == ("declined", "served by subject")


def test_a_kernel_that_declines_every_call_is_reported():
    class Declines(Good):
        def kernels(self):
            return {**super().kernels(), "exp": Kernel(self.pointwise(self.op_exp), FLOATS, predicate=lambda *_: False)}

    found, report = outcomes(Declines, ["exp", "add"])
    statuses = {each.status for each in found if each.case.operator == "exp"}
    assert statuses <= {"declined", "missing"} and "declined" in statuses
    assert report.problems() == [f"The kernel exp for {each.name} is declared, but no case ran it." for each in FLOATS]
    assert report.problems(partial=True) == []


def test_a_kernel_that_always_says_it_is_missing_proves_nothing():
    class Pretends(Good):
        def op_exp(self, a):
            raise MissingKernelError('"exp" not implemented for float32 on subject (strided).')

    _, report = outcomes(Pretends, ["exp"])
    assert report.as_json()["cases"].get("passed", 0) == 0


def test_kernels_of_another_device_do_not_count():
    class Moves(Good):
        def op_exp(self, a):
            return flambeau.from_numpy(np.array(a)).exp().numpy()

    found, _ = outcomes(Moves, ["exp"])
    failed = {each.case.id: each.detail for each in found if each.status == "failed"}
    assert failed["exp-float32-values"] == "expected kernels of subject alone\n     got exp on cpu"


def test_fewer_kernels_are_missing_not_wrong():
    class Few(Good):
        def kernels(self):
            return {
                name: kernel for name, kernel in super().kernels().items() if name in ("add", "mul", "sum", "uniform_")
            }

    found, report = outcomes(Few, [])
    assert {each.status for each in found} == {"passed", "missing"}
    assert report.problems() == [] and report.status("add") == "kernel" and report.status("exp") == "missing"
    assert "copy_ for float32" in report.as_json()["operators"]["add"]["needs"]
