"""A small device for tests of dispatch: NumPy arrays that the core cannot look into."""

from __future__ import annotations

import numpy as np
import pytest

import flambeau as torch
from flambeau import backends
from flambeau.backend import Backend, Kernel, Provider, bool_, contiguous, float32, float64, int64, make
from flambeau.dispatch.providers import registry


class ToyMemory:
    """Handles are (array, start): no address, so nothing works that assumes one."""

    host = False

    def canonical(self, device):
        return type(device)(device.type, 0)

    def allocator(self, device, dtype):
        return lambda count: (np.full(count, 77, dtype.numpy), 0)

    def zeros_allocator(self, device, dtype):
        return lambda count: (np.zeros(count, dtype.numpy), 0)

    def shifter(self, dtype):
        return lambda handle, count: (handle[0], handle[1] + count)

    def reader(self, dtype):
        return lambda handle: handle[0][handle[1]].item()

    def unpacker(self, dtype):
        return None

    def to_numpy(self, handle, count, dtype):
        return handle[0][handle[1] : handle[1] + count].copy()

    def from_numpy(self, array, device, dtype):
        return (np.array(array, dtype.numpy), 0)


def array(t):
    """The tensor's elements, in place."""
    memory, start = t.memory
    steps = [each * memory.itemsize for each in t.geometry.strides]
    return np.lib.stride_tricks.as_strided(memory[start:], t.geometry.shape, steps)


def fresh(key, values):
    values = np.asarray(values, key.dtype.numpy)
    return make(key, contiguous(values.shape), (values.reshape(-1).copy(), 0))


def pointwise(function, dtypes=(float32, float64, int64), predicate=None):
    def kernel(*operands, out=None):
        values = function(*map(array, operands))
        if out is None:
            return fresh(operands[0].key, values)
        array(out)[...] = values
        return out

    return Kernel(kernel, dtypes, predicate)


def copy_(target, source):
    array(target)[...] = array(source)


def draw(target, low, high, seed, offset):
    array(target)[...] = np.random.default_rng([seed % 2**63, offset]).uniform(low, high, target.shape)


def toy_kernels():
    return {
        "add": pointwise(np.add),
        "mul": pointwise(np.multiply),
        "sub": pointwise(np.subtract),
        "copy_": Kernel(copy_),
        "fill_": Kernel(copy_),
        "clone": Kernel(lambda x: fresh(x.key, array(x))),
        "cast": Kernel(lambda x, dtype: fresh(x.key.of(dtype), array(x))),
        "sum": Kernel(
            lambda x, dims, keep, dtype: fresh(
                x.key if dtype is None else x.key.of(dtype), array(x).sum(tuple(dims), keepdims=keep)
            ),
            (float32, float64, int64, bool_),
        ),
    }


@pytest.fixture
def toy():
    """Takes in a device ``toy`` with the given changes to its description; several, one after the other, if asked."""
    entered = []

    def register(name="toy", **changes):
        described = {"device": name, "version": "2.5", "memory": ToyMemory(), "kernels": toy_kernels(), **changes}
        entered.append(backends.register(Backend(name=name, **described)))
        return entered[-1].plugin

    register.Memory, register.kernels, register.fresh = ToyMemory, toy_kernels, fresh
    yield register
    for each in entered[::-1]:
        each.__exit__()


@pytest.fixture
def rival():
    """A second provider of add and mul on the CPU that notes its calls."""
    calls = []
    torch.ones(1)
    own = next(each for each in registry.providers if each.name == "cpu")

    def kernel(name):
        def run(*args, out=None):
            calls.append(name)
            real = own.kernel(name, args[0].key)
            return real(*args) if out is None else real(*args, out=out)

        return run

    kernels = {
        "add": Kernel(kernel("add"), predicate=lambda a, b: a.geometry.numel < 100),
        "mul": Kernel(kernel("mul")),
    }
    provider = Provider("rival", "cpu", kernels, version="9", priority=-1, plugin="rivals")
    registry.add(provider)
    yield calls
    registry.remove(provider.plugin)
    backends.reset()
