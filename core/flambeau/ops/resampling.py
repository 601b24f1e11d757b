"""Resampling images: interpolate and its older names, grid_sample, affine_grid, pixel_shuffle.

Interpolation is separable: along each dimension every output is a weighted sum of a few inputs, so it is a few
``index_select`` and multiplications, and differentiates by itself.
"""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Callable, Sequence
from typing import Any, Final, cast

import numpy as np

from ..dispatch.operator import composite
from ..dtype import float32, float64, uint8
from ..errors import ArgumentError, ArgumentTypeError, MissingKernelError, ShapeError, shown
from ..geometry import contiguous
from ..tensor import Tensor, make
from .conversion import cast_to
from .padding import index_tensor
from .pooling import adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d

__all__ = [
    "affine_grid", "grid_sample", "interpolate", "pixel_shuffle", "pixel_unshuffle", "upsample", "upsample_bilinear",
    "upsample_nearest",
]  # fmt: skip

Array = np.ndarray[Any, Any]
#: For one dimension: index and weight of each input that an output is made of; no weight means 1.
Taps = list[tuple[Array, Array | None]]


def _scale(length: int, size: int, factor: float | None, real: type[np.floating[Any]]) -> Any:
    """Inputs per output."""
    return real(1.0 / factor) if factor else real(length) / real(size)


def _nearest(length: int, size: int, factor: float | None, real: Any, align: bool) -> Taps:
    at = np.floor(np.arange(size, dtype=np.float32) * _scale(length, size, factor, np.float32)).astype(np.int64)
    return [(np.minimum(at, length - 1), None)]


def _nearest_exact(length: int, size: int, factor: float | None, real: Any, align: bool) -> Taps:
    at = np.floor((np.arange(size, dtype=np.float32) + np.float32(0.5)) * _scale(length, size, factor, np.float32))
    return [(np.minimum(at.astype(np.int64), length - 1), None)]


def _source(length: int, size: int, factor: float | None, real: Any, align: bool) -> Array:
    """The position in the input of each output."""
    outputs = np.arange(size, dtype=real)
    if align:
        step = real(length - 1) / real(size - 1) if size > 1 else real(0)
        return cast(Array, outputs * step)
    return cast(Array, (outputs + real(0.5)) * _scale(length, size, factor, real) - real(0.5))


def _linear(length: int, size: int, factor: float | None, real: Any, align: bool) -> Taps:
    at = np.maximum(_source(length, size, factor, real, align), 0)
    low = np.minimum(at.astype(np.int64), length - 1)
    part = np.clip(at - low, 0, 1)
    return [(low, 1 - part), (np.minimum(low + 1, length - 1), part)]


def _cubic(length: int, size: int, factor: float | None, real: Any, align: bool) -> Taps:
    at = _source(length, size, factor, real, align)
    low = np.floor(at)
    return [
        (np.clip(low + offset, 0, length - 1).astype(np.int64), cubic_weight(np.abs(at - low - offset)))
        for offset in (-1, 0, 1, 2)
    ]


def cubic_weight(distance: Any, a: float = -0.75) -> Any:
    """Keys' cubic convolution kernel (IEEE Trans. ASSP 29, 1981) at distances from 0 to 2."""
    near = ((a + 2) * distance - (a + 3)) * distance * distance + 1
    far = ((distance - 5) * distance + 8) * distance * a - 4 * a
    return np.where(distance <= 1, near, far)


#: For each mode: how the taps are found, and the numbers of spatial dimensions it is for.
_MODES: Final[dict[str, tuple[Callable[..., Taps], tuple[int, ...]]]] = {
    "nearest": (_nearest, (1, 2, 3)),
    "nearest-exact": (_nearest_exact, (1, 2, 3)),
    "linear": (_linear, (1,)),
    "bilinear": (_linear, (2,)),
    "trilinear": (_linear, (3,)),
    "bicubic": (_cubic, (2,)),
}


def _weights(beside: Tensor, values: Array, shape: Sequence[int]) -> Any:
    """Weights that were computed here, as a tensor that broadcasts along one dimension."""
    key = beside.key.of(float64)
    memory = key.memory.from_numpy(np.ascontiguousarray(values, np.float64), key.device, float64)
    return cast(Any, make(key, contiguous(tuple(shape)), memory)).to(beside.key.dtype)


def _resample(x: Any, dim: int, taps: Taps) -> Any:
    result = None
    for index, weight in taps:
        part = x.index_select(dim, index_tensor(x, index))
        if weight is not None:
            part = part * _weights(x, weight, [len(index)] + [1] * (x.ndim - 1 - dim))
        result = part if result is None else result + part
    return result


@composite(namespaces="nn.functional", method=False)
def interpolate(
    input: Tensor,
    size: int | Sequence[int] | None = None,
    scale_factor: float | Sequence[float] | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Tensor:
    """Resample to another size.

    Args:
        input: (batch, channels, [depth,] [height,] width).
        size: the new spatial size; or
        scale_factor: by how much it grows.
        mode: ``"nearest"``, ``"nearest-exact"``, ``"area"``, ``"linear"`` (3-D input), ``"bilinear"``, ``"bicubic"``
            (4-D), ``"trilinear"`` (5-D).
        align_corners: let the corner elements keep their place (linear and cubic modes); otherwise the outer edges do.
        recompute_scale_factor: take the scale from the rounded size rather than from ``scale_factor``.

    Raises:
        ValueError: the arguments contradict each other.
        NotImplementedError: the mode is not for inputs of these dimensions.
    """
    if not isinstance(input, Tensor):
        raise ArgumentTypeError(f"interpolate(): input must be a Tensor, got {type(input).__name__}.")
    dims = input.ndim - 2
    if mode in ("nearest", "area", "nearest-exact"):
        if align_corners is not None:
            raise ArgumentError(
                "interpolate: align_corners option can only be set with the interpolating modes: linear | "
                "bilinear | bicubic | trilinear."
            )
        align_corners = False
    if (size is None) == (scale_factor is None):
        raise ArgumentError(
            "interpolate: "
            + (
                "either size or scale_factor should be defined."
                if size is None
                else "only one of size or scale_factor should be defined."
            )
        )
    if mode != "area" and mode not in _MODES:
        raise MissingKernelError(
            f"interpolate: unknown mode {shown(mode)}; it is one of {', '.join([*_MODES, 'area'])}."
        )
    if not 1 <= dims <= 3 or (mode in _MODES and dims not in _MODES[mode][1]):
        raise MissingKernelError(
            f"interpolate: input Error: {input.ndim}D input (shape {list(input.shape)}) is not supported by "
            f"mode {shown(mode)}.\n3D takes nearest, linear, area; 4D nearest, bilinear, bicubic, area; "
            "5D nearest, trilinear, area."
        )
    if antialias:
        raise MissingKernelError("interpolate: antialias is not available.")
    factors: list[float | None] = [None] * dims
    if scale_factor is not None:
        given: list[Any] = list(scale_factor) if isinstance(scale_factor, (tuple, list)) else [scale_factor] * dims
        if len(given) != dims:
            raise ArgumentError(
                f"interpolate: scale_factor shape must match input shape: expected {dims} factors, got {given}."
            )
        wanted = [math.floor(float(length) * factor) for length, factor in zip(input.shape[2:], given, strict=True)]
        if not recompute_scale_factor:
            factors = [float(each) for each in given]
    else:
        wanted = list(size) if isinstance(size, (tuple, list)) else [cast(int, size)] * dims
        if len(wanted) != dims:
            raise ArgumentError(
                f"interpolate: expected a size of {dims} numbers for input {list(input.shape)}, got {wanted}."
            )
        if recompute_scale_factor:
            raise ArgumentError("interpolate: recompute_scale_factor is not meaningful with an explicit size.")
    if min(wanted) < 1 or not all(input.shape[1:]):
        raise ShapeError(
            f"interpolate: input and output sizes should be greater than 0, but got input {list(input.shape)} "
            f"and output {wanted}."
        )
    if mode == "area":
        return cast(Tensor, (adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d)[dims - 1](input, wanted))
    if input.key.dtype.category < 2 and not mode.startswith("nearest"):
        if input.key.dtype is not uint8:
            raise MissingKernelError(
                f"interpolate: mode {shown(mode)} is for floating point and uint8, got {input.dtype.name}.\n"
                "Convert it with x.float()."
            )
        fine = interpolate(cast_to(input, float32), size, scale_factor, mode, align_corners, recompute_scale_factor)
        return cast(Tensor, cast_to((cast(Any, fine) + 0.5).floor().clamp(0, 255), uint8))
    find = _MODES[mode][0]
    real = np.float64 if input.key.dtype is float64 else np.float32
    result: Any = input
    for dim in range(dims):
        length = input.shape[dim + 2]
        if length == wanted[dim] and factors[dim] in (None, 1.0):
            continue
        result = _resample(result, dim + 2, find(length, wanted[dim], factors[dim], real, bool(align_corners)))
    return cast(Tensor, result.clone() if result is input else result)


def _older(name: str, align: bool | None, mode: str) -> None:
    warnings.warn(
        f"nn.functional.{name} is deprecated; use nn.functional.interpolate(mode={shown(mode)}"
        f"{f', align_corners={align}' if align is not None else ''}).",
        DeprecationWarning,
        stacklevel=4,
    )


@composite(namespaces="nn.functional", method=False)
def upsample(
    input: Tensor, size: Any = None, scale_factor: Any = None, mode: str = "nearest", align_corners: bool | None = None
) -> Tensor:
    """The older name of :func:`interpolate`.

    Raises:
        ValueError: the arguments contradict each other.
    """
    _older("upsample", align_corners, mode)
    return cast(Tensor, interpolate(input, size, scale_factor, mode, align_corners))


@composite(namespaces="nn.functional", method=False)
def upsample_nearest(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """``interpolate(mode="nearest")``.

    Raises:
        ValueError: the arguments contradict each other.
    """
    _older("upsample_nearest", None, "nearest")
    return cast(Tensor, interpolate(input, size, scale_factor, "nearest"))


@composite(namespaces="nn.functional", method=False)
def upsample_bilinear(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """``interpolate(mode="bilinear", align_corners=True)``.

    Raises:
        ValueError: the arguments contradict each other.
    """
    _older("upsample_bilinear", True, "bilinear")
    return cast(Tensor, interpolate(input, size, scale_factor, "bilinear", True))


# ---------------------------------------------------------------- shuffling


@composite(namespaces=("", "nn.functional"), method=False)
def pixel_shuffle(input: Tensor, upscale_factor: int) -> Tensor:
    """Turn (..., channels * r * r, height, width) into (..., channels, height * r, width * r).

    Raises:
        RuntimeError: there are less than three dimensions, or the channels cannot be divided.
    """
    r = upscale_factor
    if input.ndim < 3:
        raise ShapeError(
            f"pixel_shuffle expects input to have at least 3 dimensions, but got input with {input.ndim} dimension(s)."
        )
    *lead, channels, height, width = input.shape
    if r < 1:
        raise ShapeError(f"pixel_shuffle expects a positive upscale_factor, but got {r}.")
    if channels % (r * r):
        raise ShapeError(
            f"pixel_shuffle expects its input's 'channel' dimension to be divisible by the square of upscale_factor, "
            f"but input.size(-3)={channels} is not divisible by {r * r}."
        )
    n = len(lead)
    parts = cast(Any, input).reshape(*lead, channels // (r * r), r, r, height, width)
    order = (*range(n), n, n + 3, n + 1, n + 4, n + 2)
    return cast(Tensor, parts.permute(order).reshape(*lead, channels // (r * r), height * r, width * r))


@composite(namespaces=("", "nn.functional"), method=False)
def pixel_unshuffle(input: Tensor, downscale_factor: int) -> Tensor:
    """Undo :func:`pixel_shuffle`: (..., channels, height * r, width * r) to (..., channels * r * r, height, width).

    Raises:
        RuntimeError: there are less than three dimensions, or height or width cannot be divided.
    """
    r = downscale_factor
    if input.ndim < 3:
        raise ShapeError(
            f"pixel_unshuffle expects input to have at least 3 dimensions, but got input with {input.ndim} "
            "dimension(s)."
        )
    *lead, channels, height, width = input.shape
    if r < 1 or height % r or width % r:
        raise ShapeError(
            f"pixel_unshuffle expects height and width to be divisible by downscale_factor, but got {height}, "
            f"{width} and {r}."
        )
    n = len(lead)
    parts = cast(Any, input).reshape(*lead, channels, height // r, r, width // r, r)
    order = (*range(n), n, n + 2, n + 4, n + 1, n + 3)
    return cast(Tensor, parts.permute(order).reshape(*lead, channels * r * r, height // r, width // r))


# ---------------------------------------------------------------- grids


@composite(namespaces="nn.functional", method=False)
def affine_grid(theta: Tensor, size: Sequence[int], align_corners: bool | None = None) -> Tensor:
    """The sampling grid of an affine map, for :func:`grid_sample`.

    Args:
        theta: (batch, 2, 3) for images, (batch, 3, 4) for volumes.
        size: of the output: (batch, channels, [depth,] height, width).
        align_corners: whether -1 and 1 are the centres of the corner elements rather than the outer edges.

    Returns:
        (batch, [depth,] height, width, 2 or 3): for each output, x, y (and z) in the input, from -1 to 1.

    Raises:
        RuntimeError: theta and the size do not fit.
    """
    dims = len(size) - 2
    if dims not in (2, 3):
        raise MissingKernelError(
            f"affine_grid supports 4D and 5D sizes, for 2D and 3D affine transforms, got size {shown(list(size))}."
        )
    if not theta.key.dtype.is_floating_point:
        raise ArgumentError(f"affine_grid: expected theta to have floating point type, but got {theta.dtype}.")
    if tuple(theta.shape) != (size[0], dims, dims + 1):
        raise ArgumentError(
            f"affine_grid: expected a batch of {dims}D affine matrices of shape [{size[0]}, {dims}, {dims + 1}] "
            f"for size {list(size)}, "
            f"got {list(theta.shape)}."
        )
    if min(size) < 1:
        raise ArgumentError(f"affine_grid: expected non-zero, positive output size, got {list(size)}.")
    axes = []
    for length in size[2:]:
        steps = np.linspace(-1, 1, length) if length > 1 else np.zeros(1)
        axes.append(steps if align_corners or length == 1 else steps * (length - 1) / length)
    mesh = np.meshgrid(*axes, indexing="ij")
    points = np.stack([*reversed(mesh), np.ones(tuple(size[2:]))], -1).reshape(-1, dims + 1)
    base = _weights(theta, points.reshape(-1), points.shape)
    return cast(Tensor, base.matmul(cast(Any, theta).transpose(1, 2)).reshape(size[0], *size[2:], dims))


def _unnormalized(coordinate: Any, length: int, align: bool) -> Any:
    """From -1 .. 1 to element numbers."""
    if align:
        return (coordinate + 1) * ((length - 1) / 2)
    return (coordinate + 1) * (length / 2) - 0.5


def _reflected(at: Any, length: int, align: bool) -> Any:
    """Mirror positions back into the image."""
    low, span = (0.0, float(length - 1)) if align else (-0.5, float(length))
    if span == 0:
        return at * 0
    distance = (at - low).abs()
    turns = (distance / span).floor().detach()
    rest = distance - turns * span
    odd = turns.remainder(2) == 1
    return rest.where(~odd, span - rest) + low


def _placed(at: Any, length: int, padding_mode: str, align: bool) -> Any:
    if padding_mode == "border":
        return at.clamp(0, length - 1)
    if padding_mode == "reflection":
        return _reflected(at, length, align).clamp(0, length - 1)
    return at


def _values(x: Any, places: Sequence[Any], zeros: bool) -> Any:
    """The elements of each plane at whole-numbered places (one tensor per dimension), 0 outside."""
    shape = x.shape[2:]
    inside, flat = None, None
    for place, length in zip(places, shape, strict=True):
        if zeros:
            fits = (place >= 0) & (place <= length - 1)
            inside = fits if inside is None else inside & fits
        index = place.detach().clamp(0, length - 1).long()
        flat = index if flat is None else flat * length + index
    n, channels, count = x.shape[0], x.shape[1], math.prod(places[0].shape[1:])
    index = cast(Any, flat).reshape(n, 1, count).expand(n, channels, count)
    found = x.reshape(n, channels, math.prod(shape)).gather(2, index).reshape(n, channels, *places[0].shape[1:])
    return found if inside is None else found * inside.unsqueeze(1).to(x.dtype)


@composite(namespaces="nn.functional", method=False)
def grid_sample(
    input: Tensor, grid: Tensor, mode: str = "bilinear", padding_mode: str = "zeros", align_corners: bool | None = None
) -> Tensor:
    """Sample images or volumes at the places of a grid.

    Args:
        input: (batch, channels, [depth,] height, width).
        grid: (batch, ..., 2 or 3): x, y (and z) from -1 to 1, with as many dimensions as the input.
        mode: ``"bilinear"`` (for volumes, trilinear), ``"nearest"`` or ``"bicubic"`` (images only).
        padding_mode: what lies outside: ``"zeros"``, the ``"border"``, or a ``"reflection"``.
        align_corners: whether -1 and 1 are the centres of the corner elements rather than the outer edges.

    Returns:
        (batch, channels, ...).

    Raises:
        RuntimeError: input and grid do not fit.
        ValueError: a mode is unknown.
    """
    if mode not in ("bilinear", "nearest", "bicubic"):
        raise ArgumentError(
            f"grid_sample: expected mode to be 'bilinear', 'nearest' or 'bicubic', but got: {shown(mode)}."
        )
    if padding_mode not in ("zeros", "border", "reflection"):
        raise ArgumentError(
            f"grid_sample: expected padding_mode to be 'zeros', 'border', or 'reflection', but got: {shown(padding_mode)}."
        )
    dims = input.ndim - 2
    if dims not in (2, 3) or grid.ndim != input.ndim or grid.shape[-1] != dims or grid.shape[0] != input.shape[0]:
        raise ShapeError(
            "grid_sample: expected 4D or 5D input and grid with the same number of dimensions, the same batch "
            "and a last "
            f"dimension of 2 or 3, but got {list(input.shape)} and {list(grid.shape)}."
        )
    if input.key is not grid.key:
        raise ShapeError(
            f"grid_sample: expected input and grid to be alike, but got {input.dtype} on {input.device} and "
            f"{grid.dtype} on {grid.device}."
        )
    if not all(input.shape[1:]):
        raise ShapeError(
            f"grid_sample: expected input to have non-empty dimensions besides the batch, got {list(input.shape)}."
        )
    if mode == "bicubic" and dims == 3:
        raise ShapeError("grid_sample: bicubic interpolation only supports 4D input.")
    align = bool(align_corners)
    x, zeros = cast(Any, input), padding_mode == "zeros"
    sizes = x.shape[2:]
    at = [_unnormalized(cast(Any, grid)[..., dims - 1 - dim], sizes[dim], align) for dim in range(dims)]
    if mode == "bicubic":
        return cast(Tensor, _sample_cubic(x, at, padding_mode, align))
    at = [_placed(each, length, padding_mode, align) for each, length in zip(at, sizes, strict=True)]
    if mode == "nearest":
        return cast(Tensor, _values(x, [each.detach().round() for each in at], zeros))
    low = [each.detach().floor() for each in at]
    upper = [each - base for each, base in zip(at, low, strict=True)]
    result = None
    for corner in itertools.product((0, 1), repeat=dims):
        weight = None
        for part, end in zip(upper, corner, strict=True):
            factor = part if end else 1 - part
            weight = factor if weight is None else weight * factor
        found = _values(x, [base + end for base, end in zip(low, corner, strict=True)], zeros)
        found = found * cast(Any, weight).unsqueeze(1)
        result = found if result is None else result + found
    return cast(Tensor, result)


def _sample_cubic(x: Any, at: Sequence[Any], padding_mode: str, align: bool) -> Any:
    """The sixteen neighbours, weighted by the cubic kernel."""
    low = [each.detach().floor() for each in at]
    part = [each - base for each, base in zip(at, low, strict=True)]

    def kernel(fraction: Any, offset: int, a: float = -0.75) -> Any:
        if offset in (0, 1):
            d = fraction if offset == 0 else 1 - fraction
            return ((a + 2) * d - (a + 3)) * d * d + 1
        d = fraction + 1 if offset == -1 else 2 - fraction
        return ((d - 5) * d + 8) * d * a - 4 * a

    result = None
    for dy, dx in itertools.product((-1, 0, 1, 2), repeat=2):
        places = [
            _placed(base + step, length, padding_mode, align)
            for base, step, length in zip(low, (dy, dx), x.shape[2:], strict=True)
        ]
        weight = kernel(part[0], dy) * kernel(part[1], dx)
        found = _values(x, places, padding_mode == "zeros") * weight.unsqueeze(1)
        result = found if result is None else result + found
    return result
