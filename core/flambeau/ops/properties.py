"""What a tensor says about itself, and its part in autograd."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any, Final, cast

from ..autograd.engine import backward as _backward
from ..autograd.node import Leaf, Node, edge, tracked
from ..dispatch.operator import offer
from ..dtype import complex64, float32, float64
from ..errors import (
    ArgumentTypeError,
    AutogradError,
    BoundsError,
    DeviceError,
    DtypeError,
    MissingKernelError,
    ShapeError,
    shown,
)  # fmt: skip
from ..geometry import Geometry, axis, contiguous
from ..key import Handle
from ..layout import strided
from ..tensor import VIEW, Storage, Tensor, alias, make, shared_storage
from .views import sizes

__all__ = ["PROPERTIES", "METHODS", "RemovableHandle"]


def _set_requires_grad(self: Tensor, wanted: bool) -> None:
    requires_grad_(self, wanted)


def requires_grad_(self: Tensor, requires_grad: bool = True) -> Tensor:
    """Ask for the gradient of this tensor, or no longer.

    Raises:
        RuntimeError: the dtype has no gradients, or the tensor is not a leaf.
    """
    node = edge(self)
    if requires_grad:
        if self.key.dtype.category < 2:
            raise AutogradError(
                f"only Tensors of floating point and complex dtype can require gradients, got {self.dtype.name}.\n"
                "Convert it first, for example with .float()."
            )
        if node is None:
            self.node = Leaf(self)
    elif isinstance(node, Node):
        raise AutogradError(
            "you can only change requires_grad flags of leaf variables. If you want to use a computed variable in a "
            "subgraph that doesn't require differentiation use var_no_grad = var.detach()."
        )
    else:
        self.node = None if self.base is None else VIEW
    return self


def _grad(self: Tensor) -> Tensor | None:
    return self.__dict__.get("grad")


def _set_grad(self: Tensor, grad: Tensor | None) -> None:
    if grad is not None:
        if not isinstance(grad, Tensor):
            raise ArgumentTypeError(f"grad must be a Tensor or None, got {type(grad).__name__} {shown(grad)}.")
        if grad.geometry.shape != self.geometry.shape:
            raise ShapeError(
                f"a gradient has the size of its tensor: expected {list(self.shape)}, got {list(grad.shape)}."
            )
        if grad.key.dtype is not self.key.dtype:
            raise DtypeError(
                f"a gradient has the dtype of its tensor: expected {self.dtype.name}, got {grad.dtype.name}.\n"
                f"Convert it with grad.to({self.dtype!r})."
            )
        if grad.key.device is not self.key.device:
            raise DeviceError(
                f"a gradient is on the device of its tensor: expected {self.device}, got {grad.device}.\n"
                f"Move it with grad.to({str(self.device)!r})."
            )
    self.__dict__["grad"] = grad


def _grad_fn(self: Tensor) -> Node | None:
    node = edge(self)
    return node if isinstance(node, Node) else None


def _is_leaf(self: Tensor) -> bool:
    return not isinstance(edge(self), Node)


def _data(self: Tensor) -> Tensor:
    """The same memory, outside of autograd: writes through it are not noticed."""
    result = alias(self)
    old = shared_storage(self)
    result.shared = Storage(old.memory, old.key, old.geometry)
    return result


def _set_data(self: Tensor, new: Tensor) -> None:
    if not isinstance(new, Tensor):
        raise ArgumentTypeError(f"Tensor.data expects a Tensor, got {type(new).__name__}.")
    shared = shared_storage(new)
    self.key = new.key
    _move(self, new.geometry, new.memory, Storage(shared.memory, shared.key, shared.geometry), new.offset)


def _move(self: Tensor, geometry: Geometry, memory: Handle, shared: Storage | None, offset: int) -> None:
    """Let a tensor stand for other memory; it is no view of what it was a view of."""
    self.geometry, self.memory, self.shared, self.offset = geometry, memory, shared, offset
    if self.base is not None:
        self.base = None
    if self.node is VIEW:
        self.node = None


def backward(
    self: Tensor, gradient: Tensor | None = None, retain_graph: bool | None = None, create_graph: bool = False
) -> None:
    """Add the gradient of this tensor with respect to the graph's leaves to their ``grad``.

    Args:
        gradient: of some scalar with respect to this tensor; may be left out if it has one element.
        retain_graph: keep what was saved, so that backward can run again.
        create_graph: record the backward pass itself, for higher derivatives.

    Raises:
        RuntimeError: the tensor has no history, or a gradient is needed.
    """
    _backward(self, gradient, retain_graph, create_graph)


class RemovableHandle:
    """Takes a hook away again: ``remove()``, or the end of a ``with`` block."""

    _number: Final = itertools.count()

    def __init__(self, hooks: dict[int, Any]) -> None:
        self.hooks, self.id = hooks, next(self._number)

    def remove(self) -> None:
        """Take the hook away; twice is harmless."""
        self.hooks.pop(self.id, None)

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()


class _Hook:
    """A user's hook on a gradient."""

    __slots__ = ("function", "retains")

    def __init__(self, function: Callable[[Tensor], Tensor | None], retains: bool = False) -> None:
        self.function, self.retains = function, retains

    def __call__(self, grad: Tensor) -> Tensor | None:
        replaced = self.function(grad)
        if replaced is not None and not isinstance(replaced, Tensor):
            raise ArgumentTypeError(f"A gradient hook returns a Tensor or None, got {type(replaced).__name__}.")
        if replaced is not None and replaced.geometry.shape != grad.geometry.shape:
            raise ShapeError(
                f"A gradient hook returns a gradient of the same shape: expected {list(grad.shape)}, got {list(replaced.shape)}."
            )
        return replaced


def _add_hook(self: Tensor, hook: _Hook) -> RemovableHandle:
    node = edge(self)
    if node is None:
        raise AutogradError("cannot register a hook on a tensor that doesn't require gradient")
    if node.hooks is None:
        node.hooks = {}
    hooks = node.hooks.setdefault(self.output, {})
    handle = RemovableHandle(hooks)
    hooks[handle.id] = hook
    return handle


def register_hook(self: Tensor, hook: Callable[[Tensor], Tensor | None]) -> RemovableHandle:
    """Call ``hook(grad)`` whenever this tensor's gradient is computed; what it returns replaces the gradient.

    Raises:
        RuntimeError: the tensor does not require grad.
    """
    return _add_hook(self, _Hook(hook))


def retain_grad(self: Tensor) -> None:
    """Keep the gradient of a non-leaf tensor in its ``grad``."""
    if _is_leaf(self):
        if not tracked(self):
            raise AutogradError("can't retain_grad on Tensor that has requires_grad=False")
        return
    if getattr(self, "retains_grad", False):
        return

    def keep(grad: Tensor) -> None:
        self.grad = grad if self.grad is None else cast(Any, self.grad) + grad

    self.__dict__["retains_grad"] = True
    _add_hook(self, _Hook(keep, retains=True))


# ---------------------------------------------------------------- size and memory


def size(self: Tensor, dim: int | None = None) -> Any:
    """The shape, or the size of one dimension."""
    return _one_of(self.geometry.shape, dim)


def _require_strides(name: str, *tensors: Tensor) -> None:
    """Refuse tensors that have none.

    Raises:
        NotImplementedError: a tensor is of another layout than strided.
    """
    for each in tensors:
        if each.key.layout is not strided:
            raise MissingKernelError(
                f'"{name}" not implemented for {each.dtype.name} on {each.device} ({each.key.layout.name}): '
                "it needs strides.\nConvert with x.to_dense() first."
            )


def stride(self: Tensor, dim: int | None = None) -> Any:
    """The strides in elements, or that of one dimension."""
    _require_strides("stride", self)
    return _one_of(self.geometry.strides, dim)


def _one_of(numbers: tuple[int, ...], dim: int | None) -> Any:
    if dim is None:
        return numbers
    if not numbers:
        raise BoundsError(f"Dimension specified as {dim} but tensor has no dimensions.")
    return numbers[axis(dim, len(numbers))]


def dim(self: Tensor) -> int:
    """The number of dimensions."""
    return self.geometry.ndim


def numel(self: Tensor) -> int:
    """The number of elements."""
    return self.geometry.numel


def element_size(self: Tensor) -> int:
    """Bytes of one element."""
    return self.key.dtype.itemsize


def is_contiguous(self: Tensor, memory_format: Any = None) -> bool:
    """Whether the rows follow each other without gaps."""
    return self.geometry.contiguous


def storage_offset(self: Tensor) -> int:
    """Elements between the start of the storage and this tensor's first."""
    return self.offset


def is_floating_point(self: Tensor) -> bool:
    """Whether the dtype is a floating-point type."""
    return self.key.dtype.is_floating_point


def is_complex(self: Tensor) -> bool:
    """Whether the dtype is complex."""
    return self.key.dtype.is_complex


def is_signed(self: Tensor) -> bool:
    """Whether the dtype has negative values."""
    return self.key.dtype.is_signed


def is_same_size(self: Tensor, other: Tensor) -> bool:
    """Whether two tensors have the same shape."""
    return self.shape == other.shape


def resize_(self: Tensor, *size: Any) -> Tensor:
    """Give the tensor another shape in place, with new memory, which begins like the old, if that is too small.

    Raises:
        RuntimeError: the tensor requires grad.
    """
    _require_strides("resize_", self)
    if tracked(self):
        raise AutogradError("cannot resize variables that require grad")
    geometry = contiguous(sizes(size))
    if geometry.shape == self.geometry.shape:
        return self  # keeps its strides
    available = (self.shared.geometry if self.shared is not None else self.geometry).span - self.offset
    if geometry.numel > available:
        key, kept = self.key, contiguous((available,))
        memory = key.allocate(geometry.numel)
        if available:
            cast(Any, make(key, kept, memory)).copy_(make(key, kept, self.memory))
        _move(self, geometry, memory, None, 0)
    elif self.shared is None and geometry.numel < self.geometry.numel:
        shared_storage(self)  # remembers how much there is
    self.geometry = geometry
    return self


@offer()
def resize_as_(self: Tensor, other: Tensor) -> Tensor:
    """Resize to the shape of another tensor."""
    return resize_(self, other.shape)


def set_(self: Tensor, source: Any = None, storage_offset: int = 0, size: Any = None, stride: Any = None) -> Tensor:
    """Take over another tensor's memory, shape and strides; a storage is a vector.

    Raises:
        TypeError: ``source`` is neither a tensor nor a storage.
        RuntimeError: it is of another dtype.
    """
    source = getattr(source, "flat", source)  # of a storage
    if source is not None and not isinstance(source, Tensor):
        raise ArgumentTypeError(f"set_() expects a tensor or a storage, got {type(source).__name__} {shown(source)}.")
    _require_strides("set_", self, *([] if source is None else [source]))
    if source is None:
        _move(self, contiguous((0,)), self.key.allocate(0), None, 0)
        return self
    if source.dtype is not self.dtype:
        raise ShapeError(f"set_: expected a source of {self.dtype.name}, got {source.dtype.name}.")
    if size is not None:
        flat = cast(Any, source).as_strided((source.geometry.span,), (1,), source.offset)
        source = flat.as_strided(tuple(size), tuple(stride or contiguous(tuple(size)).strides), storage_offset)
    assert source is not None
    _move(self, source.geometry, source.memory, shared_storage(source), source.offset)
    return self


def data_ptr(self: Tensor) -> int:
    """The address of the first element.

    Raises:
        RuntimeError: the device's memory has no addresses.
    """
    return self.key.address(self.memory)


def _transposed(self: Tensor) -> Any:
    return cast(Any, self).permute(*range(self.geometry.ndim - 1, -1, -1))


def _real(self: Tensor) -> Tensor:
    """The real part: the tensor itself, or a copy if it is complex."""
    dtype = self.key.dtype
    return cast(Any, self).to(float32 if dtype is complex64 else float64) if dtype.is_complex else self


def _version(self: Tensor) -> int:
    return 0 if self.shared is None else self.shared.version


PROPERTIES: Final = {
    "requires_grad": property(tracked, _set_requires_grad, doc="Whether operators on the tensor record history."),
    "grad": property(
        _grad, _set_grad, lambda self: _set_grad(self, None), "The gradient that backward() added up, or None."
    ),
    "grad_fn": property(_grad_fn, doc="The node that computed the tensor, or None for a leaf."),
    "is_leaf": property(_is_leaf, doc="Whether the tensor was not computed from others that require grad."),
    "data": property(_data, _set_data, doc=_data.__doc__),
    "T": property(_transposed, doc="The tensor with its dimensions reversed."),
    "mT": property(lambda self: self.transpose(-2, -1), doc="The tensor with its last two dimensions swapped."),
    "itemsize": property(element_size, doc=element_size.__doc__),
    "nbytes": property(lambda self: self.geometry.numel * self.key.dtype.itemsize, doc="Bytes of the elements."),
    "_base": property(lambda self: self.base, doc="The tensor whose memory this one views, or None."),
    "_version": property(_version, doc="How often the memory was written."),
    "is_sparse": property(lambda self: self.key.layout.name.startswith("sparse"), doc="Whether the layout is sparse."),
    "real": property(_real, doc=_real.__doc__),
}

METHODS: Final = {
    each.__name__: each
    for each in (
        requires_grad_, backward, register_hook, retain_grad, size, stride, dim, numel, element_size, is_contiguous,
        storage_offset, is_floating_point, is_complex, is_signed, is_same_size, resize_, set_, data_ptr,
    )
}  # fmt: skip
METHODS.update(ndimension=dim, nelement=numel)
