"""What goes between the two processes: pickled values in which a number stands for each tensor's memory.

The process that owns the memory is the worker; the other one knows the numbers alone.
"""

from __future__ import annotations

import io
import pickle
import traceback
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from flambeau import backend
from flambeau.backend import DTYPES, FlambeauError, Tensor

__all__ = ["TYPES", "Failure", "Place", "failure", "pack", "unpack"]

#: Messages name element types.
TYPES = {each.name: each for each in DTYPES}


class Failure(Exception):
    """Why there is no answer: the name of an error class of ``flambeau.backend``, and a message."""


def failure(operator: str, error: BaseException) -> Failure:
    """What to tell of an error that a kernel raised."""
    if isinstance(error, Failure):
        return error
    if isinstance(error, FlambeauError) and getattr(backend, type(error).__name__, None) is type(error):
        return Failure(type(error).__name__, f"{error}\nThe kernel of {operator!r} found it.")
    last = traceback.extract_tb(error.__traceback__)[-1]
    place = f"{last.filename}:{last.lineno}"
    return Failure("DeviceError", f"The kernel of {operator!r} raised {type(error).__name__}: {error}  [{place}]")


class Place(NamedTuple):
    """A tensor as the other process sees it: whose memory, and which part of it.

    Attributes:
        number: of the memory.
        offset: of the first element in it.
        shape, strides: in elements.
        dtype: its name.
    """

    number: int
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: str


class _Pickler(pickle.Pickler):
    place: Callable[[Tensor], Place]

    def persistent_id(self, value: Any) -> Any:
        return tuple(self.place(value)) if isinstance(value, Tensor) else None


class _Unpickler(pickle.Unpickler):
    find: Callable[[Place], Any]

    def persistent_load(self, place: Any) -> Any:
        return self.find(Place(*place))


def pack(value: Any, file: io.BytesIO, place: Callable[[Tensor], Place]) -> None:
    """Append a value to a message.

    Args:
        value: anything that can be pickled, with tensors in it.
        file: the message so far.
        place: says where a tensor is.
    """
    pickler = _Pickler(file, pickle.HIGHEST_PROTOCOL)
    pickler.place = place
    pickler.dump(value)


def unpack(message: bytes, find: Callable[[Place], Any]) -> Iterator[Any]:
    """The values of a message, each made when it is asked for.

    Args:
        message: what :func:`pack` wrote.
        find: makes what shall stand in a tensor's place.
    """
    file = io.BytesIO(message)
    while file.tell() < len(message):
        unpickler = _Unpickler(file)
        unpickler.find = find
        yield unpickler.load()
