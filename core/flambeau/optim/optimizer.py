"""What all optimisers share: parameter groups, state, and its saving."""

from __future__ import annotations

import copy
from collections import defaultdict
from collections.abc import Callable, Iterable
from numbers import Real
from typing import Any, Final

from ..autograd.grad_mode import enable_grad, no_grad
from ..errors import ArgumentError, ArgumentTypeError, AutogradError, shown
from ..layout import strided
from ..tensor import Tensor

__all__ = ["Optimizer", "change_named", "check_range", "refuse_sparse"]

_NUMBERS: Final[tuple[type[Any], ...]] = (Real, Tensor)


def check_range(name: str, value: Any, low: float, high: float | None = None) -> None:
    """Refuse a hyper-parameter outside ``[low, high)``.

    Raises:
        TypeError: it is no number.
        ValueError: it is outside, or NaN.
    """
    if not isinstance(value, _NUMBERS):
        raise ArgumentTypeError(f"Invalid {name}: {shown(value)}.\nExpected a number.")
    if not low <= value or (high is not None and not value < high):
        limit = f"at least {low}" if high is None else f"in [{low}, {high})"
        raise ArgumentError(f"Invalid {name}: {value}.\nIt must be {limit}.")


def refuse_sparse(optimizer: Optimizer, grad: Tensor) -> None:
    """Refuse a sparse gradient, for rules that move elements without a gradient too.

    Raises:
        RuntimeError: it is sparse.
    """
    if grad.key.layout is not strided and not optimizer.takes_sparse:
        raise AutogradError(
            f"{type(optimizer).__name__} does not support sparse gradients, got one of shape {list(grad.shape)}.\n"
            "Use SparseAdam, SGD or Adagrad instead, or make gradients dense (sparse=False)."
        )


def change_named(grad: Any, change: Callable[..., Any], *tensors: Any) -> None:
    """Change tensors only where a sparse gradient names places.

    Args:
        grad: sparse, of the tensors' shape.
        change: takes the gradient's values and each tensor's there, (n, ...), and changes the latter in place.
    """
    grad = grad.coalesce()
    if grad._nnz():
        places = tuple(grad.indices())
        parts = [each[places] for each in tensors]
        change(grad.values(), *parts)
        for each, part in zip(tensors, parts):
            each[places] = part


class Optimizer:
    """Base of all optimisers.

    Args:
        params: tensors, or dictionaries with ``"params"`` and options of their own.
        defaults: options for groups that do not give them.

    Raises:
        TypeError: ``params`` is a single tensor or holds something else than tensors.
        ValueError: there are no parameters, one is no leaf, or one is in two groups.
    """

    #: whether the rule knows what to do with sparse gradients
    takes_sparse = False

    def __init__(self, params: Iterable[Any], defaults: dict[str, Any]) -> None:
        if isinstance(params, Tensor):
            raise ArgumentTypeError(
                "params argument given to the optimizer should be an iterable of Tensors or dicts, but got Tensor.\n"
                "Pass [tensor]."
            )
        self.defaults = defaults
        self.state: defaultdict[Tensor, dict[str, Any]] = defaultdict(dict)
        self.param_groups: list[dict[str, Any]] = []
        groups = list(params)
        if not groups:
            raise ArgumentError("optimizer got an empty parameter list")
        for group in groups if isinstance(groups[0], dict) else [{"params": groups}]:
            self.add_param_group(group)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add parameters with options of their own.

        Raises:
            TypeError: one is no tensor.
            ValueError: one is no leaf, or is in another group already.
        """
        if not isinstance(param_group, dict):
            raise ArgumentTypeError(f"param_group must be a dict, but got {type(param_group).__name__}")
        group = dict(param_group)
        params = group["params"]
        group["params"] = params = [params] if isinstance(params, Tensor) else list(params)
        known = {id(each) for other in self.param_groups for each in other["params"]}
        for each in params:
            if not isinstance(each, Tensor):
                raise ArgumentTypeError(
                    f"optimizer can only optimize Tensors, but one of the params is {type(each).__name__}"
                )
            if not each.is_leaf:
                raise ArgumentError(
                    f"can't optimize a non-leaf Tensor (shape {list(each.shape)}).\nPass x.detach().requires_grad_()."
                )
            if id(each) in known:
                raise ArgumentError("some parameters appear in more than one parameter group")
            known.add(id(each))
        for name, default in self.defaults.items():
            group.setdefault(name, default)
        self.check(group)
        self.param_groups.append(group)

    def check(self, group: dict[str, Any]) -> None:
        """Check a group's options; subclasses say how."""

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Drop the gradients of all parameters, or set them to zero."""
        for group in self.param_groups:
            for param in group["params"]:
                grad = param.grad
                if grad is not None:
                    if set_to_none:
                        param.grad = None
                    else:
                        grad.detach_()
                        grad.zero_()

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update all parameters that have a gradient.

        Args:
            closure: computes the loss (and gradients) again and returns it.
        """
        loss = None
        if closure is not None:
            with enable_grad():
                loss = closure()
        with no_grad():
            for group in self.param_groups:
                self.update_group(group)
        return loss

    def update_group(self, group: dict[str, Any]) -> None:
        """Change the parameters of a group that have a gradient."""
        for param in group["params"]:
            grad = param.grad
            if grad is not None:
                refuse_sparse(self, grad)
                self.update(param, grad, self.state[param], group)

    def update(self, param: Any, grad: Any, state: dict[str, Any], group: dict[str, Any]) -> None:
        """Change one parameter; subclasses say how."""
        raise NotImplementedError(f"{type(self).__name__} has no update rule.")

    def state_dict(self) -> dict[str, Any]:
        """State and options, with parameters replaced by their numbers."""
        numbers = {id(p): n for n, p in enumerate(each for group in self.param_groups for each in group["params"])}
        groups = [
            {**{k: v for k, v in group.items() if k != "params"}, "params": [numbers[id(p)] for p in group["params"]]}
            for group in self.param_groups
        ]
        return {
            "state": {numbers[id(p)]: dict(s) for p, s in self.state.items() if id(p) in numbers},
            "param_groups": groups,
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what :meth:`state_dict` gave; tensors go to the dtype and device of their parameter.

        Raises:
            ValueError: the groups differ in number or size.
        """
        saved = state_dict["param_groups"]
        if len(saved) != len(self.param_groups):
            raise ArgumentError(
                "loaded state dict has a different number of parameter groups: "
                f"{len(saved)} instead of {len(self.param_groups)}."
            )
        by_number: dict[int, Any] = {}
        for own, given in zip(self.param_groups, saved, strict=True):
            if len(own["params"]) != len(given["params"]):
                raise ArgumentError(
                    "loaded state dict contains a parameter group that doesn't match the size of optimizer's group: "
                    f"{len(given['params'])} parameters instead of {len(own['params'])}."
                )
            by_number.update(zip(given["params"], own["params"], strict=True))
            own.update({k: copy.copy(v) for k, v in given.items() if k != "params"})
        self.state = defaultdict(dict)
        for number, entries in state_dict["state"].items():
            param = by_number[number]
            self.state[param] = {name: _like(value, param) for name, value in entries.items()}

    def __repr__(self) -> str:
        lines = [f"{type(self).__name__} ("]
        for number, group in enumerate(self.param_groups):
            lines.append(f"Parameter Group {number}")
            lines += [f"    {name}: {group[name]}" for name in sorted(group) if name != "params"]
        return "\n".join([*lines, ")"])


def _like(value: Any, param: Any) -> Any:
    if not isinstance(value, Tensor):
        return copy.copy(value)
    floating = value.dtype.is_floating_point and param.dtype.is_floating_point
    return value.to(device=param.device, dtype=param.dtype if floating else value.dtype, copy=True)
