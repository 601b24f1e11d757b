"""Convolutions and transposed convolutions over one to three dimensions."""

from __future__ import annotations

import math
from typing import Any, ClassVar, Final

from ..errors import ArgumentError
from ..ops.creation import empty
from . import functional as F, init
from .module import Module
from .parameter import Parameter
from .sizes import of_each, shown

__all__ = ["Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d"]

_MODES: Final = ("zeros", "reflect", "replicate", "circular")


class _Conv(Module):
    """What all convolutions have in common."""

    dims: ClassVar[int]
    transposed: ClassVar[bool] = False

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any, padding: Any, dilation: Any,
        output_padding: Any, groups: int, bias: bool, padding_mode: str, device: Any, dtype: Any,
    ) -> None:  # fmt: skip
        super().__init__()
        if groups <= 0:
            raise ArgumentError(f"groups must be a positive integer, got {groups}")
        if in_channels % groups:
            raise ArgumentError(f"in_channels must be divisible by groups, got {in_channels} and {groups}")
        if out_channels % groups:
            raise ArgumentError(f"out_channels must be divisible by groups, got {out_channels} and {groups}")
        if padding_mode not in _MODES:
            raise ArgumentError(f"padding_mode must be one of {_MODES}, but got padding_mode={padding_mode!r}")
        if self.transposed and padding_mode != "zeros":
            raise ArgumentError(f'Only "zeros" padding mode is supported for {type(self).__name__}')
        dims = self.dims
        self.in_channels, self.out_channels, self.groups, self.padding_mode = (
            in_channels,
            out_channels,
            groups,
            padding_mode,
        )
        self.kernel_size = of_each(kernel_size, dims, "kernel_size")
        self.stride, self.dilation = of_each(stride, dims, "stride"), of_each(dilation, dims, "dilation")
        self.output_padding = of_each(output_padding, dims, "output_padding")
        if isinstance(padding, str):
            if padding not in ("valid", "same"):
                raise ArgumentError(f"Invalid padding string {padding!r}, should be one of 'valid', 'same'")
            if padding == "same" and any(each != 1 for each in self.stride):
                raise ArgumentError("padding='same' is not supported for strided convolutions")
            self.padding: Any = padding
        else:
            self.padding = of_each(padding, dims, "padding")
        channels = (in_channels, out_channels // groups) if self.transposed else (out_channels, in_channels // groups)
        self.weight = Parameter(empty(*channels, *self.kernel_size, device=device, dtype=dtype))
        self.register_parameter("bias", Parameter(empty(out_channels, device=device, dtype=dtype)) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw new values, uniform within ``1 / sqrt(fan_in)``."""
        fan_in = self.weight.shape[1] * math.prod(self.kernel_size)
        if fan_in:
            bound = 1 / math.sqrt(fan_in)
            for each in self.parameters(recurse=False):
                init.uniform_(each, -bound, bound)

    def _around(self) -> list[int]:
        """The padding of each side, last dimension first, as ``F.pad`` takes it."""
        if self.padding == "valid":
            return [0, 0] * self.dims
        sides: list[int] = []
        for dim in reversed(range(self.dims)):
            if self.padding == "same":
                total = self.dilation[dim] * (self.kernel_size[dim] - 1)
                sides += [total // 2, total - total // 2]
            else:
                sides += [self.padding[dim]] * 2
        return sides

    def extra_repr(self) -> str:
        text = f"{self.in_channels}, {self.out_channels}, " + shown(self, "kernel_size", "stride")
        none = (0,) * self.dims
        rest = shown(self, padding=none, dilation=(1,) * self.dims, output_padding=none, groups=1, padding_mode="zeros")
        return text + (f", {rest}" if rest else "") + ("" if self.bias is not None else ", bias=False")


class _Forward(_Conv):
    """A convolution; see :func:`flambeau.nn.functional.conv2d`.

    Args:
        in_channels, out_channels: sizes of dimension 1.
        kernel_size, stride, dilation: one number, or one for each dimension.
        padding: also ``'valid'`` or ``'same'``.
        groups: of channels, convolved apart.
        bias: whether to add one.
        padding_mode: ``'zeros'``, ``'reflect'``, ``'replicate'`` or ``'circular'``.

    Input (N, C, ...) or (C, ...).
    """

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1, padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1, bias: bool = True, padding_mode: str = "zeros", device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(
            in_channels,
            out_channels,
            kernel_size,
            stride,
            padding,
            dilation,
            0,
            groups,
            bias,
            padding_mode,
            device,
            dtype,
        )

    def _run(self, convolve: Any, input: Any) -> Any:
        if self.padding_mode == "zeros":
            return convolve(input, self.weight, self.bias, self.stride, self.padding, self.dilation, self.groups)
        input = F.pad(input, self._around(), mode=self.padding_mode)
        return convolve(input, self.weight, self.bias, self.stride, (0,) * self.dims, self.dilation, self.groups)


class Conv1d(_Forward):
    __doc__ = _Forward.__doc__
    dims = 1

    def forward(self, input: Any) -> Any:
        return self._run(F.conv1d, input)


class Conv2d(_Forward):
    __doc__ = _Forward.__doc__
    dims = 2

    def forward(self, input: Any) -> Any:
        return self._run(F.conv2d, input)


class Conv3d(_Forward):
    __doc__ = _Forward.__doc__
    dims = 3

    def forward(self, input: Any) -> Any:
        return self._run(F.conv3d, input)


class _Transposed(_Conv):
    """A transposed convolution: the gradient of a convolution with respect to its input.

    Args:
        in_channels, out_channels: sizes of dimension 1.
        kernel_size, stride, padding, dilation: one number, or one for each dimension; of the convolution.
        output_padding: added to one side of the output's size, where the stride leaves it open.
        groups: of channels.
        bias: whether to add one.
    """

    transposed = True

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1, padding: Any = 0,
        output_padding: Any = 0, groups: int = 1, bias: bool = True, dilation: Any = 1, padding_mode: str = "zeros",
        device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(
            in_channels, out_channels, kernel_size, stride, padding, dilation, output_padding, groups, bias,
            padding_mode,
            device, dtype,
        )  # fmt: skip

    def _run(self, convolve: Any, input: Any, output_size: Any) -> Any:
        extra = self.output_padding if output_size is None else self._extra(input, output_size)
        return convolve(input, self.weight, self.bias, self.stride, self.padding, extra, self.groups, self.dilation)

    def _extra(self, input: Any, output_size: Any) -> tuple[int, ...]:
        """The output padding that gives a wanted size.

        Raises:
            ValueError: no padding does.
        """
        wanted = tuple(output_size)[-self.dims :]
        if len(tuple(output_size)) not in (self.dims, self.dims + (input.geometry.ndim - self.dims)):
            raise ArgumentError(
                f"{type(self).__name__}: output_size must have {self.dims} elements, got {len(tuple(output_size))}."
            )
        extra = []
        for dim, size in enumerate(wanted):
            least = (
                (input.shape[dim - self.dims] - 1) * self.stride[dim] - 2 * self.padding[dim]
                + self.dilation[dim] * (self.kernel_size[dim] - 1) + 1
            )  # fmt: skip
            if not least <= size < least + self.stride[dim]:
                raise ArgumentError(
                    f"requested an output size of {list(wanted)}, but dimension {dim} must be from {least} to "
                    f"{least + self.stride[dim] - 1} (for an input of {list(input.shape)})."
                )
            extra.append(size - least)
        return tuple(extra)


class ConvTranspose1d(_Transposed):
    __doc__ = _Transposed.__doc__
    dims = 1

    def forward(self, input: Any, output_size: Any = None) -> Any:
        return self._run(F.conv_transpose1d, input, output_size)


class ConvTranspose2d(_Transposed):
    __doc__ = _Transposed.__doc__
    dims = 2

    def forward(self, input: Any, output_size: Any = None) -> Any:
        return self._run(F.conv_transpose2d, input, output_size)


class ConvTranspose3d(_Transposed):
    __doc__ = _Transposed.__doc__
    dims = 3

    def forward(self, input: Any, output_size: Any = None) -> Any:
        return self._run(F.conv_transpose3d, input, output_size)
