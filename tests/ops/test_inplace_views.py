"""as_strided_ gives a tensor another shape, strides and place over the same memory."""

from __future__ import annotations

import numpy as np
import pytest

import flambeau as torch


def test_another_window() -> None:
    values = np.arange(12.0)
    x = torch.from_numpy(values)
    assert x.as_strided_((2, 3), (4, 1), 5) is x
    wanted = np.lib.stride_tricks.as_strided(values[5:], (2, 3), (32, 8))
    np.testing.assert_array_equal(x.numpy(), wanted)
    np.testing.assert_array_equal((x + 0).numpy(), wanted)
    assert x.storage_offset() == 5
    np.testing.assert_array_equal(x[1].numpy(), wanted[1])


def test_gradient_of_a_window() -> None:
    leaf = torch.arange(4.0, requires_grad=True)
    x = leaf * 2
    x.as_strided_((2, 2), (1, 1), 1)  # elements 1, 2, 2, 3
    (x * torch.tensor([[1.0, 10.0], [100.0, 1000.0]])).sum().backward()
    assert leaf.grad.tolist() == [0, 2, 220, 2000]


def test_refused_on_leaves_and_beyond_the_storage() -> None:
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        torch.ones(4, requires_grad=True).as_strided_((2,), (1,))
    x = torch.ones(4)
    with pytest.raises(RuntimeError, match="out of bounds for storage of 4"):
        x.as_strided_((5,), (1,))
    assert x.shape == (4,)
