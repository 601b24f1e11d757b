"""Hooks of modules: functions called before and after forward, and with the gradients in backward."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from ..autograd.grad_mode import mode
from ..autograd.node import record
from ..dispatch.operator import Operator
from ..errors import ArgumentTypeError
from ..ops.properties import RemovableHandle
from ..tensor import Tensor, alias

if TYPE_CHECKING:
    from .module import Module

__all__ = ["Hooks"]


def _identity(inputs: Sequence[Tensor], call: Callable[[list[Any]], Any]) -> list[Tensor]:
    """Pass tensors on without their history."""
    return [alias(each) for each in inputs]


#: Passes tensors on; in backward ``call`` sees, and may replace, all their gradients at once.
_gate: Final = Operator("module_gate", "composite", "inputs* | call", _identity)
_gate.gradient(inputs=lambda grads, call: call(grads))


def _gated(tensors: list[Tensor], call: Callable[[list[Any]], Any]) -> list[Tensor]:
    results = _identity(tensors, call)
    record(_gate, (tensors, call), results)
    return results


class Hooks:
    """The hooks of one module, made when the first is registered."""

    def __init__(self) -> None:
        self.forward_pre: dict[int, tuple[Callable[..., Any], bool]] = {}
        self.forward: dict[int, tuple[Callable[..., Any], bool]] = {}
        self.backward_pre: dict[int, Callable[..., Any]] = {}
        self.backward: dict[int, Callable[..., Any]] = {}
        self.load_pre: dict[int, Callable[..., Any]] = {}
        self.load_post: dict[int, Callable[..., Any]] = {}
        self.state: dict[int, Callable[..., Any]] = {}

    def add(self, hooks: dict[int, Any], hook: Any, prepend: bool = False) -> RemovableHandle:
        """Register a hook, last or first."""
        handle = RemovableHandle(hooks)
        others = dict(hooks) if prepend else {}
        if prepend:
            hooks.clear()
        hooks[handle.id] = hook
        hooks.update(others)
        return handle

    def call(self, module: Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """``module.forward`` with all hooks around it."""
        for hook, with_kwargs in list(self.forward_pre.values()):
            if with_kwargs:
                changed = hook(module, args, kwargs)
                if changed is not None:
                    if not isinstance(changed, tuple) or len(changed) != 2:
                        raise ArgumentTypeError(
                            f"A forward pre-hook with kwargs returns (args, kwargs), got {changed!r:.60}."
                        )
                    args, kwargs = changed
            else:
                changed = hook(module, args)
                if changed is not None:
                    args = changed if isinstance(changed, tuple) else (changed,)
        watching = mode.enabled and bool(self.backward or self.backward_pre)
        gate = _Gate(self, module) if watching else None
        if gate is not None:
            args = gate.enter(args)
        result = module.forward(*args, **kwargs)
        for hook, with_kwargs in list(self.forward.values()):
            changed = hook(module, args, kwargs, result) if with_kwargs else hook(module, args, result)
            if changed is not None:
                result = changed
        return result if gate is None else gate.leave(result)


class _Gate:
    """Collects the gradients that enter and leave one call of a module."""

    def __init__(self, hooks: Hooks, module: Module) -> None:
        self.hooks, self.module = hooks, module
        self.positions: list[int] = []
        self.inputs = 0
        self.outputs: tuple[Any, ...] = ()

    def enter(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        self.inputs = len(args)
        self.positions = [i for i, each in enumerate(args) if isinstance(each, Tensor) and each.node is not None]
        if not self.positions:
            return args
        passed = list(args)
        for i, each in zip(self.positions, _gated([args[i] for i in self.positions], self._inputs), strict=True):
            passed[i] = each
        return tuple(passed)

    def leave(self, result: Any) -> Any:
        several = isinstance(result, (tuple, list))
        items = list(result) if several else [result]
        self.out_positions = [i for i, each in enumerate(items) if isinstance(each, Tensor) and each.node is not None]
        self.out_count = len(items)
        if not self.out_positions:
            return result
        for i, each in zip(
            self.out_positions, _gated([items[i] for i in self.out_positions], self._outputs), strict=True
        ):
            items[i] = each
        if not several:
            return items[0]
        return type(result)(*items) if hasattr(result, "_fields") else type(result)(items)

    def _outputs(self, grads: list[Any]) -> list[Any]:
        laid: list[Any] = [None] * self.out_count
        for i, grad in zip(self.out_positions, grads, strict=True):
            laid[i] = grad
        outputs = tuple(laid)
        for hook in list(self.hooks.backward_pre.values()):
            changed = hook(self.module, outputs)
            if changed is not None:
                outputs = changed if isinstance(changed, tuple) else (changed,)
        self.outputs = outputs
        if not self.positions:
            self._run((None,) * self.inputs)
        return [outputs[i] for i in self.out_positions]

    def _inputs(self, grads: list[Any]) -> list[Any]:
        laid: list[Any] = [None] * self.inputs
        for i, grad in zip(self.positions, grads, strict=True):
            laid[i] = grad
        inputs = self._run(tuple(laid))
        return [inputs[i] for i in self.positions]

    def _run(self, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        for hook in list(self.hooks.backward.values()):
            changed = hook(self.module, inputs, self.outputs)
            if changed is not None:
                changed = changed if isinstance(changed, tuple) else (changed,)
                if len(changed) != len(inputs):
                    raise ArgumentTypeError(
                        f"A backward hook of {type(self.module).__name__} returned {len(changed)} gradients, "
                        f"expected {len(inputs)}, one for each input."
                    )
                inputs = changed
        return inputs
