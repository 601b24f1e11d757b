"""One module on several devices of this process: inputs are cut along the batch, replicas run in threads."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any, Final

from ..autograd.grad_mode import mode
from ..device import device as Device
from ..errors import ArgumentError, DeviceError
from ..ops.views import declared
from ..tensor import Tensor
from .module import MODULE, PARAMETER, Module

__all__ = ["DataParallel", "data_parallel", "gather", "parallel_apply", "replicate", "scatter"]

_NOTHING: Final = object()


def _device(given: Any, beside: Device) -> Device:
    """A device; a number is one of the type of another device."""
    return Device(beside.type, given) if isinstance(given, int) else Device(given)


def _rebuilt(like: Any, items: Sequence[Any]) -> Any:
    return type(like)(*items) if hasattr(like, "_fields") else type(like)(items)


def scatter(inputs: Any, target_gpus: Sequence[Any], dim: int = 0) -> list[Any]:
    """Cut the tensors in nested tuples, lists and dicts into parts, one for each device; other values are repeated.

    Fewer parts come back if a dimension is shorter than there are devices.
    """
    count = len(target_gpus)
    if isinstance(inputs, Tensor):
        x: Any = inputs
        if not x.geometry.ndim:
            raise ArgumentError(f"scatter: expected tensors with a dimension {dim} to cut, got a 0-dim tensor.")
        parts = x.chunk(count, dim)
        return [part.to(_device(place, x.device)) for part, place in zip(parts, target_gpus, strict=False)]
    if isinstance(inputs, Mapping):
        keys, columns = list(inputs), [scatter(each, target_gpus, dim) for each in inputs.values()]
        return [type(inputs)(zip(keys, row, strict=True)) for row in _rows(columns, count)]  # type: ignore[call-arg]
    if isinstance(inputs, (tuple, list)):
        return [_rebuilt(inputs, row) for row in _rows([scatter(each, target_gpus, dim) for each in inputs], count)]
    return [inputs] * count


def _rows(columns: list[list[Any]], count: int) -> list[tuple[Any, ...]]:
    return list(zip(*columns, strict=False)) if columns else [()] * count


def gather(outputs: Sequence[Any], target_device: Any, dim: int = 0) -> Any:
    """Put the replicas' results, of one structure, together on a device; numbers in 0-dim tensors become a vector."""
    first = outputs[0]
    if isinstance(first, Tensor):
        place = _device(target_device, first.device)
        moved = [each.to(place) for each in outputs]
        if not first.geometry.ndim:
            return declared("stack")(moved)
        return declared("cat")(moved, dim)
    if first is None:
        return None
    if isinstance(first, Mapping):
        if any(each.keys() != first.keys() for each in outputs):
            raise ArgumentError("All dicts must have the same keys to be gathered.")
        return type(first)((key, gather([each[key] for each in outputs], target_device, dim)) for key in first)  # type: ignore[call-arg]
    if isinstance(first, (tuple, list)):
        return _rebuilt(first, [gather(each, target_device, dim) for each in zip(*outputs, strict=True)])
    raise ArgumentError(f"gather: expected tensors, or tuples, lists and dicts of them, got {type(first).__name__}.")


def replicate(network: Module, devices: Sequence[Any], detach: bool = False) -> list[Module]:
    """Copies of a module whose parameters lie on the devices; gradients flow back to the original's."""
    return [_replica(network, place, detach, {}) for place in devices]


def _replica(module: Module, place: Any, detach: bool, made: dict[Module, Module]) -> Module:
    known = made.get(module)
    if known is not None:
        return known
    copy = made[module] = object.__new__(type(module))
    held = copy.__dict__
    held.update(module.__dict__)
    held["_members"] = dict(module._members)
    for name, kind in module._members.items():
        value: Any = held[name]
        if value is None:
            continue
        if kind is MODULE:
            held[name] = _replica(value, place, detach, made)
        else:
            moved = value.to(_device(place, value.device))
            held[name] = moved.detach() if detach and kind is PARAMETER else moved
    return copy


def parallel_apply(modules: Sequence[Any], inputs: Sequence[Any], kwargs_tup: Sequence[Any] | None = None) -> list[Any]:
    """Call each module with its inputs, in threads; an error in one is raised here."""
    options = kwargs_tup or [{}] * len(modules)
    results: list[Any] = [_NOTHING] * len(modules)
    errors: list[BaseException | None] = [None] * len(modules)
    recording = mode.enabled

    def work(number: int) -> None:
        mode.enabled = recording  # threads begin with the default
        given = inputs[number]
        args = given if isinstance(given, (tuple, list)) else (given,)
        try:
            results[number] = modules[number](*args, **options[number])
        except BaseException as error:
            errors[number] = error

    if len(modules) == 1:
        work(0)
    else:
        threads = [threading.Thread(target=work, args=(number,)) for number in range(len(modules))]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
    for error in errors:
        if error is not None:
            raise error
    return results


class DataParallel(Module):
    """Runs a module on several devices at once, each with a part of the batch.

    Args:
        module: its parameters lie on the first device.
        device_ids: the devices, or their numbers; only that of the module if not given.
        output_device: where results come together; the first device if not given.
        dim: of the batch.

    Results may be tensors, tuples, lists and dicts of them.
    """

    def __init__(
        self, module: Module, device_ids: Sequence[Any] | None = None, output_device: Any = None, dim: int = 0
    ) -> None:
        super().__init__()
        self.module, self.dim = module, dim
        self.device_ids = list(device_ids or [])
        self.output_device = self.device_ids[0] if output_device is None and self.device_ids else output_device

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        if len(self.device_ids) < 2:
            return self.module(*inputs, **kwargs)
        for each in self.module.parameters():
            first = _device(self.device_ids[0], each.device)
            if each.device.type != first.type:
                raise DeviceError(
                    f"module must have its parameters and buffers on device {first} (device_ids[0]), found one on "
                    f"{each.device}.\n"
                    f"Call module.to({str(first)!r}) first."
                )
        parts = scatter(inputs, self.device_ids, self.dim)
        options = scatter(kwargs, self.device_ids, self.dim)
        count = min(len(parts), len(options)) if kwargs else len(parts)
        replicas = replicate(self.module, self.device_ids[:count], not mode.enabled)
        outputs = parallel_apply(replicas, parts[:count], options[:count])
        return gather(outputs, self.output_device, self.dim)


def data_parallel(
    module: Module, inputs: Any, device_ids: Sequence[Any] | None = None, output_device: Any = None, dim: int = 0,
    module_kwargs: dict[str, Any] | None = None,
) -> Any:  # fmt: skip
    """Call a module once as :class:`DataParallel` would."""
    args = inputs if isinstance(inputs, tuple) else (inputs,)
    return DataParallel(module, device_ids, output_device, dim)(*args, **(module_kwargs or {}))
