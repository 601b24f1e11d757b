"""What holds for the whole process: the default dtype, threads; and limits of the element types."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from .dtype import bfloat16, complex64, complex128, default, dtype as Dtype
from .errors import ArgumentError, ArgumentTypeError, DeviceError
from .plugins import default_device, plugins
from .storage import TypedStorage
from .tensor import Tensor

__all__ = [
    "finfo", "get_default_dtype", "get_num_threads", "iinfo", "is_storage", "is_tensor", "numel", "set_default_dtype",
    "set_flush_denormal", "set_num_threads",
]  # fmt: skip


def is_tensor(obj: Any) -> bool:
    """Whether an object is a tensor."""
    return isinstance(obj, Tensor)


def is_storage(obj: Any) -> bool:
    """Whether an object is a storage."""
    return isinstance(obj, TypedStorage)


def numel(input: Tensor) -> int:
    """The number of elements of a tensor.

    Raises:
        TypeError: it is no tensor.
    """
    if not isinstance(input, Tensor):
        raise ArgumentTypeError(f"numel() expects a Tensor, got {type(input).__name__}.")
    return input.geometry.numel


def get_default_dtype() -> Dtype:
    """The floating-point type of tensors made without saying.

    >>> import flambeau
    >>> flambeau.get_default_dtype()
    flambeau.float32
    """
    return default.dtype


def set_default_dtype(d: Dtype) -> None:
    """Choose the floating-point type of tensors made without saying.

    Raises:
        TypeError: ``d`` is no floating-point dtype.
    """
    if not isinstance(d, Dtype) or not d.is_floating_point:
        raise ArgumentTypeError(f"only floating-point types are supported as the default type, got {d!r}.")
    default.dtype = d


def _hooks(name: str) -> Iterator[Callable[..., Any]]:
    """The functions of this name that the loaded backends offer; the default device's are loaded first."""
    plugins.load(default_device().type)
    for plugin in plugins:
        for backend in plugin.backends:
            if name in backend.hooks:
                yield backend.hooks[name]


def set_num_threads(threads: int) -> None:
    """Let every kernel library use this many threads.

    Raises:
        ValueError: it is not positive.
    """
    if isinstance(threads, bool) or not isinstance(threads, int):
        raise ArgumentTypeError(f"set_num_threads expects an int, but got {type(threads).__name__}.")
    if threads < 1:
        raise ArgumentError(f"set_num_threads expects a positive integer, got {threads}.")
    for each in _hooks("set_num_threads"):
        each(threads)


def get_num_threads() -> int:
    """How many threads the default device's kernels use.

    Raises:
        RuntimeError: no loaded backend has threads.
    """
    found = next(_hooks("get_num_threads"), None)
    if found is None:
        raise DeviceError("No loaded backend has a number of threads.")
    return int(found())


def set_flush_denormal(mode: bool) -> bool:
    """Let kernels take numbers too small for their exponent as zero; returns whether some backend can."""
    done = [bool(each(bool(mode))) for each in _hooks("set_flush_denormal")]
    return any(done)


class finfo:
    """Limits of a floating-point type (of the parts, if it is complex).

    Attributes:
        bits: of one element.
        eps: from 1 to the next larger number.
        max, min: the largest and the most negative finite number.
        tiny, smallest_normal: the smallest positive number of full precision.
        resolution: of decimal digits.
        dtype: the type's name.

    Raises:
        TypeError: the type is not floating-point.

    >>> import flambeau
    >>> flambeau.finfo(flambeau.float64).eps
    2.220446049250313e-16
    """

    def __init__(self, type: Dtype | None = None) -> None:
        dtype = default.dtype if type is None else type
        if not isinstance(dtype, Dtype) or dtype.category < 2:
            raise ArgumentTypeError(f"torch.finfo() requires a floating point input type, got {dtype!r}. Use iinfo.")
        part = dtype.to_real() if dtype in (complex64, complex128) else dtype
        self.dtype, self.bits = part.name, part.itemsize * 8
        if part is bfloat16:
            self.eps, self.max, self.tiny, self.resolution = 2.0**-7, (2 - 2.0**-7) * 2.0**127, 2.0**-126, 0.01
        else:
            limits = np.finfo(part.numpy)
            self.eps, self.max, self.tiny = float(limits.eps), float(limits.max), float(limits.tiny)
            self.resolution = float(f"1e-{limits.precision}")
        self.min, self.smallest_normal = -self.max, self.tiny

    def __repr__(self) -> str:
        numbers = {name: getattr(self, name) for name in ("resolution", "min", "max", "eps", "smallest_normal", "tiny")}
        return f"finfo({', '.join(f'{name}={value:g}' for name, value in numbers.items())}, dtype={self.dtype})"


class iinfo:
    """Limits of an integer type: ``bits``, ``min``, ``max`` and ``dtype``, its name.

    Raises:
        TypeError: the type is no integer type.
    """

    def __init__(self, type: Dtype) -> None:
        if not isinstance(type, Dtype) or type.kind not in "ui":
            raise ArgumentTypeError(f"torch.iinfo() requires an integer input type, got {type!r}. Use finfo.")
        limits = np.iinfo(type.numpy)
        self.dtype, self.bits, self.min, self.max = type.name, limits.bits, int(limits.min), int(limits.max)

    def __repr__(self) -> str:
        return f"iinfo(min={self.min}, max={self.max}, dtype={self.dtype})"
