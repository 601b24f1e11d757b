"""Every pointwise operator against its meaning on NumPy arrays, over dtypes, strides, broadcasting and special values."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy import special

import flambeau as torch
from flambeau.autograd import gradcheck, gradgradcheck
from flambeau.dispatch.operator import operators

POINTWISE = {name: op for name, op in operators.items() if op.kind == "pointwise"}
ORACLES = {name: op.oracle for name, op in POINTWISE.items() if op.oracle is not None}
ORACLES |= {
    "erf": special.erf,
    "erfc": special.erfc,
    "digamma": special.digamma,
    "erfinv": special.erfinv,
    "lgamma": special.gammaln,
}
ORACLES["polygamma"] = lambda a, n: special.polygamma(np.round(n), a)
ORACLES["gelu"] = lambda a: a * special.ndtr(a)
ORACLES["gelu_tanh"] = lambda a: 0.5 * a * (1 + np.tanh(np.sqrt(2 / np.pi) * (a + 0.044715 * a**3)))
#: open intervals outside of which an operator is not defined or not smooth
DOMAIN = {
    "acos": (-0.9, 0.9), "asin": (-0.9, 0.9), "erfinv": (-0.9, 0.9), "log": (0.2, 3), "log2": (0.2, 3), "log10": (0.2, 3),
    "log1p": (-0.8, 3), "sqrt": (0.2, 3), "rsqrt": (0.2, 3), "pow": (0.2, 3), "lgamma": (0.3, 4), "digamma": (0.3, 4),
    "reciprocal": (0.3, 3), "div": (0.3, 3), "addcdiv": (0.3, 3), "fmod": (0.3, 3), "remainder": (0.3, 3),
    "floor_divide": (0.3, 3), "trunc_divide": (0.3, 3), "tan": (-1, 1), "xlogy": (0.2, 3), "polygamma": (0.5, 4),
}  # fmt: skip
TOLERANCE = {"float16": 4e-3, "float32": 2e-5, "float64": 1e-9}
#: parameters that are numbers in use, with values that make sense
NUMBERS = {
    "add_scaled": (None, None, 2), "addcmul": (None, None, None, 2), "addcdiv": (None, None, None, 2),
    "clip_numbers": (None, -1, 1), "clamp": (None, -1, 1), "between_backward": (None, None, -1, 1), "lerp": (None, None, 0.25),
    "threshold": (None, 0.5, -2), "threshold_backward": (None, None, 0), "leaky_relu": (None, 0.1),
    "leaky_relu_backward": (None, None, 0.1), "elu": (None, 1.5, 1.1, 0.9), "softplus": (None, 1.5, 20.0),
    "softplus_backward": (None, None, 1.5, 20.0), "hardtanh": (None, -1, 1),
    "hardtanh_backward": (None, None, -1, 1), "hardshrink": (None, 0.5),
    "hardshrink_backward": (None, None, 0.5), "softshrink": (None, 0.5), "polygamma": (None, 2),
}  # fmt: skip
INTEGERS = {name for name in POINTWISE if name.startswith(("bitwise", "logical"))}


def sample(name: str, shape: tuple[int, ...], dtype: str, rng: np.random.Generator) -> np.ndarray:
    """Random values inside the operator's domain."""
    low, high = DOMAIN.get(name, (-3, 3))
    values = rng.uniform(low, high, shape)
    if np.dtype(dtype).kind in "iu":
        values = np.abs(np.rint(values)) + 1
    return values.astype(dtype)


def arguments(name: str, shape: tuple[int, ...], dtype: str, seed: int = 0) -> list:
    rng = np.random.default_rng(seed)
    fixed = NUMBERS.get(name, (None,) * len(POINTWISE[name].parameters))
    return [sample(name, shape, dtype, rng) if each is None else each for each in fixed]


def run(name: str, args: list):
    tensors = [torch.from_numpy(each) if isinstance(each, np.ndarray) else each for each in args]
    return POINTWISE[name].function(*tensors)


def expected(name: str, args: list) -> np.ndarray:
    wide = [
        each.astype(np.float64) if isinstance(each, np.ndarray) and each.dtype.kind == "f" else each for each in args
    ]
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return np.asarray(ORACLES[name](*wide))


def check(name: str, args: list, dtype: str) -> None:
    result = run(name, args).numpy()
    wanted = expected(name, args)
    assert result.shape == np.broadcast_shapes(*[np.shape(each) for each in args])
    np.testing.assert_allclose(
        result.astype(np.float64), wanted.astype(np.float64), rtol=TOLERANCE.get(dtype, 0), atol=TOLERANCE.get(dtype, 0),
        err_msg=f"{name} {dtype}",
    )  # fmt: skip


def test_every_pointwise_operator_has_an_oracle():
    assert not POINTWISE.keys() - ORACLES.keys()


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("name", sorted(POINTWISE.keys() - INTEGERS))
def test_values(name, dtype):
    check(name, arguments(name, (3, 5), dtype), dtype)


@pytest.mark.parametrize("dtype", ["int64", "int32", "uint8", "bool"])
@pytest.mark.parametrize("name", sorted(INTEGERS))
def test_bits(name, dtype):
    if "shift" in name and dtype == "bool":
        pytest.skip("bools have no digits to shift")
    args = [each.astype(dtype) for each in arguments(name, (3, 5), "int64")]
    np.testing.assert_array_equal(run(name, args).numpy(), ORACLES[name](*args))


@pytest.mark.parametrize(
    "name", ["add", "sub", "mul", "maximum", "minimum", "fmod", "remainder", "floor_divide", "neg", "abs"]
)
@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64"])
def test_integers(name, dtype):
    check(name, arguments(name, (4, 3), dtype), dtype)


@pytest.mark.parametrize("name", sorted(POINTWISE.keys() - INTEGERS))
def test_strides_and_offsets(name):
    """Transposed, stepped and offset operands give what their copies give."""
    args = arguments(name, (6, 8), "float32")
    for look in (lambda a: a.T, lambda a: a[1:, ::2], lambda a: a[::2, 3:4]):
        viewed = [look(each) if isinstance(each, np.ndarray) else each for each in args]
        check(name, viewed, "float32")


@pytest.mark.parametrize("name", sorted(name for name in POINTWISE if len(POINTWISE[name].parameters) > 1))
def test_broadcasting(name):
    dtype = "int64" if name in INTEGERS else "float32"
    args = arguments(name, (4, 3), dtype)
    arrays = [i for i, each in enumerate(args) if isinstance(each, np.ndarray)]
    if len(arrays) < 2:
        pytest.skip("one tensor")
    for cut in (lambda a: a[:1], lambda a: a[:, :1], lambda a: a[0], lambda a: a[0, 0].reshape(())):
        for which in arrays:
            varied = list(args)
            varied[which] = np.array(cut(args[which]))
            check(name, varied, dtype)


@pytest.mark.parametrize("name", sorted(POINTWISE))
@pytest.mark.parametrize("shape", [(), (0,), (2, 0, 3), (1, 1)])
def test_shapes_at_the_edge(name, shape):
    dtype = "int64" if name in INTEGERS else "float32"
    args = [np.asarray(each) if isinstance(each, np.generic) else each for each in arguments(name, shape, dtype)]
    check(name, args, dtype)


@pytest.mark.parametrize(
    "name",
    ["exp", "log", "sin", "cos", "tanh", "sigmoid", "erf", "sqrt", "expm1", "log1p", "floor", "abs", "neg", "relu"],
)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_special_values(name, dtype):
    values = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-42, 1e30, -1e30], dtype)
    with np.errstate(all="ignore"):
        wanted = ORACLES[name](values.astype(np.float64))
        if name == "sigmoid":
            wanted = special.expit(values.astype(np.float64))
        if name == "relu":
            wanted = np.where(np.isnan(values), np.nan, np.maximum(values, 0))
    result = torch.from_numpy(values)
    result = getattr(result, name)().numpy()
    finite = np.isfinite(wanted) & (np.abs(wanted) < np.finfo(dtype).max)
    np.testing.assert_allclose(result[finite], wanted[finite], rtol=1e-5, atol=1e-38)
    np.testing.assert_array_equal(np.isnan(result), np.isnan(wanted))
    if name in ("sin", "tanh", "erf", "expm1", "log1p", "neg", "floor", "sqrt"):
        assert np.signbit(result[4]) == np.signbit(wanted[4])


@pytest.mark.parametrize("name", sorted(op.name for op in POINTWISE.values() if op.inplace and op.name not in INTEGERS))
def test_in_place(name):
    op = POINTWISE[name]
    args = arguments(name, (3, 4), "float32")
    tensors = [torch.from_numpy(each.copy()) if isinstance(each, np.ndarray) else each for each in args]
    wanted = op.function(*tensors)
    target = tensors[0]
    result = op.body_of_inplace(target, *tensors[1:])
    assert result is target
    np.testing.assert_array_equal(target.numpy(), wanted.to(torch.float32).numpy())


@pytest.mark.parametrize("name", ["exp", "mul", "add", "relu", "lerp", "eq"])
def test_out(name):
    args = [
        torch.from_numpy(each) if isinstance(each, np.ndarray) else each for each in arguments(name, (3, 4), "float32")
    ]
    wanted = POINTWISE[name].function(*args)
    out = torch.empty(0, dtype=wanted.dtype)
    assert POINTWISE[name].function(*args, out=out) is out
    np.testing.assert_array_equal(out.numpy(), wanted.numpy())


def smooth_arguments(name: str) -> list:
    args = [
        torch.from_numpy(each) if isinstance(each, np.ndarray) else each
        for each in arguments(name, (2, 3), "float64", 3)
    ]
    for each in args:
        if isinstance(each, torch.Tensor):
            each.requires_grad_()
    return args


DIFFERENTIABLE = sorted(name for name, op in POINTWISE.items() if op.differentiable)


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_gradients(name):
    assert gradcheck(POINTWISE[name].function, tuple(smooth_arguments(name)))


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_second_gradients(name):
    assert gradgradcheck(POINTWISE[name].function, tuple(smooth_arguments(name)))


def test_every_operator_says_whether_it_has_a_gradient():
    assert [name for name, op in POINTWISE.items() if op.differentiable is None] == []


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("name", ["isnan", "isinf", "isfinite"])
def test_special_complex_numbers(name, dtype):
    parts = [0.0, 1.5, np.inf, -np.inf, np.nan]
    values = np.array([complex(a, b) for a in parts for b in parts], dtype)
    result = getattr(torch, name)(torch.from_numpy(values))
    np.testing.assert_array_equal(result.numpy(), getattr(np, name)(values))


def test_messages():
    with pytest.raises(RuntimeError, match=r"size of tensor a \(3\) must match the size of tensor b \(2\)"):
        torch.ones(3) + torch.ones(2)
    with pytest.raises(RuntimeError, match="can't be cast to the desired output type Long"):
        torch.ones(2, dtype=torch.int64).add_(0.5)
    with pytest.raises(RuntimeError, match="Subtraction, the `-` operator"):
        torch.ones(2, dtype=torch.bool) - torch.ones(2, dtype=torch.bool)
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        torch.ones(2, dtype=torch.int64) // torch.zeros(2, dtype=torch.int64)
    with pytest.raises(RuntimeError, match="doesn't match the broadcast shape"):
        torch.ones(2).add_(torch.ones(3, 2))
    with pytest.raises(TypeError, match="expects tensors and numbers, got str"):
        torch.ones(2) + "1"
