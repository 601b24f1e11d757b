"""Pooling over windows of one to three dimensions, and unpooling.

Maxima come with the flat index of each winner in its plane; three small primitives move
values along such indices (``plane_add``, ``plane_put``, ``plane_get``) and are the gradients
of maxima and of unpooling, and of each other.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final, cast

from ..dispatch.operator import composite, primitive
from ..dtype import int64
from ..errors import ArgumentError, ArgumentTypeError, DtypeError, ShapeError, shown
from ..tensor import Tensor
from .convolution import Ints, per_dimension
from .views import declared

__all__ = [
    "adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d", "adaptive_max_pool1d", "adaptive_max_pool2d",
    "adaptive_max_pool3d", "avg_pool1d", "avg_pool2d", "avg_pool3d", "lp_pool1d", "lp_pool2d", "lp_pool3d",
    "max_pool1d", "max_pool2d", "max_pool3d", "max_unpool1d", "max_unpool2d", "max_unpool3d",
]  # fmt: skip

Pair = tuple[Tensor, Tensor]


# ---------------------------------------------------------------- moves by index


@primitive("self indices | size", namespaces=(), method=False)
def plane_add(self: Tensor, indices: Tensor, size: tuple[int, ...]) -> Tensor:
    """Planes of ``size`` in which each element is the sum of those that point to it."""
    return cast(Tensor, plane_add.run(self, indices, size))


@primitive("self indices | size", namespaces=(), method=False)
def plane_put(self: Tensor, indices: Tensor, size: tuple[int, ...]) -> Tensor:
    """Planes of ``size`` in which each element is the last of those that point to it, or 0."""
    return cast(Tensor, plane_put.run(self, indices, size))


@primitive("self indices | dims", namespaces=(), method=False)
def plane_get(self: Tensor, indices: Tensor, dims: int) -> Tensor:
    """The elements that indices into planes (the last ``dims`` dimensions of ``self``) name."""
    return cast(Tensor, plane_get.run(self, indices, dims))


plane_add.gradient(self=lambda grad, indices, size: plane_get(grad, indices, len(size)))
plane_put.gradient(self=lambda grad, indices, size: plane_get(grad, indices, len(size)))
plane_get.gradient(self=lambda grad, self_shape, indices, dims: plane_add(grad, indices, tuple(self_shape[-dims:])))


def _flat(indices: Any, dims: int) -> Any:
    return indices.reshape((*indices.shape[: indices.ndim - dims], math.prod(indices.shape[indices.ndim - dims :])))


@plane_add.composite
def _plane_add(self: Any, indices: Any, size: tuple[int, ...]) -> Any:
    dims = len(size)
    lead = tuple(self.shape[:-dims])
    zeros = self.new_zeros((*lead, math.prod(size)))
    return zeros.scatter_add(-1, _flat(indices, dims), _flat(self, dims)).reshape(lead + size)


@plane_put.composite
def _plane_put(self: Any, indices: Any, size: tuple[int, ...]) -> Any:
    dims = len(size)
    lead = tuple(self.shape[:-dims])
    zeros = self.new_zeros((*lead, math.prod(size)))
    return zeros.scatter(-1, _flat(indices, dims), _flat(self, dims)).reshape(lead + size)


@plane_get.composite
def _plane_get(self: Any, indices: Any, dims: int) -> Any:
    return _flat(self, dims).gather(-1, _flat(indices, dims)).reshape(indices.shape)


# ---------------------------------------------------------------- windows


@primitive("self | size kernel_size stride padding dilation", namespaces=(), method=False)
def max_pool(self: Tensor, *geometry: Any) -> Pair:
    """Maxima of windows and their indices; nothing is checked.  NaN counts as the largest."""
    return cast(Pair, max_pool.run(self, *geometry))


@primitive("self | size", namespaces=(), method=False)
def adaptive_max_pool(self: Tensor, size: tuple[int, ...]) -> Pair:
    """Maxima, and their indices, of windows that divide each plane evenly; nothing is checked."""
    return cast(Pair, adaptive_max_pool.run(self, size))


def _to_winners(grad: Any, others: Any, self_shape: Sequence[int], size: Sequence[int]) -> Any:
    return plane_add(grad, others[0], tuple(self_shape[-len(size) :]))


max_pool.gradient(self=_to_winners)
adaptive_max_pool.gradient(self=_to_winners)


@primitive("self | size kernel_size stride padding count_include_pad divisor", namespaces=(), method=False)
def avg_pool(self: Tensor, *geometry: Any) -> Tensor:
    """Averages of windows; nothing is checked.  ``divisor`` 0: the number of elements in the window."""
    return cast(Tensor, avg_pool.run(self, *geometry))


@primitive("output | size kernel_size stride padding count_include_pad divisor", namespaces=(), method=False)
def avg_pool_backward(output: Tensor, *geometry: Any) -> Tensor:
    """The adjoint of ``avg_pool`` for planes of ``size``."""
    return cast(Tensor, avg_pool_backward.run(output, *geometry))


avg_pool.gradient(
    self=lambda grad, self_shape, kernel_size, stride, padding, count_include_pad, divisor: avg_pool_backward(
        grad, tuple(self_shape[-len(kernel_size) :]), kernel_size, stride, padding, count_include_pad, divisor
    )
)
avg_pool_backward.gradient(
    output=lambda grad, output_shape, kernel_size, stride, padding, count_include_pad, divisor: avg_pool(
        grad, tuple(output_shape[-len(kernel_size) :]), kernel_size, stride, padding, count_include_pad, divisor
    )
)


@primitive("self | size", namespaces=(), method=False)
def adaptive_avg_pool(self: Tensor, size: tuple[int, ...]) -> Tensor:
    """Averages of windows that divide each plane evenly; nothing is checked."""
    return cast(Tensor, adaptive_avg_pool.run(self, size))


@primitive("output | size", namespaces=(), method=False)
def adaptive_avg_pool_backward(output: Tensor, size: tuple[int, ...]) -> Tensor:
    """The adjoint of ``adaptive_avg_pool`` for planes of ``size``."""
    return cast(Tensor, adaptive_avg_pool_backward.run(output, size))


adaptive_avg_pool.gradient(
    self=lambda grad, self_shape, size: adaptive_avg_pool_backward(grad, tuple(self_shape[-len(size) :]))
)
adaptive_avg_pool_backward.gradient(
    output=lambda grad, output_shape, size: adaptive_avg_pool(grad, tuple(output_shape[-len(size) :]))
)


# ---------------------------------------------------------------- checking


def _check_input(name: str, input: Any, dims: int) -> None:
    if not isinstance(input, Tensor):
        raise ArgumentTypeError(f"{name}(): input must be a Tensor, got {type(input).__name__}.")
    shape = input.geometry.shape
    if len(shape) not in (dims + 1, dims + 2) or not all(shape[len(shape) - dims - 1 :]):
        raise ShapeError(
            f"{name}: expected {dims + 1}D or {dims + 2}D (batch mode) tensor with optional 0 dim batch size "
            "for input, "
            f"but got {list(shape)}."
        )


def _windows(
    name: str, input: Tensor, dims: int, kernel_size: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool
) -> tuple[tuple[int, ...], ...]:
    """Output size, kernel, stride, padding and dilation, checked."""
    _check_input(name, input, dims)
    kernel = per_dimension(kernel_size, dims, "kernel_size", name)
    step = kernel if stride is None or stride == () or stride == [] else per_dimension(stride, dims, "stride", name)
    pad, wide = per_dimension(padding, dims, "padding", name), per_dimension(dilation, dims, "dilation", name)
    for what, values in (("kernel size", kernel), ("stride", step), ("dilation", wide)):
        if min(values) < 1:
            raise ShapeError(f"{name}: {what} should be greater than zero, but got {list(values)}.")
    if min(pad) < 0:
        raise ShapeError(f"{name}: pad must be non-negative, but got pad: {list(pad)}.")
    if any(p > (d * (k - 1) + 1) // 2 for p, k, d in zip(pad, kernel, wide, strict=True)):
        raise ShapeError(
            f"{name}: pad should be at most half of effective kernel size, but got pad={list(pad)}, "
            f"kernel_size={list(kernel)} and dilation={list(wide)}."
        )
    shape = input.geometry.shape[-dims:]
    size = []
    for length, k, s, p, d in zip(shape, kernel, step, pad, wide, strict=True):
        count = (length + 2 * p - d * (k - 1) - 1 + (s - 1 if ceil_mode else 0)) // s + 1
        if ceil_mode and (count - 1) * s >= length + p:  # the last window would begin in the padding
            count -= 1
        size.append(count)
    if min(size) < 1:
        raise ShapeError(
            f"{name}: given input size {list(input.geometry.shape)}, calculated output size: {size}. Output "
            "size is too small."
        )
    if max(*kernel, *step, *pad, *wide) <= min(shape):
        return tuple(size), kernel, step, pad, wide
    # What a window, a step or a gap has beyond the padded input changes nothing, and kernels count with it.
    whole = [length + 2 * p for length, p in zip(shape, pad)]
    if max(whole) >= 2**31:
        raise ShapeError(f"{name}: the padded input has size {whole}; sizes stay below 2**31.")
    wide, step = (tuple(map(min, each, whole)) for each in (wide, step))
    kernel = tuple(min(k, (length - 1) // d + 1) for k, length, d in zip(kernel, whole, wide))
    return tuple(size), kernel, step, pad, wide


def _adaptive_size(name: str, input: Tensor, dims: int, output_size: Any) -> tuple[int, ...]:
    if isinstance(output_size, (tuple, list)) and isinstance(input, Tensor) and input.ndim <= len(output_size):
        raise ArgumentError(
            f"{name}: input dimension should be at least {len(output_size) + 1}, got {list(input.shape)}."
        )
    _check_input(name, input, dims)
    given = (output_size,) * dims if output_size is None or isinstance(output_size, int) else tuple(output_size)
    if len(given) == 1:
        given *= dims
    if len(given) != dims:
        raise ShapeError(f"{name}: output_size must have {dims} elements, got {shown(list(given))}.")
    size = tuple(
        length if each is None else each for each, length in zip(given, input.geometry.shape[-dims:], strict=True)
    )
    if min(size) < 0:
        raise ShapeError(
            f"{name}: elements of output_size must be greater than or equal to 0, but received {list(size)}."
        )
    return size


# ---------------------------------------------------------------- public forms

_AXES: Final = ("depth", "height", "width")
_PLACES: Final = ("", "nn.functional")
_MAX: Final = """The maxima of windows over {dims} dimension{s}; NaN counts as the largest.

    Args:
        input: (batch, channels, {size}), or without the batch.
        kernel_size: size of the window.
        stride: distance of the windows; the kernel size if not given.
        padding: elements on both sides that never win; at most half the window.
        dilation: distance of the window's elements.
        ceil_mode: allow a last window that reaches beyond the end.
        return_indices: also return the flat index of each maximum in its plane.

    Raises:
        RuntimeError: a parameter is out of its range, or no window fits.
    """
_AVG: Final = """The averages of windows over {dims} dimension{s}.

    Args:
        input: (batch, channels, {size}), or without the batch.
        kernel_size: size of the window.
        stride: distance of the windows; the kernel size if not given.
        padding: zeros on both sides; at most half the window.
        ceil_mode: allow a last window that reaches beyond the end.
        count_include_pad: let the padding count in the average.{divisor}

    Raises:
        RuntimeError: a parameter is out of its range, or no window fits.
    """
_DIVISOR: Final = "\n        divisor_override: what sums are divided by, instead of the size of the window."
_ADAPTIVE: Final = """The {what} of windows that divide {dims} dimension{s} evenly into a given number.

    Output i of n covers the elements from floor(i * length / n) to ceil((i + 1) * length / n).

    Args:
        input: (batch, channels, {size}), or without the batch.
        output_size: number of windows along each dimension; None keeps the input's size.{extra}

    Raises:
        RuntimeError: the sizes do not fit.
    """
_UNPOOL: Final = """Put maxima back where they came from, with zeros elsewhere: undoes ``max_pool{dims}d``.

    Args:
        input: (batch, channels, {size}), or without the batch.
        indices: as ``max_pool{dims}d(..., return_indices=True)`` gave them.
        kernel_size: size of the window.
        stride: distance of the windows; the kernel size if not given.
        padding: that was used.
        output_size: of the result, where the pooling was ambiguous.

    Raises:
        ValueError: the output size is impossible.
        RuntimeError: an index lies outside the result, or the sizes do not fit.
    """
_LP: Final = """The power averages of windows over {dims} dimension{s}: the p-th root of the sum of p-th powers.

    Args:
        input: (batch, channels, {size}), or without the batch.
        norm_type: the power p.
        kernel_size: size of the window.
        stride: distance of the windows; the kernel size if not given.
        ceil_mode: allow a last window that reaches beyond the end.

    Raises:
        RuntimeError: a parameter is out of its range, or no window fits.
    """


def _named(
    function: Callable[..., Any], name: str, doc: str, dims: int, namespaces: Any = _PLACES, **words: str
) -> Any:
    function.__name__ = function.__qualname__ = name
    size = ", ".join(_AXES[3 - dims :])
    function.__doc__ = doc.format(dims=dims, s="s" * (dims > 1), size=size, **words)
    return composite(name=name, namespaces=namespaces, method=False)(function)


def _declare_max(dims: int) -> tuple[Any, Any]:
    name = f"max_pool{dims}d"

    def with_indices(
        input: Tensor, kernel_size: Ints, stride: Ints | None = None, padding: Ints = 0, dilation: Ints = 1,
        ceil_mode: bool = False, return_indices: bool = True,
    ) -> Pair:  # fmt: skip
        return cast(
            Pair,
            tuple(max_pool.run(input, *_windows(name, input, dims, kernel_size, stride, padding, dilation, ceil_mode))),
        )

    def plain(
        input: Tensor, kernel_size: Ints, stride: Ints | None = None, padding: Ints = 0, dilation: Ints = 1,
        ceil_mode: bool = False, return_indices: bool = False,
    ) -> Tensor | Pair:  # fmt: skip
        result = with_indices(input, kernel_size, stride, padding, dilation, ceil_mode)
        return result if return_indices else result[0]

    return _named(plain, name, _MAX, dims), _named(with_indices, f"{name}_with_indices", _MAX, dims)


def _declare_avg(dims: int) -> Any:
    name = f"avg_pool{dims}d"

    def averages(
        input: Tensor,
        kernel_size: Ints,
        stride: Any,
        padding: Ints,
        ceil_mode: bool,
        count_include_pad: bool,
        divisor: int | None,
    ) -> Tensor:
        if divisor == 0:
            raise ShapeError(f"{name}: divisor must be not zero.")
        size, kernel, step, pad, _ = _windows(name, input, dims, kernel_size, stride, padding, 1, ceil_mode)
        return cast(Tensor, avg_pool.run(input, size, kernel, step, pad, bool(count_include_pad), divisor or 0))

    def one(
        input: Tensor, kernel_size: Ints, stride: Ints | None = None, padding: Ints = 0, ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> Tensor:  # fmt: skip
        return averages(input, kernel_size, stride, padding, ceil_mode, count_include_pad, None)

    def several(
        input: Tensor, kernel_size: Ints, stride: Ints | None = None, padding: Ints = 0, ceil_mode: bool = False,
        count_include_pad: bool = True, divisor_override: int | None = None,
    ) -> Tensor:  # fmt: skip
        return averages(input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)

    if dims == 1:
        return _named(one, name, _AVG, dims, divisor="")
    return _named(several, name, _AVG, dims, "nn.functional", divisor=_DIVISOR)


def _declare_adaptive(dims: int) -> tuple[Any, Any]:
    avg_name, max_name = f"adaptive_avg_pool{dims}d", f"adaptive_max_pool{dims}d"

    def averages(input: Tensor, output_size: Any) -> Tensor:
        return cast(Tensor, adaptive_avg_pool.run(input, _adaptive_size(avg_name, input, dims, output_size)))

    def maxima(input: Tensor, output_size: Any, return_indices: bool = False) -> Tensor | Pair:
        result = tuple(adaptive_max_pool.run(input, _adaptive_size(max_name, input, dims, output_size)))
        return cast(Pair, result) if return_indices else result[0]

    indices = "\n        return_indices: also return the flat index of each maximum in its plane."
    return (
        _named(
            averages, avg_name, _ADAPTIVE, dims, _PLACES if dims == 1 else "nn.functional", what="averages", extra=""
        ),
        _named(maxima, max_name, _ADAPTIVE, dims, "nn.functional", what="maxima", extra=indices),
    )


def _unpooled_size(
    name: str, input: Tensor, kernel: tuple[int, ...], step: tuple[int, ...], pad: tuple[int, ...], given: Any
) -> tuple[int, ...]:
    dims = len(kernel)
    usual = tuple(
        (length - 1) * s - 2 * p + k
        for length, s, p, k in zip(input.geometry.shape[-dims:], step, pad, kernel, strict=True)
    )
    if given is None:
        return usual
    size = tuple(given)
    if len(size) == dims + 2:
        size = size[2:]
    if len(size) != dims:
        raise ArgumentError(
            f"{name}: output_size should be a sequence containing {dims} or {dims + 2} elements, but it has "
            f"{len(size)}."
        )
    for dim, (each, least, s) in enumerate(zip(size, usual, step, strict=True)):
        if not least - s < each < least + s:
            raise ArgumentError(
                f"{name}: invalid output_size {list(size)} (dim {dim} must be between {least - s} and {least + s})."
            )
    return size


def _declare_unpool(dims: int) -> Any:
    name = f"max_unpool{dims}d"

    def unpool(
        input: Tensor, indices: Tensor, kernel_size: Ints, stride: Ints | None = None, padding: Ints = 0,
        output_size: Sequence[int] | None = None,
    ) -> Tensor:  # fmt: skip
        _check_input(name, input, dims)
        kernel = per_dimension(kernel_size, dims, "kernel_size", name)
        step = kernel if stride is None else per_dimension(stride, dims, "stride", name)
        if min(step) < 1:
            raise ShapeError(f"{name}: strides should be greater than zero, but got {list(step)}.")
        size = _unpooled_size(name, input, kernel, step, per_dimension(padding, dims, "padding", name), output_size)
        if not isinstance(indices, Tensor) or indices.key.dtype is not int64:
            raise DtypeError(
                f"{name}: elements in indices should be type int64, got "
                f"{getattr(indices, 'dtype', type(indices).__name__)}."
            )
        if indices.geometry.shape != input.geometry.shape:
            raise ShapeError(
                f"{name}: expected shape of indices to be same as that of the input tensor {list(input.shape)}, "
                f"but got indices tensor with shape {list(indices.shape)}."
            )
        return cast(Tensor, plane_put.run(input, indices, size))

    return _named(unpool, name, _UNPOOL, dims, "nn.functional")


def _declare_lp(dims: int) -> Any:
    average = (avg_pool1d, avg_pool2d, avg_pool3d)[dims - 1]
    name = f"lp_pool{dims}d"

    def powers(
        input: Tensor, norm_type: float, kernel_size: Ints, stride: Ints | None = None, ceil_mode: bool = False
    ) -> Tensor:
        kernel = per_dimension(kernel_size, dims, "kernel_size", name)
        if norm_type == 0:
            raise ArgumentError(f"{name}: norm_type must not be 0.")
        total = average(cast(Any, input).pow(norm_type), kernel, stride, 0, ceil_mode)
        # Odd powers of negative sums have no root: they count as 0.
        return cast(Tensor, (total.sign() * declared("relu")(total.abs())).mul(math.prod(kernel)).pow(1.0 / norm_type))

    return _named(powers, name, _LP, dims, "nn.functional")


max_pool1d, max_pool1d_with_indices = _declare_max(1)
max_pool2d, max_pool2d_with_indices = _declare_max(2)
max_pool3d, max_pool3d_with_indices = _declare_max(3)
avg_pool1d, avg_pool2d, avg_pool3d = (_declare_avg(dims) for dims in (1, 2, 3))
adaptive_avg_pool1d, adaptive_max_pool1d = _declare_adaptive(1)
adaptive_avg_pool2d, adaptive_max_pool2d = _declare_adaptive(2)
adaptive_avg_pool3d, adaptive_max_pool3d = _declare_adaptive(3)
max_unpool1d, max_unpool2d, max_unpool3d = (_declare_unpool(dims) for dims in (1, 2, 3))
lp_pool1d, lp_pool2d, lp_pool3d = (_declare_lp(dims) for dims in (1, 2, 3))
