"""Writes: versions, saved tensors that changed, and views of every kind."""

import numpy as np
import pytest

import flambeau
from flambeau.autograd import grad, gradcheck, gradgradcheck

t = flambeau.tensor


def leaf(*values):
    return t(list(values), dtype=flambeau.float64, requires_grad=True)


def matrix(rows=3, columns=4, seed=0):
    values = np.random.default_rng(seed).standard_normal((rows, columns))
    return flambeau.from_numpy(values).requires_grad_()


# ---------------------------------------------------------------- what is refused


def test_writing_into_leaves():
    x = leaf(1.0, 2.0)
    with pytest.raises(RuntimeError, match=r"a leaf Variable that requires grad is being used"):
        x.add_(1)
    with pytest.raises(RuntimeError, match="a view of a leaf Variable that requires grad"):
        x[0].mul_(2)
    with pytest.raises(RuntimeError, match="a view of a leaf Variable that requires grad"):
        x[0] = 3
    assert x.tolist() == [1.0, 2.0]
    with flambeau.no_grad():
        x.add_(1)
    assert x.tolist() == [2.0, 3.0] and x.is_leaf


@pytest.mark.parametrize(
    "write", [lambda y: y.add_(1), lambda y: y[0].zero_(), lambda y: y.detach().add_(1), lambda y: y.t().mul_(2)]
)
def test_changed_saved_tensors_are_noticed(write):
    x = leaf(1.0, 2.0)
    y = x * 2
    z = y * y
    write(y)
    with pytest.raises(RuntimeError, match=r"inplace operation: float64 tensor of shape \[2\], saved by mul"):
        z.sum().backward()


def test_changed_results_are_noticed():
    x = leaf(1.0, 2.0)
    y = x.exp()
    y.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_changes_that_nothing_needs_are_fine():
    x = leaf(1.0, 2.0)
    y = x + 1
    y.mul_(3)
    y.add_(x)
    y.sum().backward()
    assert x.grad.tolist() == [4.0, 4.0]


def test_data_hides_changes():
    x = leaf(1.0, 2.0)
    y = x * 2
    z = (y * y).sum()
    y.data.fill_(10)
    z.backward()
    assert x.grad.tolist() == [40.0, 40.0]


def test_versions_count():
    x = t([1.0, 2.0])
    assert x._version == 0
    x.add_(1)
    x[0].mul_(2)
    assert x._version == x.t()._version == 2
    x.data.add_(1)
    assert x._version == 2
    x.detach().add_(1)
    assert x._version == 3


def test_an_optimiser_step_after_backward_is_fine_and_between_is_not():
    weight = leaf(1.0)
    loss = (weight * weight).sum()
    loss.backward(retain_graph=True)
    with flambeau.no_grad():
        weight.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


# ---------------------------------------------------------------- views

FUNCTIONS = {
    "write a number into a view": lambda x: _with(x * 1, lambda y: y[1].fill_(2)),
    "scale a view": lambda x: _with(x * 1, lambda y: y[:, 1].mul_(3)),
    "scale a view of a view": lambda x: _with(x * 1, lambda y: y.t()[2][1:].mul_(3)),
    "write the base into its view": lambda x: _with(x * 1, lambda y: y[0].copy_(y[1] * 2)),
    "write a view, then the base": lambda x: _with(x * 1, lambda y: (y[0].mul_(3), y.mul_(2))),
    "write the base, then a view made before": lambda x: _base_then_view(x * 1),
    "write one view, read another": lambda x: _sibling(x * 1),
    "assign with an index": lambda x: _with(
        x * 1, lambda y: y.__setitem__((slice(None), 2), y[:, 0].clone() * x[:, 1])
    ),
    "assign with a mask": lambda x: _with(x * 1, lambda y: y.__setitem__(y.detach() > 0, 0.5)),
    "add rows in place": lambda x: _with(x * 1, lambda y: y[1:].add_(y[:1].clone() * x[0])),
    "expand, then write": lambda x: _with(x * 1, lambda y: y.add_(y[0].clone().expand(3, 4))),
    "chain of writes": lambda x: (x * 2).add_(x).mul_(x).sub_(1).div_(3),
    "write into what had no history": lambda x: _untracked(x),
    "write into a view of what had no history": lambda x: _untracked_view(x),
    "select, narrow, permute": lambda x: _with(x * 1, lambda y: y.narrow(1, 1, 2).permute(1, 0).select(0, 1).mul_(4)),
    "diagonal": lambda x: _with(x * 1, lambda y: y.diagonal().mul_(2)),
    "reshaped": lambda x: _with(x * 1, lambda y: y.view(2, 6)[1].mul_(x.reshape(-1)[:6])),
    "unsqueezed": lambda x: _with(x * 1, lambda y: y.unsqueeze(0)[0, 2].mul_(5)),
    "strided": lambda x: _with(x * 1, lambda y: y[::2, ::3].mul_(5)),
}


def _with(y, write):
    write(y)
    return y * y


def _base_then_view(y):
    view = y[1]
    y.mul_(2)
    view.mul_(3)
    return y * y + view


def _sibling(y):
    a, b = y[0], y[:, 0]
    a.mul_(2)
    return (b * b).sum() + (y * a).sum()


def _untracked(x):
    y = flambeau.zeros(3, 4, dtype=flambeau.float64)
    view = y[1]
    y.add_(x * x)
    return y * 2 + view


def _untracked_view(x):
    y = flambeau.ones(3, 4, dtype=flambeau.float64)
    y[1:].mul_(x[1:] * x[1:])
    y[:, 0].add_(x[:, 1])
    return y * y


@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradients_of_writes(name):
    assert gradcheck(FUNCTIONS[name], matrix())
    assert gradgradcheck(FUNCTIONS[name], matrix(seed=1))


def test_a_view_made_before_the_base_was_written_sees_the_write():
    x = leaf(1.0, 2.0)
    y = x * 1
    view = y[0]
    y.mul_(x)
    view.backward()
    assert x.grad.tolist() == [2.0, 0.0]


def test_views_made_without_recording_follow_their_base():
    y = flambeau.zeros(2, dtype=flambeau.float64)
    view = y[:1]
    x = leaf(3.0, 4.0)
    assert not view.requires_grad
    y.copy_(x * 2)
    assert view.requires_grad and not view.is_leaf
    assert grad(view.sum(), x)[0].tolist() == [2.0, 0.0]


def test_detached_views_stay_detached():
    x = leaf(1.0, 2.0)
    y = x * 2
    d = y.detach()
    y.mul_(3)
    assert not d.requires_grad and d.tolist() == [6.0, 12.0]


def test_detach_in_place():
    x = leaf(1.0)
    y = x * 2
    y.detach_()
    assert y.is_leaf and not y.requires_grad


def test_in_place_over_memory_that_indices_share():
    x = flambeau.zeros(3).expand(2, 3)
    with pytest.raises(RuntimeError, match=r"(?s)more than one element.*clone\(\)"):
        x.add_(1)


def test_writes_that_would_lose_a_dtype_of_history():
    x = leaf(1.0)
    y = flambeau.zeros(1)
    y.copy_(x * 2)
    y.sum().backward()
    assert x.grad.tolist() == [2.0] and x.grad.dtype is flambeau.float64
