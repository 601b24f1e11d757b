"""``x[...]`` and ``x[...] = value``.

Ints, slices, None and Ellipsis give views.  Tensors, lists, arrays and masks gather
(or scatter) by the rules of NumPy: index tensors broadcast together, and their
dimensions take the place of the first one if all stand side by side, else come first.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, cast

import numpy as np

from ..autograd.grad_mode import mode
from ..autograd.node import record
from ..dispatch.operator import composite, primitive, view_op
from ..dtype import bool_, int8, int16, int32, int64, uint8
from ..errors import ArgumentError, ArgumentTypeError, BoundsError, DtypeError, ShapeError, shown
from ..geometry import Geometry, Size, broadcast_shapes, strided
from ..tensor import Tensor, constant, number_of, view as _view
from .conversion import fill_
from .creation import from_numpy, tensor
from .masking import masked_fill_, masked_select
from .parts import select

__all__ = ["__getitem__", "__setitem__", "index", "index_put", "index_put_"]

_BOUNDS: Final = {int, type(None)}
_MOST_PLANS: Final = 4096
#: (geometry, what basic indices it was indexed with) to the geometry of the view and its shift
_plans: Final[dict[Any, tuple[Geometry, int]]] = {}


def _remember(found: Any, geometry: Geometry, shift: int) -> tuple[Geometry, int]:
    if len(_plans) > _MOST_PLANS:
        _plans.clear()
    plan = _plans[found] = (geometry, shift)
    return plan


# ---------------------------------------------------------------- reading


def __getitem__(self: Tensor, index: Any) -> Tensor:
    """A view for ints, slices, None and Ellipsis; a copy for index tensors, lists, arrays and masks.

    Raises:
        IndexError: an index is out of range, there are too many, or one is of an unknown kind.
        ValueError: a slice's step is not positive.
    """
    kind = type(index)
    geometry = self.geometry
    if kind is int:
        plan = _plans.get((geometry, index)) or _plan_int(geometry, index)
        result = _view(self, plan[0], plan[1])
        if self.node is not None and mode.enabled:
            record(select.op, (self, 0, index % geometry.shape[0]), result)
        return result
    key: Any
    if kind is slice:
        start, stop, step = index.start, index.stop, index.step
        index = (index,)
        if not (type(start) in _BOUNDS and type(stop) in _BOUNDS and type(step) in _BOUNDS):
            return _general(self, index)
        key = geometry, start, stop, step
    else:
        basic = _basic(index) if kind is tuple else None
        if basic is None:
            return _general(self, index)
        key = geometry, basic
    plan = _plans.get(key) or _remember(key, *_walk(geometry, index))
    result = _view(self, plan[0], plan[1])
    if self.node is not None and mode.enabled:
        record(basic_index.op, (self, index), result)
    return result


def _basic(index: tuple[Any, ...]) -> tuple[Any, ...] | None:
    """A hashable twin of a tuple of ints, slices, None and Ellipsis; None if there is anything else in it."""
    found: list[Any] = []
    for each in index:
        kind = type(each)
        if kind is slice:
            parts = (each.start, each.stop, each.step)
            for part in parts:
                if type(part) not in _BOUNDS:
                    return None
            found.append(parts)
        elif kind is int or each is None or each is Ellipsis:
            found.append(each)
        else:
            return None
    return tuple(found)


def _plan_int(geometry: Geometry, index: int) -> tuple[Geometry, int]:
    if not geometry.ndim:
        raise BoundsError(
            "invalid index of a 0-dim tensor. Use `tensor.item()` in Python or `tensor.item<T>()` in C++ "
            "to convert a 0-dim tensor to a number"
        )
    shape, strides = geometry.shape, geometry.strides
    at = _counted(index, 0, shape[0])
    return _remember((geometry, index), strided(Size(shape[1:]), strides[1:]), at * strides[0])


def _counted(index: int, dim: int, size: int) -> int:
    if not -size <= index < size:
        raise BoundsError(f"index {index} is out of bounds for dimension {dim} with size {size}")
    return index + size if index < 0 else index


def _bounds(part: slice, size: int) -> tuple[int, int, int]:
    """Start, count and step of a slice."""
    step = 1 if part.step is None else _integer(part.step)
    if step <= 0:
        raise ArgumentError(f"step must be greater than zero, got {step}.\nUse flip() to reverse a dimension.")
    start, stop, _ = slice(
        None if part.start is None else _integer(part.start), None if part.stop is None else _integer(part.stop), step
    ).indices(size)
    return start, max((stop - start + step - 1) // step, 0), step


def _integer(value: Any) -> int:
    try:
        return cast(int, value.__index__())
    except (AttributeError, TypeError):
        raise ArgumentTypeError(
            f"slice indices must be integers or None or have an __index__ method, got {type(value).__name__} {shown(value)}."
        ) from None


def _walk(geometry: Geometry, index: Sequence[Any]) -> tuple[Geometry, int]:
    """The view that ints, slices, None and Ellipsis make."""
    shape, strides = geometry.shape, geometry.strides
    used = sum(1 for each in index if each is not None and each is not Ellipsis)
    if used > geometry.ndim:
        if not geometry.ndim:
            _plan_int(geometry, 0)
        raise BoundsError(f"too many indices for tensor of dimension {geometry.ndim}: {used} for shape {list(shape)}.")
    sizes: list[int] = []
    steps: list[int] = []
    dim = shift = 0
    rest = geometry.ndim - used
    for each in index:
        if each is None:
            sizes.append(1)
            steps.append(shape[dim] * strides[dim] if dim < geometry.ndim else 1)
        elif each is Ellipsis:
            sizes += shape[dim : dim + rest]
            steps += strides[dim : dim + rest]
            dim, rest = dim + rest, 0
        elif isinstance(each, slice):
            start, count, step = _bounds(each, shape[dim])
            sizes.append(count)
            steps.append(strides[dim] * step)
            shift += start * strides[dim] if count else 0
            dim += 1
        else:
            shift += _counted(each, dim, shape[dim]) * strides[dim]
            dim += 1
    return strided(Size((*sizes, *shape[dim:])), (*steps, *strides[dim:])), shift


@view_op("self | index", method=False, namespaces=())
def basic_index(self: Tensor, index: tuple[Any, ...]) -> Tensor:
    """The view that ints, slices, None and Ellipsis make."""
    return cast(Tensor, basic_index.run(_view(self, *_walk(self.geometry, index)), self, index))


def _basic_gradient(grad: Any, self_shape: Size, index: tuple[Any, ...]) -> Any:
    whole = grad.new_zeros(self_shape)
    whole[index].copy_(grad)
    return whole


basic_index.gradient(self=_basic_gradient)


# ---------------------------------------------------------------- everything else


def _tensors(self: Tensor, index: Any) -> list[Any] | None:
    """The commonest general index as it is: int64 tensors with dimensions, at most one for each dimension."""
    given = index if type(index) is tuple else (index,)
    for each in given:
        if not isinstance(each, Tensor) or each.key.dtype is not int64 or not each.geometry.ndim:
            return None
    return list(given) if given and len(given) <= self.geometry.ndim else None


def _general(self: Tensor, index: Any) -> Tensor:
    places = _tensors(self, index)
    if places is not None:
        return _index(self, places)
    base, indices = _resolve(self, index)
    if indices is None:
        return base
    mask = _whole_mask(base, indices)
    if mask is not None:
        return cast(Tensor, masked_select(base, mask))
    return _index(base, _places(base, indices))


def _whole_mask(base: Tensor, indices: list[Any]) -> Tensor | None:
    """The mask, if a single one covers the whole tensor."""
    first = indices[0] if indices else None
    if (
        first is not None
        and first.key.dtype is bool_
        and first.geometry.ndim
        and first.geometry.shape == base.geometry.shape
    ):
        return first  # type: ignore[no-any-return]
    return None


def _unpacked(index: Any) -> tuple[Any, ...]:
    """The parts of an index; a list that holds anything but numbers stands for a tuple, as it does in PyTorch."""
    if isinstance(index, tuple):
        return index
    if isinstance(index, list) and len(index) < 32:
        for each in index:
            if each is None or each is Ellipsis or isinstance(each, (slice, list, tuple, Tensor, np.ndarray)):
                return tuple(index)
    return (index,)


def _as_tensor(each: Any, self: Tensor) -> Tensor:
    """An index tensor from a tensor, array or sequence of numbers.

    Raises:
        IndexError: it is of another kind or dtype.
    """
    if isinstance(each, np.ndarray):
        each = from_numpy(np.ascontiguousarray(each))
    elif not isinstance(each, Tensor):
        if isinstance(each, (list, tuple, range)):
            each = tensor(list(each), dtype=int64 if not len(each) else None)
        else:
            raise BoundsError(
                "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are valid indices "
                f"(got {type(each).__name__})"
            )
    dtype = each.key.dtype
    if dtype is uint8:
        each = each.bool()
    elif dtype in (int32, int16, int8):
        each = each.long()
    elif dtype is not int64 and dtype is not bool_:
        raise BoundsError(f"tensors used as indices must be long, int, byte or bool tensors, got {dtype.name}.")
    if each.key.device is not self.key.device:
        each = each.to(self.key.device)
    return cast(Tensor, each)


def _resolve(self: Tensor, index: Any) -> tuple[Tensor, list[Tensor | None] | None]:
    """Apply what makes views; return that view and the index tensor of each dimension (None: all of it).

    The second part is None if there are no index tensors.
    """
    simple: list[Any] = []  # ints, slices, None, Ellipsis for the view
    found: list[Any] = []  # for each dimension that the view gets: an index tensor or None
    parts = _unpacked(index)
    ellipsis_at = None
    consumed = 0
    for each in parts:
        if isinstance(each, np.bool_):
            each = bool(each)
        if isinstance(each, (bool, np.integer)) and not isinstance(each, bool):
            each = int(each)
        if each is Ellipsis:
            if ellipsis_at is None:
                ellipsis_at = len(found)
                simple.append(each)
        elif each is None:
            simple.append(None)
            found.append(None)
        elif isinstance(each, bool):
            simple.append(None)
            found.append(_flag(self, each))
        elif isinstance(each, int):
            simple.append(each)
            consumed += 1
        elif isinstance(each, slice):
            simple.append(each)
            found.append(None)
            consumed += 1
        else:
            each = _as_tensor(each, self)
            if not each.geometry.ndim:
                if each.key.dtype is bool_:
                    simple.append(None)
                    found.append(_flag(self, bool(each)))
                else:
                    simple.append(int(cast(Any, each).item()))
                    consumed += 1
                continue
            width = each.geometry.ndim if each.key.dtype is bool_ else 1
            simple += [slice(None)] * width
            found.append(each)
            found += [_COVERED] * (width - 1)
            consumed += width
    if consumed > self.geometry.ndim:
        if not self.geometry.ndim:
            _plan_int(self.geometry, 0)
        raise BoundsError(
            f"too many indices for tensor of dimension {self.geometry.ndim}: {consumed} for shape {list(self.shape)}."
        )
    if ellipsis_at is not None:
        found[ellipsis_at:ellipsis_at] = [None] * (self.geometry.ndim - consumed)
    base = self
    if any(each is not Ellipsis and not (isinstance(each, slice) and each == slice(None)) for each in simple):
        base = basic_index(self, tuple(simple))
    if not any(isinstance(each, Tensor) for each in found):
        return (base if base is not self else basic_index(self, (Ellipsis,))), None
    return base, found


class _Covered:
    """Marks a dimension that the mask before it covers as well."""


_COVERED: Final = _Covered()


def _flag(self: Tensor, value: bool) -> Tensor:
    """True or False as an index of a new dimension of size 1."""
    return tensor([0] if value else [], dtype=int64, device=self.device)


def _places(base: Tensor, indices: list[Any]) -> list[Tensor | None]:
    """Index tensors with masks replaced by where they are true.

    Raises:
        IndexError: a mask does not have the shape of what it masks.
    """
    result: list[Tensor | None] = []
    for dim, each in enumerate(indices):
        if each is _COVERED:
            continue
        if each is not None and each.key.dtype is bool_:
            covered = base.geometry.shape[dim : dim + each.geometry.ndim]
            if each.geometry.shape != covered:
                raise BoundsError(
                    f"The shape of the mask {list(each.shape)} at index {dim} does not match the shape of the indexed tensor "
                    f"{list(base.shape)} at index {dim}"
                )
            result += cast(Any, each).nonzero(as_tuple=True)
        else:
            result.append(each)
    return result


def _index(base: Tensor, indices: list[Tensor | None]) -> Tensor:
    while indices[-1] is None:
        indices.pop()
    if len(indices) > 1:
        _common_shape(indices)
    device = base.key.device
    for position, each in enumerate(indices):
        if each is not None and each.key.device is not device:
            indices[position] = cast(Any, each).to(device)
    return cast(Tensor, index.run(base, indices))


def _common_shape(indices: Sequence[Tensor | None]) -> Size:
    shapes = [each.geometry.shape for each in indices if each is not None]
    try:
        return broadcast_shapes(*shapes)
    except ShapeError:
        listed = ", ".join(str(list(each)) for each in shapes)
        raise BoundsError(
            f"shape mismatch: indexing tensors could not be broadcast together with shapes {listed}"
        ) from None


def result_shape(shape: Sequence[int], indices: Sequence[Tensor | None]) -> Size:
    """The shape of ``x[indices]``; there are at most as many indices as dimensions."""
    middle = _common_shape(indices)
    used = [dim for dim, each in enumerate(indices) if each is not None]
    rest = [size for dim, size in enumerate(shape) if dim >= len(indices) or indices[dim] is None]
    first = used[0] if used[-1] - used[0] == len(used) - 1 else 0
    return Size((*rest[:first], *middle, *rest[first:]))


@primitive("self indices* |", name="index", method=False, namespaces=())
def index(self: Tensor, indices: Sequence[Tensor | None]) -> Tensor:
    """``self[indices]`` for int64 or mask tensors, None standing for a whole dimension.

    Raises:
        IndexError: an index is out of range, or they do not broadcast together.
    """
    return _index(self, _places(self, [None if each is None else _as_tensor(each, self) for each in indices]))


index.gradient(self=lambda grad, indices, self_shape: grad.new_zeros(self_shape).index_put_(indices, grad, True))


# ---------------------------------------------------------------- writing


def __setitem__(self: Tensor, index: Any, value: Any) -> None:
    """Write a number or a tensor, which broadcasts, where ``self[index]`` reads.

    Raises:
        IndexError: an index is out of range, there are too many, or one is of an unknown kind.
        RuntimeError: the value's shape does not broadcast, or its dtype differs where index tensors are used.
        TypeError: the value is neither a number nor a tensor.
    """
    kind = type(index)
    if kind is int or kind is slice or (kind is tuple and _basic(index) is not None):
        target = __getitem__(self, index)
        indices = places = None
    else:
        places = _tensors(self, index)
        target, indices = (self, places) if places is not None else _resolve(self, index)
    if isinstance(value, Tensor):
        pass
    elif isinstance(value, (bool, int, float, complex)):
        value = _fitting(self, value)
    elif isinstance(value, (np.ndarray, np.generic)):
        value = tensor(value, device=self.device, dtype=self.dtype)
    else:
        raise ArgumentTypeError(f"can't assign a {type(value).__name__} to a flambeau tensor of {self.dtype.name}.")
    if indices is None:
        if value.geometry.ndim == 0 and value.key is target.key:
            fill_.run(target, value)
        else:
            cast(Any, target).copy_(_stripped(value, target.geometry.ndim))
        return
    mask = None if places is not None else _whole_mask(target, indices)
    if mask is not None and value.geometry.ndim == 0 and value.node is None:
        masked_fill_(target, mask, cast(Any, value).to(self.key.device, self.key.dtype))
        return
    if places is None:
        places = _places(target, indices)
    if value.key.dtype is not self.key.dtype:
        if value.geometry.ndim:
            raise DtypeError(
                f"Index put requires the source and destination dtypes match, got {self.dtype.name} for the destination and "
                f"{value.dtype.name} for the source.\nConvert the value with .to(x.dtype)."
            )
        value = value.to(self.key.device, self.key.dtype)
    _index_put(target, places, value, False)


def _fitting(self: Tensor, value: Any) -> Tensor:
    """A Python number in this dtype; floats truncate."""
    return constant(self.key, value if type(value) in self.key.keeps else number_of(self.key.dtype, value))


def _stripped(value: Tensor, ndim: int) -> Tensor:
    """The value without leading dimensions of size 1 that the target lacks."""
    while value.geometry.ndim > ndim and value.geometry.shape[0] == 1:
        value = cast(Any, value)[0]
    return value


def _index_put(self: Tensor, indices: list[Tensor | None], value: Tensor, accumulate: bool) -> Tensor:
    while indices and indices[-1] is None:
        indices.pop()
    if len(indices) > self.geometry.ndim:
        raise BoundsError(f"too many indices for tensor of dimension {self.geometry.ndim}: got {len(indices)}.")
    if not indices:
        return cast(Tensor, cast(Any, self).add_(value) if accumulate else cast(Any, self).copy_(value))
    shape = result_shape(self.geometry.shape, indices)
    value = _stripped(value, len(shape))
    try:
        fits = broadcast_shapes(shape, value.shape) == shape
    except ShapeError:
        fits = False
    if not fits:
        raise ShapeError(
            f"shape mismatch: value tensor of shape {list(value.shape)} cannot be broadcast to indexing result of shape {list(shape)}"
        )
    return cast(Tensor, index_put_.run(self, indices, value, bool(accumulate)))


@primitive("self indices* value | accumulate", mutates=True, namespaces=("",))
def index_put_(self: Tensor, indices: Sequence[Any], values: Tensor, accumulate: bool = False) -> Tensor:
    """``self[indices] = values`` or, with ``accumulate``, ``self[indices] += values`` where repeated places add up.

    Raises:
        IndexError: an index is out of range; nothing is written then.
        RuntimeError: shapes do not broadcast, or dtypes differ.
    """
    if values.key.dtype is not self.key.dtype:
        raise DtypeError(
            f"Index put requires the source and destination dtypes match, got {self.dtype.name} for the destination and "
            f"{values.dtype.name} for the source.\nConvert the value with .to(x.dtype)."
        )
    if len(indices) > max(self.geometry.ndim, 1):
        raise BoundsError(f"too many indices for tensor of dimension {self.geometry.ndim} (got {len(indices)})")
    places = _places(self, [None if each is None else _as_tensor(each, self) for each in indices])
    return _index_put(self, places, values, accumulate)


index_put_.gradient(
    self=lambda grad, indices, accumulate: grad if accumulate else grad.index_put(indices, grad.new_zeros(())),
    value=lambda grad, indices: index(grad, indices),
)


@composite
def index_put(self: Tensor, indices: Sequence[Any], values: Tensor, accumulate: bool = False) -> Tensor:
    """A copy with ``values`` written, or added, at ``indices``."""
    return cast(Tensor, index_put_(cast(Any, self).clone(), indices, values, accumulate))
