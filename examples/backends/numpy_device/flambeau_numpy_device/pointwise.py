"""One result for each element, of operands that broadcast."""

import numpy as np

from flambeau.backend import ShapeError, bool_, pointwise

from .dtypes import ALL, FLOATS, INTEGERS, NUMBERS


def _divisible(b):
    """A divisor; whole numbers are not divided by zero."""
    if b.dtype.kind in "iu" and not np.all(b):
        raise ShapeError("ZeroDivisionError: a whole number is divided by zero.\nMask the zeros first, with where().")
    return b


def _trunc_divide(a, b):
    quotient = (
        np.trunc(a / b)
        if a.dtype.kind == "f"
        else np.floor_divide(np.abs(a), np.abs(_divisible(b))) * np.sign(a) * np.sign(b)
    )
    return quotient.astype(a.dtype)


def _power(a, exponent):
    """Whole numbers to a negative power are 0, but for 1 and -1."""
    if a.dtype.kind not in "iu":
        return np.power(a, exponent)
    below = exponent < 0
    return np.where(
        below, np.where(np.abs(a) == 1, np.power(a, exponent & 1), 0), np.power(a, np.where(below, 0, exponent))
    )


def _between(a, low, high):
    return np.minimum(np.maximum(a, low), high)


def _softplus(a, beta, limit):
    return np.where(a * beta > limit, a, np.log1p(np.exp(np.minimum(a * beta, limit))) / beta)


def _softplus_backward(upstream, a, beta, limit):
    return np.where(a * beta > limit, upstream, upstream / (1 + np.exp(-a * beta)))


def _logsigmoid(a):
    return np.minimum(a, 0) - np.log1p(np.exp(-np.abs(a)))


def _elu(a, negative, scale, input_scale):
    return np.where(a > 0, a * scale, np.expm1(np.minimum(a, 0) * input_scale) * negative)


ANY = {"add": np.add, "mul": np.multiply, "maximum": np.maximum, "minimum": np.minimum}
TRUTHS = {
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
    "logical_and": np.logical_and, "logical_or": np.logical_or, "logical_xor": np.logical_xor,
    "logical_not": np.logical_not,
}  # fmt: skip
OF_NUMBERS = {
    "sub": np.subtract, "neg": np.negative, "abs": np.abs, "pow": _power, "trunc_divide": _trunc_divide,
    "floor_divide": lambda a, b: np.floor_divide(a, _divisible(b)),
    "remainder": lambda a, b: np.remainder(a, _divisible(b)),
    "fmod": lambda a, b: np.fmod(a, _divisible(b)),
    "sign": lambda a: np.where(a != a, 0, np.sign(a)),
    "clamp": _between, "clip_numbers": _between,
    "relu": lambda a: np.maximum(a, 0),
    "threshold": lambda a, limit, value: np.where(a <= limit, value, a),
    "threshold_backward": lambda upstream, a, limit: np.where(a <= limit, 0, upstream),
    "hardtanh_backward": lambda upstream, a, low, high: np.where((a > low) & (a < high), upstream, 0),
    "between_backward": lambda upstream, a, low, high: np.where((a >= low) & (a <= high), upstream, 0),
}  # fmt: skip
BITS = {
    "bitwise_and": np.bitwise_and,
    "bitwise_or": np.bitwise_or,
    "bitwise_xor": np.bitwise_xor,
    "bitwise_not": np.invert,
}
OF_FLOATS = {
    "div": np.divide, "sqrt": np.sqrt, "exp": np.exp, "expm1": np.expm1, "log": np.log, "log1p": np.log1p, "log2": np.log2,
    "log10": np.log10, "sin": np.sin, "cos": np.cos, "tan": np.tan, "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan,
    "atan2": np.arctan2, "sinh": np.sinh, "cosh": np.cosh, "tanh": np.tanh, "floor": np.floor, "ceil": np.ceil,
    "trunc": np.trunc, "round": np.rint, "frac": lambda a: a - np.trunc(a), "elu": _elu, "softplus": _softplus,
    "softplus_backward": _softplus_backward, "logsigmoid": _logsigmoid,
    "logsigmoid_backward": lambda upstream, a: upstream / (1 + np.exp(a)),
    "leaky_relu": lambda a, slope: np.where(a > 0, a, a * slope),
    "leaky_relu_backward": lambda upstream, a, slope: np.where(a > 0, upstream, upstream * slope),
    "lerp": lambda a, end, weight: np.where(np.abs(weight) < 0.5, a + weight * (end - a), end - (end - a) * (1 - weight)),
}  # fmt: skip

KERNELS = {
    **{name: pointwise(function, ALL) for name, function in ANY.items()},
    **{name: pointwise(function, ALL, result=bool_) for name, function in TRUTHS.items()},
    **{name: pointwise(function, NUMBERS) for name, function in OF_NUMBERS.items()},
    **{name: pointwise(function, (bool_, *INTEGERS)) for name, function in BITS.items()},
    **{name: pointwise(function, FLOATS) for name, function in OF_FLOATS.items()},
}
