"""What is proven of a device itself: its memory, transfers, views, storing, random generators.

These cases run in each dtype under the name ``device``.
"""

from __future__ import annotations

import copy
import io
import pickle
from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from ...dispatch.providers import registry
from ...dtype import DTYPES, bfloat16, bool_
from ...generator import Generator
from ...key import intern
from ...ops.creation import empty, tensor, zeros
from ...ops.random import rand
from ...serialization import load, save
from ...tensor import Tensor
from ..compare import Fault, expect
from ..operands import Operand, bits, narrow, place, read
from ..samples import telling
from ..subject import Place, placing
from .category import Category, declaring

__all__ = ["DEVICE", "DEVICE_CATEGORIES"]

#: Stands where an operator's name would, in the names of these cases.
DEVICE: Final = "device"
DEVICE_CATEGORIES: Final[list[Category]] = []
_category: Final = declaring(DEVICE_CATEGORIES, lambda _: True)


def _numbers(here: Place) -> Iterator[Operand]:
    for shape in ((), (0,), (2, 0, 3), (3, 5), (40,), (2000,)):
        yield here.draw(*shape)
    for _, operand in telling(here.draw):
        yield operand


def _same(what: str, got: Tensor, wanted: Operand) -> None:
    expect(f"{what} to have shape", list(wanted.values.shape), list(got.shape))
    if bits(got) != narrow(wanted.values, wanted.dtype).tobytes():
        raise Fault(f"{what} to hold {wanted.values.reshape(-1)[:4]}", str(read(got).reshape(-1)[:4]))


@_category(
    "transfer", "Memory.from_numpy or to_numpy changes numbers: bytes must arrive as they are, whatever the dtype."
)
def _(here: Place) -> None:
    for operand in _numbers(here):
        _same("a transferred tensor", place(operand, here.device), operand)
        array = np.array(narrow(operand.values, operand.dtype))
        given = np.array(array)
        if here.dtype is bfloat16:  # which NumPy has not
            continue
        made = tensor(array, device=here.device)
        array.reshape(-1)[:] = 0
        if bits(made) != given.tobytes():
            raise Fault("flambeau.tensor(array) to be a copy", "a tensor that changes with the array")


@_category("numbers to Python", "Memory.reader or unpacker reads the wrong element, or makes another number of it.")
def _(here: Place) -> None:
    operand = here.draw.distinct(6)
    whole: Any = place(operand, here.device)
    for part, numbers in ((whole, operand.values), (whole[1:], operand.values[1:]), (whole[::2], operand.values[::2])):
        expect("tolist() to be", numbers.tolist(), part.tolist())
        expect("item() to be", numbers[1].item(), part[1].item())


@_category(
    "views", "Memory.shifter does not lead to the n-th next element, or to_numpy does not begin at the handle's own."
)
def _(here: Place) -> None:
    operand = here.draw.distinct(4, 5, 3)
    whole: Any = place(operand, here.device)
    array = operand.values
    for title, view, wanted in (
        ("x[2]", whole[2], array[2]),
        ("x[1:, ::2]", whole[1:, ::2], array[1:, ::2]),
        ("x[1:][2:][:, 3]", whole[1:][2:][:, 3], array[1:][2:][:, 3]),
        ("x.permute(2, 0, 1)", whole.permute(2, 0, 1), array.transpose(2, 0, 1)),
        ("x[:, 1].t()", whole[:, 1].t(), array[:, 1].T),
        ("x[3, 1:2].expand(4, 3)", whole[3, 1:2].expand(4, 3), np.broadcast_to(array[3, 1:2], (4, 3))),
        ("x.view(12, 5)[7:]", whole.view(12, 5)[7:], array.reshape(12, 5)[7:]),
    ):
        _same(title, view, Operand(wanted, here.dtype))


@_category(
    "view of another dtype",
    "Memory.to_numpy gives elements of the dtype it is asked for; Memory.reinterpret leads to the same bytes.",
)
def _(here: Place) -> None:
    operand = here.draw.distinct(6)
    for other in [each for each in DTYPES if each.itemsize == here.dtype.itemsize and each is not bool_]:
        whole: Any = place(operand, here.device)
        seen = whole[1:].view(other)
        expect("the view to be of", other.name, seen.dtype.name)
        if bits(seen) != narrow(operand.values[1:], here.dtype).tobytes():
            raise Fault("a view of another dtype to show the same bytes", str(read(seen)))
        _same(
            "a view that is viewed as what it was", seen[1:].view(here.dtype), Operand(operand.values[2:], here.dtype)
        )


@_category("zeros", "Memory.zeros_allocator gives memory that was not cleared.")
def _(here: Place) -> None:
    for shape in ((), (5,), (40, 50), (0, 3)):
        place(here.draw.of(np.ones(shape)), here.device)  # memory that may come back
        _same("zeros", zeros(*shape, dtype=here.dtype, device=here.device), here.draw.of(np.zeros(shape)))


@_category("memory of its own", "Memory.allocator gives the same memory twice while it is still in use.")
def _(here: Place) -> None:
    one: Any = empty(7, dtype=here.dtype, device=here.device).fill_(1)
    other: Any = empty(7, dtype=here.dtype, device=here.device).fill_(0)
    _same("the first of two tensors", one, here.draw.of(np.ones(7)))
    _same("the second of two tensors", other, here.draw.of(np.zeros(7)))


@_category(
    "write through a view",
    "What is written to a view must show in its base, and the other way round: handles share memory.",
)
def _(here: Place) -> None:
    base: Any = place(here.draw.of(np.zeros((4, 6))), here.device)
    array = np.zeros((4, 6))
    row, inner = base[1], base[1:, ::2][1:]
    inner.fill_(1)
    array[2:, ::2] = 1
    _same("the base of a written view", base, here.draw.of(array))
    base.fill_(1)
    _same("a view of a written base", row, here.draw.of(np.ones(6)))


@_category(
    "to another device", "A tensor moves by Memory.to_numpy and from_numpy: views must arrive as what they show."
)
def _(here: Place) -> None:
    operand = here.draw(4, 5)
    for how in ("contiguous", "strided", "offset"):
        given: Any = place(operand, here.device, how)
        there = given.to(here.reference)
        _same("a moved tensor", there, operand)
        expect("a moved tensor on", str(here.device), str(there.to(here.device).device))
        _same("a tensor that went and came back", there.to(here.device), operand)


@_category("save and load", "A saved tensor comes back on its device with its numbers, views with those they show.")
def _(here: Place) -> None:
    operand = here.draw(4, 5)
    for how in ("contiguous", "strided", "offset"):
        file = io.BytesIO()
        save({"x": place(operand, here.device, how)}, file)
        file.seek(0)
        back = load(file)["x"]
        expect("a loaded tensor on", str(here.device), str(back.device))
        _same("a loaded tensor", back, operand)


@_category(
    "pickle and deepcopy", "A pickled or copied tensor comes back on its device with its numbers, in memory of its own."
)
def _(here: Place) -> None:
    operand = here.draw(4, 5)
    for how in ("contiguous", "strided", "offset"):
        given = place(operand, here.device, how)
        for back in (pickle.loads(pickle.dumps(given)), copy.deepcopy(given)):
            expect("a copy on", str(here.device), str(back.device))
            _same("a copy", back, operand)


@_category("printing", "A tensor is printed from its numbers on the host: repr() must work for every dtype.")
def _(here: Place) -> None:
    operand = here.draw(3, 4)
    mine, wanted = (repr(placing(each)(operand)) for each in (here.device, here.reference))
    numbers, shown = (each[: each.rindex("]")] for each in (wanted, mine))
    expect("repr()", numbers, shown)


# ---------------------------------------------------------------- random generators


def _draws(here: Place) -> bool:
    return registry.has("uniform_", intern(here.device, dtype=here.dtype))


def _drawn(here: Place, generator: Generator, count: int = 100) -> bytes:
    return bits(rand(count, dtype=here.dtype, device=here.device, generator=generator))


@_category("reseed", "A seed starts the stream over; the drawing kernel must not keep a state of its own.", _draws)
def _(here: Place) -> None:
    generator = Generator(here.device).manual_seed(7)
    first, second = _drawn(here, generator), _drawn(here, generator)
    if first == second:
        raise Fault("other numbers at the next call", "the same")
    if _drawn(here, generator.manual_seed(7)) != first:
        raise Fault("the same numbers after the same seed", "others")
    if _drawn(here, generator.manual_seed(8)) == first:
        raise Fault("other numbers after another seed", "the same")


@_category(
    "generator state", "A generator goes back to where its state was taken, and two do not disturb each other.", _draws
)
def _(here: Place) -> None:
    generator, other = Generator(here.device).manual_seed(7), Generator(here.device).manual_seed(9)
    _drawn(here, generator)
    state = generator.get_state()
    first = _drawn(here, generator)
    _drawn(here, other)
    again = _drawn(here, generator.set_state(state))
    if first != again:
        raise Fault("the same numbers from the same state", "others")
