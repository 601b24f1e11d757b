"""Comparisons take a tensor first; Python's operators may still have the number there."""

from __future__ import annotations

import operator

import numpy as np
import pytest

import flambeau as torch


@pytest.mark.parametrize("name", ["eq", "ne", "lt", "le", "gt", "ge"])
def test_number_first(name: str) -> None:
    x = torch.tensor([1.0, 2.0, 3.0])
    with pytest.raises(TypeError, match=rf"{name}\(\) expects a Tensor first, got 2 and float32\[3\]"):
        getattr(torch, name)(2, x)
    with pytest.raises(TypeError, match="expects a Tensor first"):
        getattr(torch, name)(2, x, out=torch.empty(3, dtype=torch.bool))
    reflected = getattr(operator, name)(2, x)
    np.testing.assert_array_equal(reflected.numpy(), getattr(operator, name)(2, x.numpy()))


def test_fmod_number_first() -> None:
    with pytest.raises(TypeError, match=r"fmod\(\) expects a Tensor first"):
        torch.fmod(7, torch.tensor([2.0]))
