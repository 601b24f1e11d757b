"""Pooling and its inverse."""

from __future__ import annotations

from typing import Any, ClassVar

from ..errors import ArgumentError
from . import functional as F
from .module import Module
from .sizes import of_each, shown

__all__ = [
    "AdaptiveAvgPool1d", "AdaptiveAvgPool2d", "AdaptiveAvgPool3d", "AdaptiveMaxPool1d", "AdaptiveMaxPool2d",
    "AdaptiveMaxPool3d", "AvgPool1d", "AvgPool2d", "AvgPool3d", "FractionalMaxPool2d", "FractionalMaxPool3d",
    "LPPool1d",
    "LPPool2d", "LPPool3d", "MaxPool1d", "MaxPool2d", "MaxPool3d", "MaxUnpool1d", "MaxUnpool2d", "MaxUnpool3d",
]  # fmt: skip


class _Pool(Module):
    #: the function of ``flambeau.nn.functional`` that does the work
    function: ClassVar[str]


class _MaxPool(_Pool):
    """The largest value of each window.

    Args:
        kernel_size, stride, padding, dilation: one number, or one for each dimension; stride is kernel_size by default.
        return_indices: also return where each value was, for unpooling.
        ceil_mode: let a window begin inside and end outside of the input.
    """

    def __init__(
        self, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1, return_indices: bool = False,
        ceil_mode: bool = False,
    ) -> None:  # fmt: skip
        super().__init__()
        self.kernel_size, self.stride = kernel_size, kernel_size if stride is None else stride
        self.padding, self.dilation = padding, dilation
        self.return_indices, self.ceil_mode = return_indices, ceil_mode

    def forward(self, input: Any) -> Any:
        return getattr(F, self.function)(
            input, self.kernel_size, self.stride, self.padding, self.dilation, ceil_mode=self.ceil_mode,
            return_indices=self.return_indices,
        )  # fmt: skip

    def extra_repr(self) -> str:
        return shown(self, "kernel_size", "stride", "padding", "dilation", "ceil_mode")


class MaxPool1d(_MaxPool):
    __doc__ = _MaxPool.__doc__
    function = "max_pool1d"


class MaxPool2d(_MaxPool):
    __doc__ = _MaxPool.__doc__
    function = "max_pool2d"


class MaxPool3d(_MaxPool):
    __doc__ = _MaxPool.__doc__
    function = "max_pool3d"


class _Unpool(_Pool):
    """Puts values back where max-pooling found them; zeros elsewhere.

    Args:
        kernel_size, stride, padding: as of the pooling.
    """

    dims: ClassVar[int]

    def __init__(self, kernel_size: Any, stride: Any = None, padding: Any = 0) -> None:
        super().__init__()
        self.kernel_size = of_each(kernel_size, self.dims)
        self.stride = of_each(kernel_size if stride is None else stride, self.dims)
        self.padding = of_each(padding, self.dims)

    def forward(self, input: Any, indices: Any, output_size: Any = None) -> Any:
        return getattr(F, self.function)(input, indices, self.kernel_size, self.stride, self.padding, output_size)

    def extra_repr(self) -> str:
        return shown(self, "kernel_size", "stride", "padding")


class MaxUnpool1d(_Unpool):
    __doc__ = _Unpool.__doc__
    function, dims = "max_unpool1d", 1


class MaxUnpool2d(_Unpool):
    __doc__ = _Unpool.__doc__
    function, dims = "max_unpool2d", 2


class MaxUnpool3d(_Unpool):
    __doc__ = _Unpool.__doc__
    function, dims = "max_unpool3d", 3


class AvgPool1d(_Pool):
    """The mean of each window.

    Args:
        kernel_size, stride, padding: as for :class:`MaxPool1d`.
        count_include_pad: count padding as zeros.
    """

    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> None:
        super().__init__()
        self.kernel_size = of_each(kernel_size, 1)
        self.stride = of_each(kernel_size if stride is None else stride, 1)
        self.padding, self.ceil_mode, self.count_include_pad = of_each(padding, 1), ceil_mode, count_include_pad

    def forward(self, input: Any) -> Any:
        return F.avg_pool1d(input, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad)

    def extra_repr(self) -> str:
        return shown(self, "kernel_size", "stride", "padding")


class _AvgPool(_Pool):
    """The mean of each window.

    Args:
        kernel_size, stride, padding: one number, or one for each dimension.
        ceil_mode: let a window begin inside and end outside of the input.
        count_include_pad: count padding as zeros.
        divisor_override: divide by this instead of the window's size.
    """

    def __init__(
        self, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False,
        count_include_pad: bool = True, divisor_override: int | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.kernel_size, self.stride = kernel_size, kernel_size if stride is None else stride
        self.padding, self.ceil_mode = padding, ceil_mode
        self.count_include_pad, self.divisor_override = count_include_pad, divisor_override

    def forward(self, input: Any) -> Any:
        return getattr(F, self.function)(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.ceil_mode,
            self.count_include_pad,
            self.divisor_override,
        )

    def extra_repr(self) -> str:
        return shown(self, "kernel_size", "stride", "padding")


class AvgPool2d(_AvgPool):
    __doc__ = _AvgPool.__doc__
    function = "avg_pool2d"


class AvgPool3d(_AvgPool):
    __doc__ = _AvgPool.__doc__
    function = "avg_pool3d"


class _LPPool(_Pool):
    """The p-norm of each window.

    Args:
        norm_type: p.
        kernel_size, stride: one number, or one for each dimension.
        ceil_mode: let a window begin inside and end outside of the input.
    """

    def __init__(self, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False) -> None:
        super().__init__()
        self.norm_type, self.kernel_size, self.stride, self.ceil_mode = norm_type, kernel_size, stride, ceil_mode

    def forward(self, input: Any) -> Any:
        return getattr(F, self.function)(input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode)

    def extra_repr(self) -> str:
        return shown(self, "norm_type", "kernel_size", "stride", "ceil_mode")


class LPPool1d(_LPPool):
    __doc__ = _LPPool.__doc__
    function = "lp_pool1d"


class LPPool2d(_LPPool):
    __doc__ = _LPPool.__doc__
    function = "lp_pool2d"


class LPPool3d(_LPPool):
    __doc__ = _LPPool.__doc__
    function = "lp_pool3d"


class _Adaptive(_Pool):
    """The mean, or the largest value, of equal parts of the input.

    Args:
        output_size: how many parts, one number or one for each dimension; None keeps the input's size.
    """

    def __init__(self, output_size: Any) -> None:
        super().__init__()
        self.output_size = output_size

    def forward(self, input: Any) -> Any:
        return getattr(F, self.function)(input, self.output_size)

    def extra_repr(self) -> str:
        return shown(self, "output_size")


class AdaptiveAvgPool1d(_Adaptive):
    __doc__ = _Adaptive.__doc__
    function = "adaptive_avg_pool1d"


class AdaptiveAvgPool2d(_Adaptive):
    __doc__ = _Adaptive.__doc__
    function = "adaptive_avg_pool2d"


class AdaptiveAvgPool3d(_Adaptive):
    __doc__ = _Adaptive.__doc__
    function = "adaptive_avg_pool3d"


class _AdaptiveMax(_Adaptive):
    __doc__ = _Adaptive.__doc__

    def __init__(self, output_size: Any, return_indices: bool = False) -> None:
        super().__init__(output_size)
        self.return_indices = return_indices

    def forward(self, input: Any) -> Any:
        return getattr(F, self.function)(input, self.output_size, self.return_indices)


class AdaptiveMaxPool1d(_AdaptiveMax):
    __doc__ = _Adaptive.__doc__
    function = "adaptive_max_pool1d"


class AdaptiveMaxPool2d(_AdaptiveMax):
    __doc__ = _Adaptive.__doc__
    function = "adaptive_max_pool2d"


class AdaptiveMaxPool3d(_AdaptiveMax):
    __doc__ = _Adaptive.__doc__
    function = "adaptive_max_pool3d"


class _Fractional(_Pool):
    """The largest value of windows at random steps.  Source: Graham, "Fractional max-pooling", 2014.

    Args:
        kernel_size: one number, or one for each dimension.
        output_size: of the result; or
        output_ratio: its share of the input's size, between 0 and 1.
        return_indices: also return where each value was.

    Raises:
        ValueError: not exactly one of ``output_size`` and ``output_ratio`` is given.
    """

    dims: ClassVar[int]

    def __init__(
        self, kernel_size: Any, output_size: Any = None, output_ratio: Any = None, return_indices: bool = False,
        _random_samples: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        if (output_size is None) == (output_ratio is None):
            raise ArgumentError(f"{type(self).__name__} requires exactly one of output_size and output_ratio.")
        self.kernel_size = of_each(kernel_size, self.dims)
        self.output_size = None if output_size is None else of_each(output_size, self.dims)
        self.output_ratio = None if output_ratio is None else of_each(output_ratio, self.dims)
        if self.output_ratio is not None and not all(0 < each < 1 for each in self.output_ratio):
            raise ArgumentError(f"output_ratio must be between 0 and 1 (got {output_ratio})")
        self.return_indices = return_indices
        self.register_buffer("_random_samples", _random_samples)

    def forward(self, input: Any) -> Any:
        return getattr(F, self.function)(
            input, self.kernel_size, self.output_size, self.output_ratio, self.return_indices,
            _random_samples=self._random_samples,
        )  # fmt: skip


class FractionalMaxPool2d(_Fractional):
    __doc__ = _Fractional.__doc__
    function, dims = "fractional_max_pool2d", 2


class FractionalMaxPool3d(_Fractional):
    __doc__ = _Fractional.__doc__
    function, dims = "fractional_max_pool3d", 3
