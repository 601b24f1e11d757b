"""Serving what a device lacks on another device: only in a block that asks for it, and counted.

It works below autograd, on the arguments of kernels: history, versions and views are the same as if the
device had the kernel.  A device's own composites come first.  Tensors of other layouts are made dense on the way,
which the device that they are on can serve as well.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from ..device import device as Device
from ..errors import MissingKernelError
from ..geometry import contiguous
from ..key import Key, devices, intern
from ..layout import strided
from ..tensor import Tensor, make
from .missing import missing_kernel
from .operator import Operator, operators
from .providers import registry
from .scope import here

__all__ = ["Count", "Fallback"]


@dataclass
class Count:
    """What falling back cost for one operator: calls, bytes moved both ways, seconds."""

    calls: int = 0
    bytes: int = 0
    seconds: float = 0.0


class Fallback:
    """A block in which another device serves what a tensor's own device has no kernel for.

    Attributes:
        counts: for each operator that fell back, its :class:`Count`.
    """

    def __init__(self, device: Device) -> None:
        self.device = devices(device).canonical(device)
        self.counts: dict[str, Count] = {}
        self._lock = threading.Lock()

    def __enter__(self) -> Fallback:
        here.scope.push(here.scope.inner(substitute=self))
        return self

    def __exit__(self, *_: object) -> None:
        here.scope.pop()

    @property
    def total(self) -> Count:
        """All operators together."""
        each = self.counts.values()
        return Count(sum(x.calls for x in each), sum(x.bytes for x in each), sum(x.seconds for x in each))

    def __str__(self) -> str:
        """A table, the slowest operator first."""
        if not self.counts:
            return f"nothing fell back to {self.device}"
        rows = sorted(self.counts.items(), key=lambda row: -row[1].seconds)
        width = max(12, *(len(name) for name in self.counts))
        lines = [f"{f'to {self.device}':<{width}} {'calls':>8} {'bytes moved':>14} {'ms':>10}"]
        for name, each in [*rows, ("together", self.total)]:
            lines.append(f"{name:<{width}} {each.calls:>8,} {each.bytes:>14,} {each.seconds * 1000:>10.2f}")
        return "\n".join(lines)

    def __repr__(self) -> str:
        total = self.total
        return f"<Fallback to {self.device}: {total.calls} calls, {total.bytes} bytes moved>"

    def serve(self, op: Operator, key: Key, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run a kernel of the other device on copies of the tensors, and bring the results back.

        Raises:
            NotImplementedError: the other device has no kernel either, or is the same one.
        """
        error = self.refusal(op, key, args, kwargs)
        if error is not None:
            raise error
        there = intern(self.device, strided, key.dtype)
        written = args[0] if op.mutates else kwargs.get("out")
        began, moved = time.perf_counter(), [0]
        twins = [self._there(each, moved) for each in args]
        kernel = op.table.get(there) or op.resolve(there)
        result = kernel(*twins)
        if written is None:
            result = self._back(result, key.device, moved)
        else:
            self._write(written, twins[0] if op.mutates else result, moved)
            result = written
        with self._lock:
            count = self.counts.setdefault(op.name, Count())
            count.calls += 1
            count.bytes += moved[0]
            count.seconds += time.perf_counter() - began
        return result

    def refusal(
        self, op: Operator, key: Key, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> MissingKernelError | None:
        """The error if this block does not help a call, else None."""
        dense = key.layout is strided
        if not dense and (op.mutates or kwargs.get("out") is not None):
            why = f"the result is dense, and is to be written where a {key.layout.name} tensor takes part"
        elif not dense and not registry.has("to_dense", key):
            why = f"it serves dense tensors, and there is no kernel for to_dense of {key.dtype.name}"
        elif dense and key.device is self.device:
            why = "the tensor is on that device"
        elif not registry.has(op.name, intern(self.device, strided, key.dtype)):
            why = f"{self.device} has no kernel for {key.dtype.name} either"
        elif dense and (op.mutates or kwargs) and not key.memory.host and not registry.has("copy_", key):
            why = f"the result cannot be written, as {key.device} has no kernel for copy_ either"
        else:
            return None
        return MissingKernelError(
            f"{missing_kernel(op, key, args)}\nfallback({str(self.device)!r}) does not help: {why}."
        )

    def _there(self, each: Any, moved: list[int]) -> Any:
        """An argument on the other device: tensors keep their strides, so kernels see them as they are."""
        if isinstance(each, Tensor):
            if each.key.layout is not strided:
                each = cast(Any, each).detach().to_dense()
            flat = _flat(each)
            moved[0] += flat.nbytes
            key = intern(self.device, strided, each.key.dtype)
            return make(key, each.geometry, key.memory.from_numpy(np.array(flat), key.device, key.dtype))
        return type(each)(self._there(part, moved) for part in each) if type(each) in (list, tuple) else each

    def _back(self, result: Any, device: Device, moved: list[int]) -> Any:
        """A result on the tensor's own device."""
        if isinstance(result, Tensor):
            values = _values(result)
            moved[0] += values.nbytes
            key = intern(device, strided, result.key.dtype)
            memory = key.memory.from_numpy(np.array(values).reshape(-1), key.device, key.dtype)
            return make(key, contiguous(result.shape), memory)
        if isinstance(result, (list, tuple)):
            parts = [self._back(each, device, moved) for each in result]
            return type(result)(*parts) if hasattr(result, "_fields") else type(result)(parts)
        return result

    def _write(self, target: Tensor, twin: Tensor, moved: list[int]) -> None:
        """Overwrite a tensor with the values of one of the same shape on the other device."""
        if target.key.memory.host:
            values = _values(twin)
            moved[0] += values.nbytes
            _values(target)[...] = values
        else:
            copy, key = operators["copy_"], target.key
            (copy.table.get(key) or copy.resolve(key))(target, self._back(twin, key.device, moved))


def _flat(tensor: Tensor) -> np.ndarray[Any, Any]:
    """The memory from a tensor's first element to its last."""
    key, span = tensor.key, tensor.geometry.span
    return key.memory.to_numpy(tensor.memory, span, key.dtype) if span else np.empty(0, key.dtype.numpy)


def _values(tensor: Tensor) -> np.ndarray[Any, Any]:
    """The elements as an array in the memory format; the memory itself, on the host."""
    steps = [each * tensor.key.dtype.itemsize for each in tensor.geometry.strides]
    return np.lib.stride_tricks.as_strided(_flat(tensor), tensor.geometry.shape, steps)
