"""Operators that work element by element."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import partial
from statistics import NormalDist
from typing import Any, Final

import numpy as np

from ...dispatch.operator import Operator, operators
from ..operands import Draw, Operand
from ..samples import SAMPLES, definition, faults

#: Where an operator is defined, and its gradient tame.
DOMAIN: Final = {
    "acos": (-0.9, 0.9), "asin": (-0.9, 0.9), "erfinv": (-0.9, 0.9), "log": (0.2, 3), "log2": (0.2, 3), "log10": (0.2, 3),
    "log1p": (-0.8, 3), "sqrt": (0.2, 3), "rsqrt": (0.2, 3), "pow": (0.2, 3), "lgamma": (0.3, 4), "digamma": (0.3, 4),
    "reciprocal": (0.3, 3), "tan": (-1, 1), "polygamma": (0.5, 4),
}  # fmt: skip
#: Parameters that are numbers in use: None stands for a tensor.
NUMBERS: Final[dict[str, tuple[float | None, ...]]] = {
    "add_scaled": (None, None, 2), "addcmul": (None, None, None, 2), "addcdiv": (None, None, None, 2),
    "clip_numbers": (None, -1, 1), "clamp": (None, -1, 1), "between_backward": (None, None, -1, 1),
    "lerp": (None, None, 0.25), "threshold": (None, 0.5, -2), "threshold_backward": (None, None, 0),
    "leaky_relu": (None, 0.125), "leaky_relu_backward": (None, None, 0.125), "elu": (None, 1.5, 1.125, 0.875),
    "softplus": (None, 1.5, 20), "softplus_backward": (None, None, 1.5, 20), "hardtanh": (None, -1, 1),
    "hardtanh_backward": (None, None, -1, 1),
    "hardshrink": (None, 0.5), "hardshrink_backward": (None, None, 0.5), "softshrink": (None, 0.5),
    "polygamma": (None, 2),
}  # fmt: skip
#: Second operands that must not be zero.
DIVISORS: Final = frozenset({"div", "floor_divide", "trunc_divide", "fmod", "remainder", "addcdiv"})
SHIFTS: Final = frozenset({"bitwise_left_shift", "bitwise_right_shift"})
#: Operators that tell apart few numbers, which random ones would hardly ever be.
FEW: Final[dict[str, tuple[float, ...]]] = {
    **dict.fromkeys(("eq", "ne", "le", "ge", "lt", "gt"), (-1, 0, 1, 2)),
    **dict.fromkeys(("logical_and", "logical_or", "logical_xor", "logical_not"), (0, 0, 1, 2)),
    **dict.fromkeys(("isinf", "isnan", "isfinite"), (math.inf, -math.inf, math.nan, 0, 1, -2)),
}
#: Integer arithmetic that wraps around, and comparisons that it must not confuse.
WRAPPING: Final = frozenset({
    "add", "sub", "mul", "neg", "abs", "maximum", "minimum", "eq", "ne", "lt", "le", "gt", "ge", "bitwise_and", "bitwise_or",
    "bitwise_xor", "bitwise_not", "sign", "relu", "clamp",
})  # fmt: skip
#: Operators that round: halves, and quotients of either sign, tell the ways of rounding apart.
ROUNDING: Final = frozenset(
    {"round", "floor", "ceil", "trunc", "frac", "floor_divide", "trunc_divide", "fmod", "remainder"}
)
#: References that are formulas, not functions of NumPy, and say nothing at infinities.
TAME: Final = frozenset({
    "addcdiv", "addcmul", "add_scaled", "lerp", "elu", "silu", "gelu", "gelu_tanh", "softplus_backward", "logsigmoid_backward",
    "tanh_backward", "sigmoid_backward", "digamma", "polygamma", "erfinv", "lgamma", "floor_divide", "trunc_divide", "remainder",
    "frac", "softshrink", "pow",
})  # fmt: skip
#: Operators whose zeros have a sign that follows from IEEE 754.
SIGNED: Final = frozenset({
    "add", "sub", "mul", "div", "neg", "abs", "sqrt", "floor", "ceil", "trunc", "round", "sin", "tan", "tanh", "asin", "atan",
    "atan2", "sinh", "erf", "expm1", "log1p", "reciprocal",
})  # fmt: skip
HUGE: Final = {"float16": 6e4, "bfloat16": 3e38, "float32": 3e38, "float64": 1e308}
#: Numbers below the smallest normal one.
TINY: Final = {"float16": 6e-6, "bfloat16": 5e-39, "float32": 1e-42, "float64": 1e-310}


def _operand(op: Operator, position: int, draw: Draw, shape: tuple[int, ...]) -> Operand:
    if op.name in FEW:
        choice = [each for each in FEW[op.name] if draw.dtype.category >= 2 or math.isfinite(each)]
        few = draw.rng.choice(choice, shape)
        return draw.of(np.abs(few) if draw.dtype.kind == "u" else few)
    low, high = DOMAIN.get(op.name, (-3, 3))
    if op.name in DIVISORS and position == len(op.parameters) - 1 - (op.name == "addcdiv"):
        found = draw(*shape, low=0.6, high=3)
        return found if draw.dtype.kind in "bu" else draw.of(found.values * np.where(draw.mask(*shape).values, 1, -1))
    if (op.name in SHIFTS and position) or (op.name == "pow" and draw.exact):
        return draw(*shape, low=0.6, high=3)
    return draw(*shape, low=low, high=high)


def _arguments(op: Operator, draw: Draw, *shapes: tuple[int, ...]) -> tuple[Any, ...]:
    """Operands of given shapes, in turn, and the numbers in their places."""
    fixed = NUMBERS.get(op.name, (None,) * len(op.parameters))
    shape = iter(shapes * len(fixed))
    return tuple(
        _operand(op, position, draw, next(shape)) if each is None else _number(each, draw)
        for position, each in enumerate(fixed)
    )


def _number(value: float, draw: Draw) -> float:
    """A number that leaves a tensor of the dtype what it is."""
    if not draw.exact:
        return float(value)
    return abs(round(value)) if draw.dtype.kind in "bu" else round(value)


def _tensors(op: Operator) -> int:
    return NUMBERS.get(op.name, (None,) * len(op.parameters)).count(None)


def _all_pairs(op: Operator, values: Sequence[float], draw: Draw) -> tuple[Any, ...]:
    """Every value against every other; third operands repeat the first."""
    grids = np.meshgrid(values, values, indexing="ij") if _tensors(op) > 1 else [np.asarray(values)]
    operands = iter([draw.of(each.reshape(-1)) for each in (*grids, *grids)])
    fixed = NUMBERS.get(op.name, (None,) * len(op.parameters))
    return tuple(next(operands) if each is None else _number(each, draw) for each in fixed)


def _pointwise(op: Operator, draw: Draw) -> Iterator[tuple[Any, ...]]:
    yield _arguments(op, draw, (3, 5))
    yield _arguments(op, draw, (17,))
    yield _arguments(op, draw, (2, 1031))  # more than a vector, and than one element for each thread
    yield "0-dim", *_arguments(op, draw, ())
    for shape in ((0,), (2, 0, 3)):
        yield "empty", *_arguments(op, draw, shape)
    if _tensors(op) > 1:
        for shapes in (
            ((4, 3), (3,)),
            ((4, 1), (1, 3)),
            ((), (2, 3)),
            ((2, 3), ()),
            ((3,), (2, 1, 3)),
            ((0, 3), (1, 3)),
        ):
            yield "broadcasting", *_arguments(op, draw, *shapes)
    kind, name = draw.dtype.kind, draw.dtype.name
    if kind == "f":
        ordinary = [1.0, -1.0, 0.5, -2.5]
        zeros = ordinary if op.name in DIVISORS | {"pow"} else [0.0, -0.0, *ordinary]
        if op.name in SIGNED:
            yield "signed zero", *_all_pairs(op, zeros, draw)
        if op.name not in TAME:
            yield "NaN", *_all_pairs(op, [math.nan, *ordinary, 0.0], draw)
            yield "infinity", *_all_pairs(op, [math.inf, -math.inf, *ordinary, HUGE[name], -HUGE[name]], draw)
            yield "denormals", *_all_pairs(op, [TINY[name], -TINY[name], *ordinary], draw)
    if kind in "iu" and op.name in WRAPPING:
        info = np.iinfo(draw.dtype.numpy)
        yield "integer overflow", *_all_pairs(op, [int(info.min), int(info.max), int(info.max) - 1, 0, 1, 2], draw)
    if kind in "if" and op.name in ROUNDING:
        halves = [-3.5, -2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 3.5] if kind == "f" else []
        yield "rounding", *_all_pairs(op, [-7, -5, -2, -1, 1, 2, 5, 7, *halves], draw)


for _op in operators.values():
    if _op.kind == "pointwise":
        SAMPLES[_op.name] = partial(_pointwise, _op)


@faults("floor_divide", "trunc_divide", "fmod", "remainder")
def _(draw: Draw) -> Iterator[tuple[Any, ...]]:
    if draw.dtype.kind in "iu":
        yield "a divisor of zero", draw.of([1, 2]), draw.of([1, 0])


# ---------------------------------------------------------------- definitions


@definition("erfinv")
@partial(np.vectorize, otypes=[float])
def _erf_inverse(x: float) -> float:
    if x == 0 or not abs(x) < 1:
        return x if x == 0 else math.copysign(math.inf, x) if abs(x) == 1 else math.nan
    y = NormalDist().inv_cdf((x + 1) / 2) / math.sqrt(2)
    for _ in range(2):  # Newton's steps, which mend what (x + 1) / 2 lost
        y -= (math.erf(y) - x) * math.sqrt(math.pi) / 2 * math.exp(y * y)
    return y


def _hurwitz(order: int, x: Any) -> Any:
    """The sum of (x + k) ** -order over k = 0, 1, ... by Euler and Maclaurin, for positive x."""
    total = sum((x + k) ** -float(order) for k in range(20))
    x = x + 20
    total = total + x ** (1.0 - order) / (order - 1) + x ** -float(order) / 2
    rising, factorial = float(order), 2.0
    for n, bernoulli in enumerate((1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66)):
        total = total + bernoulli * rising / factorial * x ** -(order + 2.0 * n + 1)
        rising *= (order + 2 * n + 1) * (order + 2 * n + 2)
        factorial *= (2 * n + 3) * (2 * n + 4)
    return total


@definition("digamma")
def _digamma(a: Any) -> Any:
    """By the recurrence to where the asymptotic series holds."""
    shift = sum(1 / (a + k) for k in range(20))
    a = a + 20
    series = sum(c * a ** -(2.0 * n + 2) for n, c in enumerate((1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132)))
    return np.log(a) - 1 / (2 * a) - series - shift


@definition("polygamma")
def _polygamma(a: Any, order: Any) -> Any:
    n = int(np.rint(order))
    return _digamma(a) if n == 0 else (-1) ** (n + 1) * math.factorial(n) * _hurwitz(n + 1, a)


@definition("gelu")
def _gelu(a: Any) -> Any:
    return a * np.vectorize(math.erfc, otypes=[float])(-a / math.sqrt(2)) / 2


@definition("gelu_tanh")
def _gelu_tanh(a: Any) -> Any:
    return 0.5 * a * (1 + np.tanh(math.sqrt(2 / math.pi) * (a + 0.044715 * a**3)))
