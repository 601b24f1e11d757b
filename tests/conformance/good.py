"""A backend on NumPy that does everything right, written with the public surface; the wrong ones are made from it.

It is independent of the kit's reference: a class of kernels, each of which another class may get wrong.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from flambeau.backend import (
    Backend,
    BoundsError,
    Kernel,
    ShapeError,
    bool_,
    contiguous,
    float16,
    float32,
    float64,
    int32,
    int64,
    make,
)
from flambeau.backends import register
from flambeau.conformance.report import Report
from flambeau.conformance.suite import Suite

DTYPES = (bool_, int32, int64, float16, float32, float64)
NUMBERS, FLOATS = DTYPES[1:], DTYPES[3:]


class Memory:
    """Handles are pairs: a flat array, and where in it the tensor begins."""

    host = True

    def canonical(self, device):
        return type(device)(device.type)

    def allocator(self, device, dtype):
        return lambda elements: (np.empty(elements, dtype.numpy), 0)

    def zeros_allocator(self, device, dtype):
        return lambda elements: (np.zeros(elements, dtype.numpy), 0)

    def shifter(self, dtype):
        return lambda handle, elements: (handle[0], handle[1] + elements)

    def reader(self, dtype):
        return lambda handle: handle[0][handle[1]].item()

    def unpacker(self, dtype):
        return None

    def to_numpy(self, handle, elements, dtype):
        return handle[0][handle[1] : handle[1] + elements]

    def from_numpy(self, array, device, dtype):
        return (array, 0)


def quiet(function):
    """Without NumPy's warnings, which say nothing about the result."""

    def run(*args, **kwargs):
        with np.errstate(all="ignore"):
            return function(*args, **kwargs)

    return run


class Good:
    """The kernels; ``op_NAME`` on arrays gives the result's array."""

    memory: Any = Memory

    # -- between tensors and arrays -----------------------------------------

    def look(self, tensor):
        """A tensor's elements as an array that shares their memory."""
        flat, first = tensor.memory
        steps = [each * flat.itemsize for each in tensor.geometry.strides]
        return np.lib.stride_tricks.as_strided(flat[first:], tensor.geometry.shape, steps)

    def fresh(self, key, values):
        """A new tensor."""
        values = np.array(values, key.dtype.numpy)
        return make(key, contiguous(values.shape), (values.reshape(-1), 0))

    def write(self, target, values):
        """Overwrite a tensor."""
        self.look(target)[...] = values
        return target

    # -- adaptors -----------------------------------------------------------

    def pointwise(self, function, result=None):
        @quiet
        def kernel(*operands, out=None):
            values = function(*self.broadcast([self.look(each) for each in operands]))
            key = operands[0].key if result is None else operands[0].key.of(result)
            return self.fresh(key, values) if out is None else self.out(out, values)

        return kernel

    def broadcast(self, arrays):
        return arrays

    def out(self, out, values):
        return self.write(out, values)

    def reading(self, function, dtype=lambda key, args: key.dtype):
        """A kernel from tensors and plain values to one array, or several with their dtypes."""

        @quiet
        def kernel(*args):
            key = args[0].key if not isinstance(args[0], list) else args[0][0].key
            values = function(*[self.convert(each) for each in args])
            if isinstance(values, tuple):
                return tuple(
                    self.fresh(key.of(each), one) for one, each in zip(values, (key.dtype, int64), strict=True)
                )
            return self.fresh(key.of(dtype(key, args)), values)

        return kernel

    def convert(self, each):
        if isinstance(each, list):
            return [self.convert(one) for one in each]
        return self.look(each) if hasattr(each, "geometry") else each

    def writing(self, function):
        @quiet
        def kernel(target, *args):
            self.write(target, function(self.look(target), *[self.convert(each) for each in args]))

        return kernel

    # -- the kernels --------------------------------------------------------

    add, sub, mul, div, neg, absolute = np.add, np.subtract, np.multiply, np.true_divide, np.negative, np.abs
    floor_divide_, remainder_ = np.floor_divide, np.remainder
    maximum, minimum, eq, lt, round_, floor = np.maximum, np.minimum, np.equal, np.less, np.rint, np.floor

    def op_relu(self, a):
        return np.maximum(a, 0)

    def op_exp(self, a):
        return np.exp(a.astype(np.float64))

    def op_threshold_backward(self, upstream, a, limit):
        return np.where(a <= limit, 0, upstream)

    def op_floor_divide(self, a, b):
        if a.dtype.kind == "i" and not np.all(b):
            raise ShapeError("ZeroDivisionError: a divisor is zero.")
        return self.floor_divide_(a, b)

    def op_where(self, a, b, condition):
        return np.where(condition, a, b)

    def op_sum(self, a, dims, keepdim, dtype):
        return np.sum(a, axis=dims, keepdims=keepdim, dtype=self.accumulate(dtype))

    def accumulate(self, dtype):
        return np.float64 if dtype.is_floating_point else dtype.numpy

    def op_mean(self, a, dims, keepdim):
        return np.mean(a, axis=dims, keepdims=keepdim, dtype=np.float64)

    def op_amax(self, a, dims, keepdim):
        return np.max(a, axis=dims, keepdims=keepdim)

    def op_argmax(self, a, dim, keepdim):
        return np.argmax(a, axis=dim, keepdims=keepdim)

    def op_softmax(self, a, dim):
        if not a.ndim:
            return np.exp(a - a)
        powers = np.exp(a - self.peak(a, dim))
        return powers / powers.sum(dim, keepdims=True)

    def peak(self, a, dim):
        return np.max(a.astype(np.float64), axis=dim, keepdims=True, initial=-np.inf)

    def op_cumsum(self, a, dim):
        return np.cumsum(a, axis=dim, dtype=np.float64 if a.dtype.kind == "f" else a.dtype) if a.ndim else a

    def order(self, a, dim, descending):
        if not descending:
            return np.argsort(a, axis=dim, kind="stable")
        return np.flip(a.shape[dim] - 1 - np.argsort(np.flip(a, dim), axis=dim, kind="stable"), dim)

    def op_sort(self, a, dim, descending):
        if not a.ndim:
            return a, np.int64(0)
        order = self.order(a, dim, descending)
        return np.take_along_axis(a, order, dim), order

    def op_topk(self, a, k, dim, largest):
        values, order = self.op_sort(a, dim, largest)
        return (np.take(values, range(k), dim), np.take(order, range(k), dim)) if a.ndim else (values, order)

    def op_mm(self, a, b):
        return np.matmul(a.astype(np.float64), b.astype(np.float64)) if a.dtype.kind == "f" else np.matmul(a, b)

    def op_clone(self, a):
        return a

    def op_cast(self, a, dtype):
        return a.astype(dtype.numpy)

    def op_copy_(self, target, source):
        return source.astype(target.dtype)

    def op_fill_(self, target, value):
        return value

    def op_cat(self, arrays, dim):
        return np.concatenate(arrays, dim)

    def op_flip(self, a, dims):
        return np.flip(a, dims)

    def checked(self, index, size, wrap=False):
        """An index, every element of which is one of ``size`` places."""
        low = -size if wrap else 0
        if index.size and (index.min() < low or index.max() >= size):
            raise BoundsError(
                f"An index is out of range: expected {low} to {size - 1}, got {index.min()} to {index.max()}."
            )
        return index

    def op_index_select(self, a, index, dim):
        return np.take(a, self.checked(index, a.shape[dim]).reshape(-1), dim)

    def op_gather(self, a, index, dim):
        if not a.ndim:
            return np.take(a, self.checked(index, 1))
        self.checked(index, a.shape[dim])
        corner = a[tuple(slice(None if at == dim else size) for at, size in enumerate(index.shape))]
        return np.take_along_axis(corner, index, dim)

    def op_index_add_(self, a, index, source, dim):
        result = np.array(a)
        places = self.checked(index, a.shape[dim])
        self.add_at(np.moveaxis(result, dim, 0), places, np.moveaxis(source, dim, 0))
        return result

    def add_at(self, target, places, source):
        np.add.at(target, places, source)

    def random(self, seed, offset):
        return np.random.default_rng([seed % 2**64, offset])

    def op_uniform_(self, a, low, high, seed, offset):
        # A number of a narrow dtype may be rounded up to the end of the range.
        return np.minimum(
            self.random(seed, offset).uniform(low, high, a.shape), np.nextafter(a.dtype.type(high), a.dtype.type(low))
        )

    def op_normal_(self, a, mean, std, seed, offset):
        return self.random(seed, offset).normal(mean, std, a.shape)

    def kernels(self):
        """Operator names to kernels."""
        cls = type(self)
        unbound = {
            name: getattr(cls, name) for name in ("add", "sub", "mul", "div", "neg", "maximum", "minimum", "floor")
        }
        unbound |= {"abs": cls.absolute, "round": cls.round_, "remainder": cls.remainder_}
        table = {name: Kernel(self.pointwise(f), NUMBERS) for name, f in unbound.items()}
        table["div"] = Kernel(self.pointwise(cls.div), FLOATS)
        for name in ("add", "mul", "maximum"):
            table[name] = Kernel(table[name].function, DTYPES)
        del table["remainder"]
        for name in ("eq", "lt"):
            table[name] = Kernel(self.pointwise(getattr(cls, name), bool_), DTYPES)
        for name in ("relu", "floor_divide", "threshold_backward"):
            table[name] = Kernel(self.pointwise(getattr(self, f"op_{name}")), NUMBERS)
        table["exp"] = Kernel(self.pointwise(self.op_exp), FLOATS)
        for name in ("where", "amax", "clone", "cat", "flip", "index_select", "gather", "sort"):
            table[name] = Kernel(self.reading(getattr(self, f"op_{name}")), DTYPES)
        for name in ("cumsum", "mm", "topk"):
            table[name] = Kernel(self.reading(getattr(self, f"op_{name}")), NUMBERS)
        for name in ("mean", "softmax"):
            table[name] = Kernel(self.reading(getattr(self, f"op_{name}")), FLOATS)
        table["sum"] = Kernel(self.reading(self.op_sum, lambda key, args: args[3]), DTYPES)
        table["argmax"] = Kernel(self.reading(self.op_argmax, lambda key, args: int64), DTYPES)
        table["cast"] = Kernel(self.reading(self.op_cast, lambda key, args: args[1]), DTYPES)
        for name in ("copy_", "fill_", "index_add_"):
            table[name] = Kernel(self.writing(getattr(self, f"op_{name}")), DTYPES)
        for name in ("uniform_", "normal_"):
            table[name] = Kernel(self.writing(getattr(self, f"op_{name}")), FLOATS)
        return table

    def backend(self, name):
        return Backend(
            name=name, device=name, version="1.0", memory=self.memory(), kernels=self.kernels(), capabilities=frozenset({"rng"}),
        )  # fmt: skip


def outcomes(cls, operators):
    """What the kit says of a backend: each case's outcome, and the report."""
    with register(cls().backend("subject")):
        suite = Suite("subject", only=operators)
        report = Report(suite)
        found = [suite.run(each) for each in suite.cases()]
        for each in found:
            report.add(
                each.case.operator,
                each.case.dtype.name,
                each.case.category,
                each.status,
                each.detail,
                sorted(each.served),
            )
    return found, report
