"""The kit against backends each of which does one thing wrong: it finds every one, by a case that names the fault."""

from __future__ import annotations

import re

import numpy as np
import pytest

import flambeau
from flambeau.backend import Kernel, float32, make
from flambeau.plugins import plugins

from .good import DTYPES, Good, Memory, outcomes

WRONG = []


def wrong(operators, *cases):
    """Declare a wrong backend: the operators to look at, and patterns of the cases that must fail."""

    def declare(cls):
        WRONG.append(pytest.param(cls, operators.split(), cases, id=cls.__name__))
        return cls

    return declare


# ---------------------------------------------------------------- memory


@wrong("add sum clone", r"add-float32-strided view", r"sum-int64-strided view", r"clone-float64-strided view")
class IgnoresStrides(Good):
    def look(self, tensor):
        flat, first = tensor.memory
        return flat[first : first + tensor.geometry.numel].reshape(tensor.geometry.shape)


@wrong("add sum", r"add-float32-offset view", r"sum-int64-offset view")
class IgnoresTheStorageOffset(Good):
    def look(self, tensor):
        flat, _ = tensor.memory
        steps = [each * flat.itemsize for each in tensor.geometry.strides]
        return np.lib.stride_tricks.as_strided(flat, tensor.geometry.shape, steps)


@wrong("add", r"add-float32-repeated view")
class MisreadsStridesOfZero(Good):
    def look(self, tensor):
        if 0 not in tensor.geometry.strides:
            return super().look(tensor)
        flat, first = tensor.memory
        steps = [each or 1 for each in tensor.geometry.strides]
        places = sum(np.ix_(*[np.arange(n) * step for n, step in zip(tensor.geometry.shape, steps, strict=True)]))
        return np.take(flat, first + places, mode="clip")


@wrong("device", r"device-float32-write through a view")
class CopiesWhereItShouldView(Good):
    class memory(Memory):
        def shifter(self, dtype):
            return lambda handle, elements: (np.array(handle[0]), handle[1] + elements)


@wrong("device", r"device-int64-zeros", r"device-bool-zeros")
class DoesNotClearZeros(Good):
    class memory(Memory):
        def zeros_allocator(self, device, dtype):
            return lambda elements: (np.full(elements, 7).astype(dtype.numpy), 0)


@wrong("device", r"device-float32-memory of its own")
class GivesMemoryTwice(Good):
    class memory(Memory):
        def allocator(self, device, dtype):
            block = np.empty(1 << 16, dtype.numpy)
            return lambda elements: (block[:elements], 0)


@wrong("device", r"device-int64-transfer")
class TransfersByFloatingPoint(Good):
    class memory(Memory):
        def from_numpy(self, array, device, dtype):
            with np.errstate(all="ignore"):
                return (array.astype(np.float64).astype(dtype.numpy) if array.dtype.kind in "iu" else array, 0)


@wrong("clone", r"clone-float32-result has its own memory")
class ClonesNothing(Good):
    def kernels(self):
        return {**super().kernels(), "clone": Kernel(lambda a: make(a.key, a.geometry, a.memory), DTYPES)}


@wrong("cat", r"cat-float32-result has its own memory")
class ReturnsTheOnlyInput(Good):
    def kernels(self):
        table = super().kernels()
        join = table["cat"].function
        table["cat"] = Kernel(lambda tensors, dim: tensors[0] if len(tensors) == 1 else join(tensors, dim), DTYPES)
        return table


@wrong("softmax sort", r"softmax-float32-inputs unchanged", r"sort-int64-inputs unchanged")
class ChangesItsInput(Good):
    def op_softmax(self, a, dim):
        a -= self.peak(a, dim).astype(a.dtype)
        return super().op_softmax(a, dim)

    def op_sort(self, a, dim, descending):
        values, order = super().op_sort(a, dim, descending)
        a[...] = values
        return values, order


# ---------------------------------------------------------------- writing


@wrong("add exp", r"add-float32-in-place$", r"exp-float64-in-place on a view")
class IgnoresOut(Good):
    def out(self, out, values):
        return self.fresh(out.key, values)


@wrong("add", r"add-float32-in-place$")
class ReplacesTheMemoryOfOut(Good):
    def out(self, out, values):
        out.memory = self.fresh(out.key, values).memory
        return out


@wrong("mul", r"mul-float32-in-place on a view", r"mul-int64-in-place on a view")
class WritesBetweenTheElements(Good):
    def out(self, out, values):
        flat, first = out.memory
        if not out.geometry.contiguous and out.geometry.numel:
            flat[first : first + out.geometry.span] = 0
        return super().out(out, values)


@wrong("add", r"add-float32-in-place with itself as operand")
class WritesBeforeItHasRead(Good):
    def pointwise(self, function, result=None):
        kernel = super().pointwise(function, result)

        def run(*operands, out=None):
            if out is not None and len(operands) == 2 and operands[1] is out:
                self.look(out)[...] = 0
            return kernel(*operands, out=out)

        return run


@wrong("copy_ add", r"copy_-float32-strided view", r"add-float32-out= with gaps")
class CopiesIntoContiguousTargetsAlone(Good):
    def op_copy_(self, target, source):
        return source if target.flags.c_contiguous else target


# ---------------------------------------------------------------- results


@wrong("add", r"add-float32-result's device")
class ReturnsAnotherDevice(Good):
    def fresh(self, key, values):
        values = np.array(values, key.dtype.numpy)
        return flambeau.from_numpy(values)


@wrong("sum argmax", r"sum-int32-result's dtype", r"argmax-float32-result's dtype")
class KeepsTheDtype(Good):
    def kernels(self):
        table = super().kernels()
        for name in ("sum", "argmax"):
            table[name] = Kernel(self.reading(getattr(self, f"op_{name}")), DTYPES)
        return table


@wrong("add mul", r"add-float32-broadcasting")
class BroadcastsByRepetition(Good):
    def broadcast(self, arrays):
        shape = np.broadcast_shapes(*[each.shape for each in arrays])
        return [np.resize(each, shape) if each.size > 1 else each for each in arrays]


@wrong("mean exp", r"mean-float32-same bits twice", r"exp-float64-same bits twice")
class IsNotDeterministic(Good):
    noise = np.random.default_rng(0)

    def fresh(self, key, values):
        values = np.asarray(values)
        if values.dtype.kind == "f":
            values = values + (1e-6 if key.dtype is float32 else 1e-13) * self.noise.random(values.shape)
        return super().fresh(key, values)


# ---------------------------------------------------------------- special values


@wrong("maximum amax argmax", r"maximum-float32-NaN", r"amax-float64-NaN", r"argmax-float32-NaN")
class LosesNaNInExtremes(Good):
    maximum = np.fmax

    def op_amax(self, a, dims, keepdim):
        return np.fmax.reduce(a, axis=dims, keepdims=keepdim)

    def op_argmax(self, a, dim, keepdim):
        return np.argmax(np.where(np.isnan(a), -np.inf, a), axis=dim, keepdims=keepdim)


@wrong("eq lt", r"eq-float32-NaN", r"lt-float64-NaN")
class ComparesNaN(Good):
    def eq(a, b):
        return (a == b) | ((a != a) & (b != b))

    def lt(a, b):
        return ~(a >= b)


@wrong("relu", r"relu-float32-NaN")
class RectifiesNaN(Good):
    def op_relu(self, a):
        return np.where(a > 0, a, 0)


@wrong("softmax", r"softmax-float32-infinity")
class OverflowsInSoftmax(Good):
    def peak(self, a, dim):
        return 0


@wrong("neg mul", r"neg-float32-signed zero", r"mul-float32-signed zero")
class LosesTheSignOfZero(Good):
    def neg(a):
        return 0 - a

    def mul(a, b):
        return a * b + 0


@wrong("mul abs", r"mul-float32-denormals", r"abs-float64-denormals")
class FlushesDenormals(Good):
    def fresh(self, key, values):
        values = np.array(values, key.dtype.numpy)
        if key.dtype.kind == "f":
            values[np.abs(values) < np.finfo(values.dtype).tiny] = 0
        return super().fresh(key, values)


@wrong("sum cat", r"sum-float32-empty", r"cat-int64-empty")
class CrashesOnEmpty(Good):
    def convert(self, each):
        if hasattr(each, "geometry") and not each.geometry.numel:
            raise ZeroDivisionError("division by zero")
        return super().convert(each)


@wrong("sum mean", r"sum-float32-empty", r"mean-float64-empty")
class LiesOnEmpty(Good):
    def op_sum(self, a, dims, keepdim, dtype):
        return super().op_sum(a, dims, keepdim, dtype) + (not a.size)

    def op_mean(self, a, dims, keepdim):
        return super().op_mean(a, dims, keepdim) if a.size else self.op_sum(a, dims, keepdim, float32)


@wrong("sum cumsum sort", r"sum-float32-0-dim", r"sort-int64-0-dim")
class NeedsADimension(Good):
    def look(self, tensor):
        return np.atleast_1d(super().look(tensor))


# ---------------------------------------------------------------- arithmetic


@wrong("sum mm", r"sum-float16-accumulation", r"mm-float16-accumulation")
class AccumulatesInTheSameDtype(Good):
    def op_sum(self, a, dims, keepdim, dtype):
        if not a.size or a.dtype.kind != "f" or not dims:
            return super().op_sum(a, dims, keepdim, dtype)
        found = a
        for dim in sorted(dims, reverse=True):
            found = np.take(np.cumsum(found, axis=dim, dtype=a.dtype), -1, dim)
        return np.expand_dims(found, dims) if keepdim else found

    def op_mm(self, a, b):
        if not a.size or not b.size:
            return super().op_mm(a, b)
        return np.cumsum(a[:, :, None] * b[None], axis=1, dtype=a.dtype)[:, -1]


@wrong("sum add", r"sum-float32-large", r"add-int64-values")
class ForgetsTheLastElements(Good):
    """Of what does not fill a vector."""

    def op_sum(self, a, dims, keepdim, dtype):
        return super().op_sum(a[..., : a.shape[-1] // 8 * 8] if a.size > 64 and dims else a, dims, keepdim, dtype)

    def add(a, b):
        values = np.add(a, b)
        if values.size > 16 and values.size % 8:
            values.reshape(-1)[-1] = 0
        return values


@wrong("sum", r"sum-int32-accumulation")
class AccumulatesIntegersNarrowly(Good):
    def op_sum(self, a, dims, keepdim, dtype):
        return np.sum(a, axis=dims, keepdims=keepdim, dtype=a.dtype if a.dtype.kind == "i" else np.float64)


@wrong("round", r"round-float32-rounding")
class RoundsHalvesAway(Good):
    def round_(a):
        return np.copysign(np.floor(np.abs(a) + 0.5), a) if a.dtype.kind == "f" else a


@wrong("floor_divide", r"floor_divide-int64-rounding", r"floor_divide-float32-rounding")
class TruncatesQuotients(Good):
    def floor_divide_(a, b):
        return np.trunc(a / b).astype(a.dtype)


@wrong("cast copy_", r"cast-float32-rounding", r"copy_-int32-rounding")
class RoundsWhereItShouldTruncate(Good):
    def op_cast(self, a, dtype):
        return (np.rint(a) if dtype.kind in "iu" else a).astype(dtype.numpy)

    def op_copy_(self, target, source):
        return (np.rint(source) if target.dtype.kind in "iu" else source).astype(target.dtype)


@wrong("copy_ cast", r"copy_-bool-conversion", r"cast-float32-values")
class TruncatesToBool(Good):
    def op_copy_(self, target, source):
        return source.astype(np.int64).astype(target.dtype) if target.dtype == bool else source.astype(target.dtype)

    def op_cast(self, a, dtype):
        return a.astype(np.int64).astype(dtype.numpy) if dtype.kind == "b" else a.astype(dtype.numpy)


@wrong("add mul", r"add-int32-integer overflow", r"mul-int32-integer overflow")
class SaturatesIntegers(Good):
    def add(a, b):
        return saturated(np.add, a, b)

    def mul(a, b):
        return saturated(np.multiply, a, b)


def saturated(function, a, b):
    if a.dtype != np.int32:
        return function(a, b)
    info = np.iinfo(np.int32)
    return np.clip(function(a.astype(np.int64), b.astype(np.int64)), info.min, info.max)


@wrong("maximum eq", r"maximum-int64-integer overflow", r"eq-int64-integer overflow")
class ComparesIntegersAsFloats(Good):
    def maximum(a, b):
        return (
            np.maximum(a.astype(np.float64), b.astype(np.float64)).astype(a.dtype)
            if a.dtype == np.int64
            else np.maximum(a, b)
        )

    def eq(a, b):
        return np.equal(a.astype(np.float64), b.astype(np.float64))


# ---------------------------------------------------------------- order and indices


@wrong("argmax", r"argmax-float32-ties", r"argmax-int64-ties")
class TakesTheLastOfEquals(Good):
    def op_argmax(self, a, dim, keepdim):
        if not a.ndim or not a.size:
            return super().op_argmax(a, dim, keepdim)
        size = a.size if dim is None else a.shape[dim]
        return size - 1 - super().op_argmax(np.flip(a, dim), dim, keepdim)


@wrong("sort topk", r"sort-float32-ties", r"topk-int64-ties")
class SortsEqualsBackwards(Good):
    def order(self, a, dim, descending):
        return np.flip(np.argsort(a, axis=dim, kind="stable"), dim) if descending else super().order(a, dim, descending)


@wrong("index_select gather", r"index_select-float32-error: negative index", r"gather-int64-error: negative index")
class WrapsNegativeIndices(Good):
    def checked(self, index, size, wrap=False):
        return super().checked(index, size, True)


@wrong(
    "index_select gather", r"index_select-float32-error: index out of range", r"gather-int64-error: index out of range"
)
class ClipsIndices(Good):
    def checked(self, index, size, wrap=False):
        return np.clip(index, 0, size - 1)


@wrong("index_add_", r"index_add_-float32-repeated indices")
class AddsRepeatedIndicesOnce(Good):
    def add_at(self, target, places, source):
        target[places] += source


@wrong("index_add_", r"index_add_-float32-error: index out of range")
class WritesHalfBeforeItRefuses(Good):
    def kernels(self):
        table = super().kernels()
        whole = table["index_add_"].function

        def run(target, index, source, dim):
            self.look(target)[...] += 1
            whole(target, index, source, dim)
            self.look(target)[...] -= 1

        table["index_add_"] = Kernel(run, DTYPES)
        return table


@wrong("floor_divide", r"floor_divide-int64-error: a divisor of zero")
class DividesByZero(Good):
    def op_floor_divide(self, a, b):
        return np.floor_divide(a, b)


# ---------------------------------------------------------------- backward


@wrong("relu", r"relu-float64-gradient")
class GivesAWrongBackwardKernel(Good):
    def op_threshold_backward(self, upstream, a, limit):
        return upstream


@wrong("add exp", r"add-float64-gradient")
class SumsGradientsWrongly(Good):
    """The gradient of a broadcast operand is a sum, of which this one forgets the first part."""

    def op_sum(self, a, dims, keepdim, dtype):
        return super().op_sum(a[1:] if a.ndim and len(a) > 1 else a, dims, keepdim, dtype)


# ---------------------------------------------------------------- random numbers


@wrong("uniform_ device", r"uniform_-float32-same seed", r"device-float32-reseed")
class KeepsItsOwnRandomState(Good):
    state = np.random.default_rng(1)

    def random(self, seed, offset):
        return self.state


@wrong("uniform_ normal_", r"uniform_-float32-other seed", r"normal_-float64-other seed")
class IgnoresTheSeed(Good):
    def random(self, seed, offset):
        return np.random.default_rng(offset)


@wrong("normal_ device", r"normal_-float32-next numbers", r"device-float64-reseed")
class IgnoresThePlaceInTheStream(Good):
    def random(self, seed, offset):
        return np.random.default_rng(seed % 2**64)


@wrong("normal_ uniform_", r"normal_-float32-distribution", r"uniform_-float64-distribution")
class DrawsFromAnotherDistribution(Good):
    def op_normal_(self, a, mean, std, seed, offset):
        return self.random(seed, offset).normal(mean, np.sqrt(std), a.shape)

    def op_uniform_(self, a, low, high, seed, offset):
        return self.random(seed, offset).random(a.shape)


# ---------------------------------------------------------------- the tests


@pytest.mark.parametrize(("cls", "operators", "patterns"), WRONG)
def test_every_fault_is_found_by_a_case_that_names_it(cls, operators, patterns):
    found, _ = outcomes(cls, operators)
    failed = {each.case.id: each.detail for each in found if each.status == "failed"}
    for pattern in patterns:
        assert any(re.search(pattern, each) for each in failed), f"{pattern} passed; failed: {sorted(failed)[:20]}"
    for detail in failed.values():
        assert detail.startswith("expected ") and "\n     got " in detail and len(detail.splitlines()) <= 5, detail
    assert {each.case.id for each in found if each.status == "passed"}, "everything fails: nothing is named"


def test_the_backend_that_does_everything_right_passes():
    found, report = outcomes(Good, [])
    assert [f"{each.case.id}: {each.detail}" for each in found if each.status == "failed"] == []
    assert report.problems() == []
    assert sum(each.status == "passed" for each in found) > 2900


class Far(Good):
    """A device whose memory NumPy cannot address: what it is given and what it gives are copies."""

    class memory(Memory):
        host = False

        def to_numpy(self, handle, elements, dtype):
            return np.array(super().to_numpy(handle, elements, dtype))

        def from_numpy(self, array, device, dtype):
            return (np.array(array), 0)


class FarAndAliased(Far):
    """Returns a view of its input, by a handle of its own."""

    def kernels(self):
        def clone(a):
            return make(a.key, a.geometry, (a.memory[0], a.memory[1]))

        return {**super().kernels(), "clone": Kernel(clone, DTYPES)}


def test_a_device_with_memory_of_its_own():
    found, report = outcomes(Far, [])
    assert [f"{each.case.id}: {each.detail}" for each in found if each.status == "failed"] == []
    assert report.problems() == []
    found, _ = outcomes(FarAndAliased, ["clone"])
    assert "clone-float32-result has its own memory" in {each.case.id for each in found if each.status == "failed"}


def test_a_device_that_is_installed_alone(monkeypatch):
    """Nothing offers a default device then, which must matter to nobody who names one."""

    def nothing():
        raise flambeau.backend.DeviceError("A tensor needs a device.")

    monkeypatch.setattr(plugins, "default", nothing)
    found, _ = outcomes(Good, ["device"])
    assert [f"{each.case.id}: {each.detail}" for each in found if each.status != "passed"] == []


def test_there_are_many_wrong_backends():
    assert len(WRONG) >= 40
