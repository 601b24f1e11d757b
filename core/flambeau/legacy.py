"""The names of tensor types from before dtypes: ``FloatTensor``, ``LongStorage`` and their like.

``FloatTensor(2, 3)`` makes a tensor, ``isinstance(x, FloatTensor)`` asks for its dtype and
device, ``x.type()`` names it.  The type of another device has its name in the middle:
``"torch.cuda.FloatTensor"``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, cast

import numpy as np

from .device import device as Device
from .dtype import (
    DTYPES,
    bfloat16,
    bool_,
    complex64,
    complex128,
    default,
    dtype as Dtype,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    uint8,
)
from .errors import ArgumentError, ArgumentTypeError, shown
from .key import intern
from .layout import layout as Layout, sparse_coo, strided
from .ops.creation import empty, tensor
from .ops.sparse import sparse_coo_tensor
from .pickling import fresh_storage
from .plugins import default_device, set_default_device
from .storage import TypedStorage
from .tensor import Tensor

__all__ = ["set_default_tensor_type"]  # and the typed names, below

#: dtype by the stem of its old name
NAMES: Final[dict[str, Dtype]] = {
    "Bool": bool_, "Byte": uint8, "Char": int8, "Short": int16, "Int": int32, "Long": int64, "Half": float16,
    "BFloat16": bfloat16, "Float": float32, "Double": float64, "ComplexFloat": complex64, "ComplexDouble": complex128,
}  # fmt: skip
_STEMS: Final = {dtype: stem for stem, dtype in NAMES.items()}
assert len(_STEMS) == len(DTYPES)
#: The device whose types have no device in their names.
_PLAIN: Final = "cpu"


def type_name(self: Any, suffix: str = "Tensor") -> str:
    """``torch.FloatTensor``-style name of a tensor's dtype and device."""
    places = [each for each in (self.device.type, self.layout.name) if each not in (_PLAIN, strided.name)]
    return ".".join(["torch", *[each.partition("_")[0] for each in places], f"{_STEMS[self.dtype]}{suffix}"])


class _TypeOf(type):
    """A class whose instances are those of another class with one dtype and device."""

    stem: str
    place: str
    layout: Layout
    kind: type

    def __instancecheck__(cls, instance: object) -> bool:
        return (
            isinstance(instance, cls.kind)
            and cast(Any, instance).dtype is cls.dtype
            and cast(Any, instance).device.type == cls.place
            and getattr(instance, "layout", cls.layout) is cls.layout
        )

    def __subclasscheck__(cls, subclass: type) -> bool:
        return subclass is cls

    @property
    def dtype(cls) -> Dtype:
        """The element type."""
        return NAMES[cls.stem]

    def __repr__(cls) -> str:
        return f"<class 'torch.{cls.__qualname__}'>"


def _new_tensor(cls: Any, *args: Any) -> Tensor:
    return _made(cls.__name__, cls.dtype, cls.place, args)


def _made(name: str, dtype: Dtype, device: Any, args: tuple[Any, ...]) -> Tensor:
    """What ``name(*args)`` makes: a tensor of these sizes, of a sequence's numbers, or of another's memory."""
    options = {"dtype": dtype, "device": device}
    if len(args) == 1:
        only = args[0]
        if isinstance(only, TypedStorage):
            if only.dtype is not dtype:
                raise ArgumentTypeError(f"{name} expects a storage of {dtype.name}, got {only.dtype.name}.")
            return cast(Tensor, only.flat)
        if isinstance(only, Tensor):
            if only.dtype is not dtype:
                raise ArgumentTypeError(f"expected {name} (got {type_name(only)})\nConvert it with x.type(...).")
            return cast(Tensor, cast(Any, only).detach())
        if isinstance(only, (list, tuple, np.ndarray)) and type(only).__name__ != "Size":
            return tensor(only, **options)
    return empty(*args, **options) if args else empty(0, **options)


def _new_storage(cls: Any, *args: Any) -> TypedStorage:
    key = intern(Device(cls.place), strided, cls.dtype)
    if len(args) == 1 and not isinstance(args[0], int):
        return TypedStorage.of(tensor(list(args[0]), dtype=cls.dtype, device=cls.place))
    return TypedStorage(fresh_storage(key, args[0] if args else 0))


def _new_sparse(cls: Any, *args: Any) -> Tensor:
    options = {"dtype": cls.dtype, "device": cls.place}
    if args and isinstance(args[0], Tensor):
        return sparse_coo_tensor(*args, **options)
    return sparse_coo_tensor(args or (0,), **options)


def types_of(place: str) -> dict[str, Any]:
    """The typed names of one device: ``FloatTensor``, ``FloatStorage``, ..."""
    prefix = "" if place == _PLAIN else f"{place}."
    return {
        **_types_like(place, prefix, "Tensor", Tensor, _new_tensor),
        **_types_like(place, prefix, "Storage", TypedStorage, _new_storage),
    }


def sparse_types(place: str = _PLAIN) -> dict[str, Any]:
    """The typed names of sparse tensors on one device: ``torch.sparse.FloatTensor``, ..."""
    prefix = "sparse." if place == _PLAIN else f"{place}.sparse."
    return _types_like(place, prefix, "Tensor", Tensor, _new_sparse, sparse_coo)


def _types_like(
    place: str, prefix: str, suffix: str, kind: type, make: Callable[..., Any], layout: Layout = strided
) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for stem in NAMES:
        name = stem + suffix
        body = {
            "__new__": make, "stem": stem, "place": place, "layout": layout, "kind": kind, "__module__": __name__,
            "__doc__": f"``{prefix}{name}``: a {suffix.lower()} of {NAMES[stem].name} on {place}.",
        }  # fmt: skip
        found[name] = _TypeOf(name, (), body)
        found[name].__qualname__ = prefix + name
    return found


_types: Final = types_of(_PLAIN)
globals().update(_types)
__all__ += list(_types)


def _named(name: Any) -> tuple[Dtype, str | None]:
    """The dtype, and the device if one is named, of a type given by dtype, class or name.

    Raises:
        ValueError: there is no such type.
    """
    if isinstance(name, Dtype):
        return name, None
    if isinstance(name, _TypeOf):
        return name.dtype, name.place
    if name is Tensor:
        return default.dtype, None
    if isinstance(name, str):
        parts = name.replace(".sparse.", ".").split(".")
        stem = parts[-1].removesuffix("Tensor")
        if parts[-1].endswith("Tensor") and parts[0] in ("torch", "flambeau") and len(parts) <= 3:
            place = parts[1] if len(parts) == 3 else _PLAIN
            if stem in NAMES:
                return NAMES[stem], place
            if not stem:
                return default.dtype, place
        if len(parts) <= 2 and parts[-1] in {each.name for each in DTYPES}:
            return next(each for each in DTYPES if each.name == parts[-1]), None
    raise ArgumentError(f"invalid type: {shown(name)}.\nUse a dtype, or a name such as 'torch.FloatTensor'.")


def type_(self: Any, dtype: Any = None, non_blocking: bool = False) -> Any:
    """The old name of the tensor's type; or, given a dtype, a type or its name, the tensor converted to it.

    >>> import flambeau
    >>> flambeau.ones(1).type(), flambeau.ones(1).type("torch.LongTensor")
    ('torch.FloatTensor', tensor([1]))
    """
    if dtype is None:
        return type_name(self)
    wanted, place = _named(dtype)
    return self.to(device=self.device if place in (None, self.device.type) else place, dtype=wanted)


def new(self: Any, *args: Any, device: Any = None) -> Tensor:
    """A tensor of the same type and device, made as the old constructors do: of sizes, or of a sequence's numbers.

    >>> import flambeau
    >>> x = flambeau.ones(2, dtype=flambeau.int64)
    >>> x.new(2, 3).shape, x.new([4, 5])
    (torch.Size([2, 3]), tensor([4, 5]))
    """
    return _made(f"{_STEMS[self.dtype]}Tensor", self.dtype, self.device if device is None else device, args)


def set_default_tensor_type(t: Any) -> None:
    """Choose the floating-point type, and the device, of tensors made without saying.

    Args:
        t: a tensor type or its name, such as ``"torch.DoubleTensor"``.

    Raises:
        TypeError: it is no floating-point type.
    """
    dtype, place = _named(t)
    if not dtype.is_floating_point:
        raise ArgumentTypeError(f"only floating-point types are supported as the default type, got {dtype.name}.")
    default.dtype = dtype
    if place is not None and place != default_device().type:
        set_default_device(place)


def storage_type(self: Any) -> type:
    """The typed storage class of the tensor's dtype."""
    return cast(type, _types[f"{_STEMS[self.dtype]}Storage"])


METHODS: Final = {"new": new, "type": type_, "storage_type": storage_type}
