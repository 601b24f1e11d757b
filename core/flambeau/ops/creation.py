"""Tensors from nothing, from Python values and from NumPy arrays."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any, Final, cast

import numpy as np

from ..device import device as Device
from ..dtype import DTYPES, bfloat16, default, dtype as Dtype, float64, from_numpy_dtype, of_scalar
from ..errors import ArgumentError, ArgumentTypeError, DtypeError, ShapeError, shown
from ..geometry import Geometry, contiguous, strided
from ..key import Key, intern
from ..layout import layout as Layout, strided as strided_layout
from ..plugins import default_device, default_key
from ..tensor import Tensor, constant, empty as allocate, make, number_of, to_bfloat16
from .conversion import fill_
from .views import sizes

__all__ = [
    "as_tensor", "empty", "empty_like", "empty_strided", "from_numpy", "full", "full_like", "key_for", "new_empty",
    "new_full", "new_ones", "new_tensor", "new_zeros", "ones", "ones_like", "tensor", "zeros", "zeros_like",
]  # fmt: skip


_fill: Final = fill_.op


def key_for(dtype: Dtype | None, device: Any, layout: Layout | None = None) -> Key:
    """The key of a factory's arguments; None is the default of each.

    Raises:
        RuntimeError: nothing provides the device.
        TypeError: ``dtype`` is no dtype.
    """
    if dtype is None and device is None and layout is None:
        return default_key()
    place = default_device() if device is None else Device(device)
    return intern(place, layout or strided_layout, dtype or default.dtype)


def finish(result: Tensor, requires_grad: bool, pin_memory: bool = False) -> Tensor:
    """Put a new tensor into pinned memory and mark it as requiring grad, if asked."""
    if pin_memory:
        result = cast(Any, result).pin_memory()
    return cast(Tensor, cast(Any, result).requires_grad_()) if requires_grad else result


def into(out: Tensor, shape: tuple[int, ...], dtype: Dtype | None, name: str) -> Tensor:
    """``out`` with the wanted shape.

    Raises:
        RuntimeError: its dtype is not the one asked for.
    """
    if dtype is not None and dtype is not out.dtype:
        raise DtypeError(f"{name}(): dtype {dtype.name} does not match dtype of out parameter ({out.dtype.name}).")
    if out.shape != shape:
        cast(Any, out).resize_(shape)
    return out


def store(out: Tensor, result: Tensor, dtype: Dtype | None, name: str) -> Tensor:
    """``out`` with the shape and the values of a result of its dtype."""
    return cast(Tensor, cast(Any, into(out, result.shape, dtype, name)).copy_(result))


def empty(
    *size: Any,
    out: Tensor | None = None,
    dtype: Dtype | None = None,
    layout: Layout | None = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
    memory_format: Any = None,
) -> Tensor:
    """A tensor whose contents are undefined.

    Args:
        size: the shape, as ints or one sequence.
        out: an existing tensor to resize and return.
        dtype: default floating-point type if not given.
        layout: strided if not given.
        device: the default device if not given.
        requires_grad: whether operators on it record history.
        pin_memory: whether the accelerator shall copy it by itself; see :meth:`Tensor.pin_memory`.

    Raises:
        RuntimeError: a size is negative, the device is unknown, or no device has pinned memory.
        MemoryError: the device cannot provide the memory.
    """
    shape = sizes(size)
    if out is not None:
        return into(out, shape, dtype, "empty")
    return finish(allocate(key_for(dtype, device, layout), contiguous(shape)), requires_grad, pin_memory)


def empty_strided(
    size: Sequence[int], stride: Sequence[int], *, dtype: Dtype | None = None, device: Any = None,
    layout: Layout | None = None, requires_grad: bool = False, pin_memory: bool = False,
) -> Tensor:  # fmt: skip
    """A tensor with these strides (in elements) whose contents are undefined.

    Raises:
        RuntimeError: sizes and strides differ in number, one is negative, or the layout has none.
    """
    key = key_for(dtype, device, layout)
    if key.layout is not strided_layout:
        raise ShapeError(f"empty_strided: expected the layout strided, got {key.layout.name}, which has no strides.")
    size, stride = sizes((size,)), sizes((stride,), "stride")
    if len(size) != len(stride):
        raise ShapeError(f"dimensionality of sizes ({len(size)}) must match dimensionality of strides ({len(stride)})")
    if min((*size, *stride), default=0) < 0:
        raise ShapeError(f"empty_strided: sizes and strides are not negative, got {list(size)} and {list(stride)}.")
    geometry = strided(size, stride)
    return finish(make(key, geometry, key.allocate(geometry.span)), requires_grad, pin_memory)


def filled(key: Key, geometry: Geometry, value: Any) -> Tensor:
    """A dense tensor full of one number."""
    if type(value) not in key.keeps:
        value = number_of(key.dtype, value)
    if not value and type(value) is not float:
        return make(key, geometry, key.allocate_zeros(geometry.numel))
    result = allocate(key, geometry)
    # A fresh tensor has no history and no views, so the kernel can be called at once.
    (_fill.table.get(key) or _fill.resolve(key))(result, constant(key, value))
    return result


def _factory(value: float, name: str, doc: str) -> Callable[..., Tensor]:
    def make_filled(
        *size: Any,
        out: Tensor | None = None,
        dtype: Dtype | None = None,
        layout: Layout | None = None,
        device: Any = None,
        requires_grad: bool = False,
        pin_memory: bool = False,
    ) -> Tensor:
        if out is not None:
            return cast(Tensor, cast(Any, into(out, sizes(size), dtype, name)).fill_(value))
        shape = size if len(size) == 1 and type(size[0]) is int else sizes(size)
        result = filled(key_for(dtype, device, layout), contiguous(shape), value)
        return finish(result, requires_grad, pin_memory) if requires_grad or pin_memory else result

    make_filled.__name__ = make_filled.__qualname__ = name
    make_filled.__doc__ = doc
    return make_filled


zeros = _factory(0, "zeros", "A tensor of zeros; arguments as for :func:`empty`.")
ones = _factory(1, "ones", "A tensor of ones; arguments as for :func:`empty`.")


def full(
    size: Any, fill_value: Any, *, out: Tensor | None = None, dtype: Dtype | None = None,
    layout: Layout | None = None, device: Any = None, requires_grad: bool = False, pin_memory: bool = False,
) -> Tensor:  # fmt: skip
    """A tensor full of one number, whose type decides the dtype if none is given."""
    shape = sizes((size,))
    value = fill_value.item() if isinstance(fill_value, (Tensor, np.generic)) else fill_value
    if out is not None:
        number = fill_(allocate(out.key, contiguous(())), value)
        return cast(Tensor, cast(Any, into(out, shape, dtype, "full")).fill_(number))
    key = key_for(dtype or of_scalar(type(value)), device, layout)
    return finish(filled(key, contiguous(shape), value), requires_grad, pin_memory)


# ---------------------------------------------------------------- like another tensor


def _key_like(self: Tensor, dtype: Dtype | None, device: Any, layout: Layout | None) -> Key:
    if dtype is None and device is None and layout is None:
        return self.key
    return intern(Device(device) if device is not None else self.device, layout or self.layout, dtype or self.dtype)


def _geometry_like(self: Tensor) -> Geometry:
    """Dense tensors are imitated in their strides, others in their shape."""
    return self.geometry if self.geometry.dense else contiguous(self.shape)


def empty_like(
    self: Tensor, *, dtype: Dtype | None = None, layout: Layout | None = None, device: Any = None,
    requires_grad: bool = False, pin_memory: bool = False, memory_format: Any = None,
) -> Tensor:  # fmt: skip
    """An uninitialised tensor of the same shape, dtype and device, unless told otherwise."""
    return finish(allocate(_key_like(self, dtype, device, layout), _geometry_like(self)), requires_grad, pin_memory)


def full_like(
    self: Tensor, fill_value: Any, *, dtype: Dtype | None = None, layout: Layout | None = None, device: Any = None,
    requires_grad: bool = False, pin_memory: bool = False, memory_format: Any = None,
) -> Tensor:  # fmt: skip
    """A tensor full of one number, of the same shape, dtype and device unless told otherwise."""
    value = cast(Any, fill_value).item() if isinstance(fill_value, Tensor) else fill_value
    return finish(
        filled(_key_like(self, dtype, device, layout), _geometry_like(self), value), requires_grad, pin_memory
    )


def zeros_like(self: Tensor, **options: Any) -> Tensor:
    """Zeros of the same shape, dtype and device; options as for :func:`empty_like`."""
    return full_like(self, 0, **options)


def ones_like(self: Tensor, **options: Any) -> Tensor:
    """Ones of the same shape, dtype and device; options as for :func:`empty_like`."""
    return full_like(self, 1, **options)


def new_empty(
    self: Tensor, *size: Any, dtype: Dtype | None = None, device: Any = None, requires_grad: bool = False,
    layout: Layout | None = None, pin_memory: bool = False,
) -> Tensor:  # fmt: skip
    """An uninitialised tensor of another shape on the same device and of the same dtype, unless told otherwise."""
    return finish(allocate(_key_like(self, dtype, device, layout), contiguous(sizes(size))), requires_grad, pin_memory)


def new_full(
    self: Tensor, size: Any, fill_value: Any, *, dtype: Dtype | None = None, device: Any = None,
    requires_grad: bool = False, layout: Layout | None = None, pin_memory: bool = False,
) -> Tensor:  # fmt: skip
    """A tensor full of one number, on the same device and of the same dtype unless told otherwise."""
    value = cast(Any, fill_value).item() if isinstance(fill_value, Tensor) else fill_value
    return finish(
        filled(_key_like(self, dtype, device, layout), contiguous(sizes((size,))), value), requires_grad, pin_memory
    )


def new_zeros(self: Tensor, *size: Any, **options: Any) -> Tensor:
    """Zeros on the same device and of the same dtype, unless told otherwise."""
    return new_full(self, sizes(size), 0, **options)


def new_ones(self: Tensor, *size: Any, **options: Any) -> Tensor:
    """Ones on the same device and of the same dtype, unless told otherwise."""
    return new_full(self, sizes(size), 1, **options)


# ---------------------------------------------------------------- from values


def _nested(data: Any) -> bool:
    """Whether something is a sequence of values, such as a list or a range."""
    return isinstance(data, (list, tuple)) or (isinstance(data, Sequence) and not isinstance(data, (str, bytes)))


def _infer(data: Any) -> Dtype:
    """The dtype of nested lists of Python numbers."""
    found = None
    stack = [data]
    while stack:
        each = stack.pop()
        if _nested(each):
            stack.extend(each)
            continue
        if isinstance(each, Tensor):
            kind = each.dtype
        elif isinstance(each, (np.generic, np.ndarray)):
            kind = from_numpy_dtype(each.dtype) or float64
        elif isinstance(each, (bool, int, float, complex)):
            kind = of_scalar(
                bool
                if isinstance(each, bool)
                else int
                if isinstance(each, int)
                else float
                if isinstance(each, float)
                else complex
            )
        else:
            raise ArgumentTypeError(
                f"tensor() expects numbers, nested lists of them, arrays or tensors, got {type(each).__name__} {shown(each)}."
            )
        if found is None or kind.category > found.category:
            found = kind
    return found or default.dtype


def _plain(data: Any) -> Any:
    """Nested lists, with tensors and arrays inside replaced by their values."""
    if isinstance(data, (Tensor, np.ndarray)):
        return cast(Any, data).tolist()
    return [_plain(each) for each in data] if _nested(data) else data


def to_array(data: Any, dtype: Dtype | None) -> tuple[np.ndarray[Any, Any], Dtype]:
    """A fresh contiguous array of a Python value in the memory format of its dtype, and that dtype.

    Raises:
        TypeError: the value has no dtype of ours.
        ValueError: nested lists are ragged.
    """
    if isinstance(data, (np.ndarray, np.generic)):
        own = from_numpy_dtype(data.dtype.newbyteorder("="))
        if own is None:
            raise ArgumentTypeError(
                f"can't convert np.ndarray of type {data.dtype}. The only supported types are: "
                f"{', '.join(each.name for each in DTYPES)}."
            )
        wanted = dtype or own
        array = np.asarray(data)
    else:
        kinds = set(map(type, data)) if type(data) is list else ()
        if len(kinds) == 1 and (kind := next(iter(kinds))) in (float, int, bool) and dtype is None:
            try:
                return np.array(data, of_scalar(kind).numpy), of_scalar(kind)
            except OverflowError:
                pass  # said below
        wanted = dtype or _infer(data)
        if type(data) is list or _nested(data):
            flat = type(data[0]) in (float, int) if data else True
            source = data if flat else _plain(data)
        else:
            source = data
        try:
            array = np.array(source, np.float32 if wanted is bfloat16 else wanted.numpy)
        except (ValueError, TypeError, OverflowError) as error:
            if isinstance(error, OverflowError):
                raise DtypeError(f"value cannot be converted to {wanted.name} without overflow: {error}.") from None
            if isinstance(error, TypeError) or "inhomogeneous" not in str(error):
                try:
                    array = np.array(source)
                except ValueError:
                    array = np.array(None)
                if array.dtype.kind in "biufc":
                    array = array.astype(wanted.numpy)
                    return np.array(array, order="C"), wanted
            raise ArgumentError(f"expected sequences of equal length at every depth, got {shown(data)}.") from None
    if wanted is bfloat16:
        array = to_bfloat16(array.astype(np.float32))
    with np.errstate(all="ignore"):
        fresh = np.array(array, wanted.numpy, order="C")
    return fresh, wanted


def tensor(
    data: Any, *, dtype: Dtype | None = None, device: Any = None, requires_grad: bool = False, pin_memory: bool = False
) -> Tensor:
    """A tensor with a copy of ``data``.

    Args:
        data: a number, nested sequences of numbers, a NumPy array or scalar, or a tensor.
        dtype: inferred if not given: bool, int64, the default floating-point type or complex.
        device: the default device if not given.
        requires_grad: whether operators on it record history.

    Raises:
        TypeError: something is not a number.
        ValueError: nested sequences are ragged.

    >>> import flambeau
    >>> flambeau.tensor([[1, 2], [3, 4]])
    tensor([[1, 2],
            [3, 4]])
    """
    if isinstance(data, Tensor):
        copy = cast(Any, data).detach().to(device=device or data.device, dtype=dtype or data.dtype, copy=True)
        return finish(copy, requires_grad, pin_memory)
    array, found = to_array(data, dtype)
    key = key_for(found, device)
    result = make(key, contiguous(array.shape), key.memory.from_numpy(array.reshape(-1), key.device, found))
    return finish(result, requires_grad, pin_memory) if requires_grad or pin_memory else result


def new_tensor(
    self: Tensor, data: Any, *, dtype: Dtype | None = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """A tensor with a copy of ``data``, of the same dtype and on the same device unless told otherwise."""
    return tensor(data, dtype=dtype or self.dtype, device=device or self.device, requires_grad=requires_grad)


def from_numpy(array: np.ndarray[Any, Any]) -> Tensor:
    """A tensor that shares the memory of a NumPy array; one that may not be written is copied, with a warning.

    Raises:
        TypeError: the array's dtype has no counterpart, or its byte order is foreign.
        ValueError: its strides are negative or no multiple of the element size, or it is not aligned.

    >>> import flambeau, numpy
    >>> flambeau.from_numpy(numpy.arange(3))
    tensor([0, 1, 2])
    """
    if not isinstance(array, np.ndarray):
        raise ArgumentTypeError(f"expected np.ndarray (got {type(array).__name__})")
    dtype = from_numpy_dtype(array.dtype)
    if dtype is None:
        raise ArgumentTypeError(
            f"can't convert np.ndarray of type {array.dtype}. The only supported types are: "
            f"{', '.join(each.name for each in DTYPES if each is not bfloat16)}."
        )
    if not array.flags.writeable:
        warnings.warn("The array is read-only, so the tensor got a copy: writes to it stay its own.", stacklevel=2)
        array = array.copy()
    return over(array, dtype)


def over(array: np.ndarray[Any, Any], dtype: Dtype) -> Tensor:
    """A tensor over the memory of an array, which is written if the tensor is.

    Raises:
        ValueError: the array is laid out in a way that no tensor is.
    """
    if not array.flags.aligned:
        raise ArgumentError("from_numpy: the array's elements are not aligned in memory.\nPass array.copy().")
    key = key_for(dtype, None)
    if array.flags.c_contiguous:
        return make(key, contiguous(array.shape), key.memory.from_numpy(array.reshape(-1), key.device, dtype))
    strides = []
    for size, step in zip(array.shape, array.strides, strict=True):
        if step < 0 or step % dtype.itemsize:
            raise ArgumentError(
                f"from_numpy: strides must be non-negative multiples of the element size ({dtype.itemsize}), got {array.strides}.\n"
                "Pass array.copy()."
            )
        strides.append(step // dtype.itemsize if size > 1 else 1)
    geometry = strided(array.shape, tuple(strides))
    span = np.lib.stride_tricks.as_strided(array, (geometry.span,), (dtype.itemsize,))
    return make(key, geometry, key.memory.from_numpy(span, key.device, dtype))


def as_tensor(data: Any, dtype: Dtype | None = None, device: Any = None) -> Tensor:
    """``data`` as a tensor, sharing its memory where dtype and device allow."""
    if (
        isinstance(data, np.ndarray)
        and device is None
        and data.flags.writeable
        and from_numpy_dtype(data.dtype) is not None
    ):
        try:
            data = from_numpy(data)
        except ArgumentError:
            return tensor(data, dtype=dtype)
    if isinstance(data, Tensor):
        return cast(Tensor, cast(Any, data).to(device=device or data.device, dtype=dtype or data.dtype))
    return tensor(data, dtype=dtype, device=device)


def scalar_tensor(value: Any, *, dtype: Dtype | None = None, device: Any = None) -> Tensor:
    """A 0-dim tensor."""
    return tensor(value, dtype=dtype or default.dtype, device=device)


def _construct(cls: type[Tensor], *args: Any, device: Any = None) -> Tensor:
    """``Tensor(2, 3)``: uninitialised; ``Tensor([1, 2])``: values; both of the default dtype."""
    if cls is not Tensor:
        return object.__new__(cls)
    if len(args) == 1 and isinstance(args[0], (list, tuple, np.ndarray)) and type(args[0]).__name__ != "Size":
        return tensor(args[0], dtype=default.dtype, device=device)
    if len(args) == 1 and isinstance(args[0], Tensor):
        return cast(Tensor, cast(Any, args[0]).detach())
    return empty(*args, device=device) if args else empty(0, device=device)


Tensor.construct = _construct
