"""Everything a backend may use of the core: the only module that a plug-in imports.

A plug-in is a module named by an entry point of the group ``flambeau.backends``;
the entry point's name is the device type it serves.  The module has a function
``flambeau_backends``, marked with :data:`hookimpl`, that returns a list of
:class:`Backend` descriptions::

    from flambeau.backend import Backend, hookimpl

    @hookimpl
    def flambeau_backends():
        return [Backend(name="mine", device="mine", version="1.0", memory=MyMemory(), kernels={...})]
"""

from __future__ import annotations

import difflib
import functools
import inspect
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import pluggy

from .arrays import ARRAY_DTYPES, ArrayMemory, as_array, from_array, pointwise, returning, writing
from .capabilities import CAPABILITIES
from .dispatch.abstract import Unknown, described
from .dispatch.operator import Operator, operators, similar
from .dispatch.override import Override
from .dispatch.plans import reads_of
from .dispatch.providers import KernelFamily, Provider, source_of
from .dtype import (
    DTYPES,
    bfloat16,
    bool_,
    complex64,
    complex128,
    dtype,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    uint8,
)
from .errors import (
    AllocationError,
    ArgumentError,
    ArgumentTypeError,
    BoundsError,
    DeviceError,
    DtypeError,
    FlambeauError,
    MissingKernelError,
    PluginError,
    ShapeError,
)
from .geometry import Geometry, Size, broadcast, broadcast_shapes, contiguous, contiguous_strides, expanded, strided
from .kernel import Kernel
from .key import Handle, Key, Memory, intern
from .layout import layout, sparse_coo, strided as strided_layout
from .tensor import Tensor, constant, empty, from_bfloat16, make, shared_storage, tensors_in, to_bfloat16, view

__all__ = [
    "ARRAY_DTYPES", "AllocationError", "ArgumentError", "ArgumentTypeError", "ArrayMemory", "Backend",
    "BoundsError", "CAPABILITIES", "DTYPES", "DeviceError", "DtypeError", "FlambeauError", "Geometry", "Handle",
    "Hooks", "Kernel", "Key", "Memory", "MissingKernelError", "PluginError", "Provider", "ShapeError", "Size",
    "Tensor", "as_array", "bfloat16", "bool_", "broadcast", "broadcast_shapes", "complex128", "complex64",
    "constant", "contiguous", "contiguous_strides", "dtype", "empty", "expanded", "float16", "float32", "float64",
    "from_array", "from_bfloat16", "hookimpl", "hookspec", "int16", "int32", "int64", "int8", "intern", "layout",
    "make", "pointwise", "results_of", "returning", "shared_storage", "source_of", "sparse_coo", "strided",
    "strided_layout", "tensors_in", "to_bfloat16", "uint8", "view", "writing",
]  # fmt: skip

hookspec: Final = pluggy.HookspecMarker("flambeau")
hookimpl: Final = pluggy.HookimplMarker("flambeau")


def results_of(operator: str, args: Sequence[Any], new: Callable[[Key, Geometry], Tensor]) -> Any:
    """What a kernel will return, before it has run: for a device whose kernels run while Python goes on.

    Args:
        operator: its name.
        args: the kernel's arguments.
        new: makes the tensor of a result, in memory that the kernel is going to fill.

    Returns:
        A tensor, or a tuple of tensors, as the kernel will; None if it writes into its first argument.
        NotImplemented if the declaration does not tell, as where values decide: then wait for the kernel.
    """
    op = operators[operator]
    if op.mutates:
        return None
    if op.returned is None:
        return NotImplemented
    try:
        return described(tensors_in(args)[0].key, op.returned(*args), new)
    except Unknown:
        return NotImplemented


class Hooks:
    """The hooks that a plug-in module may implement."""

    @hookspec
    def flambeau_backends(self) -> list[Backend]:
        """Describe what the plug-in contributes; called once, when the plug-in is loaded."""
        raise NotImplementedError


@dataclass(frozen=True)
class Backend:
    """What a plug-in contributes for one device type and layout.

    Attributes:
        name: of the provider, unique; ``flambeau.backends.prefer(name)`` takes it.
        device: the device type it serves.
        version: shown by ``explain`` and ``python -m flambeau backends``.
        memory: the device's memory, if this plug-in brings the device; what holds the layout's tensors there, if it
            brings a layout; None if it only brings kernels.
        kernels: operator name to kernels.
        priority: higher wins where several providers serve a call.
        layout: the layout of the tensors that the kernels take.
        capabilities: of :data:`CAPABILITIES`, those the device has.
        hooks: functions by name: those that the declared capabilities need, and any of ``device_count()``,
            ``current_device()``, ``set_device(index)``, ``set_num_threads(n)``, ``get_num_threads()``,
            ``set_flush_denormal(on)``, ``empty_cache()``, ``memory_allocated()``, ``memory_cached()``.
    """

    name: str
    device: str
    version: str
    kernels: Mapping[str, KernelFamily]
    memory: Memory | None = None
    priority: int = 0
    layout: layout = strided_layout
    capabilities: frozenset[str] = frozenset()
    hooks: Mapping[str, Callable[..., Any]] = field(default_factory=dict)

    @property
    def brings_device(self) -> bool:
        """Whether the device itself comes with it, not only a layout or kernels."""
        return self.memory is not None and self.layout is strided_layout

    def validate(self, plugin: str) -> None:
        """Check the description.

        Raises:
            RuntimeError: naming the plug-in, the part and what was expected.
        """

        def expect(condition: bool, what: str, got: Any) -> None:
            if not condition:
                raise PluginError(f"Plug-in {plugin!r}, backend {self.name!r}: expected {what}, got {got!r}.")

        expect(isinstance(self.name, str) and self.name.isidentifier(), "a name that is an identifier", self.name)
        expect(
            isinstance(self.device, str) and self.device.isidentifier(), "a device type (an identifier)", self.device
        )
        expect(isinstance(self.version, str), "a version string", self.version)
        expect(isinstance(self.priority, int), "an int as priority", self.priority)
        expect(isinstance(self.layout, layout), "a flambeau.layout", self.layout)
        unknown = frozenset(self.capabilities) - CAPABILITIES.keys()
        expect(not unknown, f"capabilities of {sorted(CAPABILITIES)}", sorted(unknown))
        for name, family in self.kernels.items():
            if name not in operators:
                expect(False, f"kernels of declared operators (like {similar(name)})", name)
            expect(hasattr(family, "build") and hasattr(family, "predicate"), f"a Kernel for {name!r}", family)
            fault = _override_fault(operators[name], family)
            if fault:
                raise PluginError(f"Plug-in {plugin!r}, backend {self.name!r}: expected {fault}.")
        if self.memory is not None:
            for method in (
                "allocator",
                "zeros_allocator",
                "shifter",
                "reader",
                "canonical",
                "to_numpy",
                "from_numpy",
                "host",
            ):
                expect(hasattr(self.memory, method), f"memory with {method!r}", self.memory)
        draws = [name for name in self.kernels if "seed" in operators[name].parameters]
        fault = _fault(self.capabilities, self.hooks, draws, self.brings_device)
        if fault:
            raise PluginError(f"Plug-in {plugin!r}, backend {self.name!r}: expected {fault}.")

    def provider(self, plugin: str) -> Provider:
        """The dispatch entry for the kernels."""
        kernels = dict(self.kernels)
        for name, family in self.kernels.items():
            if operators[name].kind == "composite":
                kernels[name] = Override(operators[name], family)
        return Provider(
            name=self.name, device=self.device, kernels=kernels, version=self.version, priority=self.priority,
            layout=self.layout, plugin=plugin,
        )  # fmt: skip


def _override_fault(op: Operator, family: KernelFamily) -> str | None:
    """What is wrong with a kernel as an override, or with its gradients: "expected ..., got ...", or None."""
    gradient = getattr(family, "gradient", None)
    if op.kind == "view":
        return f"kernels of operators that compute, got one for {op.name!r}, which is a view"
    if op.kind != "composite":
        return f"no gradients for {op.name!r}, which has its own, got those of {gradient[0]}" if gradient else None
    if not op.binding.fixed:
        return f"kernels of operators with a fixed number of arguments, got one for {op.name!r}"
    known = (*op.binding.names, "result")
    reads = reads_of(functools.partial(gradient[1], ())) if gradient else ()
    unknown = [each for each in (*(gradient[0] if gradient else ()), *reads) if each not in known]
    if unknown:
        return f"gradients of {op.name!r} in terms of {', '.join(known)}, got {unknown[0]!r}"
    return None


def _fault(
    declared: Collection[str], hooks: Mapping[str, Callable[..., Any]], draws: Collection[str], provides: bool
) -> str | None:
    """What is wrong with a backend's capabilities: "expected ..., got ...", or None.

    Args:
        declared: the capabilities.
        hooks: the functions brought.
        draws: names of the kernels brought that draw random numbers.
        provides: whether the backend brings the device itself.
    """
    if declared and not provides:
        return f"no capabilities beside memory=None (they are the device's, not the kernels'), got {sorted(declared)}"
    for capability, needed in CAPABILITIES.items():
        for name, signature in needed.items():
            brought = hooks.get(name)
            if capability not in declared:
                if brought is not None:
                    return f"the capability {capability!r} to be declared for the hook {name!r}, got {sorted(declared)}"
            elif brought is None:
                near = difflib.get_close_matches(name, hooks, 1)
                got = f"{near[0]!r}" if near else "none"
                return f"the hook {name}{signature} for the capability {capability!r}, got {got}"
            elif not _takes(brought, signature):
                return f"the hook {name}{signature}, got {_described(brought)}"
    if provides and draws and "rng" not in declared:
        return f"the capability 'rng' to be declared for the kernel {sorted(draws)[0]!r}, got {sorted(declared)}"
    if "rng" in declared and not draws:
        return "a kernel that draws random numbers, such as 'uniform_', for the capability 'rng', got none"
    return None


def _takes(hook: Any, signature: str) -> bool:
    """Whether a hook can be called as documented, as far as Python can tell."""
    if not callable(hook):
        return False
    arguments = signature[1 : signature.index(")")].split(", ")
    try:
        inspect.signature(hook).bind(*arguments)
    except TypeError:
        return False
    except ValueError:  # written in C
        return True
    return True


def _described(hook: Any) -> str:
    try:
        return f"{getattr(hook, '__name__', hook)}{inspect.signature(hook)}"
    except (TypeError, ValueError):
        return repr(hook)
