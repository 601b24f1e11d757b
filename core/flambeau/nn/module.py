"""Module: the base of everything with parameters.

Parameters, buffers and submodules are ordinary attributes of the instance; the module only
remembers which names are what.  So reading ``self.weight`` costs what any attribute costs,
and ``_parameters``, ``_buffers`` and ``_modules`` are views that cannot disagree with it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, MutableMapping
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from ..autograd.grad_mode import no_grad
from ..device import device as Device
from ..dtype import bfloat16, dtype as Dtype, float16, float32, float64
from ..errors import ArgumentTypeError
from ..ops.properties import RemovableHandle
from ..tensor import Tensor
from . import state
from .hooks import Hooks
from .parameter import Parameter

__all__ = ["Module"]

PARAMETER: Final = "parameter"
BUFFER: Final = "buffer"
TRANSIENT: Final = "transient buffer"  # not part of the state
MODULE: Final = "module"
_EXPECTED: Final = {
    PARAMETER: "a flambeau.nn.Parameter or None",
    BUFFER: "a Tensor or None",
    TRANSIENT: "a Tensor or None",
    MODULE: "a flambeau.nn.Module or None",
}

M = TypeVar("M", bound="Module")


class Members(MutableMapping[str, Any]):
    """What a module holds of some kinds, by name: ``module._parameters`` and its siblings."""

    __slots__ = ("kinds", "module")

    def __init__(self, module: Module, *kinds: str) -> None:
        self.module, self.kinds = module, kinds

    def __getitem__(self, name: str) -> Any:
        if self.module._members.get(name) not in self.kinds:
            raise KeyError(name)
        return self.module.__dict__[name]

    def __setitem__(self, name: str, value: Any) -> None:
        members = self.module._members
        if members.get(name) not in self.kinds:
            members.pop(name, None)
            members[name] = self.kinds[0]
        self.module.__dict__[name] = value

    def __delitem__(self, name: str) -> None:
        self[name]
        del self.module._members[name], self.module.__dict__[name]

    def __iter__(self) -> Iterator[str]:
        return iter([name for name, kind in self.module._members.items() if kind in self.kinds])

    def __len__(self) -> int:
        return sum(kind in self.kinds for kind in self.module._members.values())

    def __repr__(self) -> str:
        return repr(dict(self))


class Module:
    """The base class of neural network modules.

    A subclass calls ``super().__init__()``, assigns parameters and other modules to attributes and
    defines ``forward``.  Calling the module runs ``forward`` and the registered hooks.

    Attributes:
        training: whether the module is in training mode; dropout and normalisation look at it.
    """

    training: bool
    #: of the saved state; a module whose state changes raises it
    _version: int = 1
    _members: dict[str, str]
    _hooks: Hooks | None = None

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...  # registered members

    def __init__(self) -> None:
        held = self.__dict__
        held["_members"] = {}
        held["training"] = True

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Compute the module's result; every subclass defines it."""
        raise NotImplementedError(f'Module [{type(self).__name__}] is missing the required "forward" function')

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._hooks is None:
            return self.forward(*args, **kwargs) if kwargs else self.forward(*args)
        return self._hooks.call(self, args, kwargs)

    # -- attributes ---------------------------------------------------------

    def __setattr__(self, name: str, value: Any) -> None:
        members = self.__dict__.get("_members")
        if isinstance(value, (Parameter, Module)) or (members and name in members):
            self._assign(name, value)
        else:
            object.__setattr__(self, name, value)

    def _assign(self, name: str, value: Any) -> None:
        """Set an attribute that is, or becomes, a member."""
        kind = MODULE if isinstance(value, Module) else PARAMETER
        members = self.__dict__.get("_members")
        if members is None:
            raise AttributeError(f"cannot assign {kind} before Module.__init__() call")
        before = members.get(name)
        if not isinstance(value, (Parameter, Module)):
            kind = before
            if value is not None and not (kind in (BUFFER, TRANSIENT) and isinstance(value, Tensor)):
                raise ArgumentTypeError(
                    f"cannot assign a {type(value).__name__} as {kind} {name!r}: expected {_EXPECTED[kind]}.\n"
                    f"Delete the {kind} first (del module.{name}) to use the name for something else."
                )
        if before is not kind:
            members.pop(name, None)
            members[name] = kind
        self.__dict__[name] = value

    def __delattr__(self, name: str) -> None:
        self.__dict__.get("_members", {}).pop(name, None)
        object.__delattr__(self, name)

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        # Kinds are compared by identity, and unpickled text is another object.
        kinds = {kind: kind for kind in _EXPECTED}
        self.__dict__["_members"] = {name: kinds[kind] for name, kind in state.get("_members", {}).items()}

    _parameters = property(lambda self: Members(self, PARAMETER), doc="The module's own parameters by name.")
    _buffers = property(lambda self: Members(self, BUFFER, TRANSIENT), doc="The module's own buffers by name.")
    _modules = property(lambda self: Members(self, MODULE), doc="The direct submodules by name.")

    def _register(self, name: str, value: Any, kind: str) -> None:
        if "_members" not in self.__dict__:
            raise AttributeError(f"cannot assign {kind} before Module.__init__() call")
        if not isinstance(name, str):
            raise ArgumentTypeError(f"{kind} name should be a string. Got {type(name).__name__}")
        if "." in name:
            raise KeyError(f'{kind} name can\'t contain ".", got {name!r}')
        if name == "":
            raise KeyError(f'{kind} name can\'t be empty string ""')
        if self._members.get(name) is not kind and (name in self.__dict__ or hasattr(type(self), name)):
            raise KeyError(f"attribute {name!r} already exists")
        self._members[name] = kind
        self.__dict__[name] = value

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Add a parameter; None reserves the name.

        Raises:
            KeyError: the name is taken, empty or has a dot.
            TypeError: ``param`` is neither a Parameter nor None.
        """
        if param is not None and not isinstance(param, Parameter):
            raise ArgumentTypeError(
                f"cannot assign '{type(param).__name__}' object to parameter '{name}' ({_EXPECTED[PARAMETER]} required)"
            )
        self._register(name, param, PARAMETER)

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Add a tensor that is part of the state but not learned.

        Args:
            persistent: whether it is in ``state_dict()``.

        Raises:
            KeyError: the name is taken, empty or has a dot.
            TypeError: ``tensor`` is neither a Tensor nor None.
        """
        if tensor is not None and not isinstance(tensor, Tensor):
            raise ArgumentTypeError(
                f"cannot assign '{type(tensor).__name__}' object to buffer '{name}' ({_EXPECTED[BUFFER]} required)"
            )
        if "_members" in self.__dict__ and self._members.get(name) in (BUFFER, TRANSIENT):
            del self._members[name], self.__dict__[name]
        self._register(name, tensor, BUFFER if persistent else TRANSIENT)

    def add_module(self, name: str, module: Module | None) -> None:
        """Add a submodule; None reserves the name.

        Raises:
            KeyError: the name is taken, empty or has a dot.
            TypeError: ``module`` is neither a Module nor None.
        """
        if module is not None and not isinstance(module, Module):
            raise ArgumentTypeError(f"{type(module).__name__} is not a Module subclass: {module!r:.60}")
        self._register(name, module, MODULE)

    register_module = add_module

    # -- walking ------------------------------------------------------------

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """The direct submodules with their names; each once."""
        seen = set()
        for name, kind in list(self._members.items()):
            if kind is MODULE:
                child = self.__dict__[name]
                if child is not None and child not in seen:
                    seen.add(child)
                    yield name, child

    def children(self) -> Iterator[Module]:
        """The direct submodules; each once."""
        for _, child in self.named_children():
            yield child

    def named_modules(
        self, memo: set[Module] | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Module]]:
        """This module and all below it with their dotted names, parents first; each once unless told otherwise."""
        memo = set() if memo is None else memo
        if self in memo:
            return
        if remove_duplicate:
            memo.add(self)
        yield prefix, self
        for name, kind in list(self._members.items()):
            child = self.__dict__[name]
            if kind is MODULE and child is not None:
                yield from child.named_modules(memo, f"{prefix}.{name}" if prefix else name, remove_duplicate)

    def modules(self) -> Iterator[Module]:
        """This module and all below it, parents first; each once."""
        return iter(self._descendants({}))

    def _descendants(self, found: dict[Module, None]) -> dict[Module, None]:
        if self not in found:
            found[self] = None
            held = self.__dict__
            for name, kind in held["_members"].items():
                if kind is MODULE:
                    child = held[name]
                    if child is not None:
                        child._descendants(found)
        return found

    def _named(
        self, kinds: tuple[str, ...], prefix: str, recurse: bool, unique: bool = True
    ) -> Iterator[tuple[str, Any]]:
        seen: set[Any] = set()
        modules = self.named_modules(None, prefix, unique) if recurse else iter(((prefix, self),))
        for path, module in modules:
            for name, kind in list(module._members.items()):
                value = module.__dict__[name]
                if kind in kinds and value is not None and value not in seen:
                    if unique:
                        seen.add(value)
                    yield f"{path}.{name}" if path else name, value

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """The parameters with their dotted names; each once unless told otherwise."""
        return self._named((PARAMETER,), prefix, recurse, remove_duplicate)

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """The parameters of this module and, with ``recurse``, of all below it; each once."""
        found: dict[Parameter, None] = {}
        for module in self._descendants({}) if recurse else (self,):
            held = module.__dict__
            for name, kind in held["_members"].items():
                if kind is PARAMETER:
                    value = held[name]
                    if value is not None:
                        found[value] = None
        return iter(found)

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """The buffers with their dotted names; each once unless told otherwise."""
        return self._named((BUFFER, TRANSIENT), prefix, recurse, remove_duplicate)

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """The buffers of this module and, with ``recurse``, of all below it; each once."""
        for _, each in self.named_buffers(recurse=recurse):
            yield each

    def get_submodule(self, target: str) -> Module:
        """The submodule with a dotted name.

        Raises:
            AttributeError: there is none.
        """
        module = self
        for name in target.split(".") if target else ():
            found = module.__dict__.get(name)
            if not isinstance(found, Module):
                raise AttributeError(f"{type(module).__name__} has no submodule {name!r} (looking for {target!r}).")
            module = found
        return module

    def _member(self, target: str, kinds: tuple[str, ...]) -> Any:
        path, _, name = target.rpartition(".")
        module = self.get_submodule(path)
        if module._members.get(name) not in kinds:
            raise AttributeError(f"{type(module).__name__} has no {kinds[0]} {name!r} (looking for {target!r}).")
        return module.__dict__[name]

    def get_parameter(self, target: str) -> Parameter:
        """The parameter with a dotted name.

        Raises:
            AttributeError: there is none.
        """
        return cast(Parameter, self._member(target, (PARAMETER,)))

    def get_buffer(self, target: str) -> Tensor:
        """The buffer with a dotted name.

        Raises:
            AttributeError: there is none.
        """
        return cast(Tensor, self._member(target, (BUFFER, TRANSIENT)))

    def apply(self: M, fn: Callable[[Module], None]) -> M:
        """Call ``fn`` with every module below, children first, and with this one."""
        for child in self.children():
            child.apply(fn)
        fn(self)
        return self

    # -- dtypes and devices -------------------------------------------------

    def _apply(self: M, convert: Callable[[Any], Any]) -> M:
        """Replace the values of all parameters, their gradients, and the buffers."""
        with no_grad():
            for module in self._descendants({}):
                held = module.__dict__
                for name, kind in module._members.items():
                    value = held[name]
                    if value is None or kind is MODULE:
                        continue
                    if kind is not PARAMETER:
                        held[name] = convert(value)
                        continue
                    new = convert(value)
                    if new is not value:
                        value.data = new
                        if value.grad is not None:
                            value.grad = convert(value.grad)
        return self

    def to(self: M, *args: Any, **kwargs: Any) -> M:
        """Move and convert in place: ``to(device)``, ``to(dtype)``, ``to(device, dtype)``, ``to(tensor)``.

        Only floating-point parameters and buffers change their dtype.

        Raises:
            TypeError: the dtype is not a floating-point type.
        """
        device, dtype, flags = kwargs.pop("device", None), kwargs.pop("dtype", None), {"non_blocking": False}
        flags.update(kwargs)
        for each in args:
            if isinstance(each, Dtype):
                dtype = each
            elif isinstance(each, Tensor):
                device, dtype = each.device, each.dtype
            elif isinstance(each, bool):
                flags["non_blocking"] = each
            elif isinstance(each, (Device, str, int)):
                device = each
            elif each is not None:
                raise ArgumentTypeError(
                    f"to() expects a device, a dtype or a tensor, got {type(each).__name__} {each!r:.60}."
                )
        if dtype is not None and dtype.category < 2:
            raise ArgumentTypeError(
                f"nn.Module.to only accepts floating point or complex dtypes, but got desired dtype={dtype!r}"
            )

        def convert(tensor: Any) -> Any:
            wanted = dtype if tensor.key.dtype.category >= 2 else None
            place = Device(tensor.device.type, device) if isinstance(device, int) else device
            return tensor.to(device=place, dtype=wanted, **flags)

        return self._apply(convert)

    def _float_to(self: M, dtype: Dtype) -> M:
        return self._apply(lambda each: each.to(dtype=dtype) if each.key.dtype.is_floating_point else each)

    def float(self: M) -> M:
        """Convert floating-point parameters and buffers to float32."""
        return self._float_to(float32)

    def double(self: M) -> M:
        """Convert floating-point parameters and buffers to float64."""
        return self._float_to(float64)

    def half(self: M) -> M:
        """Convert floating-point parameters and buffers to float16."""
        return self._float_to(float16)

    def bfloat16(self: M) -> M:
        """Convert floating-point parameters and buffers to bfloat16."""
        return self._float_to(bfloat16)

    def type(self: M, dst_type: Any) -> M:
        """Convert all parameters and buffers, whatever their dtype."""
        return self._apply(lambda each: each.type(dst_type))

    def cpu(self: M) -> M:
        """Move to the host."""
        return self._apply(lambda each: each.cpu())

    def cuda(self: M, device: Any = None) -> M:
        """Move to a CUDA device, the current one if not given."""
        return self._apply(lambda each: each.cuda(device))

    def share_memory(self: M) -> M:
        """Move parameters and buffers to memory that other processes can map."""
        return self._apply(lambda each: each.share_memory_())

    # -- modes and gradients ------------------------------------------------

    def train(self: M, mode: bool = True) -> M:
        """Set training mode, here and below.

        Raises:
            ValueError: ``mode`` is not a bool.
        """
        if not isinstance(mode, bool):
            raise ValueError(f"training mode is expected to be boolean, got {mode!r:.60}.")
        self.training = mode
        for child in self.children():
            child.train(mode)
        return self

    def eval(self: M) -> M:
        """Set evaluation mode, here and below."""
        return self.train(False)

    def requires_grad_(self: M, requires_grad: bool = True) -> M:
        """Ask for the gradients of all parameters, or no longer."""
        for each in self.parameters():
            cast(Any, each).requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Drop the gradients of all parameters, or set them to zero."""
        for each in self.parameters():
            grad = each.grad
            if grad is None:
                continue
            if set_to_none:
                each.grad = None
            else:
                with no_grad():
                    each.grad = cast(Any, grad).detach().zero_()

    # -- state --------------------------------------------------------------

    def state_dict(self, destination: Any = None, prefix: str = "", keep_vars: bool = False) -> Any:
        """Parameters and persistent buffers by dotted name, sharing the module's memory.

        Args:
            destination: a mapping to add to.
            prefix: of the names.
            keep_vars: give the parameters themselves rather than detached tensors.
        """
        return state.collect(self, destination, prefix, keep_vars)

    def load_state_dict(
        self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False
    ) -> state.Incompatible:
        """Copy values from a mapping such as ``state_dict()`` gives into parameters and buffers.

        Args:
            strict: missing and unexpected names are errors.
            assign: take over the tensors themselves instead of copying their values.

        Returns:
            the missing and the unexpected names.

        Raises:
            RuntimeError: listing all names and shapes that do not fit.
        """
        return state.restore(self, state_dict, strict, assign)

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        """Add the module's own state; a module with more state than members overrides it."""
        for name, kind in self._members.items():
            value = self.__dict__[name]
            if kind in (PARAMETER, BUFFER) and value is not None:
                destination[prefix + name] = value if keep_vars else value.detach()

    def _load_from_state_dict(
        self, state_dict: dict[str, Any], prefix: str, local_metadata: Mapping[str, Any], strict: bool,
        missing_keys: list[str], unexpected_keys: list[str], error_msgs: list[str],
    ) -> None:  # fmt: skip
        """Load the module's own state; a module that reads older states overrides it."""
        own = {name: self.__dict__[name] for name, kind in self._members.items() if kind in (PARAMETER, BUFFER)}
        children = {name for name, kind in self._members.items() if kind is MODULE}
        assign = bool(local_metadata.get("assign_to_params_buffers", False))
        state.load_own(
            self, own, children, state_dict, prefix, strict, assign, missing_keys, unexpected_keys, error_msgs
        )

    # -- hooks --------------------------------------------------------------

    def _own_hooks(self) -> Hooks:
        if self._hooks is None:
            object.__setattr__(self, "_hooks", Hooks())
        return cast(Hooks, self._hooks)

    def register_forward_pre_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        """Call ``hook(module, args)`` before ``forward``; what it returns replaces the arguments."""
        hooks = self._own_hooks()
        return hooks.add(hooks.forward_pre, (hook, with_kwargs), prepend)

    def register_forward_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        """Call ``hook(module, args, output)`` after ``forward``; what it returns replaces the output."""
        hooks = self._own_hooks()
        return hooks.add(hooks.forward, (hook, with_kwargs), prepend)

    def register_full_backward_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call ``hook(module, grad_input, grad_output)`` in backward; what it returns replaces ``grad_input``."""
        hooks = self._own_hooks()
        return hooks.add(hooks.backward, hook, prepend)

    register_backward_hook = register_full_backward_hook

    def register_full_backward_pre_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call ``hook(module, grad_output)`` in backward; what it returns replaces ``grad_output``."""
        hooks = self._own_hooks()
        return hooks.add(hooks.backward_pre, hook, prepend)

    def register_load_state_dict_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call ``hook(module, state_dict, prefix, metadata, strict, missing, unexpected, errors)`` before loading."""
        hooks = self._own_hooks()
        return hooks.add(hooks.load_pre, hook)

    def register_load_state_dict_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call ``hook(module, incompatible)`` after loading."""
        hooks = self._own_hooks()
        return hooks.add(hooks.load_post, hook)

    def register_state_dict_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call ``hook(module, state_dict, prefix, metadata)`` after the state was collected."""
        hooks = self._own_hooks()
        return hooks.add(hooks.state, hook)

    # -- text ---------------------------------------------------------------

    def extra_repr(self) -> str:
        """What ``repr`` shows between the parentheses, besides the submodules."""
        return ""

    def _get_name(self) -> str:
        return self.__class__.__name__

    def __repr__(self) -> str:
        extra = self.extra_repr()
        lines = extra.split("\n") if extra else []
        children = []
        for name, kind in self._members.items():
            if kind is MODULE:
                text = repr(self.__dict__[name]).replace("\n", "\n  ")
                children.append(f"({name}): {text}")
        if not children and len(lines) <= 1:
            return f"{self._get_name()}({extra})"
        return f"{self._get_name()}(\n  " + "\n  ".join([*lines, *children]) + "\n)"
