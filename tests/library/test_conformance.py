"""The conformance kit proves kernels of custom operators, and finds the wrong ones."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

import flambeau as torch
from flambeau import Tensor
from flambeau.conformance.samples import SAMPLES, samples
from flambeau.conformance.suite import Suite
from flambeau.library import custom_op


@pytest.fixture
def prove():
    """What the kit says of a kernel for the hyperbolic tangent that keeps within a limit."""

    @custom_op("proven::soft", shapes="(n) -> (n)")
    def soft(x: Tensor, limit: float = 1.0) -> Tensor:
        return torch.from_numpy(limit * np.tanh(x.numpy() / limit))

    soft.gradient(x=lambda grad, result, limit: grad * (1 - (result / limit) ** 2))

    @samples("proven::soft")
    def _(draw):
        yield draw(5), 2.0

    def prove(kernel):
        soft.register_kernel("cpu", kernel, dtypes=[torch.float32, torch.float64])
        suite = Suite("cpu", provider="proven::soft")
        outcomes = [suite.run(case) for case in suite.cases()]
        return Counter(each.status for each in outcomes), {each.case.id: each for each in outcomes}

    yield prove
    soft.remove()
    del SAMPLES["proven::soft"]


def test_a_right_kernel_passes(prove):
    counts, outcomes = prove(lambda x, limit: 2 * limit * (torch.sigmoid(2 * x / limit) - 0.5))
    assert set(counts) == {"passed"}
    for dtype in ("float32", "float64"):
        assert {
            f"proven::soft-{dtype}-{case}" for case in ("values", "strided view", "offset view", "gradient")
        } <= set(outcomes)
    assert ("proven::soft", "float64") in outcomes["proven::soft-float64-values"].served


def test_a_kernel_that_is_wrong_by_a_hundredth_fails(prove):
    _, outcomes = prove(lambda x, limit: 2.02 * limit * (torch.sigmoid(2 * x / limit) - 0.5))
    found = outcomes["proven::soft-float32-values"]
    assert found.status == "failed" and "(5 of 5 elements are wrong)" in found.detail
    assert outcomes["proven::soft-float64-gradient"].status == "failed"


def test_a_kernel_that_takes_strides_for_granted_fails(prove):
    def kernel(x, limit):
        memory = torch.as_strided(x, x.shape, (1,), x.storage_offset())
        return 2 * limit * (torch.sigmoid(2 * memory / limit) - 0.5)

    _, outcomes = prove(kernel)
    assert outcomes["proven::soft-float32-values"].status == "passed"
    assert outcomes["proven::soft-float32-strided view"].status == "failed"
