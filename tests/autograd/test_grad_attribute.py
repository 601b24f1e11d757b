"""What may be assigned to a tensor's gradient."""

from __future__ import annotations

import pytest

import flambeau as torch


@pytest.mark.parametrize(
    ("grad", "error", "message"),
    [
        (torch.zeros(2), RuntimeError, r"expected \[3\], got \[2\]"),
        (torch.zeros(3, 1), RuntimeError, r"expected \[3\], got \[3, 1\]"),
        (torch.zeros(3, dtype=torch.float64), RuntimeError, "expected float32, got float64"),
        (1.0, TypeError, "must be a Tensor or None, got float 1.0"),
    ],
)
def test_refused_and_left_alone(grad: object, error: type[Exception], message: str) -> None:
    x = torch.ones(3, requires_grad=True)
    (x * 2).sum().backward()
    with pytest.raises(error, match=message):
        x.grad = grad
    assert x.grad.tolist() == [2, 2, 2]


def test_accepted() -> None:
    x = torch.ones(3)
    assert x.grad is None
    mine = torch.arange(3.0)
    x.grad = mine
    assert x.grad is mine
    x.requires_grad_()
    x.sum().backward()
    assert mine.tolist() == [1, 2, 3]
    del x.grad
    assert x.grad is None
    x.grad = None
    assert x.grad is None
