"""How tensors look when printed.

One format serves all elements of a tensor: whole numbers, fixed or scientific
notation, chosen from the largest and smallest magnitudes.  Tensors of many elements
show the edges of each dimension.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

import numpy as np

from .dtype import default, int64, of_scalar
from .errors import ArgumentError
from .layout import strided
from .ops.conversion import values
from .plugins import some_default
from .tensor import Tensor

__all__ = ["METHODS", "get_printoptions", "printoptions", "set_printoptions"]

_PROFILES: Final[dict[str, dict[str, Any]]] = {
    "default": {"precision": 4, "threshold": 1000, "edgeitems": 3, "linewidth": 80},
    "short": {"precision": 2, "threshold": 1000, "edgeitems": 2, "linewidth": 80},
    "full": {"precision": 4, "threshold": math.inf, "edgeitems": 3, "linewidth": 80},
}
_options: Final[dict[str, Any]] = {**_PROFILES["default"], "sci_mode": None}


def set_printoptions(
    precision: int | None = None,
    threshold: float | None = None,
    edgeitems: int | None = None,
    linewidth: int | None = None,
    profile: str | None = None,
    sci_mode: bool | None = None,
) -> None:
    """Choose how tensors are printed.

    Args:
        precision: digits after the point.
        threshold: tensors of more elements are summarised.
        edgeitems: how many items a summary shows at each end of a dimension.
        linewidth: characters to a line.
        profile: ``"default"``, ``"short"`` or ``"full"``: sets all of the above that are not given.
        sci_mode: scientific notation always (True), never (False) or where it is needed (None).

    Raises:
        ValueError: there is no such profile.

    >>> import flambeau
    >>> flambeau.set_printoptions(precision=2)
    >>> flambeau.tensor([1.12345])
    tensor([1.12])
    >>> flambeau.set_printoptions(profile="default")
    """
    if profile is not None:
        if profile not in _PROFILES:
            raise ArgumentError(f"set_printoptions: expected a profile of {', '.join(_PROFILES)}, got {profile!r}.")
        _options.update(_PROFILES[profile])
    given = {"precision": precision, "threshold": threshold, "edgeitems": edgeitems, "linewidth": linewidth}
    _options.update({name: value for name, value in given.items() if value is not None})
    _options["sci_mode"] = sci_mode


def get_printoptions() -> dict[str, Any]:
    """The options that :func:`set_printoptions` sets."""
    return dict(_options)


@contextmanager
def printoptions(**options: Any) -> Iterator[None]:
    """Print with other options inside a ``with`` block; arguments as for :func:`set_printoptions`."""
    before = dict(_options)
    set_printoptions(**options)
    try:
        yield
    finally:
        _options.update(before)


class _Format:
    """The notation and width that fit all of some real numbers."""

    def __init__(self, numbers: np.ndarray[Any, Any]) -> None:
        self.floating = numbers.dtype.kind == "f"
        self.whole = self.scientific = False
        self.width = 1
        if not self.floating:
            ends = numbers if numbers.dtype.kind == "b" else [numbers.min(), numbers.max()] if numbers.size else []
            self.width = max((len(str(each)) for each in set(np.asarray(ends).flat)), default=1)
            return
        self.whole = True
        telling = numbers[np.isfinite(numbers) & (numbers != 0)].astype(np.float64)
        if telling.size:
            sizes = np.abs(telling)
            low, high = float(sizes.min()), float(sizes.max())
            self.whole = bool((telling == np.trunc(telling)).all())
            self.scientific = high / low > 1000 or high > 1e8 or (not self.whole and low < 1e-4)
        if _options["sci_mode"] is not None:
            self.scientific = _options["sci_mode"]
        self.width = max((len(self._text(each)) for each in telling.tolist()), default=1)

    def _text(self, number: Any) -> str:
        if not self.floating:
            return str(number)
        if self.scientific:
            return f"{number:.{_options['precision']}e}"
        if self.whole:
            return f"{number:.0f}" + ("." if math.isfinite(number) else "")
        return f"{number:.{_options['precision']}f}"

    def __call__(self, number: Any) -> str:
        return self._text(number).rjust(self.width)


class _ComplexFormat:
    """Formats of the real and imaginary parts."""

    def __init__(self, numbers: np.ndarray[Any, Any]) -> None:
        self.real, self.imag = _Format(numbers.real), _Format(numbers.imag)
        self.width = self.real.width + self.imag.width + 1

    def __call__(self, number: complex) -> str:
        imag = self.imag(number.imag).lstrip()
        return self.real(number.real) + ("" if imag.startswith("-") else "+") + imag + "j"


def _edges(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The elements that a summary shows."""
    edge = _options["edgeitems"]
    for axis, size in enumerate(array.shape):
        if size > 2 * edge:
            array = np.take(array, [*range(edge), *range(size - edge, size)], axis)
    return array


def _rows(array: np.ndarray[Any, Any], form: Any, indent: int, summarise: bool) -> str:
    """Nested brackets, the inner ones ``indent`` characters from the left."""
    if array.ndim == 0:
        return form(array.item())  # type: ignore[no-any-return]
    edge = _options["edgeitems"]
    cut = summarise and len(array) > 2 * edge
    if array.ndim == 1:
        if cut:
            shown = [*map(form, array[:edge].tolist()), " ...", *map(form, array[len(array) - edge :].tolist())]
        else:
            shown = [form(each) for each in array.tolist()]
        fit = max(1, (_options["linewidth"] - indent) // (form.width + 2))
        lines = [", ".join(shown[i : i + fit]) for i in range(0, len(shown), fit)]
        return "[" + (",\n" + " " * (indent + 1)).join(lines) + "]"
    inner = [*array[:edge], None, *array[len(array) - edge :]] if cut else list(array)
    parts = ["..." if each is None else _rows(np.asarray(each), form, indent + 1, summarise) for each in inner]
    return "[" + ("," + "\n" * (array.ndim - 1) + " " * (indent + 1)).join(parts) + "]"


def text(array: np.ndarray[Any, Any], indent: int = 0) -> str:
    """The numbers of an array in nested brackets."""
    if not array.size:
        return "[]"
    summarise = array.size > _options["threshold"]
    shown = _edges(array) if summarise else array
    form = _ComplexFormat(shown) if array.dtype.kind == "c" else _Format(shown)
    return _rows(array, form, indent, summarise)


def _suffixes(self: Tensor) -> list[str]:
    """What is remarkable about a tensor beside its numbers."""
    found = []
    if self.device is not some_default():
        found.append(f"device={str(self.device)!r}")
    dtype, empty = self.dtype, not self.geometry.numel
    if empty and self.ndim != 1:
        found.append(f"size={tuple(self.shape)}")
    usual = (default.dtype,) if empty else (default.dtype, int64, of_scalar(bool), of_scalar(complex))
    if dtype not in usual:
        found.append(f"dtype={dtype!r}")
    return found


def _history(self: Any) -> list[str]:
    node = self.grad_fn
    return [f"grad_fn=<{node.name()}>"] if node is not None else ["requires_grad=True"] if self.requires_grad else []


def _joined(body: str, suffixes: Sequence[str], indent: int) -> str:
    """Append suffixes, breaking lines that would grow too long."""
    length = len(body) - body.rfind("\n") + 1
    for each in suffixes:
        if length + len(each) + 2 > _options["linewidth"]:
            body += ",\n" + " " * indent + each
            length = indent + len(each)
        else:
            body += ", " + each
            length += len(each) + 2
    return body + ")"


_PREFIX: Final = "tensor("


def _sparse(self: Any) -> str:
    """``tensor(indices=..., values=..., size=..., nnz=..., layout=...)``."""
    indent = len(_PREFIX)
    indices, numbers = self._indices().detach(), self._values().detach()
    parts = []
    for name, part in (("indices", indices), ("values", numbers)):
        head = f"{name}={_PREFIX}"
        size = () if part.numel() else (f"size={tuple(part.shape)}",)
        parts.append(_joined(head + text(values(part), indent + len(head)), size, indent))
    rest = [f"size={tuple(self.shape)}", f"nnz={numbers.shape[0]}"]
    rest += [each for each in _suffixes(self) if not each.startswith("size=")]
    head = _PREFIX + (",\n" + " " * indent).join(parts) + ",\n" + " " * indent + rest[0]
    return _joined(head, [*rest[1:], f"layout={self.layout!r}", *_history(self)], indent)


def __repr__(self: Tensor) -> str:
    """The values and what is remarkable about the tensor, as text that ``flambeau.tensor`` could nearly read."""
    if self.layout is not strided:
        return _sparse(self)
    indent = len(_PREFIX)
    return _joined(_PREFIX + text(values(self), indent), [*_suffixes(self), *_history(self)], indent)


def __format__(self: Tensor, specification: str) -> str:
    """A tensor without dimensions formats as its number."""
    if self.geometry.ndim == 0:
        return format(self.item(), specification)
    return object.__format__(self, specification)


METHODS: Final = {"__repr__": __repr__, "__format__": __format__}
