"""Launchers of conversion.c."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from flambeau.backend import DTYPES, Key, Tensor, dtype

from .._kernels import lib
from ..launch import CODES, find, unary, walk

__all__ = ["KERNELS"]

#: how C spells the element types, in the order of their codes
_SUFFIXES: Final = ["bool", "u8", "i8", "i16", "i32", "i64", "f16", "bf16", "f32", "f64", "c64", "c128"]


def _converter(source: dtype, target: dtype) -> Any:
    return find("copy" if source is target else f"to_{_SUFFIXES[CODES[target]]}", source)


class _Conversion:
    """Kernels between element types: which C kernel it is depends on both."""

    predicate = None

    def __init__(self, name: str, build: Callable[[Key], Callable[..., Any]]) -> None:
        self.name, self.build = name, build


def _copy_into(key: Key) -> Callable[..., None]:
    converters = {each: _converter(each, key.dtype) for each in DTYPES}

    def launch(target: Tensor, source: Tensor) -> None:
        geometry = target.geometry
        kernel = converters[source.key.dtype]
        if source.geometry is geometry and geometry.dense:
            lib.fb_run2(kernel, geometry.numel, target.memory, source.memory)
        elif geometry.numel:
            walk(kernel, (target, source))

    return launch


def _fill(key: Key) -> Callable[..., None]:
    kernel = _converter(key.dtype, key.dtype)

    def launch(target: Tensor, value: Tensor) -> None:
        geometry = target.geometry
        if geometry.dense:
            lib.fb_spread2(kernel, geometry.numel, target.memory, value.memory)
        elif geometry.numel:
            walk(kernel, (target, value))

    return launch


def _clone(key: Key) -> Callable[..., Tensor]:
    return unary(_converter(key.dtype, key.dtype), key)


def _cast(key: Key) -> Callable[..., Tensor]:
    found = {each: unary(_converter(key.dtype, each), key.of(each)) for each in DTYPES}
    return lambda source, dtype: found[dtype](source)


KERNELS: Final[dict[str, Any]] = {
    name: _Conversion(name, build)
    for name, build in (("copy_", _copy_into), ("fill_", _fill), ("clone", _clone), ("cast", _cast))
}
