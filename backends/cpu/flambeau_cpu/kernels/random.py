"""Launchers of random.c and sampling.c."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any, Final

from flambeau.backend import (
    DTYPES,
    Kernel,
    Key,
    ShapeError,
    Tensor,
    bfloat16,
    bool_,
    contiguous,
    dtype,
    empty,
    float16,
    float32,
    float64,
    int64,
)

from .._kernels import ffi, lib
from ..launch import find

_new, _NULL = ffi.new, ffi.NULL
_params: Final = ffi.typeof("int64_t[]")


class Draw:
    """A C routine that fills a dense target; its two parameters are doubles, or integers if ``whole``."""

    predicate = None

    def __init__(self, name: str, whole: bool = False) -> None:
        self.name, self.whole = name, whole

    def build(self, key: Key) -> Callable[..., None] | None:
        kernel = find(self.name, key.dtype)
        if kernel is None:
            return None
        draw, call = lib.fb_draw, lib.fb_call4

        def launch(target: Tensor, a: float, b: float, seed: int, offset: int) -> None:
            draw(kernel, target.geometry.numel, target.memory, seed, offset, a, b)

        def launch_whole(target: Tensor, a: int, b: int, seed: int, offset: int) -> None:
            q = _new(_params, (target.geometry.numel, seed, offset, a, b))
            call(kernel, target.memory, _NULL, _NULL, _NULL, q)

        return launch_whole if self.whole else launch


class Each:
    """A C routine that draws one number for each element of its argument.

    Args:
        name: of the C routine.
        problem: what to say when it finds an argument that it cannot take.
        into: whether the operator gives the target, before the argument.
        dtypes: those it serves, if not all of the C routine's.
    """

    predicate = None

    def __init__(self, name: str, problem: str, into: bool = False, dtypes: Sequence[dtype] = DTYPES) -> None:
        self.name, self.problem, self.into, self.dtypes = name, problem, into, dtypes

    def build(self, key: Key) -> Callable[..., Any] | None:
        kernel = find(self.name, key.dtype)
        if kernel is None or key.dtype not in self.dtypes:
            return None

        def fill(out: Tensor, parameter: Tensor, seed: int, offset: int) -> None:
            q = _new(_params, (out.geometry.numel, seed, offset))
            if lib.fb_call4(kernel, out.memory, parameter.memory, _NULL, _NULL, q):
                raise ShapeError(self.problem)

        def launch(parameter: Any, seed: int, offset: int) -> Tensor:
            out = empty(key, contiguous(parameter.geometry.shape))
            fill(out, parameter.contiguous(), seed, offset)
            return out

        return fill if self.into else launch


def permutation(target: Tensor, seed: int, offset: int) -> None:
    q = _new(_params, (target.geometry.numel, seed, offset))
    kernel = find("randperm", int64)
    lib.fb_call4(kernel, target.memory, _NULL, _NULL, _NULL, q)


_WEIGHTS: Final = {
    1: "probability tensor contains either `inf`, `nan` or element < 0",
    2: "invalid multinomial distribution (sum of probabilities <= 0)",
    3: "invalid multinomial distribution (with replacement=False, not enough non-negative category to sample)",
}


def multinomial(weights: Any, count: int, replacement: bool, seed: int, offset: int) -> Tensor:
    shape = weights.geometry.shape
    rows = shape[0] if len(shape) == 2 else 1
    out = empty(weights.key.of(int64), contiguous((*shape[:-1], count)))
    q = _new(_params, (rows, seed, offset, shape[-1], count, replacement))
    scratch = weights.clone()
    code = lib.fb_call4(find("multinomial", int64), out.memory, scratch.memory, _NULL, _NULL, q)
    if code:
        raise ShapeError(_WEIGHTS[code])
    return out


def bits(number: float) -> int:
    """A double as the integer parameter that C reads it from."""
    return int(struct.unpack("q", struct.pack("d", number))[0])


def dropout(x: Any, probability: float, seed: int, offset: int) -> tuple[Tensor, Tensor]:
    """The kept elements scaled, and which were kept."""
    x = x.contiguous()
    out, mask = empty(x.key, x.geometry), empty(x.key.of(bool_), x.geometry)
    q = _new(
        _params,
        (
            x.geometry.numel,
            seed,
            offset,
            min(round(probability * (1 << 32)), (1 << 32) - 1),
            bits(1 / (1 - probability)),
        ),
    )
    lib.fb_call4(find("dropout", x.key.dtype), out.memory, x.memory, mask.memory, _NULL, q)
    return out, mask


_PROBABILITY: Final = "Expected p_in >= 0 && p_in <= 1 to be true, but a probability is outside [0, 1]."

KERNELS: Final[dict[str, Any]] = {
    "uniform_": Draw("uniform"),
    "normal_": Draw("normal"),
    "exponential_": Draw("exponential"),
    "cauchy_": Draw("cauchy"),
    "geometric_": Draw("geometric"),
    "integers_": Draw("integers", whole=True),
    "bernoulli_number_": Draw("bernoulli", whole=True),
    "bernoulli": Each("bernoulli_each", _PROBABILITY, dtypes=(float32, float64)),
    "bernoulli_each_": Each("bernoulli_each", _PROBABILITY, into=True),
    "poisson": Each("poisson", "invalid Poisson rate, expected rate to be non-negative"),
    "permutation_": Kernel(permutation, (int64,)),
    "drop": Kernel(dropout, (float16, bfloat16, float32, float64)),
    "multinomial": Kernel(multinomial, (float64,)),
}
