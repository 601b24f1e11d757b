"""Sums, products, truth, moments and norms against NumPy; gradients to second order; errors."""

from __future__ import annotations

import itertools
import math
import warnings

import numpy as np
import pytest

import flambeau
from flambeau.autograd import gradcheck, gradgradcheck

FLOATS = ["float16", "float32", "float64"]
WHOLE = ["bool", "uint8", "int8", "int16", "int32", "int64"]
TOLERANCE = {"float16": 4e-3, "float32": 1e-5, "float64": 1e-12}


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def sample(rng, shape, dtype):
    if np.dtype(dtype).kind == "f":
        return (rng.standard_normal(shape) * 2).astype(dtype)
    return np.asarray(rng.integers(0, 4, shape)).astype(dtype)


def layouts(rng, dtype):
    """Arrays and tensors of equal values: contiguous, transposed, strided, offset, repeated, empty, 0-dim, long."""

    def of(*shape):
        return sample(rng, shape, dtype)

    whole = of(6, 5, 4)
    yield whole, flambeau.tensor(whole)
    yield whole.transpose(2, 0, 1), flambeau.tensor(whole).permute(2, 0, 1)
    wide = of(40, 70)
    yield wide[1::2, 3::3], flambeau.tensor(wide)[1::2, 3::3]
    row = of(1, 9)
    yield np.broadcast_to(row, (300, 9)), flambeau.tensor(row).expand(300, 9)
    for shape in ((), (1,), (0,), (3, 0, 2), (517,), (3, 1500), (1500, 3), (200, 300)):
        x = of(*shape)
        yield x, flambeau.tensor(x)


def every_dims(ndim):
    for count in range(1, ndim + 1):
        yield from itertools.combinations(range(ndim), count)


def check(got, expected, dtype="float64", scale=1.0):
    expected = np.asarray(expected)
    assert tuple(got.shape) == expected.shape
    tolerance = TOLERANCE.get(dtype, 0) * scale
    np.testing.assert_allclose(got.numpy().astype(np.float64), expected.astype(np.float64), tolerance, tolerance)


@pytest.mark.parametrize("dtype", WHOLE + FLOATS)
def test_sum_over_any_dims_of_any_layout(rng, dtype):
    for x, t in layouts(rng, dtype):
        exact = x.astype(np.float64 if dtype in FLOATS else np.int64)
        result = flambeau.sum(t)
        assert result.dtype is (t.dtype if dtype in FLOATS else flambeau.int64)
        check(result, exact.sum(), dtype, 20 * max(1, x.size) ** 0.5)
        for dims in every_dims(x.ndim):
            check(t.sum(dims), exact.sum(dims), dtype, 100)
            check(t.sum(dims, keepdim=True), exact.sum(dims, keepdims=True), dtype, 100)


@pytest.mark.parametrize("name", ["any", "all"])
@pytest.mark.parametrize("dtype", WHOLE + FLOATS)
def test_truth(rng, name, dtype):
    for x, t in layouts(rng, dtype):
        for dims in every_dims(x.ndim):
            result = getattr(t, name)(dims)
            assert result.dtype is (flambeau.uint8 if dtype == "uint8" else flambeau.bool)
            check(result, getattr(np, name)(x, dims))
        check(getattr(t, name)(), getattr(np, name)(x))


def test_truth_of_nan_and_of_no_dims():
    x = flambeau.tensor([math.nan, 0.0])
    assert x.any().item() and not x.all().item()
    assert x.any(()).tolist() == [True, False]


@pytest.mark.parametrize("dtype", WHOLE + FLOATS)
def test_prod(rng, dtype):
    for x, t in layouts(rng, dtype):
        if x.size > 600:
            continue
        exact = x.astype(np.float64 if dtype in FLOATS else np.int64)
        with np.errstate(over="ignore"):
            check(t.prod(), exact.prod().astype(dtype if dtype in FLOATS else np.int64), dtype, 100)
        for dim in range(x.ndim):
            with np.errstate(over="ignore"):
                check(t.prod(dim), exact.prod(dim).astype(dtype if dtype in FLOATS else np.int64), dtype, 100)


@pytest.mark.parametrize("dtype", FLOATS)
def test_moments(rng, dtype):
    for x, t in layouts(rng, dtype):
        exact = x.astype(np.float64)
        for dims in every_dims(x.ndim):
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                check(t.mean(dims), exact.mean(dims), dtype, 2)
                check(t.var(dims), exact.var(dims, ddof=1), dtype, 20)
                check(t.std(dims, False, True), exact.std(dims, keepdims=True), dtype, 20)
                check(flambeau.var_mean(t, dims, correction=2)[1], exact.mean(dims), dtype, 2)


def test_variance_far_from_zero_loses_nothing(rng):
    x = (rng.standard_normal((3, 20000)) * 1e-2 + 1000).astype(np.float32)
    expected = x.astype(np.float64).var(1, ddof=1)
    np.testing.assert_allclose(flambeau.tensor(x).var(1).tolist(), expected, 1e-4)
    np.testing.assert_allclose(flambeau.tensor(x.T.copy()).var(0).tolist(), expected, 1e-4)


def test_long_sums_are_as_good_as_pairwise_ones(rng):
    x = rng.random(3_000_000).astype(np.float32)
    exact = math.fsum(x.tolist())
    assert abs(flambeau.tensor(x).sum().item() - exact) / exact < 1e-7
    assert abs(flambeau.tensor(x.reshape(-1, 3)).sum(0).sum().item() - exact) / exact < 1e-6


@pytest.mark.parametrize("p", [0, 1, 2, 3, 0.5, -1, math.inf, -math.inf])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_norms(rng, p, dtype):
    for x, t in layouts(rng, dtype):
        if not x.size:
            continue
        size = np.abs(x.astype(np.float64))
        for dims in every_dims(x.ndim):
            if p == 0:
                expected = (x != 0).sum(dims)
            elif math.isinf(p):
                expected = size.max(dims) if p > 0 else size.min(dims)
            else:
                expected = (size**p).sum(dims) ** (1 / p)
            check(flambeau.norm(t, p, dims), expected, dtype, 10 * np.abs(expected).max())


def test_norms_of_nothing():
    nothing = flambeau.zeros(0)
    assert nothing.norm().item() == 0 and nothing.norm(1).item() == 0
    with pytest.raises(RuntimeError, match="does not have an identity"):
        nothing.norm(math.inf)


def test_dtype_arguments():
    x = flambeau.tensor([1.7, 2.7])
    assert x.sum(dtype=flambeau.int64).item() == 3
    assert x.sum(dtype=flambeau.float64).dtype is flambeau.float64
    assert flambeau.tensor([200, 100], dtype=flambeau.uint8).sum().item() == 300
    assert flambeau.tensor([200, 100], dtype=flambeau.uint8).sum(dtype=flambeau.uint8).item() == 44
    assert flambeau.tensor([True, True]).sum(0, dtype=flambeau.bool).item() is True
    assert flambeau.tensor([1, 2]).mean(dtype=flambeau.float32).item() == 1.5
    assert flambeau.tensor([2, 3], dtype=flambeau.int32).prod(dtype=flambeau.int32).dtype is flambeau.int32


def test_complex_sums_and_means(rng):
    x = (rng.standard_normal((4, 5)) + 1j * rng.standard_normal((4, 5))).astype(np.complex128)
    t = flambeau.tensor(x)
    np.testing.assert_allclose(t.sum(1).numpy(), x.sum(1))
    np.testing.assert_allclose(t.t().mean(1).numpy(), x.mean(0))


def test_infinities_and_nan():
    assert flambeau.tensor([math.inf, 1.0]).sum().item() == math.inf
    assert math.isnan(flambeau.tensor([math.inf, -math.inf]).sum().item())
    assert math.isnan(flambeau.tensor([math.nan, 1.0]).mean().item())
    assert math.isnan(flambeau.tensor([math.nan, 1.0]).norm(math.inf).item())
    assert math.isnan(flambeau.tensor([math.inf, 1.0]).var().item())


def test_of_nothing():
    nothing = flambeau.zeros(2, 0)
    assert nothing.sum().item() == 0 and nothing.prod().item() == 1
    assert nothing.sum(1).tolist() == [0, 0] and nothing.prod(1).tolist() == [1, 1]
    assert math.isnan(nothing.mean().item()) and math.isnan(nothing.var().item())
    assert nothing.all().item() and not nothing.any().item()
    assert tuple(nothing.sum(0).shape) == (0,)


def test_variance_arguments():
    x = flambeau.tensor([1.0, 2.0, 4.0])
    assert x.var(False).item() == pytest.approx(14 / 9)
    assert x.var(0, False).item() == pytest.approx(14 / 9)
    assert x.var(dim=0, correction=0).item() == pytest.approx(14 / 9)
    assert x.std(unbiased=True).item() == pytest.approx(math.sqrt(7 / 3))
    assert math.isnan(flambeau.tensor([1.0]).var().item())


def test_out_takes_the_results_shape(rng):
    x = flambeau.tensor(rng.standard_normal((3, 4)))
    out = flambeau.empty(0, dtype=flambeau.float64)
    assert flambeau.sum(x, 1, out=out) is out
    np.testing.assert_allclose(out.tolist(), x.sum(1).tolist())
    with pytest.raises(RuntimeError, match="can't be cast"):
        flambeau.sum(x, 1, out=flambeau.empty(3, dtype=flambeau.int64))


def test_logsumexp(rng):
    x = rng.standard_normal((4, 5)) * 300
    expected = np.logaddexp.reduce(x, 1)
    check(flambeau.logsumexp(flambeau.tensor(x), 1), expected)
    check(flambeau.logsumexp(flambeau.tensor(x), (0, 1), True), np.logaddexp.reduce(x.reshape(-1)).reshape(1, 1))
    assert flambeau.logsumexp(flambeau.tensor([-math.inf, -math.inf]), 0).item() == -math.inf
    assert flambeau.logsumexp(flambeau.tensor([math.inf, 1.0]), 0).item() == math.inf
    assert flambeau.logsumexp(flambeau.zeros(2, 0), 1).tolist() == [-math.inf] * 2


def test_count_nonzero_and_dist():
    x = flambeau.tensor([[0.0, 2.0], [3.0, 0.0]])
    assert x.count_nonzero().item() == 2 and x.count_nonzero(0).tolist() == [1, 1]
    assert flambeau.dist(x, flambeau.zeros(2), 1).item() == 5


@pytest.mark.parametrize("threads", [1, 2])
def test_results_do_not_depend_on_threads(rng, threads):
    x = rng.standard_normal((700, 900)).astype(np.float32)
    before = flambeau.get_num_threads() if hasattr(flambeau, "get_num_threads") else None
    if before is None:
        pytest.skip("no thread control")
    try:
        flambeau.set_num_threads(1)
        alone = [flambeau.tensor(x).sum().item(), flambeau.tensor(x).sum(0).tolist(), flambeau.tensor(x).std().item()]
        flambeau.set_num_threads(threads)
        assert alone == [
            flambeau.tensor(x).sum().item(),
            flambeau.tensor(x).sum(0).tolist(),
            flambeau.tensor(x).std().item(),
        ]
    finally:
        flambeau.set_num_threads(before)


GRADIENTS = {
    "sum": lambda x: x.sum((0, 2)),
    "mean": lambda x: x.mean(1, True),
    "prod": lambda x: x.prod(),
    "prod dim": lambda x: x.prod(1),
    "var": lambda x: x.var((0, 1)),
    "std": lambda x: x.std(2, False, True),
    "std_mean": lambda x: flambeau.std_mean(x, 1),
    "norm": lambda x: x.norm(),
    "norm 1": lambda x: x.norm(1, 1),
    "norm 3": lambda x: x.norm(3, (0, 1), True),
    "norm 1.5": lambda x: x.norm(1.5, 0),
    "norm inf": lambda x: x.norm(math.inf, 1),
    "logsumexp": lambda x: x.logsumexp((1, 2)),
    "dist": lambda x: flambeau.dist(x, flambeau.full((2,), 9.0, dtype=x.dtype), 3),
}


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients(rng, name):
    x = flambeau.tensor(rng.standard_normal((2, 3, 2)) + 0.1, requires_grad=True)
    assert gradcheck(GRADIENTS[name], (x,))
    assert gradgradcheck(GRADIENTS[name], (x,))


@pytest.mark.parametrize("zeros", [1, 2])
def test_gradient_of_products_with_zeros(zeros):
    values = np.array([2.0, 0.0, 3.0, 0.0 if zeros == 2 else 4.0])
    x = flambeau.tensor(values, requires_grad=True)
    assert gradcheck(lambda x: x.prod(0), (x,))
    assert gradgradcheck(lambda x: x.prod(), (x,))


def test_gradient_of_norm_at_zero_is_zero():
    x = flambeau.zeros(3, requires_grad=True)
    for p in (1, 2, 3):
        (grad,) = flambeau.autograd.grad(x.norm(p), x)
        assert grad.tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda x: x.sum(5), IndexError, r"Dimension out of range \(expected to be in range of \[-2, 1\], but got 5\)"),
        (lambda x: x.sum((0, -2)), RuntimeError, "dim 0 appears multiple times"),
        (lambda x: x.sum("a"), TypeError, "expected an int or a sequence of ints, got str 'a'"),
        (lambda x: x.long().mean(), RuntimeError, "Got: int64"),
        (lambda x: x.mean(dtype=flambeau.int64), RuntimeError, "Optional dtype must be either a floating point"),
        (
            lambda x: x.long().var(),
            RuntimeError,
            "std and var only support floating point dtypes, got int64",
        ),
        (lambda x: x.long().norm(), RuntimeError, "Got int64"),
        (lambda x: x.norm("foo"), RuntimeError, "Order foo not supported"),
        (lambda x: x.prod((0, 1)), TypeError, "dim must be an int or None, got tuple"),
    ],
)
def test_errors(call, error, message):
    with pytest.raises(error, match=message):
        call(flambeau.ones(2, 3))


def test_nuclear_norm_says_what_is_missing():
    with pytest.raises(NotImplementedError) as caught:
        flambeau.ones(2, 2).norm("nuc")
    assert str(caught.value) == (
        "norm: p='nuc' needs singular values, which flambeau does not compute.\n"
        "Use p='fro', or numpy.linalg.norm(x, 'nuc')."
    )


def test_resizing_to_the_same_shape_keeps_the_strides():
    x = flambeau.arange(12.0).reshape(3, 4)[:, ::2]
    assert x.resize_(3, 2).stride() == (4, 2) and x.tolist() == [[0, 2], [4, 6], [8, 10]]
