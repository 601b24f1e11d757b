"""Ten thousand calls of each kind leave as much memory, and as many references, as there were before."""

from __future__ import annotations

import ctypes
import gc
import sys

import pytest

import flambeau

CALLS = 10_000


class _MallInfo(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in (
        "arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost"
    )]  # fmt: skip


pytestmark = pytest.mark.skipif(
    not hasattr(ctypes.CDLL(None), "mallinfo2"), reason="this C library does not say how much memory is in use"
)


def bytes_in_use():
    """What malloc has given out: C++ objects, and the memory of large tensors."""
    mallinfo2 = ctypes.CDLL(None).mallinfo2
    mallinfo2.restype = _MallInfo
    found = mallinfo2()
    return found.uordblks + found.hblkhd


@pytest.fixture(scope="module")
def x():
    return flambeau.tensor([[1.0, 5.0, 2.0], [4.0, 3.0, 6.0]])


def fails(function, *args):
    try:
        function(*args)
    except Exception:
        return
    raise AssertionError("expected an error")


KINDS = {
    "composed": lambda cpp, cell, x: cpp.arithmetic(x, x + 1),
    "tracked": lambda cpp, cell, x: cpp.gradient(x.clone().requires_grad_()),
    "memory": lambda cpp, cell, x: cpp.transposed_sum(x),
    "several results": lambda cpp, cell, x: cpp.results(x),
    "factories": lambda cpp, cell, x: cpp.factories(),
    "blob": lambda cpp, cell, x: cpp.blob([1.0, 2.0]).sum(),
    "arguments": lambda cpp, cell, x: cpp.kinds(
        2, 3, False, "d", (1, 2, 3), x, [4, 5.5], flambeau.int64, "cuda:1", "j"
    ),
    "defaults": lambda cpp, cell, x: cpp.kinds(a=1),
    "wrong arguments": lambda cpp, cell, x: fails(cpp.kinds, 1, "x"),
    "a failed check": lambda cpp, cell, x: fails(cpp.failing, 0),
    "an error of an operator": lambda cpp, cell, x: fails(cell.forward, x, x, x, x, x),
    "an error caught in C++": lambda cpp, cell, x: cpp.caught(x[0]),
    "a Python function": lambda cpp, cell, x: cpp.through_python(x, lambda a, b: a),
    "an object": lambda cpp, cell, x: cpp.area_of(cpp.Square(3.0)),
    "text of a tensor": lambda cpp, cell, x: cpp.description(x),
}


@pytest.mark.parametrize("kind", KINDS)
def test_calls_leave_nothing(cpp, cell, x, kind):
    call = KINDS[kind]
    for _ in range(200):  # caches fill
        call(cpp, cell, x)
    gc.collect()  # what other tests left, too
    references = sys.getrefcount(x), sys.getrefcount(None)
    blocks, size = sys.getallocatedblocks(), bytes_in_use()
    for _ in range(CALLS):
        call(cpp, cell, x)
    gc.collect()
    assert abs(sys.getallocatedblocks() - blocks) < CALLS // 100
    assert bytes_in_use() - size < 2 * CALLS  # a leak of the smallest object would be 16 bytes for each
    assert sys.getrefcount(x) == references[0] and abs(sys.getrefcount(None) - references[1]) < CALLS // 100
