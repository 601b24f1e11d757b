"""What sums do with alpha in dtypes where it is not simply a factor, and angles at the origin."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import flambeau as torch

TRUTH = list(itertools.product([False, True], repeat=2))


@pytest.mark.parametrize("alpha", [True, False, 0, 1, 2, -1])
def test_alpha_of_bool_is_a_truth_value(alpha: int) -> None:
    a, b = (np.array(each) for each in zip(*TRUTH))
    x, y = torch.from_numpy(a), torch.from_numpy(b)
    wanted = a | (b & bool(alpha))
    for result in (torch.add(x, y, alpha=alpha), x.clone().add_(y, alpha=alpha)):
        assert result.dtype is torch.bool
        np.testing.assert_array_equal(result.numpy(), wanted)


@pytest.mark.parametrize("alpha", [2, 3, 255])
def test_alpha_of_uint8_wraps(alpha: int) -> None:
    a, b = np.arange(0, 256, 5), np.arange(255, -1, -5)
    x, y = (torch.from_numpy(each.astype(np.uint8)) for each in (a, b))
    less, more = (a - alpha * b) % 256, (a + alpha * b) % 256
    for result in (torch.sub(x, y, alpha=alpha), x.clone().sub_(y, alpha=alpha), torch.add(x, y, alpha=-alpha)):
        np.testing.assert_array_equal(result.numpy(), less)
    np.testing.assert_array_equal(torch.sub(x, y, alpha=-alpha).numpy(), more)
    every = torch.arange(len(a))
    np.testing.assert_array_equal(x.index_add(0, every, y, alpha=-alpha).numpy(), less)


def test_no_difference_of_bool() -> None:
    x = torch.tensor([True])
    for alpha in (1, 2):
        with pytest.raises(RuntimeError, match="Subtraction, the `-` operator, with two bool tensors is not supported"):
            torch.sub(x, x, alpha=alpha)


def test_alpha_too_far_for_uint8() -> None:
    x = torch.tensor([1], dtype=torch.uint8)
    with pytest.raises(RuntimeError, match="uint8 holds 0 to 255"):
        torch.add(x, x, alpha=-256)


def test_sign_of_bool() -> None:
    x = torch.tensor([True, False])
    assert x.sign().dtype is torch.bool and x.sign().tolist() == [True, False]
    assert x.sign_().tolist() == [True, False]


def test_angle_at_the_origin_has_gradient_zero() -> None:
    y, x = (torch.tensor(each, dtype=torch.float64, requires_grad=True) for each in ([0.0, 3.0], [0.0, 4.0]))
    torch.atan2(y, x).sum().backward()
    np.testing.assert_allclose(y.grad.numpy(), [0, 4 / 25])
    np.testing.assert_allclose(x.grad.numpy(), [0, -3 / 25])
