"""Calling C through cffi: tensors as typed pointers and as TH's structures, errors of C as exceptions."""

from __future__ import annotations

import operator
import threading
from collections.abc import Callable, Collection, Mapping
from typing import Any, Final

import cffi

from flambeau.autograd.grad_mode import mode
from flambeau.dtype import bool_, float32, float64, int8, int16, int32, int64, uint8
from flambeau.errors import AutogradError, FatalError
from flambeau.layout import strided
from flambeau.tensor import Tensor, touch

__all__ = ["DECLARATIONS", "load_functions"]


#: TH's name of a tensor's element type: C's, and ours
_TH: Final = {
    "Float": ("float", float32), "Double": ("double", float64), "Byte": ("uint8_t", uint8),
    "Char": ("int8_t", int8), "Short": ("int16_t", int16), "Int": ("int32_t", int32),
    "Long": ("int64_t", int64),
}  # fmt: skip
#: as in TH/TH.h
DECLARATIONS: Final = "".join(
    f"typedef struct TH{name}Tensor {{ {real} *data; const int64_t *size, *stride; int nDimension, references; "
    f"int (*resize)(void *self, int dimensions, const int64_t *sizes); }} TH{name}Tensor;\n"
    for name, (real, _) in _TH.items()
)
_STRUCTURES: Final = {f"TH{name}Tensor": dtype for name, (_, dtype) in _TH.items()}
_FLOATING: Final = ("float", "double", "long double")
_ELEMENTS: Final = {
    "float": float32, "double": float64, "_Bool": bool_, "unsigned char": uint8,
    "uint8_t": uint8, "signed char": int8, "int8_t": int8, "short": int16,
    "int16_t": int16, "int": int32, "int32_t": int32, "long": int64,
    "long long": int64, "int64_t": int64,
}  # fmt: skip


class _Call(threading.local):
    """The tensors that C sees as structures, while it runs: by the structure's address."""

    def __init__(self) -> None:
        self.tensors: dict[int, tuple[Any, Tensor, list[Any]]] = {}
        self.failure: BaseException | None = None


_call: Final = _Call()


class _Library:
    """A library of C functions."""

    def __init__(self, path: str, declarations: str) -> None:
        self.ffi = cffi.FFI()
        self.ffi.cdef(DECLARATIONS + declarations + "const char *flambeau_said(void);")
        self.lib = self.ffi.dlopen(path)
        self.resize = self.ffi.callback("int(void *, int, const int64_t *)", self._resize)

    def _resize(self, address: Any, dimensions: int, sizes: Any) -> int:
        resized = _call.tensors[int(self.ffi.cast("uintptr_t", address))][1]
        try:
            resized.resize_(tuple(sizes[0:dimensions]))
            for structure, tensor, kept in _call.tensors.values():
                if tensor is resized:  # it may have been passed more than once
                    self.describe(structure, tensor, kept)
        except Exception as error:
            _call.failure = error
            return 1
        return 0

    def describe(self, structure: Any, tensor: Tensor, kept: list[Any]) -> None:
        """Fill in what TH.h reads of a tensor; ``kept`` holds its sizes alive."""
        sizes, strides = (self.ffi.new("int64_t[]", list(each) or [1]) for each in (tensor.shape, tensor.stride()))
        kept[:] = [sizes, strides]
        structure.size, structure.stride, structure.nDimension = sizes, strides, tensor.ndim
        structure.data = self.ffi.cast(self.ffi.typeof(structure.data), tensor.data_ptr())
        structure.references, structure.resize = 1, self.resize


class _Function:
    """A C function as Python sees it."""

    def __init__(self, library: _Library, name: str, written: Collection[int]) -> None:
        self.library, self.__name__, self.written = library, name, written
        self.run = getattr(library.lib, f"flambeau_call_{name}")
        *self.kinds, self.result = library.ffi.typeof(self.run).args
        self.takers = [self._taker(number, kind) for number, kind in enumerate(self.kinds, 1)]

    def __repr__(self) -> str:
        return f"<C function {self.__name__}({', '.join(each.cname for each in self.kinds)})>"

    def _taker(self, number: int, kind: Any) -> Callable[[Any], Any]:
        if kind.kind != "pointer":
            return lambda value: self._number(number, kind, value)
        item = kind.item.cname.removeprefix("struct ")
        if item in _STRUCTURES:
            return lambda value: self._structure(number, kind, _STRUCTURES[item], value)
        if item in _ELEMENTS:
            return lambda value: self._pointer(number, kind, _ELEMENTS[item], value)
        if item == "char":
            return lambda value: self._text(number, kind, value)
        raise TypeError(
            f"{self.__name__}(): argument {number} is of type {kind.cname!r}, which Python has nothing for.\n"
            f"Use numbers, text (char *), typed pointers such as float *, or {', '.join(_STRUCTURES)} *."
        )

    def _number(self, number: int, kind: Any, value: Any) -> Any:
        if isinstance(value, Tensor):
            raise self._wrong(number, f"a number ({kind.cname})", value, "Take it out with x.item().")
        try:
            return float(value) if kind.cname in _FLOATING else operator.index(value)
        except (TypeError, ValueError):
            what = "a number" if kind.cname in _FLOATING else "a whole number"
            raise self._wrong(number, f"{what} ({kind.cname})", value, "") from None

    def _text(self, number: int, kind: Any, value: Any) -> Any:
        if not isinstance(value, (str, bytes)):
            raise self._wrong(number, f"text ({kind.cname})", value, "")
        return self.library.ffi.new("char[]", value.encode() if isinstance(value, str) else value)

    def _checked(self, number: int, kind: Any, dtype: Any, value: Any) -> Tensor:
        wanted = f"a {dtype.name} tensor on the host ({kind.cname})"
        if not isinstance(value, Tensor):
            raise self._wrong(number, wanted, value, "")
        if value.dtype is not dtype:
            raise self._wrong(number, wanted, value, f"Convert it with x.to(flambeau.{dtype.name}).")
        if not value.key.memory.host or value.layout is not strided:
            raise self._wrong(number, wanted, value, "Move it with x.cpu(), or x.to_dense().")
        if mode.enabled and value.requires_grad:
            raise AutogradError(
                f"{self.__name__}(): argument {number} requires grad, and autograd cannot see what C does with it.\n"
                "Call it in forward() of an autograd.Function or under no_grad(), or pass x.detach()."
            )
        return value

    def _pointer(self, number: int, kind: Any, dtype: Any, value: Any) -> Any:
        tensor = self._checked(number, kind, dtype, value)
        if not tensor.is_contiguous():
            wanted = f"a contiguous {dtype.name} tensor ({kind.cname})"
            raise self._wrong(number, wanted, value, f"Its strides are {tensor.stride()}: pass x.contiguous().")
        if number - 1 in self.written:
            touch(tensor)
        return self.library.ffi.cast(kind, tensor.data_ptr())

    def _structure(self, number: int, kind: Any, dtype: Any, value: Any) -> Any:
        tensor = self._checked(number, kind, dtype, value)
        kept: list[Any] = []
        structure = self.library.ffi.new(kind)
        self.library.describe(structure, tensor, kept)
        _call.tensors[int(self.library.ffi.cast("uintptr_t", structure))] = structure, tensor, kept
        return structure

    def _wrong(self, number: int, expected: str, value: Any, advice: str) -> TypeError:
        got = type(value).__name__
        if isinstance(value, Tensor):
            got = f"a {value.dtype.name} tensor of shape {list(value.shape)} on {value.device}"
        return TypeError(f"{self.__name__}(): argument {number}: expected {expected}, got {got}.\n{advice}".rstrip())

    def __call__(self, *args: Any) -> Any:
        if len(args) != len(self.takers):
            raise TypeError(
                f"{self.__name__}(): expected {len(self.takers)} arguments, got {len(args)}.\nIt is {self!r}."
            )
        before, _call.tensors, _call.failure = _call.tensors, {}, None
        # C may hold pointers to what a tensor leaves when another structure of it is resized.
        alive = [(each.memory, each.shared) for each in args if isinstance(each, Tensor)]
        ffi, lib = self.library.ffi, self.library.lib
        try:
            given = [take(value) for take, value in zip(self.takers, args, strict=True)]
            result = ffi.new(self.result)
            if self.run(*given, result):
                said = ffi.string(lib.flambeau_said()).decode(errors="replace")
                raise FatalError(f"{self.__name__}(): {said}") from _call.failure
        finally:
            _call.tensors = before
            del alive
        return None if self.result.item.cname == "flambeau_nothing" else result[0]


def load_functions(
    namespace: dict[str, Any], path: str, declarations: str, functions: Mapping[str, Collection[int]]
) -> None:
    """Put a library's functions into a module; called by the modules that :func:`create_extension` writes.

    Args:
        namespace: the module's.
        path: of the library.
        declarations: in C, of the functions that call the module's.
        functions: their names, and the positions of the pointers that they may write through.
    """
    library = _Library(path, declarations)
    for name, written in functions.items():
        namespace[name] = _Function(library, name, written)
