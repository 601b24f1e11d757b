"""The error for a call that nothing serves: who was asked, what comes nearest, and what helps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ..device import device as Device
from ..dtype import DTYPES, default, dtype as Dtype, promote_types
from ..errors import MissingKernelError
from ..key import Key
from ..layout import strided
from .providers import KernelFamily, Provider, registry
from .scope import here

if TYPE_CHECKING:
    from .operator import Operator

__all__ = ["declined", "judgement", "missing_kernel"]

_MOST: Final = 4


def judgement(op: Operator, key: Key, provider: Provider, args: tuple[Any, ...] | None) -> str:
    """Why a provider of the key's device does not serve a call."""
    wishes = registry.wishes + (here.scope.choice.wishes if here.scope.choice is not None else ())
    if any(not each.wanted and each.provider == provider.name and each.operator in (None, op.name) for each in wishes):
        return "is disabled"
    family = provider.kernels.get(op.name)
    if provider.layout is not key.layout:
        return f"serves the layout {provider.layout.name}"
    if family is None:
        return "has no kernel for it"
    if provider.kernel(op.name, key) is None:
        return f"has no kernel for {key.dtype.name}"
    if family.predicate is not None and (args is None or not family.predicate(*args)):
        return declined(family, args)
    return "serves it"


def declined(family: KernelFamily, args: tuple[Any, ...] | None) -> str:
    """Why a family's predicate declines a call: what its ``declines`` says, if it has one."""
    reason = getattr(family, "declines", None)
    return str(reason(*args)) if reason is not None and args is not None else "declines these arguments"


def missing_kernel(op: Operator, key: Key, args: tuple[Any, ...] | None = None) -> MissingKernelError:
    """What to raise for a call; ``args`` as the kernel would get them.

    The message has fewer than ten lines.
    """
    kind = key.device.type
    lines = [f'"{op.name}" not implemented for {key.dtype.name} on {key.device} ({key.layout.name}).']
    other = key.layout is not strided  # then who serves dense tensors is of interest too
    asked = [each for each in registry.providers if each.device == kind]
    asked = [each for each in asked if each.layout is key.layout or (other and op.name in each.kernels)]
    asked.sort(key=lambda each: (each.layout is not key.layout, -each.priority, each.name))
    for each in asked[:_MOST]:
        lines.append(f"{each.name} {each.version}".rstrip() + f" {judgement(op, key, each, args)}.")
    if len(asked) > _MOST:
        lines.append(f"Neither do {len(asked) - _MOST} more providers serve it.")
    lines += [f"The plug-in {name} for {kind} cannot be used: {reason}" for name, reason in registry.broken(kind)[:1]]
    lines.append(_help(op, key))
    return MissingKernelError("\n".join(lines))


def _help(op: Operator, key: Key) -> str:
    """What to enable, the conversion, or the device that helps."""
    for each in registry.providers:
        same = each.device == key.device.type and each.layout is key.layout
        if same and each.kernel(op.name, key) is not None and judgement(op, key, each, None) == "is disabled":
            return f"Put it back into service with flambeau.backends.enable({each.name!r})."
    wishes = here.scope.choice.wishes if here.scope.choice is not None else ()

    def served(place: Key) -> bool:
        return any(each.family.predicate is None for each in registry.candidates(op.name, place, wishes))

    dtypes = [each for each in DTYPES if each is not key.dtype and served(key.of(each))]
    if dtypes:
        listed = ", ".join(each.name for each in dtypes)
        return f"It is served there for {listed}; convert with x.to(flambeau.{_nearest(key.dtype, dtypes).name})."
    layouts = {each.layout for each in registry.providers if each.device == key.device.type and op.name in each.kernels}
    if key.layout is not strided and strided in layouts:
        return "It is served there for dense tensors: convert with x.to_dense()."
    for each in registry.providers:
        elsewhere = each.device != key.device.type and each.layout is key.layout and op.name in each.kernels
        if elsewhere and registry.candidates(op.name, key.at(Device(each.device)), wishes):
            return (
                f"{each.device} has a kernel: move there with x.to({each.device!r}), or let it serve this device's "
                f"gaps in a block: with flambeau.backends.fallback({each.device!r}): ..."
            )
    packages = sorted({each.plugin for each in registry.providers if each.device == key.device.type and each.plugin})
    return f"No loaded plug-in has a kernel; a newer {' or '.join(packages) or 'plug-in'} may."


def _nearest(dtype: Dtype, served: list[Dtype]) -> Dtype:
    """The smallest dtype that holds all values if there is one, else the default dtype, else the one most alike."""
    holding = [each for each in served if promote_types(dtype, each) is each]
    if holding:
        return min(holding, key=lambda each: (each.category, each.itemsize))
    return min(served, key=lambda each: (each is not default.dtype, each.category < dtype.category, -each.itemsize))
