"""Random tensors, and filling tensors with random numbers.

Kernels that draw take the seed and the first block of a stream; see generator.py.
Their targets are dense, and the order in memory is the order of drawing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np

from ..autograd.grad_mode import mode, no_grad
from ..autograd.node import record
from ..dispatch.operator import Declared, composite, primitive
from ..dispatch.pointwise import finish_out
from ..dtype import bool_, dtype as Dtype, float32, float64, int64
from ..errors import ArgumentTypeError, DtypeError, ShapeError, shown
from ..generator import Generator, chosen, default_generators
from ..geometry import broadcast_shapes, contiguous
from ..key import Key
from ..layout import layout as Layout
from ..tensor import Tensor, empty as allocate, number_of
from .creation import _geometry_like, _key_like, finish, key_for, store
from .views import sizes

__all__ = [
    "bernoulli", "bernoulli_", "cauchy_", "exponential_", "geometric_", "log_normal_", "multinomial", "normal", "normal_",
    "poisson", "rand", "rand_like", "randint", "randint_like", "randn", "randn_like", "randperm", "random_", "uniform_",
]  # fmt: skip


def fill_with(draw: Declared, self: Tensor, a: Any, b: Any, generator: Generator | None) -> Tensor:
    """Run a drawing operator on a target of any strides."""
    if not self.geometry.dense:
        fresh = allocate(self.key, contiguous(self.shape))
        fill_with(draw, fresh, a, b, generator)
        return cast(Tensor, cast(Any, self).copy_(fresh))
    seed, offset = chosen(generator, self.key.device).reserve(self.geometry.numel)
    return cast(Tensor, draw.run(self, a, b, seed, offset))


def _zero(grad: Any) -> Any:
    return grad.new_zeros(grad.shape)


def _limits(named: dict[str, Any], low: Any, high: Any, name: str) -> tuple[Any, Any]:
    """``from`` and ``to``, the first of which Python cannot spell as a parameter."""
    low = named.pop("from", low)
    if named:
        raise ArgumentTypeError(f"{name}() got an unexpected keyword argument {next(iter(named))!r}")
    return low, high


@primitive("self | low high seed offset", mutates=True, namespaces=())
def uniform_(
    self: Tensor, low: float = 0, to: float = 1, *, generator: Generator | None = None, **named: Any
) -> Tensor:
    """Fill with numbers drawn evenly from [low, to).

    Raises:
        RuntimeError: ``low`` exceeds ``to``.
    """
    low, to = _limits(named, low, to, "uniform_")
    if not low <= to:
        raise ShapeError(f"uniform_ expects to return a [from, to) range, but found from={low} > to={to}")
    return fill_with(uniform_, self, float(low), float(to), generator)


@primitive("self | mean std seed offset", mutates=True, namespaces=())
def normal_(self: Tensor, mean: float = 0, std: float = 1, *, generator: Generator | None = None) -> Tensor:
    """Fill with normally distributed numbers.

    Raises:
        RuntimeError: ``std`` is negative.
    """
    if not std >= 0:
        raise ShapeError(f"normal expects std >= 0.0, but found std {std}")
    return fill_with(normal_, self, float(mean), float(std), generator)


@primitive("self | lambd unused seed offset", mutates=True, namespaces=())
def exponential_(self: Tensor, lambd: float = 1, *, generator: Generator | None = None) -> Tensor:
    """Fill with exponentially distributed numbers of rate ``lambd``.

    Raises:
        RuntimeError: the rate is not positive.
    """
    if not lambd > 0:
        raise ShapeError(f"exponential_ expects lambda > 0.0, but found lambda={lambd}")
    return fill_with(exponential_, self, float(lambd), 0.0, generator)


@primitive("self | median sigma seed offset", mutates=True, namespaces=())
def cauchy_(self: Tensor, median: float = 0, sigma: float = 1, *, generator: Generator | None = None) -> Tensor:
    """Fill with Cauchy distributed numbers.

    Raises:
        RuntimeError: ``sigma`` is not positive.
    """
    if not sigma > 0:
        raise ShapeError(f"cauchy_ expects sigma > 0.0, but found sigma={sigma}")
    return fill_with(cauchy_, self, float(median), float(sigma), generator)


@primitive("self | scale unused seed offset", mutates=True, namespaces=())
def geometric_(self: Tensor, p: float, *, generator: Generator | None = None) -> Tensor:
    """Fill with the number of trials until one of probability ``p`` succeeds: 1, 2, ...

    Raises:
        RuntimeError: ``p`` is not strictly between 0 and 1.
    """
    if not 0 < p < 1:
        raise ShapeError(f"geometric_ expects p to be in (0, 1), but got p={p}")
    return fill_with(geometric_, self, 1 / math.log1p(-p), 0.0, generator)


@composite(namespaces=())
def log_normal_(self: Tensor, mean: float = 1, std: float = 2, *, generator: Generator | None = None) -> Tensor:
    """Fill with numbers whose logarithm is normally distributed.

    Raises:
        RuntimeError: ``std`` is not positive.
    """
    if not std > 0:
        raise ShapeError(f"log_normal_ expects std > 0.0, but found std={std}")
    fresh = allocate(self.key, contiguous(self.shape))
    fill_with(normal_, fresh, float(mean), float(std), generator)
    return cast(Tensor, cast(Any, self).copy_(cast(Any, fresh).exp_()))


@primitive("self | low range seed offset", name="integers_", mutates=True, method=False, namespaces=())
def integers_(self: Tensor, low: int, high: int, generator: Generator | None = None) -> Tensor:
    """Fill with whole numbers drawn evenly from [low, high)."""
    span = high - low
    return fill_with(
        integers_, self, low, 0 if span == 1 << 64 else span if span < 1 << 63 else span - (1 << 64), generator
    )


@primitive("self | odds unused seed offset", name="bernoulli_number_", mutates=True, method=False, namespaces=())
def bernoulli_number_(self: Tensor, p: float, generator: Generator | None = None) -> Tensor:
    """Fill with ones with probability ``p``, else zeros; the kernel takes it in units of 2**-32."""
    return fill_with(bernoulli_number_, self, round(p * (1 << 32)), 0, generator)


@primitive("self p | seed offset", name="bernoulli_each_", mutates=True, method=False, namespaces=())
def bernoulli_each_(self: Tensor, p: Tensor, generator: Generator | None = None) -> Tensor:
    """Fill with ones, each with the probability that ``p`` has there (same shape, both contiguous)."""
    return cast(Tensor, bernoulli_each_.run(self, p, *chosen(generator, self.key.device).reserve(self.geometry.numel)))


for _each in (uniform_, normal_, exponential_, cauchy_, geometric_, integers_, bernoulli_number_):
    _each.gradient(self=_zero)
bernoulli_each_.gradient(self=_zero, p=_zero)


def _range_of(dtype: Dtype) -> tuple[int, int]:
    """The whole numbers that ``random_`` draws from if it is not told: [low, high)."""
    if dtype is bool_:
        return 0, 2
    if dtype.category == 1:
        return 0, int(np.iinfo(dtype.numpy).max) + 1
    return 0, {"float16": 2049, "bfloat16": 257, "float32": (1 << 24) + 1}.get(dtype.name, (1 << 53) + 1)


def _whole(limit: Any) -> int:
    """A limit, a number or a tensor of one element, as an int."""
    return cast(int, number_of(int64, cast(Any, limit).item() if isinstance(limit, Tensor) else limit))


def _check_range(low: int, high: int, dtype: Dtype) -> None:
    if low >= high:
        raise ShapeError(f"random_ expects 'from' to be less than 'to', but got from={low} >= to={high}")
    limits = np.iinfo(dtype.numpy if 0 < dtype.category < 2 else np.int64)
    least, most = (0, 1) if dtype is bool_ else (int(limits.min), int(limits.max))
    for name, value in (("from", low), ("to - 1", high - 1)):
        if not least <= value <= most:
            raise ShapeError(f"{name} is out of bounds for {dtype.name}: expected [{least}, {most}], got {value}.")


@composite(namespaces=())
def random_(
    self: Tensor, low: int = 0, to: int | None = None, *, generator: Generator | None = None, **named: Any
) -> Tensor:
    """Fill with whole numbers drawn evenly from [low, to): ``random_()``, ``random_(to)`` or ``random_(low, to)``.

    Without limits: all non-negative numbers of an integer dtype, or those a floating-point dtype holds exactly.

    Raises:
        RuntimeError: the range is empty, or the dtype cannot hold it.
    """
    limited = "from" in named or low != 0
    low, to = _limits(named, low, to, "random_")
    if to is None:
        low, to = (0, low) if limited else _range_of(self.key.dtype)
    low, to = _whole(low), _whole(to)
    _check_range(low, to, self.key.dtype)
    return cast(Tensor, integers_(self, low, to, generator))


@composite(namespaces=())
def bernoulli_(self: Tensor, p: Any = 0.5, *, generator: Generator | None = None) -> Tensor:
    """Fill with ones with probability ``p`` (a number, or a tensor that broadcasts to this shape), else zeros.

    Raises:
        RuntimeError: a probability is outside [0, 1].
    """
    if not isinstance(p, Tensor):
        if not 0 <= p <= 1:
            raise ShapeError(f"bernoulli_ expects p to be in [0, 1], but got p={p}")
        return cast(Tensor, bernoulli_number_(self, p, generator))
    if p.key.dtype.category != 2:
        raise DtypeError(f"bernoulli_ expects floating-point probabilities, got a {p.dtype.name} tensor.")
    odds = cast(Any, p).detach().to(_odds_dtype(self.key)).expand(self.shape).contiguous()
    fresh = allocate(self.key, contiguous(self.shape))  # a bad probability must not leave the target half-written
    return cast(Tensor, cast(Any, self).copy_(bernoulli_each_(fresh, odds, generator)))


def _odds_dtype(key: Key) -> Dtype:
    """The dtype in which kernels read probabilities, for targets of a key."""
    return float64 if key.dtype in (float64, int64) else float32


@primitive("self | seed offset", name="bernoulli")
def bernoulli(
    self: Tensor, p: float | None = None, *, generator: Generator | None = None, out: Tensor | None = None
) -> Tensor:
    """Ones and zeros: each 1 with the probability that ``self`` has there, or ``p`` if given.

    Raises:
        RuntimeError: a probability is outside [0, 1].
    """
    if out is not None:
        return finish_out("bernoulli", out, (self,), lambda: cast(Tensor, bernoulli(self, p, generator=generator)))
    if p is not None:
        fresh = allocate(self.key, contiguous(self.shape))
        return cast(Tensor, bernoulli_(fresh, p, generator=generator))
    if self.key.dtype.category != 2:
        raise DtypeError(f"bernoulli expects floating-point probabilities, got a {self.dtype.name} tensor.")
    if self.key.dtype.itemsize < 4:
        return cast(Tensor, bernoulli_(allocate(self.key, contiguous(self.shape)), self, generator=generator))
    seed, offset = chosen(generator, self.key.device).reserve(self.geometry.numel)
    return cast(Tensor, bernoulli.run(self, seed, offset))


bernoulli.gradient(self=_zero)


@primitive("self | seed offset")
def poisson(self: Tensor, generator: Generator | None = None) -> Tensor:
    """Poisson distributed numbers, each with the rate that ``self`` has there.

    Raises:
        RuntimeError: a rate is negative.
    """
    seed, offset = chosen(generator, self.key.device).reserve(2 * self.geometry.numel)
    return cast(Tensor, poisson.run(self, seed, offset))


poisson.gradient(self=_zero)


@primitive("self | num_samples replacement seed offset")
def multinomial(
    self: Tensor,
    num_samples: int,
    replacement: bool = False,
    *,
    generator: Generator | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """Indices drawn with the probabilities (or weights) in each row.

    Args:
        num_samples: how many to draw from each row.
        replacement: whether one index may come twice.

    Returns:
        An int64 tensor of shape ``(num_samples,)`` or ``(rows, num_samples)``.

    Raises:
        RuntimeError: a weight is negative, infinite or NaN, a row sums to 0, or there are too few to draw from.
    """
    if out is not None:
        if isinstance(out, Tensor) and out.key.dtype is not int64:
            raise DtypeError(f"multinomial expects Long tensor out, got: {out.dtype.name}")
        return finish_out(
            "multinomial",
            out,
            (self,),
            lambda: cast(Tensor, multinomial(self, num_samples, replacement, generator=generator)),
        )
    if not 1 <= self.geometry.ndim <= 2:
        raise ShapeError(f"prob_dist must be 1 or 2 dim, got shape {list(self.shape)}.")
    if self.key.dtype.category != 2:
        raise DtypeError(f"multinomial only supports floating-point dtypes for input, got: {self.dtype.name}")
    if num_samples <= 0:
        raise ShapeError(f"cannot sample n_sample <= 0 samples, got {num_samples}.")
    if not replacement and num_samples > self.shape[-1]:
        raise ShapeError(
            f"cannot sample n_sample > prob_dist.size(-1) samples without replacement: {num_samples} of {self.shape[-1]}."
        )
    rows = self.shape[0] if self.geometry.ndim == 2 else 1
    seed, offset = chosen(generator, self.key.device).reserve(2 * rows)
    return cast(
        Tensor,
        multinomial.run(cast(Any, self).detach().to(float64).contiguous(), num_samples, replacement, seed, offset),
    )


multinomial.nondifferentiable()


# ---------------------------------------------------------------- factories


def _drawn(draw: Declared, a: float, b: float, doc: str, name: str) -> Callable[..., Tensor]:
    table, resolve = draw.op.table, draw.op.resolve

    def make_random(
        *size: Any,
        generator: Generator | None = None,
        out: Tensor | None = None,
        dtype: Dtype | None = None,
        layout: Layout | None = None,
        device: Any = None,
        requires_grad: bool = False,
        pin_memory: bool = False,
    ) -> Tensor:
        if out is not None:
            with no_grad():
                fresh = fill_with(draw, allocate(out.key, contiguous(sizes(size))), a, b, generator)
                return store(out, fresh, dtype, name)
        key = key_for(dtype, device, layout)
        result = allocate(key, contiguous(sizes(size)))
        if generator is None:
            generator = default_generators[key.device]
        else:
            chosen(generator, key.device)
        seed, offset = generator.reserve(result.geometry.numel)
        (table.get(key) or resolve(key))(result, a, b, seed, offset)
        return finish(result, requires_grad, pin_memory) if requires_grad or pin_memory else result

    make_random.__name__ = make_random.__qualname__ = name
    make_random.__doc__ = doc
    return make_random


rand = _drawn(
    uniform_, 0.0, 1.0, "Numbers drawn evenly from [0, 1); arguments as for :func:`empty`, and a generator.", "rand"
)
randn = _drawn(
    normal_, 0.0, 1.0, "Normally distributed numbers; arguments as for :func:`empty`, and a generator.", "randn"
)


def _like(draw: Declared, a: float, b: float, doc: str, name: str) -> Callable[..., Tensor]:
    def make_like(
        self: Tensor, *, dtype: Dtype | None = None, layout: Layout | None = None, device: Any = None,
        requires_grad: bool = False, pin_memory: bool = False, memory_format: Any = None, generator: Generator | None = None,
    ) -> Tensor:  # fmt: skip
        result = allocate(_key_like(self, dtype, device, layout), _geometry_like(self))
        fill_with(draw, result, a, b, generator)
        result.shared = None
        return finish(result, requires_grad, pin_memory)

    make_like.__name__ = make_like.__qualname__ = name
    make_like.__doc__ = doc
    return make_like


rand_like = _like(uniform_, 0.0, 1.0, "Like :func:`rand`, with the shape, dtype and device of a tensor.", "rand_like")
randn_like = _like(normal_, 0.0, 1.0, "Like :func:`randn`, with the shape, dtype and device of a tensor.", "randn_like")


def randint(
    *args: Any, low: int | None = None, high: int | None = None, size: Sequence[int] | None = None,
    generator: Generator | None = None, out: Tensor | None = None, dtype: Dtype | None = None,
    layout: Layout | None = None, device: Any = None, requires_grad: bool = False, pin_memory: bool = False,
) -> Tensor:  # fmt: skip
    """Whole numbers drawn evenly: ``randint(high, size)`` from [0, high), ``randint(low, high, size)`` from [low, high).

    Args:
        dtype: int64 if not given.

    Raises:
        RuntimeError: the range is empty, or the dtype cannot hold it.
        TypeError: arguments are missing.
    """
    given = list(args)
    if size is None and given and not isinstance(given[-1], int):
        size = given.pop()
    if high is None and given:
        high = given.pop()
    if low is None:
        low = given.pop() if given else 0
    if high is None or size is None or given:
        raise ArgumentTypeError(f"randint() expects (high, size) or (low, high, size), got {shown(args)}.")
    shape = sizes((size,))
    key = key_for(dtype or int64, device, layout) if out is None else out.key
    result = allocate(key, contiguous(shape))
    low, high = _whole(low), _whole(high)
    _check_range(low, high, result.key.dtype)
    with no_grad():
        integers_(result, low, high, generator)
    if out is not None:
        return store(out, result, dtype, "randint")
    result.shared = None
    return finish(result, requires_grad, pin_memory)


def randint_like(
    self: Tensor, low: Any = 0, high: Any = None, *, dtype: Dtype | None = None, layout: Layout | None = None, device: Any = None,
    requires_grad: bool = False, pin_memory: bool = False, memory_format: Any = None, generator: Generator | None = None,
) -> Tensor:  # fmt: skip
    """Like :func:`randint`, with the shape, dtype and device of a tensor: ``(self, high)`` or ``(self, low, high)``."""
    low, high = (0, low) if high is None else (low, high)
    low, high = _whole(low), _whole(high)
    result = allocate(_key_like(self, dtype, device, layout), _geometry_like(self))
    _check_range(low, high, result.key.dtype)
    integers_(result, low, high, generator)
    result.shared = None
    return finish(result, requires_grad, pin_memory)


@primitive("self | seed offset", name="permutation_", mutates=True, method=False, namespaces=())
def permutation_(self: Tensor, generator: Generator | None = None) -> Tensor:
    """Fill a vector of int64 with 0, 1, ... in random order."""
    return cast(Tensor, permutation_.run(self, *chosen(generator, self.key.device).reserve(self.geometry.numel)))


permutation_.nondifferentiable()


def randperm(
    n: int, *, generator: Generator | None = None, out: Tensor | None = None, dtype: Dtype | None = None,
    layout: Layout | None = None, device: Any = None, requires_grad: bool = False, pin_memory: bool = False,
) -> Tensor:  # fmt: skip
    """The numbers 0 ... n - 1 in random order.

    Args:
        dtype: int64 if not given.

    Raises:
        RuntimeError: ``n`` is negative, or the dtype cannot hold ``n - 1``.
    """
    if n < 0:
        raise ShapeError(f"n must be non-negative, got {n}")
    wanted = dtype or (int64 if out is None else out.key.dtype)
    if wanted.is_complex:
        raise DtypeError(f"randperm() gives whole numbers, got {wanted.name}.")
    most = (
        (1 << {"float16": 11, "bfloat16": 8, "float32": 24}.get(wanted.name, 53))
        if wanted.category == 2
        else (1 if wanted is bool_ else int(np.iinfo(wanted.numpy).max))
    )
    if n - 1 > most:
        raise ShapeError(
            f"n is too large for result tensor type: {wanted.name} holds whole numbers up to {most}, got n = {n}."
        )
    result = allocate(key_for(int64, device if out is None else out.device, layout), contiguous((n,)))
    permutation_(result, generator)
    result.shared = None
    if wanted is not int64:
        result = cast(Any, result).to(wanted)
    if out is not None:
        return store(out, result, dtype, "randperm")
    return finish(result, requires_grad, pin_memory)


@primitive("mean std |", method=False)
def normal(
    mean: Any, std: Any = 1.0, size: Any = None, *, generator: Generator | None = None, out: Tensor | None = None,
    dtype: Dtype | None = None, layout: Layout | None = None, device: Any = None, requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:  # fmt: skip
    """Normally distributed numbers.

    Args:
        mean: a tensor or a number.
        std: a tensor or a number; tensors broadcast together.
        size: the shape, if both are numbers.

    Raises:
        RuntimeError: a deviation is negative.
    """
    tensors = [each for each in (mean, std) if isinstance(each, Tensor)]
    if not tensors:
        if size is None:
            raise ArgumentTypeError(
                "normal() expects a size if mean and std are numbers: normal(0.0, 1.0, size=(2, 3))."
            )
        if not std >= 0:
            raise ShapeError(f"normal expects std >= 0.0, but found std {std}")
        shape = sizes((size,))
        result = allocate(key_for(dtype, device, layout) if out is None else out.key, contiguous(shape))
        with no_grad():
            fill_with(normal_, result, float(mean), float(std), generator)
        return finish(result, requires_grad, pin_memory) if out is None else store(out, result, dtype, "normal")
    if out is not None:
        return finish_out("normal", out, tensors, lambda: cast(Tensor, normal(mean, std, generator=generator)))
    with no_grad():
        if isinstance(std, Tensor):
            if std.key.dtype.is_complex:
                raise DtypeError("normal expects standard deviation to be non-complex")
            if std.geometry.numel and bool(cast(Any, std < 0).any()):  # type: ignore[operator]
                raise ShapeError("normal expects all elements of std >= 0.0")
        elif not std >= 0:
            raise ShapeError(f"normal expects std >= 0.0, but found std {std}")
        shape = broadcast_shapes(*[each.shape for each in tensors])
        result = allocate(tensors[0].key, contiguous(shape))
        fill_with(normal_, result, 0.0, 1.0, generator)
        result = cast(Any, result) * std + mean
    if mode.enabled:
        record(normal.op, (mean, std), result)
    return cast(Tensor, result)


normal.gradient(mean=_zero, std=_zero)
