"""Gradients through and of sparse tensors: against finite differences, and against dense tensors."""

from __future__ import annotations

import numpy as np
import pytest

import flambeau as torch
from flambeau.autograd import gradcheck, gradgradcheck

PLACES = torch.tensor([[0, 1, 1, 2], [2, 0, 0, 1]])  # one comes twice
EYE = torch.tensor([[0, 1], [1, 0]])


def values(seed=0, count=4, *more):
    array = np.random.default_rng(seed).normal(size=(count, *more))
    return torch.tensor(array, requires_grad=True)


def build(v, *more):
    return torch.sparse_coo_tensor(PLACES, v, (3, 3, *more))


d = values(5, 3, 2)
OPERATORS = {
    "to_dense": lambda v: build(v).to_dense(),
    "coalesce": lambda v: build(v).coalesce().to_dense(),
    "values": lambda v: build(v).coalesce().values(),
    "add": lambda v: (build(v) + build(v * 2).coalesce()).to_dense(),
    "sub": lambda v: (build(v) - build(v * v)).to_dense(),
    "alpha": lambda v: torch.add(build(v), build(v * v), alpha=3).to_dense(),
    "dense plus sparse": lambda v: torch.ones(3, 3, dtype=v.dtype) + build(v),
    "times number": lambda v: (build(v) * 2.5 / 3).to_dense(),
    "times tensor without dimensions": lambda v: (build(v) * v.sum()).to_dense(),
    "times sparse": lambda v: (build(v) * build(v + 1)).to_dense(),
    "times dense": lambda v: (build(v) * build(v).to_dense()).to_dense(),
    "pow": lambda v: build(v).pow(3).to_dense(),
    "neg": lambda v: (-build(v)).to_dense(),
    "abs": lambda v: build(v).abs().to_dense(),
    "sum": lambda v: build(v).sum() * 2,
    "sum of rows": lambda v: torch.sparse.sum(build(v), 1).to_dense(),
    "norm": lambda v: build(v).norm(),
    "norm of rows": lambda v: build(v).norm(2, 1),
    "norm of columns": lambda v: build(v).norm(3, 0),
    "t": lambda v: build(v).t().to_dense(),
    "permute": lambda v: build(v).permute(1, 0).coalesce().values(),
    "mask": lambda v: build(v).to_dense().sparse_mask(build(v.detach())).to_dense(),
    "lookup": lambda v: build(v).sparse_mask(build(v.detach())).to_dense(),
    "double": lambda v: build(v).double().to_dense(),
    "clone": lambda v: build(v).clone().to_dense(),
    "product": lambda v: build(v) @ d.detach(),
    "product with itself": lambda v: build(v) @ build(v).to_dense(),
    "product with a vector": lambda v: build(v) @ v[:3],
    "from the left": lambda v: d.detach().t() @ build(v),
    "hspmm": lambda v: torch.hspmm(build(v), build(v).to_dense()).to_dense(),
    "addmm": lambda v: torch.addmm(d.detach(), build(v), d.detach(), beta=0.5, alpha=2),
    "sspaddmm": lambda v: torch.sspaddmm(build(v), build(v), build(v).to_dense(), beta=0.5, alpha=2).to_dense(),
}  # fmt: skip


@pytest.mark.parametrize("name", OPERATORS)
def test_first_and_second_derivatives(name):
    assert gradcheck(OPERATORS[name], (values(),))
    assert gradgradcheck(OPERATORS[name], (values(),))


def test_of_values_with_dimensions():
    assert gradcheck(lambda v: build(v, 2).to_dense() * 2, (values(0, 4, 2),))
    assert gradcheck(lambda v: torch.sparse.sum(build(v, 2), (0, 2)).to_dense(), (values(0, 4, 2),))


def test_of_both_operands_of_a_product():
    def product(v, b):
        return build(v) @ b

    assert gradcheck(product, (values(), values(1, 3, 2)))
    assert gradgradcheck(product, (values(), values(1, 3, 2)))


def test_to_sparse():
    x = torch.tensor([[0.0, 2.0], [3.0, 0.0]], dtype=torch.float64, requires_grad=True)
    (x.to_sparse() * 3).coalesce().values().pow(2).sum().backward()
    assert x.grad.tolist() == [[0, 36], [54, 0]]


def test_a_sparse_leaf_has_a_sparse_gradient_of_its_places():
    x = build(values().detach()).requires_grad_()
    assert x.requires_grad and x.is_leaf
    weight = torch.arange(6.0, dtype=torch.float64).reshape(3, 2)
    (x @ weight).sum().backward()
    assert x.grad.is_sparse and x.grad._indices().tolist() == [[0, 1, 2], [2, 0, 1]]
    assert x.grad._values().tolist() == [9, 1, 5]
    (x @ weight).sum().backward()
    assert x.grad._values().tolist() == [18, 2, 10]
    x.to_dense().sum().backward()
    assert x.grad.to_dense().tolist() == [[0, 0, 19], [3, 0, 0], [0, 11, 0]]


def test_gradients_of_both_layouts_add_up():
    x = torch.ones(3, dtype=torch.float64, requires_grad=True)
    mask = torch.sparse_coo_tensor([[1]], [2.0], (3,), dtype=torch.float64)
    (x * mask).sum().backward()
    (x * 3).sum().backward()
    assert x.grad.tolist() == [3, 5, 3]
    y = torch.ones(3, dtype=torch.float64, requires_grad=True)
    ((y * mask).sum() + (y * mask).to_dense().sum()).backward()
    assert y.grad.to_dense().tolist() == [0, 4, 0]


def test_detach_and_history():
    x = build(values())
    assert x.requires_grad and not x.detach().requires_grad and not x._values().requires_grad
    assert x.coalesce().values().requires_grad
    with torch.no_grad():
        assert not (x * 2).requires_grad


def test_of_a_tensor_of_one_element():
    x = torch.sparse_coo_tensor([[0]], [5.0], (1,), requires_grad=True)
    (x * 2).backward()
    assert x.grad.tolist() == [2]
