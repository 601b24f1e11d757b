"""Operators whose result views their argument's memory: new shape, strides, offset."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, cast

import numpy as np

from ..autograd.grad_mode import mode
from ..autograd.node import record
from ..dispatch.operator import composite, operators, view_op
from ..dtype import int64
from ..errors import ArgumentError, ArgumentTypeError, ShapeError, shown
from ..geometry import Geometry, Size, axis, contiguous, expanded, strided
from ..layout import strided as strided_layout
from ..tensor import VIEW, Tensor, alias, make, shared_storage, view as _view

__all__ = [
    "declared", "detach", "expand", "expand_as", "flatten", "movedim", "permute", "positions", "reshape", "sizes",
    "spread", "squeeze", "sum_to_size", "swapaxes", "t", "transpose", "unflatten", "unsqueeze", "view", "view_as",
]  # fmt: skip


def sizes(args: tuple[Any, ...], what: str = "size") -> tuple[int, ...]:
    """Sizes given as varargs or as one sequence.

    Raises:
        TypeError: something is not an int.
    """
    if len(args) == 1 and not isinstance(args[0], int):
        given = args[0]
        if isinstance(given, Tensor) and given.geometry.ndim == 0:
            return (int(cast(Any, given).item()),)
        try:
            args = tuple(given)
        except TypeError:
            raise ArgumentTypeError(f"{what}: expected ints, got {type(given).__name__} {shown(given)}.") from None
    for each in args:
        if type(each) is not int:
            break
    else:
        return args
    result = []
    for each in args:
        if isinstance(each, bool) or not hasattr(each, "__index__"):
            raise ArgumentTypeError(f"{what}: expected ints, got {type(each).__name__} {shown(each)} in {shown(args)}.")
        result.append(each.__index__())
    return tuple(result)


def bounded(number: Any, what: str) -> int:
    """An int that kernels can count with.

    Raises:
        TypeError: it is no int.
        RuntimeError: it does not fit 64 bits.
    """
    if not hasattr(number, "__index__"):
        raise ArgumentTypeError(f"{what}: expected an int, got {type(number).__name__} {shown(number)}.")
    found: int = number.__index__()
    if not -(2**63) <= found < 2**63:
        raise ShapeError(f"{what}: expected an int of 64 bits, got {found}.")
    return found


def positions(beside: Tensor, count: int) -> Any:
    """0, 1, ... as int64 on the device of another tensor."""
    key = beside.key.of(int64)
    return make(key, contiguous((count,)), key.memory.from_numpy(np.arange(count), key.device, int64))


def declared(name: str) -> Any:
    """A declared operator's public function, by name."""
    return operators[name].function


# ---------------------------------------------------------------- shape


@view_op("self | size")
def view(self: Tensor, *size: Any) -> Tensor:
    """The same elements with another shape, without copying.

    Args:
        size: the new shape, as ints or one sequence; one size may be -1 and is inferred.  Or a dtype,
            to reinterpret the memory.

    Raises:
        RuntimeError: the sizes do not fit, or the strides do not allow it without a copy.
    """
    if len(size) == 1 and not isinstance(size[0], int) and hasattr(size[0], "itemsize"):
        return cast(Tensor, cast(Any, self).view_dtype(size[0]))
    shape = size if len(size) != 1 else sizes(size)
    geometry = self.geometry
    try:
        wanted = contiguous(shape)
        if wanted.numel != geometry.numel:
            raise ShapeError
    except (ShapeError, ArgumentTypeError):
        wanted = contiguous(_inferred(sizes(size), geometry.numel))
    if not geometry.contiguous:
        strides = compatible_strides(geometry.shape, geometry.strides, wanted.shape)
        if strides is None:
            raise ShapeError(
                f"view size {list(wanted.shape)} is not compatible with input tensor's size {list(geometry.shape)} and stride "
                f"{geometry.strides} (at least one dimension spans across two contiguous subspaces). Use .reshape(...) instead."
            )
        wanted = strided(wanted.shape, strides)
    result = _view(self, wanted)
    if self.node is not None and mode.enabled:
        record(view.op, (self, wanted.shape), result)
    return result


view.gradient(self=lambda grad, self_shape: grad.reshape(self_shape))


def _inferred(shape: tuple[int, ...], numel: int) -> tuple[int, ...]:
    """A shape with its -1 filled in."""
    if shape.count(-1) > 1:
        raise ShapeError(f"only one dimension can be inferred, got shape {list(shape)}.")
    known = 1
    for each in shape:
        if each < -1:
            raise ShapeError(f"invalid shape dimension {each} in {list(shape)}.")
        known *= each if each != -1 else 1
    if -1 in shape:
        if known == 0:
            if numel:
                raise ShapeError(f"shape '{list(shape)}' is invalid for input of size {numel}.")
            raise ShapeError(
                f"cannot reshape tensor of 0 elements into shape {list(shape)} because the unspecified dimension size -1 "
                "can be any value and is ambiguous."
            )
        if numel % known == 0:
            return tuple(numel // known if each == -1 else each for each in shape)
    elif known == numel:
        return shape
    raise ShapeError(f"shape '{list(shape)}' is invalid for input of size {numel}.")


def compatible_strides(shape: Sequence[int], strides: Sequence[int], wanted: Sequence[int]) -> tuple[int, ...] | None:
    """Strides with which the same memory reads as ``wanted``, or None if that needs a copy."""
    if 0 in shape:
        return contiguous(tuple(wanted)).strides
    # Runs of dimensions that are contiguous among themselves, last first: (elements, innermost stride).
    runs: list[tuple[int, int]] = []
    for size, stride in zip(reversed(shape), reversed(strides), strict=True):
        if size == 1:
            continue
        if runs and stride == runs[-1][0] * runs[-1][1]:
            runs[-1] = (runs[-1][0] * size, runs[-1][1])
        else:
            runs.append((size, stride))
    result: list[int] = []
    run, filled = 0, 1
    for size in reversed(wanted):
        if size == 1:
            result.append(filled * (runs[run][1] if run < len(runs) else 1))
            continue
        if run < len(runs) and filled == runs[run][0]:
            run, filled = run + 1, 1
        if run >= len(runs) or runs[run][0] % (filled * size):
            return None
        result.append(runs[run][1] * filled)
        filled *= size
    return tuple(reversed(result))


@composite
def reshape(self: Tensor, *shape: Any) -> Tensor:
    """The same elements with another shape; a view where the strides allow it, else a copy.

    Args:
        shape: ints or one sequence; one size may be -1 and is inferred.
    """
    if self.geometry.contiguous:
        return view(self, *shape)  # type: ignore[no-any-return]
    wanted = _inferred(sizes(shape), self.geometry.numel)
    strides = compatible_strides(self.geometry.shape, self.geometry.strides, wanted)
    if strides is None:
        return view(cast(Any, self).contiguous(), wanted)  # type: ignore[no-any-return]
    return view(self, wanted)  # type: ignore[no-any-return]


@composite(namespaces=())
def view_as(self: Tensor, other: Tensor) -> Tensor:
    """View with the shape of another tensor."""
    return view(self, other.shape)  # type: ignore[no-any-return]


@composite(namespaces=())
def reshape_as(self: Tensor, other: Tensor) -> Tensor:
    """Reshape to the shape of another tensor."""
    return reshape(self, other.shape)  # type: ignore[no-any-return]


@composite
def flatten(self: Tensor, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    """Join the dimensions from ``start_dim`` to ``end_dim`` into one."""
    shape = self.shape
    start, end = axis(start_dim, len(shape)), axis(end_dim, len(shape))
    if start > end:
        raise ShapeError(f"flatten() has invalid args: start_dim ({start_dim}) cannot come after end_dim ({end_dim})")
    if not shape:
        return reshape(self, 1)  # type: ignore[no-any-return]
    if start == end:
        return self
    return reshape(self, shape[:start] + (shape[start : end + 1].numel(),) + shape[end + 1 :])  # type: ignore[no-any-return]


@composite
def unflatten(self: Tensor, dim: int, sizes: Sequence[int]) -> Tensor:
    """Split one dimension into several with these sizes."""
    at = axis(dim, self.ndim)
    shape = self.shape
    inner = _inferred(tuple(sizes), shape[at])
    return view(self, shape[:at] + inner + shape[at + 1 :])  # type: ignore[no-any-return]


_MOST_EXPANSIONS: Final = 4096
#: what a geometry becomes when it is expanded to a shape
_expansions: Final[dict[tuple[Geometry, Size], Geometry]] = {}


@view_op("self | size", namespaces=())
def expand(self: Tensor, *size: Any) -> Tensor:
    """Repeat dimensions of size 1 without copying.

    Args:
        size: the new shape; -1 keeps a size; new dimensions come first.

    Raises:
        RuntimeError: a size other than 1 would change.
    """
    remembered = len(size) == 1 and type(size[0]) is Size  # another tensor's shape, as gradient formulas ask for
    if remembered:
        known = _expansions.get((self.geometry, size[0]))
        if known is not None:
            return cast(Tensor, expand.run(_view(self, known), self, known.shape))
    given = sizes(size)
    lead = len(given) - self.geometry.ndim
    if lead < 0:
        raise ShapeError(
            f"expand: the number of sizes provided ({len(given)}: {list(given)}) must be greater or equal to the number of "
            f"dimensions in the tensor ({self.geometry.ndim}: {list(self.shape)})."
        )
    wanted = []
    for position, each in enumerate(given):
        own = self.geometry.shape[position - lead] if position >= lead else None
        if each == -1 and own is not None:
            each = own
        if each < 0 or (own is not None and own not in (1, each)):
            raise ShapeError(
                f"The expanded size of the tensor ({each}) must match the existing size ({own}) at non-singleton dimension "
                f"{position}. Target sizes: {list(given)}. Tensor sizes: {list(self.shape)}."
            )
        wanted.append(each)
    found = strided(Size(wanted), expanded(self.geometry, wanted))
    if remembered:
        if len(_expansions) > _MOST_EXPANSIONS:
            _expansions.clear()
        _expansions[self.geometry, size[0]] = found
    return cast(Tensor, expand.run(_view(self, found), self, found.shape))


expand.gradient(self=lambda grad, self_shape: grad.sum_to_size(self_shape))


def spread(grad: Any, shape: Size) -> Any:
    """``expand`` for gradient formulas: what repeats elements cannot be written, so unless it is recorded
    nobody asks of what it is a view."""
    known = _expansions.get((grad.geometry, shape))
    if known is None or known.dense or mode.enabled or grad.key.layout is not strided_layout:
        return grad.expand(shape)
    result = make(grad.key, known, grad.memory)
    result.shared = grad.shared or shared_storage(grad)
    return result


@composite(namespaces=())
def expand_as(self: Tensor, other: Tensor) -> Tensor:
    """Expand to the shape of another tensor."""
    return expand(self, other.shape)  # type: ignore[no-any-return]


@composite
def broadcast_to(self: Tensor, size: Sequence[int]) -> Tensor:
    """Expand to a shape."""
    return expand(self, tuple(size))  # type: ignore[no-any-return]


@composite(namespaces=())
def sum_to_size(self: Tensor, *size: Any) -> Tensor:
    """Sum over the dimensions that broadcasting to this tensor's shape from ``size`` would repeat."""
    wanted = sizes(size)
    shape = self.shape
    lead = len(shape) - len(wanted)
    if lead < 0 or any(own != each and each != 1 for own, each in zip(shape[lead:], wanted, strict=True)):
        raise ShapeError(f"size {list(wanted)} is not expandable to size {list(shape)}.")
    dims = [*range(lead), *(lead + i for i, each in enumerate(wanted) if each == 1 and shape[lead + i] != 1)]
    result = cast(Any, self).sum(dims, keepdim=True) if dims else self
    return cast(Tensor, result.view(wanted) if lead else result)


@view_op("self | dims")
def permute(self: Tensor, *dims: Any) -> Tensor:
    """Reorder the dimensions.

    Args:
        dims: for each dimension of the result, the one of the input.

    Raises:
        RuntimeError: not every dimension is named exactly once.
    """
    given = sizes(dims, "dims")
    geometry = self.geometry
    if len(given) != geometry.ndim:
        raise ShapeError(
            f"permute: number of dimensions in the tensor input does not match the length of the desired "
            f"ordering of dimensions i.e. input.dim() = {geometry.ndim} is not equal to len(dims) = {len(given)}"
        )
    order = tuple(axis(each, geometry.ndim) for each in given)
    if len(set(order)) != len(order):
        raise ShapeError(f"permute(): duplicate dims are not allowed, got {list(given)}.")
    if self.key.layout is not strided_layout:
        return cast(Tensor, declared("permute_copy")(self, order))
    shape, strides = geometry.shape, geometry.strides
    result = _view(self, strided(tuple([shape[i] for i in order]), tuple([strides[i] for i in order])))
    return cast(Tensor, permute.run(result, self, order))


def _permute_gradient(grad: Any, dims: tuple[int, ...]) -> Any:
    inverse = [0] * len(dims)
    for position, dim in enumerate(dims):
        inverse[dim] = position
    return grad.permute(inverse)


permute.gradient(self=_permute_gradient)


def swapped(ndim: int, a: int, b: int) -> tuple[int, ...]:
    """The order of dimensions in which two have changed places."""
    return tuple(b if each == a else a if each == b else each for each in range(ndim))


@view_op("self | dim0 dim1")
def transpose(self: Tensor, dim0: int, dim1: int) -> Tensor:
    """Swap two dimensions."""
    geometry = self.geometry
    a, b = axis(dim0, geometry.ndim), axis(dim1, geometry.ndim)
    if self.key.layout is not strided_layout:
        return cast(Tensor, declared("permute_copy")(self, swapped(geometry.ndim, a, b)))
    if a == b:
        result = _view(self, geometry)
    else:
        shape, strides = list(geometry.shape), list(geometry.strides)
        shape[a], shape[b] = shape[b], shape[a]
        strides[a], strides[b] = strides[b], strides[a]
        result = _view(self, strided(tuple(shape), tuple(strides)))
    if self.node is not None and mode.enabled:
        record(transpose.op, (self, a, b), result)
    return result


transpose.gradient(self=lambda grad, dim0, dim1: grad.transpose(dim0, dim1))


@composite
def swapaxes(self: Tensor, axis0: int, axis1: int) -> Tensor:
    """Swap two dimensions: another name of :func:`transpose`."""
    return transpose(self, axis0, axis1)  # type: ignore[no-any-return]


@view_op("self |")
def t(self: Tensor) -> Tensor:
    """Transpose a matrix; a vector or a 0-dim tensor is returned as it is.

    Raises:
        RuntimeError: there are more than two dimensions.
    """
    geometry = self.geometry
    if self.key.layout is not strided_layout and geometry.ndim <= 2:
        return cast(Tensor, declared("permute_copy")(self, tuple(reversed(range(geometry.ndim)))))
    if geometry.ndim == 2:
        (rows, columns), (down, across) = geometry.shape, geometry.strides
        geometry = strided((columns, rows), (across, down))
    elif geometry.ndim > 2:
        raise ShapeError(
            f"t() expects a tensor with <= 2 dimensions, but self is {geometry.ndim}D: {list(geometry.shape)}."
        )
    result = _view(self, geometry)
    if self.node is not None and mode.enabled:
        record(t.op, (self,), result)
    return result


t.gradient(self=lambda grad: grad.t())


@composite
def movedim(self: Tensor, source: Any, destination: Any) -> Tensor:
    """Move dimensions to other positions; the rest keep their order."""
    ndim = self.ndim
    from_ = [axis(each, ndim) for each in ((source,) if isinstance(source, int) else source)]
    to = [axis(each, ndim) for each in ((destination,) if isinstance(destination, int) else destination)]
    if len(from_) != len(to) or len(set(from_)) != len(from_) or len(set(to)) != len(to):
        raise ShapeError(
            f"movedim: source {source} and destination {destination} must name the same number of distinct dims."
        )
    if not ndim:
        return self
    order: list[int | None] = [None] * ndim
    for a, b in zip(from_, to, strict=True):
        order[b] = a
    rest = iter([dim for dim in range(ndim) if dim not in from_])
    return permute(self, *[next(rest) if each is None else each for each in order])  # type: ignore[no-any-return]


@view_op("self | dim")
def squeeze(self: Tensor, dim: int | Sequence[int] | None = None) -> Tensor:
    """Drop dimensions of size 1: all of them, or those named."""
    geometry = self.geometry
    if dim is None:
        dropped = {i for i, size in enumerate(geometry.shape) if size == 1}
    else:
        named = (dim,) if isinstance(dim, int) else tuple(dim)
        dims = [axis(each, geometry.ndim) for each in named]
        if len(set(dims)) != len(dims):
            raise ShapeError(f"squeeze: dim appears multiple times in the list of dims {list(named)}.")
        dropped = {each for each in dims if geometry.ndim and geometry.shape[each] == 1}
    kept = [i for i in range(geometry.ndim) if i not in dropped]
    result = _view(self, strided(tuple(geometry.shape[i] for i in kept), tuple(geometry.strides[i] for i in kept)))
    return cast(Tensor, squeeze.run(result, self, dim))


squeeze.gradient(self=lambda grad, self_shape: grad.reshape(self_shape))


@view_op("self | dim")
def unsqueeze(self: Tensor, dim: int) -> Tensor:
    """Insert a dimension of size 1 at ``dim``."""
    geometry = self.geometry
    at = axis(dim, geometry.ndim + 1)
    shape, strides = geometry.shape, geometry.strides
    step = strides[at] * shape[at] if at < geometry.ndim else 1
    result = _view(self, strided(shape[:at] + (1,) + shape[at:], (*strides[:at], step, *strides[at:])))
    return cast(Tensor, unsqueeze.run(result, self, at))


unsqueeze.gradient(self=lambda grad, dim: grad.squeeze(dim))


@view_op("self |")
def detach(self: Tensor) -> Tensor:
    """The same memory without history; in-place changes are seen by both."""
    return alias(self)


detach.nondifferentiable()


@composite(namespaces=())
def detach_(self: Tensor) -> Tensor:
    """Forget the history in place.

    Raises:
        RuntimeError: the tensor is a view.
    """
    if self.base is not None and self.node is not VIEW:
        raise ArgumentError("Can't detach views in-place. Use detach() instead.")
    self.node = None
    return self
