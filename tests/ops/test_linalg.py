"""Matrix products against NumPy, over dtypes, strides, broadcasting and empty sizes; their gradients and errors."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import flambeau
from flambeau.autograd import gradcheck, gradgradcheck
from flambeau.capabilities import function
from flambeau.ops.linear import linear
from flambeau_cpu import blas
from flambeau_cpu._kernels import lib

rng = np.random.default_rng(0)
FLOATS = [("float16", 4e-3), ("float32", 1e-6), ("float64", 1e-14)]
DTYPES = [*FLOATS, *[(name, 0) for name in ("int64", "int32", "int16", "int8", "uint8")]]


def values(shape, dtype):
    if np.dtype(dtype).kind == "f":
        return rng.standard_normal(shape).astype(dtype)
    return rng.integers(-9 if np.dtype(dtype).kind == "i" else 0, 9, shape).astype(dtype)


def laid(array, how):
    """The array as a tensor: contiguous, transposed in memory, strided, or at an offset."""
    if how == "transposed":
        order = tuple(reversed(range(array.ndim)))
        return flambeau.tensor(np.ascontiguousarray(array.transpose(order))).permute(order)
    if how == "strided":
        wide = np.full([2 * each for each in array.shape], 77, array.dtype)
        inside = tuple(slice(1, None, 2) for _ in array.shape)
        wide[inside] = array
        return flambeau.tensor(wide)[inside]
    return flambeau.tensor(array)


def close(result, expected, tolerance, depth=1):
    assert tuple(result.shape) == np.shape(expected)
    got = result.detach().numpy()
    if tolerance:
        np.testing.assert_allclose(got.astype(np.float64), expected, rtol=tolerance, atol=tolerance * (4 + depth))
    else:
        np.testing.assert_array_equal(got, np.asarray(expected).astype(got.dtype))


def wide(array):
    return array.astype(np.float64 if array.dtype.kind == "f" else np.int64)


@pytest.mark.parametrize("dtype, tolerance", DTYPES)
@pytest.mark.parametrize("layouts", list(itertools.product(["contiguous", "transposed", "strided"], repeat=2)))
def test_mm(dtype, tolerance, layouts):
    for m, k, n in [
        (1, 1, 1),
        (3, 5, 4),
        (8, 8, 8),
        (17, 33, 9),
        (1, 40, 20),
        (20, 40, 1),
        (70, 300, 40),
        (4, 0, 3),
        (0, 4, 3),
    ]:
        a, b = values((m, k), dtype), values((k, n), dtype)
        close(flambeau.mm(laid(a, layouts[0]), laid(b, layouts[1])), wide(a) @ wide(b), tolerance, k)


@pytest.mark.parametrize("dtype, tolerance", FLOATS)
@pytest.mark.parametrize("layouts", list(itertools.product(["contiguous", "transposed", "strided"], repeat=2)))
def test_large_products(dtype, tolerance, layouts):
    """Large in every direction: OpenBLAS computes those whose rows or columns are contiguous."""
    a, b, bias = values((150, 130), dtype), values((130, 170), dtype), values((170,), dtype)
    left, right = laid(a, layouts[0]), laid(b, layouts[1])
    close(left @ right, wide(a) @ wide(b), tolerance, 130)
    expected = 2 * (wide(a) @ wide(b)) - 3 * wide(bias)
    close(flambeau.addmm(flambeau.tensor(bias), left, right, beta=-3, alpha=2), expected, 2 * tolerance, 130)
    transposed = (right.t() @ left.t()).t()
    close(transposed, wide(a) @ wide(b), tolerance, 130)
    missing = flambeau.full((170,), float("nan"), dtype=left.dtype)
    close(flambeau.addmm(missing, left, right, beta=0), wide(a) @ wide(b), tolerance, 130)


def test_blas_is_the_declared_library():
    assert function(flambeau.device("cpu"), "blas")().startswith("OpenBLAS 0.3.")


def test_missing_blas_says_what_to_install(monkeypatch):
    monkeypatch.setattr(blas.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ImportError) as caught:
        blas.load()
    assert str(caught.value) == (
        "flambeau-cpu multiplies matrices with OpenBLAS, and the package scipy-openblas32 is not installed.\n"
        "Install it: pip install --force-reinstall scipy-openblas32"
    )


SHAPES = [
    ((4,), (4,)),
    ((3, 4), (4,)),
    ((4,), (4, 5)),
    ((2, 3, 4), (4,)),
    ((4,), (2, 4, 5)),
    ((2, 3, 4), (4, 5)),
    ((3, 4), (2, 4, 5)),
    ((2, 3, 4), (2, 4, 5)),
    ((6, 1, 3, 4), (2, 4, 5)),
    ((2, 1, 3, 4), (1, 5, 4, 6)),
    ((0, 3, 4), (4, 5)),
    ((2, 3, 0), (0, 5)),
    ((1, 3, 4), (7, 4, 1)),
    ((5, 1, 4), (4, 3)),
    ((0,), (0,)),
    ((2, 2, 3, 8, 8), (3, 8, 8)),
]


@pytest.mark.parametrize("shapes", SHAPES)
@pytest.mark.parametrize("how", ["contiguous", "transposed", "strided"])
def test_matmul_broadcasts(shapes, how):
    for dtype, tolerance in (("float64", 1e-14), ("int64", 0)):
        a, b = (values(shape, dtype) for shape in shapes)
        close(laid(a, how) @ laid(b, how), np.matmul(a, b), tolerance, 8)


@pytest.mark.parametrize("shapes", SHAPES)
def test_matmul_gradients(shapes):
    inputs = [flambeau.tensor(values(shape, "float64"), requires_grad=True) for shape in shapes]
    assert gradcheck(flambeau.matmul, inputs)
    assert gradgradcheck(flambeau.matmul, inputs)


def test_matmul_of_expanded_batches():
    a, b = values((3, 4), "float64"), values((2, 4, 5), "float64")
    left = flambeau.tensor(a).expand(6, 2, 3, 4)
    close(left @ flambeau.tensor(b), np.matmul(np.broadcast_to(a, (6, 2, 3, 4)), b), 1e-14)


@pytest.mark.parametrize("dtype, tolerance", DTYPES)
def test_bmm_mv_dot(dtype, tolerance):
    a, b = values((5, 3, 7), dtype), values((5, 7, 2), dtype)
    close(laid(a, "strided").bmm(laid(b, "transposed")), wide(a) @ wide(b), tolerance, 7)
    m, v = values((6, 50), dtype), values(50, dtype)
    close(laid(m, "transposed").mv(laid(v, "strided")), wide(m) @ wide(v), tolerance, 50)
    close(laid(m, "strided").mv(laid(v, "contiguous")), wide(m) @ wide(v), tolerance, 50)
    x, y = values(3001, dtype), values(3001, dtype)
    if dtype == "float16":
        x, y = x / 32, y
    close(flambeau.dot(laid(x, "strided"), flambeau.tensor(y)), wide(x) @ wide(y), tolerance, 100)
    assert flambeau.dot(flambeau.zeros(0), flambeau.zeros(0)).item() == 0


def test_dot_of_a_long_vector_is_accurate():
    x = np.full(2**22, 0.1, np.float32)
    exact = float(np.float64(x[0])) ** 2 * len(x)
    assert abs(flambeau.dot(flambeau.tensor(x), flambeau.tensor(x)).item() / exact - 1) < 1e-6


@pytest.mark.parametrize("threads", [2, 3])
def test_results_do_not_depend_on_threads(threads):
    before = lib.fb_get_threads()
    try:
        for shapes in (
            ((150, 200), (200, 170)),
            ((70, 33, 50), (70, 50, 40)),
            ((900, 700), (700,)),
            ((300_000,), (300_000,)),
            ((700,), (700, 901)),
        ):
            a, b = (flambeau.tensor(values(shape, "float32")) for shape in shapes)
            lib.fb_set_threads(1)
            one = (a @ b).numpy()
            lib.fb_set_threads(threads)
            np.testing.assert_array_equal((a @ b).numpy(), one)
    finally:
        lib.fb_set_threads(before)


def test_nan_and_infinity_spread():
    a = np.array([[1, np.nan, 2], [np.inf, 1, 0], [1, 2, 3]], np.float32)
    with np.errstate(invalid="ignore"):
        expected = a @ a
    np.testing.assert_array_equal((flambeau.tensor(a) @ flambeau.tensor(a)).numpy(), expected)


ADDED = {
    "addmm": ((3, 5), (3, 4), (4, 5)),
    "addmv": ((3,), (3, 4), (4,)),
    "addr": ((3, 4), (3,), (4,)),
    "addbmm": ((3, 5), (2, 3, 4), (2, 4, 5)),
    "baddbmm": ((2, 3, 5), (2, 3, 4), (2, 4, 5)),
}


def product_of(name, a, b):
    if name == "addr":
        return np.outer(a, b)
    result = np.matmul(a, b)
    return result.sum(0) if name == "addbmm" else result


@pytest.mark.parametrize("name", ADDED)
@pytest.mark.parametrize("dtype, tolerance", [("float32", 1e-6), ("float64", 1e-14), ("int64", 0)])
def test_sums_of_products(name, dtype, tolerance):
    add, a, b = (values(shape, dtype) for shape in ADDED[name])
    function = getattr(flambeau, name)
    for beta, alpha in ((1, 1), (2, -3), (0, 2)):
        expected = beta * add + alpha * product_of(name, a, b)
        tensors = [laid(each, "strided") for each in (add, a, b)]
        close(function(*tensors, beta=beta, alpha=alpha), expected, tolerance, 8)
        out = flambeau.empty(0, dtype=tensors[0].dtype)
        assert function(*tensors, beta=beta, alpha=alpha, out=out) is out
        close(out, expected, tolerance, 8)
        target = tensors[0].clone()
        assert getattr(target, name + "_")(*tensors[1:], beta=beta, alpha=alpha) is target
        close(target, expected, tolerance, 8)
    scalar = flambeau.tensor(add.reshape(-1)[0])
    close(function(scalar, *tensors[1:]), add.reshape(-1)[0] + product_of(name, a, b), tolerance, 8)


@pytest.mark.parametrize("name", ADDED)
def test_sums_of_products_ignore_nan_times_zero(name):
    add, a, b = (values(shape, "float64") for shape in ADDED[name])
    add[:] = np.nan
    result = getattr(flambeau, name)(*map(flambeau.tensor, (add, a, b)), beta=0)
    close(result, product_of(name, a, b), 1e-14, 8)


@pytest.mark.parametrize("name", ADDED)
def test_sums_of_products_gradients(name):
    inputs = [flambeau.tensor(values(shape, "float64"), requires_grad=True) for shape in ADDED[name]]
    inputs[0] = flambeau.tensor(values(ADDED[name][0][-1:], "float64"), requires_grad=True)  # broadcast

    def function(*args):
        return getattr(flambeau, name)(*args, beta=0.5, alpha=-2)

    assert gradcheck(function, inputs)
    assert gradgradcheck(function, inputs)


@pytest.mark.parametrize("name", ADDED)
def test_factors_among_the_positional_arguments_are_the_old_order(name):
    tensors = [flambeau.tensor(values(shape, "float64")) for shape in ADDED[name]]
    function = getattr(flambeau, name)
    expected = function(*tensors, beta=2, alpha=3).numpy()
    with pytest.warns(DeprecationWarning, match="beta=beta, alpha=alpha"):
        np.testing.assert_array_equal(function(2, tensors[0], 3, *tensors[1:]).numpy(), expected)
    with pytest.warns(DeprecationWarning):
        np.testing.assert_array_equal(getattr(tensors[0], name)(2, 3, *tensors[1:]).numpy(), expected)
    with pytest.raises(TypeError, match="expected three tensors"):
        function(tensors[0], 1.5, tensors[1])


def test_integer_factors_are_truncated():
    a = flambeau.tensor(values((2, 2), "int64"))
    np.testing.assert_array_equal(flambeau.addmm(a, a, a, beta=0.5, alpha=1.9).numpy(), (a @ a).numpy())
    with pytest.raises(RuntimeError, match="integral input tensors, argument alpha"):
        flambeau.addr(a, a[0], a[0], alpha=0.5)


def test_outer_ger_trace():
    a, b = values(3, "float32"), values(4, "float64")
    close(flambeau.outer(flambeau.tensor(a), flambeau.tensor(b)), np.outer(a, b), 1e-14)
    close(flambeau.ger(flambeau.tensor(b), flambeau.tensor(b)), np.outer(b, b), 1e-14)
    m = values((3, 5), "int64")
    assert flambeau.trace(flambeau.tensor(m)).item() == np.trace(m)
    with pytest.raises(RuntimeError, match="expected a matrix"):
        flambeau.trace(flambeau.zeros(3))
    with pytest.raises(RuntimeError, match="1-D"):
        flambeau.outer(flambeau.zeros(2, 2), flambeau.zeros(2))


def test_cross():
    a, b = values((4, 3, 2), "float64"), values((1, 3, 2), "float64")
    ta, tb = flambeau.tensor(a, requires_grad=True), flambeau.tensor(b, requires_grad=True)
    close(flambeau.cross(ta, tb), np.cross(a, b, axis=1), 1e-14)
    close(flambeau.cross(ta, tb, dim=-2), np.cross(a, b, axis=1), 1e-14)
    assert gradcheck(flambeau.cross, (ta, tb))
    with pytest.raises(RuntimeError, match="length 3"):
        flambeau.cross(ta, tb, 0)
    with pytest.raises(RuntimeError, match="no dimension of size 3"):
        flambeau.cross(flambeau.zeros(2), flambeau.zeros(2))


@pytest.mark.parametrize("shape", [(5, 4), (4,), (2, 3, 4), (0, 4), (5, 1, 4)])
@pytest.mark.parametrize("weight_shape", [(3, 4), (4,)])
@pytest.mark.parametrize("bias", [True, False])
def test_linear(shape, weight_shape, bias):
    x, w, b = values(shape, "float64"), values(weight_shape, "float64"), values(weight_shape[:-1], "float64")
    inputs = [flambeau.tensor(each, requires_grad=True) for each in ((x, w, np.asarray(b)) if bias else (x, w))]
    close(linear(*inputs), x @ w.T + (b if bias else 0), 1e-14, 4)
    for how in ("transposed", "strided"):
        close(
            linear(laid(x, how), laid(w, how), inputs[2].detach() if bias else None),
            x @ w.T + (b if bias else 0),
            1e-14,
            4,
        )
    assert gradcheck(linear, inputs)
    assert gradgradcheck(linear, inputs)


def test_bilinear():
    x, y, w, b = (values(shape, "float64") for shape in ((2, 5, 3), (2, 5, 4), (6, 3, 4), (6,)))
    inputs = [flambeau.tensor(each, requires_grad=True) for each in (x, y, w, b)]
    close(flambeau.bilinear(*inputs), np.einsum("nti,oij,ntj->nto", x, w, y) + b, 1e-13, 12)
    assert gradcheck(flambeau.bilinear, inputs)
    assert gradgradcheck(flambeau.bilinear, inputs)


def t(*shape, dtype=None):
    return flambeau.zeros(*shape, dtype=dtype)


@pytest.mark.parametrize(
    "call, kind, message",
    [
        (lambda: t(2, 3).mm(t(2, 3)), RuntimeError, "shapes cannot be multiplied.*\\[2, 3\\]"),
        (lambda: t(3).mm(t(3, 2)), RuntimeError, "expected \\(n, m\\)"),
        (lambda: t(2, 3).mm(t(3, 2, dtype=flambeau.float64)), RuntimeError, "same dtype, but got float32 and float64"),
        (lambda: t(2, 3) @ t(2, 3), RuntimeError, "size 3 of the first must match size 2"),
        (lambda: t(2, 3) @ t(()), RuntimeError, "at least 1D"),
        (lambda: t(2, 3, 4) @ t(3, 4, 5), RuntimeError, "broadcast"),
        (lambda: t(2, 3) @ 4, TypeError, "expected tensors, got int"),
        (lambda: flambeau.mm(t(2, 3), 4), TypeError, "expected tensors"),
        (lambda: t(2, 3, 4).bmm(t(3, 4, 5)), RuntimeError, "batch1"),
        (lambda: t(2, 3).mv(t(2)), RuntimeError, "a vector \\(m\\)"),
        (lambda: t(2).dot(t(3)), RuntimeError, "same size"),
        (lambda: t(2, 2).dot(t(2)), RuntimeError, "1D"),
        (lambda: t(5).addmm(t(2, 3), t(3, 4)), RuntimeError, "must match|expanded size"),
        (lambda: t(2, 3).addmv(t(2, 3), t(3)), RuntimeError, "expanded size|must match"),
        (lambda: linear(t(2, 3), t(4, 5)), RuntimeError, "\\(\\*, in\\) and \\(out, in\\)"),
        (lambda: linear(t(2, 3), t(4, 3), t(5)), RuntimeError, "bias|must match"),
        (lambda: flambeau.bilinear(t(2, 3), t(3, 4), t(5, 3, 4)), RuntimeError, "in1"),
        (
            lambda: t(2, 2, dtype=flambeau.bool) @ t(2, 2, dtype=flambeau.bool),
            NotImplementedError,
            "not implemented for bool",
        ),
        (lambda: flambeau.mm(t(2, 2), t(2, 2), out=t(2, 2, dtype=flambeau.int64)), RuntimeError, "can't be cast"),
    ],
)
def test_errors(call, kind, message):
    with pytest.raises(kind, match=message):
        call()
