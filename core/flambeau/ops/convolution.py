"""Convolutions over one to three dimensions.

Three primitives are each other's gradients: ``conv`` (forward), ``conv_input`` (its
adjoint in the input, which is also the transposed convolution) and ``conv_weight`` (its
adjoint in the weight).  Everything public checks its arguments and calls one of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final, cast

from ..dispatch.operator import composite, primitive
from ..errors import ArgumentTypeError, ShapeError, shown
from ..tensor import Tensor
from .linalg import same_key

__all__ = [
    "conv1d", "conv2d", "conv3d", "conv_tbc", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "convolution",
    "fold", "unfold",
]  # fmt: skip

Ints = int | Sequence[int]


def per_dimension(value: Any, dims: int, what: str, name: str) -> tuple[int, ...]:
    """One int for each dimension, given one for all or a sequence (of one or of all).

    Raises:
        TypeError: something is no int.
        RuntimeError: their number is wrong.
    """
    if type(value) is int:
        return (value,) * dims
    try:
        found = tuple(each.__index__() for each in value) if not hasattr(value, "__index__") else (value.__index__(),)
    except (AttributeError, TypeError):
        raise ArgumentTypeError(
            f"{name}(): {what} must be an int or a sequence of {dims} ints, got {shown(value)}."
        ) from None
    if len(found) == 1:
        return found * dims
    if len(found) != dims:
        raise ShapeError(
            f"{name}: expected {what} to be a single integer value or a list of {dims} values, but got {list(found)}."
        )
    return found


# ---------------------------------------------------------------- the primitives


@primitive("input weight bias? | stride padding dilation groups", namespaces=(), method=False)
def conv(input: Tensor, weight: Tensor, bias: Tensor | None, *geometry: Any) -> Tensor:
    """The convolution of (batch, channels, *size) with (outputs, channels / groups, *kernel); nothing is checked."""
    return cast(Tensor, conv.run(input, weight, bias, *geometry))


@primitive("output weight bias? | size stride padding dilation groups", namespaces=(), method=False)
def conv_input(output: Tensor, weight: Tensor, bias: Tensor | None, *geometry: Any) -> Tensor:
    """The adjoint of ``conv`` in its input of spatial size ``size``, plus a bias for each input channel."""
    return cast(Tensor, conv_input.run(output, weight, bias, *geometry))


@primitive("input output | size stride padding dilation groups", namespaces=(), method=False)
def conv_weight(input: Tensor, output: Tensor, *geometry: Any) -> Tensor:
    """The adjoint of ``conv`` in its weight of kernel size ``size``."""
    return cast(Tensor, conv_weight.run(input, output, *geometry))


def _cropped(result: Any, shape: Sequence[int]) -> Any:
    """The first outputs: a transposed convolution's output padding may have room for more of them."""
    for dim in range(2, len(shape)):
        if result.shape[dim] != shape[dim]:
            result = result.narrow(dim, 0, shape[dim])
    return result


def _sum_to_channels(grad: Any) -> Any:
    return grad.sum((0, *range(2, grad.ndim)))


conv.gradient(
    input=lambda grad, input_shape, weight, stride, padding, dilation, groups: conv_input(
        grad, weight, None, tuple(input_shape[2:]), stride, padding, dilation, groups
    ),
    weight=lambda grad, input, weight_shape, stride, padding, dilation, groups: conv_weight(
        input, grad, tuple(weight_shape[2:]), stride, padding, dilation, groups
    ),
    bias=_sum_to_channels,
)
conv_input.gradient(
    output=lambda grad, output_shape, weight, stride, padding, dilation, groups: _cropped(
        conv(grad, weight, None, stride, padding, dilation, groups), output_shape
    ),
    weight=lambda grad, output, weight_shape, stride, padding, dilation, groups: conv_weight(
        grad, output, tuple(weight_shape[2:]), stride, padding, dilation, groups
    ),
    bias=_sum_to_channels,
)
conv_weight.gradient(
    input=lambda grad, output, input_shape, stride, padding, dilation, groups: conv_input(
        output, grad, None, tuple(input_shape[2:]), stride, padding, dilation, groups
    ),
    output=lambda grad, input, output_shape, stride, padding, dilation, groups: _cropped(
        conv(input, grad, None, stride, padding, dilation, groups), output_shape
    ),
)


# ---------------------------------------------------------------- checking


def _batched(name: str, input: Tensor, dims: int) -> tuple[Any, bool]:
    """The input with a batch dimension, and whether it had one.

    Raises:
        RuntimeError: the number of dimensions is wrong.
    """
    if input.ndim == dims + 2:
        return input, True
    if input.ndim == dims + 1:
        return cast(Any, input).unsqueeze(0), False
    raise ShapeError(
        f"Expected {dims + 1}D (unbatched) or {dims + 2}D (batched) input to {name}, but got input of size: "
        f"{list(input.shape)}."
    )


def _check(
    name: str,
    input: Any,
    weight: Any,
    bias: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    groups: Any,
    transposed: bool,
) -> None:
    if not isinstance(weight, Tensor) or not (bias is None or isinstance(bias, Tensor)):
        bad = weight if not isinstance(weight, Tensor) else bias
        raise ArgumentTypeError(f"{name}(): weight and bias must be Tensors, got {type(bad).__name__}.")
    same_key(name, *[each for each in (input, weight, bias) if each is not None])
    for what, values, least in (("stride", stride, 1), ("padding", padding, 0), ("dilation", dilation, 1)):
        if any(each < least for each in values):
            kind = "negative" if least == 0 else "non-positive"
            raise ShapeError(f"{name}: {kind} {what} is not supported, got {list(values)}.")
    if type(groups) is not int or groups < 1:
        raise ShapeError(f"{name}: non-positive groups is not supported, got {groups}.")
    shape = weight.shape
    if len(shape) != input.ndim:
        raise ShapeError(
            f"{name}: expected a weight of {input.ndim} dimensions, but got weight of size {list(shape)} for "
            f"input {list(input.shape)}."
        )
    if min(shape[2:]) < 1:
        raise ShapeError(f"{name}: kernel size should be greater than zero, but got weight of size {list(shape)}.")
    if shape[0] < groups or shape[0] % groups:
        raise ShapeError(
            f"{name}: given groups={groups}, expected weight to be at least {groups} at dimension 0, and "
            "divisible by it, "
            f"but got weight of size {list(shape)}."
        )
    channels = shape[0] if transposed else shape[1] * groups
    if input.shape[1] != channels:
        raise ShapeError(
            f"{name}: given {'transposed=1, ' if transposed else ''}groups={groups}, weight of size "
            f"{list(shape)}, expected input "
            f"{list(input.shape)} to have {channels} channels, but got {input.shape[1]} channels instead."
        )
    outputs = shape[1] * groups if transposed else shape[0]
    if bias is not None and bias.shape != (outputs,):
        raise ShapeError(
            f"{name}: given weight of size {list(shape)}, expected bias to be 1-dimensional with {outputs} elements, "
            f"but got bias of size {list(bias.shape)} instead."
        )


def _padded_same(
    name: str, input: Any, weight: Tensor, padding: str, stride: tuple[int, ...], dilation: tuple[int, ...]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The padding that a word means, and how many first outputs are to be dropped (where both sides differ)."""
    dims = len(stride)
    if padding == "valid":
        return (0,) * dims, (0,) * dims
    if padding != "same":
        raise ShapeError(f"{name}: invalid padding string: {shown(padding)}, expected 'valid' or 'same'.")
    if any(each != 1 for each in stride):
        raise ShapeError(
            f"{name}: padding='same' is not supported for strided convolutions, got stride {list(stride)}."
        )
    total = [step * (size - 1) for step, size in zip(dilation, weight.shape[2:], strict=False)]
    # PyTorch puts the odd one at the end: pad both sides alike and drop the first output.
    return tuple((each + 1) // 2 for each in total), tuple(each % 2 for each in total)


def _forward(
    name: str,
    dims: int,
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Any,
    padding: Any,
    dilation: Any,
    groups: int,
) -> Tensor:
    if not isinstance(input, Tensor):
        raise ArgumentTypeError(f"{name}(): input must be a Tensor, got {type(input).__name__}.")
    x, batched = _batched(name, input, dims)
    stride, dilation = per_dimension(stride, dims, "stride", name), per_dimension(dilation, dims, "dilation", name)
    drop: tuple[int, ...] = ()
    if isinstance(padding, str):
        padding, drop = _padded_same(name, x, weight, padding, stride, dilation)
    else:
        padding = per_dimension(padding, dims, "padding", name)
    _check(name, x, weight, bias, stride, padding, dilation, groups, False)
    for size, kernel, step, pad in zip(x.shape[2:], weight.shape[2:], dilation, padding, strict=True):
        if size + 2 * pad < step * (kernel - 1) + 1:
            raise ShapeError(
                f"{name}: calculated padded input size per channel: "
                f"{[s + 2 * p for s, p in zip(x.shape[2:], padding, strict=True)]}, "
                f"kernel size: {list(weight.shape[2:])} (dilation {list(dilation)}). Kernel size can't be "
                "greater than actual input size."
            )
    result: Any = conv.run(x, weight, bias, stride, padding, dilation, groups)
    for dim, first in enumerate(drop):
        if first:
            result = result.narrow(dim + 2, 1, result.shape[dim + 2] - 1)
    return cast(Tensor, result if batched else result.squeeze(0))


def _transposed(
    name: str, dims: int, input: Tensor, weight: Tensor, bias: Tensor | None, stride: Any, padding: Any,
    output_padding: Any, groups: int, dilation: Any,
) -> Tensor:  # fmt: skip
    if not isinstance(input, Tensor):
        raise ArgumentTypeError(f"{name}(): input must be a Tensor, got {type(input).__name__}.")
    x, batched = _batched(name, input, dims)
    stride, dilation = per_dimension(stride, dims, "stride", name), per_dimension(dilation, dims, "dilation", name)
    padding, extra = (
        per_dimension(padding, dims, "padding", name),
        per_dimension(output_padding, dims, "output_padding", name),
    )
    _check(name, x, weight, bias, stride, padding, dilation, groups, True)
    if any(each < 0 for each in extra):
        raise ShapeError(f"{name}: negative output_padding is not supported, got {list(extra)}.")
    if any(each >= max(step, wide) for each, step, wide in zip(extra, stride, dilation, strict=True)):
        raise ShapeError(
            f"{name}: output padding must be smaller than either stride or dilation, but got output_padding "
            f"{list(extra)}, "
            f"stride {list(stride)}, dilation {list(dilation)}."
        )
    size = tuple(
        (length - 1) * step - 2 * pad + wide * (kernel - 1) + more + 1
        for length, step, pad, wide, kernel, more in zip(
            x.shape[2:], stride, padding, dilation, weight.shape[2:], extra, strict=True
        )
    )
    if min(size) < 1:
        raise ShapeError(
            f"{name}: given input size per channel: {list(x.shape[2:])}, calculated output size per channel: "
            f"{list(size)}. "
            "Output size is too small."
        )
    result: Any = conv_input.run(x, weight, bias, size, stride, padding, dilation, groups)
    return cast(Tensor, result if batched else result.squeeze(0))


# ---------------------------------------------------------------- public forms

_FORWARD: Final = """A convolution over {dims} dimension{s}.

    Args:
        input: (batch, channels, {size}), or without the batch.
        weight: (outputs, channels / groups, {kernel}).
        bias: (outputs), or none.
        stride: distance of the positions of the kernel.
        padding: zeros on both sides, or ``"same"`` (output as large as the input), or ``"valid"`` (none).
        dilation: distance of the kernel's elements.
        groups: channels and outputs are connected in this many separate groups.

    Raises:
        RuntimeError: sizes do not fit, dtypes differ, or a parameter is out of its range.
    """
_TRANSPOSED: Final = """A transposed convolution over {dims} dimension{s}: the adjoint of the one with these parameters.

    Args:
        input: (batch, channels, {size}), or without the batch.
        weight: (channels, outputs / groups, {kernel}).
        bias: (outputs), or none.
        stride: distance of the positions at which the kernel is laid down.
        padding: how much is cut from both sides of the result.
        output_padding: how much longer one side of the result is.
        groups: channels and outputs are connected in this many separate groups.
        dilation: distance of the kernel's elements.

    Raises:
        RuntimeError: sizes do not fit, dtypes differ, or a parameter is out of its range.
    """
_AXES: Final = ("depth", "height", "width")


def _declare(dims: int) -> tuple[Any, Any]:
    """The public functions for a number of dimensions."""
    words = {"dims": dims, "s": "s" * (dims > 1), "size": ", ".join(_AXES[3 - dims :])}
    words["kernel"] = ", ".join(f"kernel {each}" for each in _AXES[3 - dims :])

    def forward(
        input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Ints = 1, padding: Ints | str = 0,
        dilation: Ints = 1, groups: int = 1,
    ) -> Tensor:  # fmt: skip
        return _forward(f"conv{dims}d", dims, input, weight, bias, stride, padding, dilation, groups)

    def transposed(
        input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Ints = 1, padding: Ints = 0,
        output_padding: Ints = 0, groups: int = 1, dilation: Ints = 1,
    ) -> Tensor:  # fmt: skip
        return _transposed(
            f"conv_transpose{dims}d", dims, input, weight, bias, stride, padding, output_padding, groups, dilation
        )

    forward.__doc__, transposed.__doc__ = _FORWARD.format(**words), _TRANSPOSED.format(**words)
    both: list[Any] = []
    functions: dict[str, Callable[..., Tensor]] = {f"conv{dims}d": forward, f"conv_transpose{dims}d": transposed}
    for name, function in functions.items():
        function.__name__ = function.__qualname__ = name
        both.append(composite(name=name, namespaces=("", "nn.functional"), method=False)(function))
    return both[0], both[1]


conv1d, conv_transpose1d = _declare(1)
conv2d, conv_transpose2d = _declare(2)
conv3d, conv_transpose3d = _declare(3)


@composite(method=False)
def convolution(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Ints,
    padding: Ints,
    dilation: Ints,
    transposed: bool,
    output_padding: Ints,
    groups: int,
) -> Tensor:
    """Any convolution: see :func:`conv2d` and, with ``transposed``, :func:`conv_transpose2d`.

    Raises:
        RuntimeError: sizes do not fit, dtypes differ, or a parameter is out of its range.
    """
    dims = weight.ndim - 2
    if not 1 <= dims <= 3:
        raise ShapeError(f"convolution: expected a weight of 3 to 5 dimensions, got {list(weight.shape)}.")
    if transposed:
        return _transposed("convolution", dims, input, weight, bias, stride, padding, output_padding, groups, dilation)
    return _forward("convolution", dims, input, weight, bias, stride, padding, dilation, groups)


@composite(namespaces=("", "nn.functional"), method=False)
def conv_tbc(input: Tensor, weight: Tensor, bias: Tensor, pad: int = 0) -> Tensor:
    """A convolution over time, with time and batch first.

    Args:
        input: (time, batch, channels).
        weight: (kernel width, channels, outputs).
        bias: (outputs).
        pad: zeros on both sides.

    Raises:
        RuntimeError: sizes do not fit, or dtypes differ.
    """
    if input.ndim != 3 or weight.ndim != 3 or bias.ndim != 1:
        raise ShapeError(
            "conv_tbc: expected an input (time, batch, channels), a weight (width, channels, outputs) and a "
            f"bias (outputs), got {list(input.shape)}, {list(weight.shape)} and {list(bias.shape)}."
        )
    x, w = cast(Any, input).permute(1, 2, 0), cast(Any, weight).permute(2, 1, 0)
    return cast(Tensor, _forward("conv_tbc", 1, x, w, bias, 1, pad, 1, 1).permute(2, 0, 1))


# ---------------------------------------------------------------- patches


@primitive("self | kernel_size dilation padding stride", namespaces=(), method=False)
def im2col(self: Tensor, *geometry: Any) -> Tensor:
    """The patches of (batch, channels, height, width) as (batch, channels * kernel, positions); nothing is checked."""
    return cast(Tensor, im2col.run(self, *geometry))


@primitive("self | output_size kernel_size dilation padding stride", namespaces=(), method=False)
def col2im(self: Tensor, *geometry: Any) -> Tensor:
    """The adjoint of ``im2col`` for an image of size ``output_size``; nothing is checked."""
    return cast(Tensor, col2im.run(self, *geometry))


im2col.gradient(
    self=lambda grad, self_shape, kernel_size, dilation, padding, stride: col2im(
        grad, tuple(self_shape[2:]), kernel_size, dilation, padding, stride
    )
)
col2im.gradient(
    self=lambda grad, kernel_size, dilation, padding, stride: im2col(grad, kernel_size, dilation, padding, stride)
)


def _patch_parameters(name: str, kernel_size: Any, dilation: Any, padding: Any, stride: Any) -> list[tuple[int, ...]]:
    found = []
    for what, value, least in (
        ("kernel_size", kernel_size, 1), ("dilation", dilation, 1), ("padding", padding, 0), ("stride", stride, 1),
    ):  # fmt: skip
        values = per_dimension(value, 2, what, name)
        if min(values) < least:
            raise ShapeError(
                f"{name}: {what} should be {'not negative' if least == 0 else 'greater than zero'}, but got "
                f"{list(values)}."
            )
        found.append(values)
    return found


def _positions(size: Sequence[int], kernel: Any, dilation: Any, padding: Any, stride: Any) -> tuple[int, ...]:
    return tuple(
        (length + 2 * pad - wide * (taps - 1) - 1) // step + 1
        for length, taps, wide, pad, step in zip(size, kernel, dilation, padding, stride, strict=True)
    )


@composite(name="nn.functional.unfold", namespaces="nn.functional", method=False)
def unfold(input: Tensor, kernel_size: Ints, dilation: Ints = 1, padding: Ints = 0, stride: Ints = 1) -> Tensor:
    """Every patch under a sliding window as a column.

    Args:
        input: (batch, channels, height, width), or without the batch.

    Returns:
        (batch, channels * window, positions).

    Raises:
        RuntimeError: the window does not fit into the input.
    """
    if input.ndim not in (3, 4) or not all(input.shape[-3:]):
        raise ShapeError(
            f"unfold: expected 3D or 4D (batch mode) tensor with possibly 0 batch size and other non-zero dimensions, "
            f"but got {list(input.shape)}."
        )
    geometry = _patch_parameters("unfold", kernel_size, dilation, padding, stride)
    positions = _positions(input.shape[-2:], *geometry)
    if min(positions) < 1:
        raise ShapeError(
            f"unfold: given an input of spatial size {list(input.shape[-2:])}, kernel_size={list(geometry[0])}, "
            f"dilation={list(geometry[1])}, padding={list(geometry[2])}, calculated shape of the array of "
            "sliding blocks as "
            f"{list(positions)}, which is too small (non-positive)."
        )
    if input.ndim == 3:
        return im2col(cast(Any, input).unsqueeze(0), *geometry).squeeze(0)  # type: ignore[no-any-return]
    return im2col(input, *geometry)  # type: ignore[no-any-return]


@composite(namespaces="nn.functional", method=False)
def fold(
    input: Tensor, output_size: Ints, kernel_size: Ints, dilation: Ints = 1, padding: Ints = 0, stride: Ints = 1
) -> Tensor:
    """Sum patches into an image: the adjoint of :func:`unfold`.

    Args:
        input: (batch, channels * window, positions), or without the batch.
        output_size: (height, width) of the image.

    Returns:
        (batch, channels, height, width).

    Raises:
        RuntimeError: the sizes do not fit together.
    """
    size = per_dimension(output_size, 2, "output_size", "fold")
    geometry = _patch_parameters("fold", kernel_size, dilation, padding, stride)
    if input.ndim not in (2, 3) or not all(input.shape[-2:]):
        raise ShapeError(
            "fold: expected 2D or 3D (batch mode) tensor for input with possibly 0 batch size and non-zero "
            "dimensions, "
            f"but got {list(input.shape)}."
        )
    window, positions = math.prod(geometry[0]), _positions(size, *geometry)
    if input.shape[-2] % window:
        raise ShapeError(
            f"fold: expected size of input's dimension 1 to be divisible by the product of kernel_size, "
            f"but got {input.shape[-2]} and kernel_size={list(geometry[0])}."
        )
    if min(positions) < 1 or math.prod(positions) != input.shape[-1]:
        raise ShapeError(
            f"fold: given output_size={list(size)}, kernel_size={list(geometry[0])}, dilation={list(geometry[1])}, "
            f"padding={list(geometry[2])}, stride={list(geometry[3])}, expected size of input's dimension 2 to "
            "match the calculated "
            f"number of sliding blocks {' * '.join(map(str, positions))} = {math.prod(positions)}, but got "
            f"{input.shape[-1]}."
        )
    if input.ndim == 2:
        return col2im(cast(Any, input).unsqueeze(0), size, *geometry).squeeze(0)  # type: ignore[no-any-return]
    return col2im(input, size, *geometry)  # type: ignore[no-any-return]
