"""Operators on sparse tensors against NumPy and SciPy, over shapes, repeated places and dtypes."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings, strategies as st

import flambeau as torch

DTYPES = [torch.float16, torch.float32, torch.float64, torch.int64, torch.int32, torch.uint8]


@st.composite
def sparse(draw, shape=None, dtype=None, dense=None):
    """Indices, values and size of a sparse tensor; places repeat and come in any order."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    shape = draw(st.lists(st.integers(0, 5), min_size=1, max_size=3)) if shape is None else list(shape)
    dense = draw(st.integers(0, max(len(shape) - 1, 0))) if dense is None else dense
    leading = shape[: len(shape) - dense]
    count = draw(st.integers(0, 12)) if np.prod(leading) else 0
    indices = np.array([rng.integers(0, max(size, 1), count) for size in leading], np.int64).reshape(
        len(leading), count
    )
    dtype = draw(st.sampled_from(DTYPES)) if dtype is None else dtype
    values = rng.integers(0 if dtype is torch.uint8 else -4, 5, (count, *shape[len(leading) :])).astype(dtype.numpy)
    return indices, values, tuple(shape)


def dense(indices, values, shape):
    """What it means: values added up at their places."""
    out = np.zeros(shape, values.dtype)
    np.add.at(out, tuple(indices), values)
    return out


def made(indices, values, shape, coalesced=False):
    x = torch.sparse_coo_tensor(torch.tensor(indices), torch.tensor(values), shape)
    return x.coalesce() if coalesced else x


def check(x, expected):
    """A sparse tensor that is sound and has these elements."""
    assert x.is_sparse and x.shape == expected.shape
    assert x._indices().shape == (x.sparse_dim(), x._nnz()) and len(x._values()) == x._nnz()
    places = [tuple(each) for each in x._indices().t().tolist()]
    if x.is_coalesced():
        assert places == sorted(set(places))
    assert np.array_equal(x.to_dense().numpy(), expected)


@settings(max_examples=60, deadline=None)
@given(sparse())
def test_coalesce(parts):
    x = made(*parts)
    expected = dense(*parts)
    check(x, expected)
    y = x.coalesce()
    check(y, expected)
    assert y.is_coalesced() and y.coalesce() is y
    assert y._nnz() == len(np.unique(parts[0], axis=1).T if parts[0].size else np.zeros(min(1, parts[0].shape[1])))
    check(x.clone(), expected)
    check(-x, -expected)
    check(x.abs(), np.abs(expected))
    check(x * 3, expected * 3)
    check(2 * x, expected * 2)
    if x.dtype.is_floating_point:
        check(x / 4, expected / 4)
        check(x.pow(2), expected**2)


@settings(max_examples=60, deadline=None)
@given(st.data(), st.booleans(), st.booleans())
def test_two_sparse_tensors(data, first, second):
    parts = data.draw(sparse())
    others = data.draw(sparse(parts[2], torch.float64, len(parts[2]) - len(parts[0])))
    others = (others[0], others[1].astype(parts[1].dtype), others[2])
    x, y = made(*parts, first), made(*others, second)
    a, b = dense(*parts), dense(*others)
    check(x + y, a + b)
    check(x - y, a - b)
    check(x * y, a * b)
    check(torch.add(x, y, alpha=2), a + 2 * b)
    z = x.clone()
    assert z.add_(y) is z
    check(z, a + b)
    z.sub_(y)
    check(z, a)
    z.mul_(y)
    check(z, a * b)


@settings(max_examples=40, deadline=None)
@given(sparse(), st.booleans())
def test_sparse_with_dense(parts, transposed):
    x, a = made(*parts), dense(*parts)
    b = np.random.default_rng(0).integers(1, 9, a.shape).astype(a.dtype)
    y = torch.tensor(b.T.copy()).permute(*reversed(range(b.ndim))) if transposed else torch.tensor(b)
    for got, expected in ((y + x, b + a), (x + y, a + b), (y - x, b - a), (torch.add(y, x, alpha=3), b + 3 * a)):
        assert got.layout is torch.strided and np.array_equal(got.numpy(), expected)
    check(x * y, a * b)
    check(y * x, a * b)
    check(y.sparse_mask(x), np.where(dense(parts[0], np.ones_like(parts[1]), parts[2]) != 0, b, 0).astype(b.dtype))
    z = y.clone()
    assert z.add_(x) is z and np.array_equal(z.numpy(), b + a)
    y.add_(x, alpha=2)
    assert np.array_equal(y.numpy(), b + 2 * a)


@settings(max_examples=60, deadline=None)
@given(st.data(), st.integers(0, 6), st.integers(0, 6), st.integers(0, 4))
def test_products(data, n, m, p):
    parts = data.draw(sparse((n, m), torch.float64, 0))
    rng = np.random.default_rng(1)
    x, a = made(*parts), scipy.sparse.coo_matrix((parts[1], tuple(parts[0])), parts[2]).tocsr()
    b, c, v = rng.normal(size=(m, p)), rng.normal(size=(n, p)), rng.normal(size=m)
    left = rng.normal(size=(p, n))
    for y in (torch.tensor(b), torch.tensor(b.T.copy()).t(), torch.tensor(np.repeat(b, 2, 1))[:, ::2]):
        for got in (torch.mm(x, y), x @ y, torch.spmm(x, y), torch.sparse.mm(x, y), x.mm(y)):
            assert np.allclose(got.numpy(), a @ b, atol=1e-12)
    assert np.allclose((x @ torch.tensor(v)).numpy(), a @ v, atol=1e-12)
    assert np.allclose(torch.mv(x, torch.tensor(v)).numpy(), a @ v, atol=1e-12)
    assert np.allclose((torch.tensor(left) @ x).numpy(), left @ a.toarray(), atol=1e-12)
    for call in (torch.addmm, torch.sparse.addmm):
        assert np.allclose(call(torch.tensor(c), x, torch.tensor(b), beta=2, alpha=0.5).numpy(), 2 * c + 0.5 * (a @ b))
    d = np.where(rng.random((n, p)) < 0.4, c, 0)
    got = torch.sspaddmm(torch.tensor(d).to_sparse(), x, torch.tensor(b), beta=2, alpha=0.5)
    assert got.is_sparse and np.allclose(got.to_dense().numpy(), 2 * d + 0.5 * (a @ b), atol=1e-12)
    rows = torch.hspmm(x, torch.tensor(b))
    assert (rows.sparse_dim(), rows.dense_dim()) == (1, 1) and np.allclose(rows.to_dense().numpy(), a @ b, atol=1e-12)
    assert rows.indices()[0].tolist() == np.unique(parts[0][0]).tolist()
    assert np.allclose(torch.smm(x, torch.tensor(b)).to_dense().numpy(), a @ b, atol=1e-12)


@settings(max_examples=60, deadline=None)
@given(st.data(), sparse(dtype=torch.float64))
def test_folding(data, parts):
    x, a = made(*parts), dense(*parts)
    assert np.allclose(x.sum().item(), a.sum()) and np.allclose(torch.sparse.sum(x).item(), a.sum())
    dims = tuple(data.draw(st.sets(st.integers(0, a.ndim - 1), min_size=1)))
    got = torch.sparse.sum(x, dims)
    assert got.is_sparse == any(each not in dims for each in range(x.sparse_dim()))
    assert np.allclose(got.to_dense().numpy(), a.sum(dims))
    assert np.allclose(x.sum(dims, keepdim=True).numpy(), a.sum(dims, keepdims=True))
    for p in (1, 2, 3):
        expected = (np.abs(a) ** p).sum() ** (1 / p)
        assert np.allclose(x.norm(p).item(), expected)
        assert np.allclose(x.norm(p, dims).numpy(), (np.abs(a) ** p).sum(dims) ** (1 / p))
    assert np.allclose(x.norm(0).item(), (a != 0).sum())
    if a.size:
        assert np.allclose(x.norm(np.inf).item(), np.abs(a).max())
        assert np.allclose(x.norm(np.inf, dims, True).numpy(), np.abs(a).max(dims, keepdims=True))


@settings(max_examples=40, deadline=None)
@given(st.data(), sparse())
def test_order_of_dimensions(data, parts):
    x, a = made(*parts, data.draw(st.booleans())), dense(*parts)
    count = x.sparse_dim()
    order = data.draw(st.permutations(range(count))) + data.draw(st.permutations(range(count, a.ndim)))
    check(x.permute(*order), a.transpose(order))
    if count == 2 == a.ndim:
        check(x.t(), a.T)
        check(x.transpose(0, 1), a.T)
        check(x.t().t(), a)


def test_dimensions_of_two_kinds_do_not_change_places():
    x = torch.sparse_coo_tensor([[1]], torch.ones(1, 3), (2, 3))
    with pytest.raises(RuntimeError) as caught:
        x.t()
    assert str(caught.value) == (
        "permute: the 1 sparse dimensions change places among themselves only, got [1, 0].\n"
        "Convert with x.to_dense() first."
    )


def test_every_dimension_is_named_once():
    x = torch.sparse_coo_tensor([[0], [1]], [2.0], (2, 3))
    assert torch.permute_copy(x, (-1, 0)).to_dense().tolist() == torch.permute_copy(x.to_dense(), (-1, 0)).tolist()
    for dims in ((0, 0), (0,), (0, 1, -1)):
        for each in (x, x.to_dense()):
            with pytest.raises(RuntimeError) as caught:
                torch.permute_copy(each, dims)
            assert str(caught.value) == f"permute_copy: each of 2 dimensions is named exactly once, got {list(dims)}."


def test_integer_sums_are_int64():
    x = torch.sparse_coo_tensor([[0, 0]], [200, 100], (2,), dtype=torch.uint8)
    assert x.sum().dtype is torch.int64 and x.sum().item() == 300
    assert x.coalesce()._values().tolist() == [44]  # wraps around, as in dense tensors


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0, 0)])
def test_no_places_at_all(shape):
    x, d = torch.sparse_coo_tensor(size=shape), torch.ones(shape)
    for width in (0, 2):
        assert torch.equal(x @ torch.ones(shape[1], width), torch.zeros(shape[0], width))
        assert torch.equal(x.t() @ torch.ones(shape[0], width), torch.zeros(shape[1], width))
        for product in (torch.hspmm, torch.smm):
            check(product(x, torch.ones(shape[1], width)), np.zeros((shape[0], width)))
    for each in (x + x, x - x, x * x, x * d, d.sparse_mask(x), x.clone().add_(x), x.abs(), x / 2):
        check(each, np.zeros(shape))
    assert torch.equal(d + x, d)
    for dim in (0, 1):
        check(torch.sparse.sum(x, dim), np.zeros(shape[1 - dim]))
        assert torch.equal(x.norm(2, dim), torch.zeros(shape[1 - dim]))


def test_values_without_elements_and_values_alone():
    x = torch.sparse_coo_tensor([[0, 1, 1]], torch.ones(3, 0), (2, 0))
    for each in (x, x.coalesce(), x + x, x.coalesce() + x.coalesce(), x * torch.ones(2, 0)):
        check(each, np.zeros((2, 0)))
    assert x.norm(2, 1).tolist() == [0, 0]
    y = torch.sparse_coo_tensor(torch.zeros(0, 3).long(), torch.arange(6.0).reshape(3, 2), (2,))
    for each, expected in ((y, [6, 9]), (y.coalesce() + y.coalesce(), [12, 18]), (y * torch.tensor([1.0, 2]), [6, 18])):
        check(each, np.array(expected, np.float32))
    assert torch.sparse.sum(y, 0).item() == 15


def test_a_tensor_with_itself():
    x = torch.sparse_coo_tensor([[0, 1, 0], [1, 0, 1]], [1.0, 2.0, 3.0], (2, 2))
    for y in (x.clone(), x.coalesce().clone()):
        y.add_(y)
        check(y, np.array([[0, 8], [4, 0]]))
        y.mul_(y)
        check(y, np.array([[0, 64], [16, 0]]))
        y.sub_(y)
        check(y, np.zeros((2, 2)))


def test_sizes_that_no_dense_tensor_has():
    x = torch.sparse_coo_tensor([[2**39], [2**20]], [3.0], (2**40, 2**22))
    assert (x + x).coalesce()._values().tolist() == [6] and (x * x)._values().tolist() == [9]
    assert x.t().coalesce().indices().tolist() == [[2**20], [2**39]] and x.sum().item() == 3 == x.norm().item()
    assert x.norm(2, 0)[2**20].item() == 3 and torch.sparse.sum(x, 1)._indices().tolist() == [[2**39]]
    for call in (x.to_dense, lambda: x.norm(2, 1), lambda: x @ torch.ones(2**22, 1)):
        with pytest.raises(RuntimeError, match=r"The host (could not|cannot)"):
            call()


def test_special_numbers():
    x = torch.sparse_coo_tensor([[0, 0, 1]], [np.inf, -np.inf, np.nan], (3,), dtype=torch.float64)
    assert np.array_equal(x.to_dense().numpy(), [np.nan, np.nan, 0], equal_nan=True)
    matrix = torch.sparse_coo_tensor([[0], [1]], [np.inf], (2, 2), dtype=torch.float64)
    assert np.array_equal(
        (matrix @ torch.eye(2, dtype=torch.float64)).numpy(), [[np.nan, np.inf], [0, 0]], equal_nan=True
    )


WRONG = {
    "shapes": (lambda x, y: x + torch.zeros(4).to_sparse(), "sparse tensors are not broadcast, got shapes [2, 3] and [4]"),
    "number added": (lambda x, y: x + 1, "a number added to every element leaves none zero"),
    "divided": (lambda x, y: x / y, "a sparse tensor is divided by a number only, as 0 / 0 is not zero"),
    "root": (lambda x, y: x**-1, "a sparse tensor is raised to a positive number only, as others do not keep zeros"),
    "into sparse": (lambda x, y: x.add_(y), "the result is dense, and cannot be written into a sparse tensor"),
    "sparse dims": (
        lambda x, y: x + torch.ones(2, 3).to_sparse(1), "their sparse dimensions differ, 2 and 1 of shape [2, 3]"
    ),
    "product sizes": (
        lambda x, y: x @ y,
        "mm: a sparse matrix (n, m) is multiplied with a dense (m, p) or (m), got [2, 3] and [2, 3].",
    ),
    "product dtypes": (
        lambda x, y: x @ y.t().double(), "mm: expected tensors to have the same dtype, but got float32 and float64."
    ),
    "hybrid product": (
        lambda x, y: torch.ones(2, 3).to_sparse(1) @ y.t(),
        "mm: both dimensions of a matrix must be sparse, got dense_dim 1.",
    ),
    "mask": (
        lambda x, y: y.t().sparse_mask(x),
        "sparse_mask: operands have incompatible sizes; self has size [3, 2] but mask has size [2, 3].",
    ),
    "no mask": (lambda x, y: y.sparse_mask(y), "sparse_mask expected sparse coordinate tensor layout but got strided"),
    "sspaddmm": (
        lambda x, y: torch.sspaddmm(x, x, y.t()),
        "sspaddmm: expected self to be sparse, of shape [2, 2] and float32, got [2, 3] of float32.",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_refused(name):
    call, expected = WRONG[name]
    x, y = torch.sparse_coo_tensor([[0], [1]], [2.0], (2, 3)), torch.ones(2, 3)
    with pytest.raises(RuntimeError) as caught:
        call(x, y)
    assert expected in str(caught.value)
    assert x.to_dense().tolist() == [[0, 2, 0], [0, 0, 0]] and y.sum().item() == 6


def test_memory_is_given_back():
    def work():
        x = torch.sparse_coo_tensor([[0, 1, 0]], torch.randn(3, 40_000), (2, 40_000), requires_grad=True)
        (x.coalesce() + x * 2).to_dense().sum().backward()
        return x.grad._nnz()

    from flambeau import accelerator  # noqa: F401
    from flambeau.capabilities import function

    held = function(torch.device("cpu"), "memory_allocated")
    assert work() == 2
    before = held()
    for _ in range(5):
        work()
    assert held() <= before


def test_converted_when_asked():
    from flambeau import backends

    x = torch.sparse_coo_tensor([[0, 1], [1, 0]], [1.0, 2.0], (2, 2), requires_grad=True)
    with backends.fallback("cpu") as moved:
        y = x.exp()
        y.sum().backward()
    assert y.layout is torch.strided
    np.testing.assert_allclose(y.detach().numpy(), [[1, np.e], [np.e**2, 1]], rtol=1e-6)
    np.testing.assert_allclose(x.grad.to_dense().numpy(), y.detach().numpy(), rtol=1e-6)
    assert moved.counts["exp"].calls == 1 and moved.counts["exp"].bytes == 32
    with backends.fallback("cpu"), pytest.raises(NotImplementedError) as caught:
        x.detach().sin_()
    assert str(caught.value).endswith(
        "fallback('cpu') does not help: the result is dense, and is to be written where a sparse_coo tensor takes part."
    )


def test_bool_and_complex():
    x = torch.sparse_coo_tensor([[0, 0, 2]], [True, True, False], (3,))
    assert x.dtype is torch.bool and x.to_dense().tolist() == [True, False, False]
    assert x.coalesce()._values().tolist() == [True, False] and x.sum().item() == 2
    z = torch.sparse_coo_tensor([[0, 0], [1, 1]], [1 + 2j, 3 - 1j], (2, 2))
    assert z.dtype is torch.complex64 and z.to_dense().tolist() == [[0, 4 + 1j], [0, 0]]
    assert (z @ torch.eye(2, dtype=torch.complex64) - z).tolist() == [[0, 0], [0, 0]]
    assert (z * z).to_dense().tolist() == [[0, 15 + 8j], [0, 0]]
