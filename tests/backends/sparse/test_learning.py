"""Sparse gradients of tables, and the optimisers that take them, against dense ones and against their papers."""

from __future__ import annotations

import copy
import io
import pickle

import numpy as np
import pytest

import flambeau as torch
from flambeau import nn, optim
from flambeau.nn import functional as F

F64 = torch.float64


def table(seed=0, rows=6, width=3):
    return torch.tensor(np.random.default_rng(seed).normal(size=(rows, width)), requires_grad=True)


@pytest.mark.parametrize("options", [{}, {"padding_idx": 2}, {"scale_grad_by_freq": True}])
@pytest.mark.parametrize("index", [[1, 2, 1, 5], [[0, 2], [2, 2]], [], [[2]]])
def test_embedding(index, options):
    index, weight, twin = torch.tensor(index, dtype=torch.int64), table(), table()
    factors = torch.tensor(np.random.default_rng(1).normal(size=(*index.shape, 3)))
    (F.embedding(index, weight, sparse=True, **options) * factors).sum().backward()
    (F.embedding(index, twin, **options) * factors).sum().backward()
    assert weight.grad.is_sparse and (weight.grad.sparse_dim(), weight.grad.dense_dim()) == (1, 1)
    used = [each for each in index.reshape(-1).tolist() if each != options.get("padding_idx")]
    assert sorted(weight.grad._indices().reshape(-1).tolist()) == sorted(used)
    np.testing.assert_allclose(weight.grad.to_dense().numpy(), twin.grad.numpy(), atol=1e-12)


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
@pytest.mark.parametrize("options", [{}, {"padding_idx": 2}, {"scale_grad_by_freq": True}])
def test_embedding_bag(mode, options):
    index, weight, twin = torch.tensor([1, 2, 1, 5, 0]), table(), table()
    offsets = torch.tensor([0, 3, 3])
    factors = torch.tensor(np.random.default_rng(1).normal(size=(3, 3)))
    (F.embedding_bag(index, weight, offsets, mode=mode, sparse=True, **options) * factors).sum().backward()
    (F.embedding_bag(index, twin, offsets, mode=mode, **options) * factors).sum().backward()
    assert weight.grad.is_sparse
    np.testing.assert_allclose(weight.grad.to_dense().numpy(), twin.grad.numpy(), atol=1e-12)


def test_modules_and_accumulation():
    module = nn.Embedding(10, 2, sparse=True)
    for index in ([1, 1], [4]):
        module(torch.tensor(index)).sum().backward()
    assert module.weight.grad.is_sparse and module.weight.grad._nnz() == 3
    assert module.weight.grad.to_dense()[:, 0].tolist() == [0, 2, 0, 0, 1, 0, 0, 0, 0, 0]
    module.weight.pow(2).sum().backward()
    assert not module.weight.grad.is_sparse
    bag = nn.EmbeddingBag(10, 2, sparse=True)
    bag(torch.tensor([[1, 2]])).sum().backward()
    assert bag.weight.grad.is_sparse and bag.weight.grad.coalesce().indices().tolist() == [[1, 2]]
    bag.zero_grad()


def steps(make, sparse, count=4):
    """Weights after some steps on rows that repeat, some never used."""
    weight = table()
    optimizer = make([weight])
    for step in range(count):
        optimizer.zero_grad()
        index = torch.tensor([[1, 1, 3], [0, 3, 3], [5, 5, 5], [1, 0, 1]][step % 4])
        (F.embedding(index, weight, sparse=sparse) ** 2).sum().backward()
        assert weight.grad.is_sparse is sparse
        optimizer.step()
    return weight.detach().numpy(), optimizer


@pytest.mark.parametrize("options", [
    {"lr": 0.1}, {"lr": 0.1, "momentum": 0.9}, {"lr": 0.1, "momentum": 0.9, "nesterov": True},
    {"lr": 0.1, "momentum": 0.9, "dampening": 0.5}, {"lr": 0.1, "weight_decay": 0.1},
])  # fmt: skip
def test_sgd_is_that_of_dense_gradients(options):
    make = lambda params: optim.SGD(params, **options)  # noqa: E731
    np.testing.assert_allclose(steps(make, True)[0], steps(make, False)[0], rtol=1e-12)


def test_sgd_of_both_kinds_at_once():
    one, other = table(), table(1)
    twins = [one.detach().clone().requires_grad_(), other.detach().clone().requires_grad_()]
    index = torch.tensor([1, 1])
    for (a, b), sparse in (((one, other), True), (twins, False)):
        (F.embedding(index, a, sparse=sparse).sum() + (b**2).sum()).backward()
        optim.SGD([a, b], lr=0.1).step()
    assert np.array_equal(one.detach().numpy(), twins[0].detach().numpy())
    assert np.array_equal(other.detach().numpy(), twins[1].detach().numpy())


def test_adagrad_is_that_of_dense_gradients():
    make = lambda params: optim.Adagrad(params, lr=0.1, lr_decay=0.01, initial_accumulator_value=0.1)  # noqa: E731
    np.testing.assert_allclose(steps(make, True)[0], steps(make, False)[0], rtol=1e-12)


def test_sparse_adam():
    """Kingma and Ba's rule, for the rows that a gradient names alone."""
    weight, optimizer = steps(lambda params: optim.SparseAdam(params, lr=0.1, betas=(0.8, 0.9), eps=1e-6), True)
    wanted = table().detach().numpy().copy()
    mean, square = np.zeros_like(wanted), np.zeros_like(wanted)
    for step, index in enumerate([[1, 1, 3], [0, 3, 3], [5, 5, 5], [1, 0, 1]], 1):
        rows, counts = np.unique(index, return_counts=True)
        grad = 2 * wanted[rows] * counts[:, None]
        mean[rows] = 0.8 * mean[rows] + 0.2 * grad
        square[rows] = 0.9 * square[rows] + 0.1 * grad**2
        size = 0.1 * np.sqrt(1 - 0.9**step) / (1 - 0.8**step)
        wanted[rows] -= size * mean[rows] / (np.sqrt(square[rows]) + 1e-6)
    np.testing.assert_allclose(weight, wanted, rtol=1e-12)
    state = optimizer.state_dict()["state"][0]
    assert state["step"] == 4 and np.allclose(state["exp_avg"].numpy(), mean)
    again = optim.SparseAdam([table()], lr=0.1)
    again.load_state_dict(optimizer.state_dict())
    assert again.state_dict()["state"][0]["step"] == 4


def test_sparse_adam_on_several_sparse_dimensions():
    weight = torch.zeros(2, 3, dtype=F64, requires_grad=True)
    weight.grad = torch.sparse_coo_tensor([[0, 0, 1], [2, 2, 0]], [1.0, 1.0, -3.0], (2, 3), dtype=F64)
    optim.SparseAdam([weight], lr=0.5).step()
    np.testing.assert_allclose(weight.detach().numpy(), [[0, 0, -0.5], [0.5, 0, 0]], rtol=1e-6)


@pytest.mark.parametrize("kind", ["Adam", "AdamW", "Adamax", "RMSprop", "Adadelta", "Rprop", "ASGD"])
def test_others_refuse(kind):
    weight = table()
    F.embedding(torch.tensor([1]), weight, sparse=True).sum().backward()
    before = weight.detach().clone()
    with pytest.raises(RuntimeError) as caught:
        getattr(optim, kind)([weight]).step()
    assert str(caught.value) == (
        f"{kind} does not support sparse gradients, got one of shape [6, 3].\n"
        "Use SparseAdam, SGD or Adagrad instead, or make gradients dense (sparse=False)."
    )
    assert np.array_equal(weight.detach().numpy(), before.numpy())


def test_sparse_optimisers_refuse():
    weight = table()
    weight.sum().backward()
    with pytest.raises(RuntimeError, match="SparseAdam does not support dense gradients, got one of shape \\[6, 3\\]"):
        optim.SparseAdam([weight]).step()
    for options, said in (
        ({"lr": 0}, "learning rate: 0"),
        ({"eps": 0}, "epsilon value: 0"),
        ({"betas": (1, 0)}, "index 0"),
    ):
        with pytest.raises(ValueError, match=said):
            optim.SparseAdam([weight], **options)
    weight.grad = None
    F.embedding(torch.tensor([1]), weight, sparse=True).sum().backward()
    optimizer = optim.Adagrad([weight], weight_decay=0.1)
    with pytest.raises(RuntimeError) as caught:
        optimizer.step()
    assert str(caught.value) == (
        "weight_decay option is not compatible with sparse gradients, got 0.1.\n"
        "Set it to 0, or make gradients dense (sparse=False)."
    )
    assert not optimizer.state[weight]


def test_lbfgs_takes_sparse_gradients():
    weight = table()
    optimizer = optim.LBFGS([weight], lr=0.5)

    def closure():
        optimizer.zero_grad()
        loss = (F.embedding(torch.tensor([0, 1]), weight, sparse=True) ** 2).sum()
        loss.backward()
        return loss

    before = closure().item()
    optimizer.step(closure)
    assert closure().item() < before / 2


# ---------------------------------------------------------------- saved and copied


@pytest.mark.parametrize("coalesced", [False, True])
def test_saved_pickled_copied(coalesced):
    x = torch.sparse_coo_tensor([[1, 1, 0]], torch.arange(6.0).reshape(3, 2), (4, 2), requires_grad=True)
    x = x.detach().coalesce().requires_grad_() if coalesced else x
    file = io.BytesIO()
    torch.save({"x": x}, file)
    file.seek(0)
    for y in (torch.load(file)["x"], pickle.loads(pickle.dumps(x)), copy.deepcopy(x)):
        assert y.is_sparse and y.shape == x.shape and y.requires_grad and y.is_leaf
        assert y.is_coalesced() is coalesced and y._nnz() == x._nnz()
        assert y.to_dense().tolist() == x.to_dense().tolist()
        y._values().zero_()
    assert x.to_dense().sum().item() == 15


def test_a_file_cannot_lie_about_its_order():
    from flambeau.pickling import rebuild_sparse

    x = rebuild_sparse(torch.tensor([[2, 0, 2]]), torch.tensor([1.0, 2.0, 3.0]), (3,), True, False)
    assert x.to_dense().tolist() == [2, 0, 4] and x.indices().tolist() == [[0, 2]]
    with pytest.raises(RuntimeError, match="size is 2 but found index 2"):
        rebuild_sparse(torch.tensor([[2]]), torch.tensor([1.0]), (2,), True, False)
    with pytest.raises(RuntimeError, match="Expected tensors in a sparse tensor, got int, Tensor"):
        rebuild_sparse(3, torch.ones(1), (2,), True, False)
