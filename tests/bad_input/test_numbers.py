"""Dtypes, out=, and numbers out of their range.  Each call is refused with an exact message."""

from __future__ import annotations

import pytest

import flambeau as torch
import flambeau.nn as nn
import flambeau.nn.functional as F

#: name: operands (see conftest.py), call, exception, message
REFUSED = {
    # dtypes
    "float_into_int": (
        "n(3), f(3)",
        lambda a, b: a.add_(b),
        RuntimeError,
        "result type Float can't be cast to the desired output type Long in add_().\nUse the out-of-place form add().",
    ),
    "bitwise_float": (
        "f(3)",
        lambda a: a & a,
        NotImplementedError,
        '"bitwise_and" not implemented for float32 on cpu (strided).\n'
        "cpu VERSION has no kernel for float32.\n"
        "It is served there for bool, uint8, int8, int16, int32, int64; convert with x.to(flambeau.int64).",
    ),
    "matmul_dtypes": (
        "f(2, 2), d(2, 2)",
        lambda a, b: a @ b,
        RuntimeError,
        "matmul: expected tensors to have the same dtype, but got float32 and float64.\nConvert them with .to(dtype).",
    ),
    "mean_int": (
        "n(3)",
        lambda a: a.mean(),
        RuntimeError,
        "mean(): could not infer output dtype. Input dtype must be either a floating point or complex dtype. "
        "Got: int64.\n"
        "Use x.float().mean().",
    ),
    "sub_bool": (
        "b(2), b(2)",
        lambda a, b: a - b,
        RuntimeError,
        "sub: Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or "
        "`logical_xor()` operator instead, got bool[2] and bool[2].",
    ),
    "int_division_by_zero": (
        "n(3), z(3)",
        lambda a, b: a // b,
        RuntimeError,
        "ZeroDivisionError: floor_divide of int64 by a divisor of shape [3] that contains zero.\n"
        "Mask the zeros, or convert to floating point.",
    ),
    "int_power_negative": (
        "n(3)",
        lambda a: a**-1,
        RuntimeError,
        "Integers to negative integer powers are not allowed: int64[3] ** -1.\n"
        "Convert the base to floating point first.",
    ),
    "fill_overflow": (
        "u(3)",
        lambda a: a.fill_(300),
        RuntimeError,
        "value cannot be converted to type uint8 without overflow: 300.\n"
        "uint8 holds 0 to 255; convert the tensor to a wider type first.",
    ),
    "fill_nan": (
        "n(3)",
        lambda a: a.fill_(float("nan")),
        RuntimeError,
        "value cannot be converted to type int64 without overflow: nan.",
    ),
    "fill_complex": (
        "f(3)",
        lambda a: a.fill_(1j),
        RuntimeError,
        "value cannot be converted to type float32 without overflow: 1j.",
    ),
    "fill_text": (
        "f(3)",
        lambda a: a.fill_("x"),
        TypeError,
        "A number is expected here, got str 'x'.",
    ),
    "add_text": (
        "f(3)",
        lambda a: a + "x",
        TypeError,
        "add() expects tensors and numbers, got str: 'x'.\nConvert it first with flambeau.tensor(...).",
    ),
    "add_list": (
        "f(3)",
        lambda a: torch.add(a, [1, 2, 3]),
        TypeError,
        "add() expects tensors and numbers, got list: [1, 2, 3].\nConvert it first with flambeau.tensor(...).",
    ),
    "view_dtype_size": (
        "f(3)",
        lambda a: a.view(torch.float64),
        RuntimeError,
        "view(dtype): expected a dtype of 4 bytes, got float64.",
    ),
    "dtype_text": (
        "",
        lambda: torch.zeros(2, dtype="float32"),
        TypeError,
        "dtype must be a flambeau.dtype, got str 'float32'.",
    ),
    "lerp_dtype": (
        "f(3), d(3)",
        lambda a, b: torch.dot(a, b),
        RuntimeError,
        "dot: expected tensors to have the same dtype, but got float32 and float64.\nConvert them with .to(dtype).",
    ),
    "complex_less": (
        "c(2)",
        lambda a: a < a,
        NotImplementedError,
        '"lt" not implemented for complex64 on cpu (strided).\n'
        "cpu VERSION has no kernel for complex64.\n"
        "It is served there for bool, uint8, int8, int16, int32, int64, float16, bfloat16, float32, float64; "
        "convert with x.to(flambeau.float32).",
    ),
    # out=
    "out_dtype": (
        "f(3), n(3)",
        lambda a, out: torch.add(a, a, out=out),
        RuntimeError,
        "result type Float can't be cast to the desired output type Long in add(out=...).",
    ),
    "out_shares_elements": (
        "f(3), x(3)",
        lambda a, out: torch.add(a, a, out=out),
        RuntimeError,
        "unsupported operation: add would write to a tensor of shape [3] and strides (0,), more than one "
        "element of which refers to a single memory location.\n"
        "Please clone() the tensor before performing the operation.",
    ),
    "out_requires_grad": (
        "f(3), g(3)",
        lambda a, out: torch.add(a, a, out=out),
        RuntimeError,
        "add(): functions with out=... arguments don't support automatic differentiation, but one of the "
        "arguments requires grad.\n"
        "Drop out=, or run it in flambeau.no_grad().",
    ),
    "out_history": (
        "g(3), f(3)",
        lambda a, out: torch.add(a, a, out=out),
        RuntimeError,
        "add(): functions with out=... arguments don't support automatic differentiation, but one of the "
        "arguments requires grad.\n"
        "Drop out=, or run it in flambeau.no_grad().",
    ),
    "out_list": (
        "f(3)",
        lambda a: torch.add(a, a, out=[1]),
        TypeError,
        "add(): out must be a Tensor, got list.",
    ),
    "out_two": (
        "f(3), f(0)",
        lambda a, out: torch.sort(a, out=(out,)),
        TypeError,
        "sort(): expected 2 tensors as out, got 1.",
    ),
    "out_second_dtype": (
        "f(3), f(3), b(3)",
        lambda a, v, k: torch.sort(a, out=(v, k)),
        RuntimeError,
        "result type Long can't be cast to the desired output type Bool in sort(out=...).",
    ),
    "zeros_out_dtype": (
        "f(3)",
        lambda out: torch.zeros(3, out=out, dtype=torch.int64),
        RuntimeError,
        "zeros(): dtype int64 does not match dtype of out parameter (float32).",
    ),
    "randperm_out": (
        "u(3)",
        lambda out: torch.randperm(300, out=out),
        RuntimeError,
        "n is too large for result tensor type: uint8 holds whole numbers up to 255, got n = 300.",
    ),
    "normal_out": (
        "n(3)",
        lambda out: torch.normal(0.0, 1.0, (2,), out=out),
        NotImplementedError,
        '"normal_" not implemented for int64 on cpu (strided).\n'
        "cpu VERSION has no kernel for int64.\n"
        "It is served there for float16, bfloat16, float32, float64; convert with x.to(flambeau.float16).",
    ),
    # numbers out of range
    "randint_range": (
        "",
        lambda: torch.randint(3, 3, (2,)),
        RuntimeError,
        "random_ expects 'from' to be less than 'to', but got from=3 >= to=3",
    ),
    "randint_dtype": (
        "",
        lambda: torch.randint(0, 300, (2,), dtype=torch.uint8),
        RuntimeError,
        "to - 1 is out of bounds for uint8: expected [0, 255], got 299.",
    ),
    "random_range": (
        "f(3)",
        lambda a: a.random_(5, 5),
        RuntimeError,
        "random_ expects 'from' to be less than 'to', but got from=5 >= to=5",
    ),
    "uniform_range": (
        "f(3)",
        lambda a: a.uniform_(2, 1),
        RuntimeError,
        "uniform_ expects to return a [from, to) range, but found from=2 > to=1",
    ),
    "uniform_nan": (
        "f(3)",
        lambda a: a.uniform_(float("nan"), 1),
        RuntimeError,
        "uniform_ expects to return a [from, to) range, but found from=nan > to=1",
    ),
    "normal_std": (
        "f(3)",
        lambda a: a.normal_(0, -1),
        RuntimeError,
        "normal expects std >= 0.0, but found std -1",
    ),
    "normal_std_tensor": (
        "f(2), v(-1.0, 1.0)",
        lambda a, s: torch.normal(a, s),
        RuntimeError,
        "normal expects all elements of std >= 0.0",
    ),
    "exponential_rate": (
        "f(3)",
        lambda a: a.exponential_(0),
        RuntimeError,
        "exponential_ expects lambda > 0.0, but found lambda=0",
    ),
    "geometric_p": (
        "f(3)",
        lambda a: a.geometric_(1),
        RuntimeError,
        "geometric_ expects p to be in (0, 1), but got p=1",
    ),
    "bernoulli_p": (
        "f(3)",
        lambda a: a.bernoulli_(1.5),
        RuntimeError,
        "bernoulli_ expects p to be in [0, 1], but got p=1.5",
    ),
    "bernoulli_tensor": (
        "v(0.5, 1.5)",
        lambda p: torch.bernoulli(p),
        RuntimeError,
        "Expected p_in >= 0 && p_in <= 1 to be true, but a probability is outside [0, 1].",
    ),
    "bernoulli_nan": (
        'v(0.5, float("nan"))',
        lambda p: torch.bernoulli(p),
        RuntimeError,
        "Expected p_in >= 0 && p_in <= 1 to be true, but a probability is outside [0, 1].",
    ),
    "multinomial_negative": (
        "v(1.0, -1.0)",
        lambda p: p.multinomial(1),
        RuntimeError,
        "probability tensor contains either `inf`, `nan` or element < 0",
    ),
    "multinomial_nan": (
        'v(1.0, float("nan"))',
        lambda p: p.multinomial(1),
        RuntimeError,
        "probability tensor contains either `inf`, `nan` or element < 0",
    ),
    "multinomial_zero": (
        "v(0.0, 0.0)",
        lambda p: p.multinomial(1),
        RuntimeError,
        "invalid multinomial distribution (sum of probabilities <= 0)",
    ),
    "multinomial_many": (
        "v(1.0, 1.0)",
        lambda p: p.multinomial(3),
        RuntimeError,
        "cannot sample n_sample > prob_dist.size(-1) samples without replacement: 3 of 2.",
    ),
    "poisson_negative": (
        "v(1.0, -1.0)",
        lambda p: torch.poisson(p),
        RuntimeError,
        "invalid Poisson rate, expected rate to be non-negative",
    ),
    "dropout_p": (
        "f(3)",
        lambda a: F.dropout(a, 1.5),
        ValueError,
        "dropout probability has to be between 0 and 1, but got 1.5",
    ),
    "dropout_module_p": (
        "",
        lambda: nn.Dropout(-0.1),
        ValueError,
        "dropout probability has to be between 0 and 1, but got -0.1",
    ),
    "randperm_negative": (
        "",
        lambda: torch.randperm(-1),
        RuntimeError,
        "n must be non-negative, got -1",
    ),
    "round_decimals": (
        "f(3)",
        lambda a: torch.round(a, decimals=2**40),
        ValueError,
        "round(): decimals lies in -308 to 308, got 1099511627776.",
    ),
    "clamp_nothing": (
        "f(3)",
        lambda a: a.clamp(),
        RuntimeError,
        "torch.clamp: At least one of 'min' or 'max' must not be None",
    ),
    "norm_name": (
        "f(3)",
        lambda a: a.norm("fancy"),
        RuntimeError,
        "linalg.matrix_norm: Order fancy not supported.\nExpected a number, 'fro' or 'nuc'.",
    ),
    "manual_seed": (
        "",
        lambda: torch.manual_seed("x"),
        TypeError,
        "manual_seed() expects an int, got str 'x'.",
    ),
}


@pytest.mark.parametrize(("operands", "call", "kind", "message"), REFUSED.values(), ids=REFUSED)
def test_refused(refuses, operands, call, kind, message):
    refuses(operands, call, kind, message)
