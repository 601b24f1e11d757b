"""Rectifiers at their bounds, and what numbers mean for integer inputs."""

from __future__ import annotations

import numpy as np
import pytest

import flambeau as torch
from flambeau.autograd import gradgradcheck
from flambeau.nn import functional as F


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_no_slope_at_the_bounds(dtype: torch.dtype) -> None:
    x = torch.tensor([-1.0, 0.0, -0.0, 0.5, 6.0, 7.0, float("nan")], dtype=dtype, requires_grad=True)
    y = F.relu6(x)
    np.testing.assert_array_equal(y.detach().numpy(), [0, 0, 0, 0.5, 6, 6, np.nan])
    y.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), [0, 0, 0, 1, 0, 0, 0])


def test_hardtanh() -> None:
    values = np.array([[-3.0, -1.0, 0.25], [0.5, 2.0, 9.0]])
    for x in (torch.from_numpy(values), torch.from_numpy(values.copy()).t()):
        np.testing.assert_array_equal(F.hardtanh(x, -2, 1).numpy(), np.clip(x.numpy(), -2, 1))
        copy = x.clone()
        assert F.hardtanh(copy, -2, 1, inplace=True) is copy
        np.testing.assert_array_equal(copy.numpy(), np.clip(x.numpy(), -2, 1))
    x = torch.from_numpy(values).requires_grad_()
    assert gradgradcheck(lambda a: F.hardtanh(a, -2, 1) * a, (x,))
    np.testing.assert_array_equal(F.hardtanh(torch.tensor([-5, 0, 5])).numpy(), [-1, 0, 1])


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.uint8])
def test_threshold_of_integers(dtype: torch.dtype) -> None:
    x = torch.tensor([0, 1, 2], dtype=dtype)
    y = F.threshold(x, 0.5, 9.7)
    assert y.dtype is dtype and y.tolist() == [9, 1, 2]
    assert F.threshold(x, 1.5, 4.0, inplace=True) is x and x.tolist() == [4, 4, 2]


def test_bounds_of_rrelu_cross() -> None:
    with pytest.raises(RuntimeError, match=r"rrelu: lower bound 0.3 is greater than upper bound 0.1"):
        F.rrelu(torch.ones(2), 0.3, 0.1)
