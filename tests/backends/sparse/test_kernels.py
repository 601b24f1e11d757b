"""What the C kernels promise: any number of threads gives the same bits, half precision is rounded once, and no index
leads out of bounds."""

from __future__ import annotations

import functools
import re
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import flambeau as torch

SHAPE = (300, 200)


def random(seed, count, shape=SHAPE, dtype=torch.float32, coalesced=True, width=()):
    rng = np.random.default_rng(seed)
    places = np.stack([rng.integers(0, size, count) for size in shape])
    values = torch.tensor(rng.normal(size=(count, *width)) * 10).to(dtype)
    x = torch.sparse_coo_tensor(torch.tensor(places), values, (*shape, *width))
    return x.coalesce() if coalesced else x


def dense(seed, *shape, dtype=torch.float32):
    return torch.tensor(np.random.default_rng(seed).normal(size=shape)).to(dtype)


#: Of a sparse tensor, another one, and a dense matrix of the shape of their transposes.
OPERATORS = {
    "coalesce": lambda x, y, d: x.coalesce(),
    "to_dense": lambda x, y, d: x.to_dense(),
    "add": lambda x, y, d: x + y,
    "sub": lambda x, y, d: x - y,
    "alpha": lambda x, y, d: torch.add(x, y, alpha=-2),
    "mul": lambda x, y, d: x * y,
    "number": lambda x, y, d: x * 3 / 7,
    "dense": lambda x, y, d: d.t() + x,
    "dense times": lambda x, y, d: x * d.t(),
    "product": lambda x, y, d: x @ d,
    "product of the transpose": lambda x, y, d: x.t() @ d.t(),
    "product with a vector": lambda x, y, d: x @ d[:, 0],
    "sspaddmm": lambda x, y, d: torch.sspaddmm(torch.smm(y, d), x, d),
    "sampled": lambda x, y, d: d.t().sparse_mask(x),
    "norm of rows": lambda x, y, d: x.norm(2, 1),
    "norm of columns": lambda x, y, d: x.norm(1, 0),
    "largest of columns": lambda x, y, d: x.norm(np.inf, 0),
    "power": lambda x, y, d: x.norm(3, 0, True),
    "sum": lambda x, y, d: torch.sparse.sum(x, 0),
}  # fmt: skip
#: Those whose steps are rounded one by one, as those of dense tensors are.
STEPS = ["alpha", "number", "sspaddmm"]


def same(a, b):
    """Equal, bit by bit, as sparse tensors or dense ones."""
    if a.is_sparse:
        return (
            a.is_coalesced() == b.is_coalesced()
            and torch.equal(a._indices(), b._indices())
            and same(a._values(), b._values())
        )
    return a.dtype is b.dtype and torch.equal(a, b)


@pytest.fixture
def threads():
    before = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(before)


def test_the_number_of_threads_is_that_of_flambeau(threads):
    native = pytest.importorskip("flambeau_sparse.native")
    for count in (3, 1):
        threads(count)
        assert native.get_threads() == count == torch.get_num_threads()


FORKED = """
    import os
    import flambeau as torch
    torch.set_num_threads(2)
    x = torch.sparse_coo_tensor(torch.arange(400_000).flip(0).unsqueeze(0), torch.ones(400_000), (400_000,))
    assert x.coalesce().to_dense().sum().item() == 400_000
    child = os.fork()
    if not child:
        os._exit(0 if torch.get_num_threads() == 1 and x.coalesce().to_dense().sum().item() == 400_000 else 1)
    print(os.waitpid(child, 0)[1])
"""


def test_a_forked_child_uses_one_thread():
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", textwrap.dedent(FORKED)], capture_output=True, text=True, timeout=60
    )
    assert (done.stdout, done.stderr) == ("0\n", "")


@pytest.mark.parametrize("coalesced", [True, False])
@pytest.mark.parametrize("name", OPERATORS)
def test_any_number_of_threads_gives_the_same(name, coalesced, threads):
    count = 20_000 if name != "sspaddmm" else 2000
    x, y = (random(seed, count, coalesced=coalesced) for seed in (0, 1))
    d, found = dense(2, *SHAPE[::-1]), []
    for count in (1, 2, 3, 7):
        threads(count)
        found.append(OPERATORS[name](x, y, d))
    assert all(same(each, found[0]) for each in found[1:])


def test_sums_are_in_the_order_of_the_places(threads):
    rng = np.random.default_rng(0)
    for places in (rng.integers(0, 300, 50_000), np.sort(rng.integers(0, 300, 50_000)), np.zeros(50_000, int)):
        values = rng.normal(size=50_000).astype(np.float32) * 1e4
        expected = np.zeros(300, np.float32)
        np.add.at(expected, places, values)  # one after the other
        x = torch.sparse_coo_tensor(torch.tensor(places[None]), torch.tensor(values), (300,))
        for count in (1, 2, 3):
            threads(count)
            assert np.array_equal(x.to_dense().numpy(), expected)
            assert np.array_equal(x.coalesce().to_dense().numpy(), expected)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("name", sorted(OPERATORS.keys() - STEPS))
def test_half_precision_is_computed_in_float32_and_rounded_once(name, dtype):
    sides = [random(seed, 400, (30, 20), dtype, coalesced=name != "coalesce") for seed in (0, 1)]
    d = dense(2, 20, 30, dtype=dtype)
    got = OPERATORS[name](*sides, d)
    expected = OPERATORS[name](*[each.float() for each in sides], d.float()).to(dtype)
    assert got.dtype is dtype and same(got, expected)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_steps_of_half_precision_are_rounded_one_by_one(dtype):
    x, y = (random(seed, 400, (30, 20), dtype) for seed in (0, 1))
    assert same((x * 3 / 7).to_dense(), x.to_dense() * 3 / 7)
    assert same(torch.add(x, y, alpha=-2).to_dense(), x.to_dense() + y.to_dense() * -2)
    many = torch.sparse_coo_tensor(torch.zeros(1, 5000).long(), torch.ones(5000, dtype=dtype), (1,))
    assert many.coalesce()._values().float().item() == torch.tensor(5000.0).to(dtype).float().item()
    with pytest.raises(RuntimeError, match="expected tensors to have the same dtype, but got float32 and"):
        x.float() @ y.to_dense().t()


@pytest.mark.parametrize("p", [0, 0.5, 1, 2, 3, np.inf])
@pytest.mark.parametrize("dims", [(0,), (1,), (2,), (0, 2), (1, 2), (0, 1), (0, 1, 3), (0, 2, 3)])
@pytest.mark.parametrize("keepdim", [False, True])
def test_norms_of_values_with_dimensions(p, dims, keepdim):
    x = random(3, 40, (5, 6), torch.float64, False, (3, 2))
    size = np.abs(x.to_dense().numpy())
    expected = size.max(dims, keepdims=keepdim) if np.isinf(p) else (
        (size != 0).sum(dims, keepdims=keepdim) if p == 0 else (size**p).sum(dims, keepdims=keepdim) ** (1 / p)
    )  # fmt: skip
    np.testing.assert_allclose(x.norm(p, dims, keepdim).numpy(), expected, rtol=1e-12)
    assert torch.explain("sparse.norm", x, float(p), dims, keepdim).provider == "sparse"


def test_norms_of_special_numbers_and_of_nothing():
    x = torch.sparse_coo_tensor([[0, 0, 1, 2], [0, 1, 1, 0]], [np.nan, 1, -np.inf, 0], (4, 2), dtype=torch.float64)
    for p, expected in ((2, [np.nan, np.inf, 0, 0]), (np.inf, [np.nan, np.inf, 0, 0]), (0, [2, 1, 0, 0])):
        assert np.array_equal(x.norm(p, 1).numpy(), expected, equal_nan=True)
    assert torch.sparse_coo_tensor(size=(3, 2)).norm(2, 1).tolist() == [0, 0, 0]
    assert torch.sparse_coo_tensor(size=(3, 0)).norm(2, 1).tolist() == [0, 0, 0]
    assert torch.sparse_coo_tensor(size=(0, 3)).norm(2, 1).tolist() == []


def broken(indices, coalesced=True):
    x = random(0, 3000, coalesced=coalesced)
    x._indices()[:, -1] = torch.tensor(indices)
    return x


@pytest.mark.parametrize("coalesced", [True, False])
@pytest.mark.parametrize("indices", [[300, 0], [0, 200], [-1, 0], [0, -1], [2**62, 2**62], [-(2**63), 2**63 - 1]])
@pytest.mark.parametrize("name", sorted(OPERATORS.keys() - {"number", "coalesce", "norm of rows", "sum"}))
def test_indices_that_were_written_to_are_refused(name, indices, coalesced):
    x, y, d = broken(indices, coalesced), random(1, 3000), dense(2, *SHAPE[::-1])

    def call():
        result = OPERATORS[name](x, y, d)
        return result.to_dense() if result.is_sparse else result  # a sum of places that are not sorted only keeps them

    if "columns" in name or name == "power":  # of these, rows do not matter
        x._indices()[1, -1] = indices[1] or -5
    with pytest.raises(IndexError) as caught:
        call()
    assert re.match(
        "A sparse tensor's indices are inside of its sizes .*, got|index .* is out of bounds", str(caught.value)
    )


def test_places_out_of_order_stay_in_bounds(threads):
    """Somebody wrote to the indices of a coalesced tensor: results may differ, but nothing is written elsewhere."""
    x, y, d = random(0, 30_000), random(1, 30_000), dense(2, *SHAPE[::-1])
    places = x._indices()
    places.copy_(places[:, torch.tensor(np.random.default_rng(4).permutation(x._nnz()))])
    assert x.is_coalesced()
    for count in (1, 3):
        threads(count)
        for name, call in OPERATORS.items():
            result = call(x, y, d) if name != "sspaddmm" else x + x
            assert result.shape, name
        np.testing.assert_allclose((x @ d).numpy(), x.to_dense().numpy() @ d.numpy(), rtol=1e-3, atol=1e-3)


def test_a_large_sum_of_two_is_that_of_their_dense_forms(threads):
    for other in (random(1, 30_000), random(1, 10), random(1, 0)):
        x = random(0, 30_000)
        for count in (1, 3):
            threads(count)
            for a, b in ((x, other), (other, x)):
                got = a + b
                places = got._indices()[0] * SHAPE[1] + got._indices()[1]
                assert got.is_coalesced() and np.all(np.diff(places.numpy()) > 0)
                assert torch.equal(got.to_dense(), a.to_dense() + b.to_dense())
                assert torch.equal((a * b).to_dense(), a.to_dense() * b.to_dense())


def test_a_product_of_unsorted_elements_is_that_of_sorted_ones():
    x = random(0, 50_000, dtype=torch.float64, coalesced=False)
    d = dense(2, 200, 7, dtype=torch.float64)
    for y in (d, d.t().contiguous().t(), functools.reduce(torch.add, [d] * 2)[:, ::2]):
        np.testing.assert_allclose((x @ y).numpy(), x.to_dense().numpy() @ y.numpy(), rtol=1e-10, atol=1e-9)
        np.testing.assert_allclose((x.t() @ (x @ y)).numpy(), x.to_dense().numpy().T @ (x @ y).numpy(), rtol=1e-9)
