"""Storages: the flat memory behind tensors, as an object of its own.

``x.storage()`` shows the memory that ``x`` and its views share.  Types of the old
names (``FloatStorage``) are in :mod:`flambeau.legacy`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

from .device import device as Device
from .dtype import dtype as Dtype
from .errors import ArgumentTypeError, BoundsError, ShapeError
from .geometry import contiguous
from .tensor import Storage as Record, Tensor, make, shared_storage

__all__ = ["TypedStorage"]


class TypedStorage:
    """The elements of a storage in order, one element type.

    >>> import flambeau
    >>> x = flambeau.tensor([[1, 2], [3, 4]])
    >>> x.storage().tolist()
    [1, 2, 3, 4]
    """

    __slots__ = ("record",)

    def __init__(self, record: Record) -> None:
        #: what tensors hold
        self.record = record

    @classmethod
    def of(cls, tensor: Tensor) -> TypedStorage:
        """The storage of a tensor."""
        return cls(shared_storage(tensor))

    @property
    def flat(self) -> Any:
        """All elements as a tensor that shares the memory."""
        record = self.record
        flat = make(record.key, contiguous((record.geometry.span,)), record.memory)
        flat.shared = record
        return flat

    @property
    def dtype(self) -> Dtype:
        """The element type."""
        return self.record.key.dtype

    @property
    def device(self) -> Device:
        """Where the memory lies."""
        return self.record.key.device

    @property
    def is_cuda(self) -> bool:
        """Whether the memory is on a CUDA device."""
        return cast(bool, self.flat.is_cuda)

    def __len__(self) -> int:
        return self.record.geometry.span

    def size(self) -> int:
        """The number of elements."""
        return len(self)

    def element_size(self) -> int:
        """Bytes of one element."""
        return self.dtype.itemsize

    def nbytes(self) -> int:
        """Bytes of all elements."""
        return len(self) * self.dtype.itemsize

    def data_ptr(self) -> int:
        """The address of the first element, on devices that have addresses."""
        return cast(int, self.flat.data_ptr())

    def type(self) -> str:
        """The old name of the type, such as ``torch.FloatStorage``."""
        return cast(str, self.flat.type()).replace("Tensor", "Storage")

    def tolist(self) -> list[Any]:
        """The elements as Python numbers."""
        return list(self.flat.tolist())

    def __iter__(self) -> Iterator[Any]:
        return iter(self.tolist())

    def _place(self, index: Any) -> int:
        if isinstance(index, bool) or not hasattr(index, "__index__"):
            raise ArgumentTypeError(f"A storage is indexed with an int or a slice, got {type(index).__name__}.")
        place: int = index.__index__()
        if not -len(self) <= place < len(self):
            raise BoundsError(f"index {place} out of range for storage of size {len(self)}.")
        return place % len(self)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            start, stop, step = index.indices(len(self))
            if step != 1:
                raise ArgumentTypeError(f"A storage is sliced with step 1, got {step}.")
            return TypedStorage.of(self.flat.narrow(0, start, max(stop - start, 0)).clone())
        return self.flat.select(0, self._place(index)).item()

    def __setitem__(self, index: Any, value: Any) -> None:
        if isinstance(index, slice):
            start, stop, step = index.indices(len(self))
            if step != 1:
                raise ArgumentTypeError(f"A storage is sliced with step 1, got {step}.")
            target = self.flat.narrow(0, start, max(stop - start, 0))
        else:
            target = self.flat.select(0, self._place(index))
        target.copy_(value.flat) if isinstance(value, TypedStorage) else target.fill_(value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TypedStorage) and other.record.memory is self.record.memory

    def __hash__(self) -> int:
        return id(self.record.memory)

    def __repr__(self) -> str:
        lines = [f" {each}" for each in self.tolist()]
        if len(lines) > 1000:
            lines = [*lines[:3], " ...", *lines[-3:]]
        return "\n".join([*lines, f"[{self.type()} of size {len(self)}]"])

    def fill_(self, value: Any) -> TypedStorage:
        """Set every element."""
        self.flat.fill_(value)
        return self

    def copy_(self, source: TypedStorage, non_blocking: bool = False) -> TypedStorage:
        """Overwrite with the elements of another storage of the same size."""
        if len(source) != len(self):
            raise ShapeError(f"copy_: expected a storage of {len(self)} elements, got {len(source)}.")
        self.flat.copy_(source.flat)
        return self

    def clone(self) -> TypedStorage:
        """A copy with memory of its own."""
        return TypedStorage.of(self.flat.clone())

    def to(self, device: Any = None, dtype: Dtype | None = None) -> TypedStorage:
        """The storage on another device or of another dtype; itself if nothing changes."""
        return self._like(self.flat.to(device=device, dtype=dtype))

    def _like(self, moved: Tensor) -> TypedStorage:
        return self if moved.key is self.record.key else TypedStorage.of(moved)

    def cpu(self) -> TypedStorage:
        """The storage on the host."""
        return self._like(self.flat.cpu())

    def cuda(self, device: Any = None, non_blocking: bool = False) -> TypedStorage:
        """The storage on a CUDA device."""
        return self._like(self.flat.cuda(device, non_blocking))

    def pin_memory(self) -> TypedStorage:
        """A copy in page-locked memory, where a device asks for it."""
        return TypedStorage.of(self.flat.pin_memory())

    def is_pinned(self) -> bool:
        """Whether the memory is page-locked."""
        return cast(bool, self.flat.is_pinned())

    def share_memory_(self) -> TypedStorage:
        """Move to memory that processes share; see :mod:`flambeau.multiprocessing`."""
        self.flat.share_memory_()
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return TypedStorage, (self.record,)
