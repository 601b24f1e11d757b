"""The first of several results may be written in place: gradients need only the others (statistics, masks, indices)."""

from __future__ import annotations

import numpy as np
import pytest

import flambeau as torch
from flambeau.autograd import gradcheck, gradgradcheck
from flambeau.nn import functional as F

WITH_OTHERS = {
    "batch_norm": lambda x: F.batch_norm(x, None, None, training=True),
    "group_norm": lambda x: F.group_norm(x, 2),
    "layer_norm": lambda x: F.layer_norm(x, x.shape[1:]),
    "instance_norm": F.instance_norm,
    "max_pool": lambda x: F.max_pool2d(x, 2),
    "adaptive_max_pool": lambda x: F.adaptive_max_pool2d(x, 2),
    "max": lambda x: x.max(1)[0],
    "sort": lambda x: x.sort(1)[0],
    "topk": lambda x: x.topk(2, 1)[0],
    "kthvalue": lambda x: x.kthvalue(2, 1)[0],
    "median": lambda x: x.median(1)[0],
    "mode": lambda x: x.mode(1)[0],
    "cummax": lambda x: x.cummax(1)[0],
}


def values() -> torch.Tensor:
    numbers = np.random.default_rng(4).permutation(2 * 4 * 4 * 4) / 50.0 - 1.3  # all different, 0 is not among them
    return torch.from_numpy(numbers.reshape(2, 4, 4, 4)).requires_grad_()


@pytest.mark.parametrize("name", WITH_OTHERS)
def test_same_gradients_as_beside(name: str) -> None:
    function = WITH_OTHERS[name]
    weight = torch.from_numpy(np.random.default_rng(5).standard_normal(function(values()).shape))
    found = []
    for rectify in (lambda y: y.relu_(), lambda y: y.relu()):
        x = values()
        (rectify(function(x)) * weight).sum().backward()
        found.append(x.grad.numpy())
    assert np.abs(found[0]).sum() > 0
    np.testing.assert_array_equal(*found)


@pytest.mark.parametrize("name", ["batch_norm", "max", "sort"])
def test_second_gradients(name: str) -> None:
    x = values()[:, :2, :2, :2].detach().requires_grad_()
    function = WITH_OTHERS[name]
    assert gradcheck(lambda a: function(a).mul_(3).tanh(), (x,))
    assert gradgradcheck(lambda a: function(a).mul_(3).tanh(), (x,))


def test_dropout_in_place() -> None:
    x = torch.ones(200, dtype=torch.float64, requires_grad=True)
    y = F.dropout(x, 0.25).mul_(2)
    y.sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), y.detach().numpy())
    assert set(np.round(x.grad.numpy(), 12)) == {0.0, round(2 / 0.75, 12)}


def test_written_indices_are_still_noticed() -> None:
    x = torch.tensor([3.0, 1.0, 2.0], requires_grad=True)
    sorted_, order = x.sort()
    order.zero_()
    with pytest.raises(RuntimeError, match="modified by an inplace operation: int64 tensor of shape"):
        sorted_.sum().backward()
