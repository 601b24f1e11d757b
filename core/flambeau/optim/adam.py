"""Adam and its relatives."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from ..errors import ArgumentError, AutogradError
from ..ops.optimizer import adam_steps_
from .optimizer import Optimizer, change_named, check_range, refuse_sparse

__all__ = ["Adam", "AdamW", "Adamax", "SparseAdam"]


class Adam(Optimizer):
    """Adam (Kingma and Ba, 2015).

    Args:
        params: tensors or groups.
        lr: learning rate, at least 0.
        betas: how much of the mean and of the mean square of the gradient is kept, in [0, 1).
        eps: added to the denominator, at least 0.
        weight_decay: factor of the parameter that is added to its gradient.
        amsgrad: divide by the largest mean square so far (Reddi et al., 2018).
    """

    decoupled = False

    def __init__(
        self, params: Iterable[Any], lr: float = 1e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
        weight_decay: float = 0, amsgrad: bool = False,
    ) -> None:  # fmt: skip
        defaults = {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "amsgrad": amsgrad}
        super().__init__(params, defaults)

    def check(self, group: dict[str, Any]) -> None:
        check_range("learning rate", group["lr"], 0.0)
        check_range("epsilon value", group["eps"], 0.0)
        check_range("beta parameter at index 0", group["betas"][0], 0.0, 1.0)
        check_range("beta parameter at index 1", group["betas"][1], 0.0, 1.0)
        check_range("weight_decay value", group["weight_decay"], 0.0)

    def update_group(self, group: dict[str, Any]) -> None:
        batches: dict[Any, tuple[list[Any], ...]] = {}
        for param in group["params"]:
            grad = param.grad
            if grad is None:
                continue
            refuse_sparse(self, grad)
            state = self.state[param]
            if not state:
                state["step"] = 0
                state["exp_avg"], state["exp_avg_sq"] = grad.new_zeros(param.shape), grad.new_zeros(param.shape)
                if group["amsgrad"]:
                    state["max_exp_avg_sq"] = grad.new_zeros(param.shape)
            state["step"] = step = state["step"] + 1
            batch = batches.get((param.key, step))
            if batch is None:
                batch = batches[param.key, step] = ([], [], [], [], [])
            found = (param, grad, state["exp_avg"], state["exp_avg_sq"], state.get("max_exp_avg_sq"))
            for each, tensor in zip(batch, found, strict=True):
                each.append(tensor)
        beta1, beta2 = group["betas"]
        options = (group["lr"], beta1, beta2, group["eps"], group["weight_decay"], self.decoupled)
        for (_, step), batch in batches.items():
            adam_steps_(*batch, *options, step)


class AdamW(Adam):
    """Adam with weight decay apart from the gradient (Loshchilov and Hutter, 2019); arguments as for :class:`Adam`."""

    decoupled = True

    def __init__(
        self, params: Iterable[Any], lr: float = 1e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
        weight_decay: float = 1e-2, amsgrad: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(params, lr, betas, eps, weight_decay, amsgrad)


class Adamax(Optimizer):
    """Adam with the largest gradient in place of the mean square (Kingma and Ba, 2015, section 7)."""

    def __init__(
        self, params: Iterable[Any], lr: float = 2e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
        weight_decay: float = 0,
    ) -> None:  # fmt: skip
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay})

    check = Adam.check

    def update(self, param: Any, grad: Any, state: dict[str, Any], group: dict[str, Any]) -> None:
        if not state:
            state["step"] = 0
            state["exp_avg"], state["exp_inf"] = grad.new_zeros(param.shape), grad.new_zeros(param.shape)
        state["step"] = step = state["step"] + 1
        beta1, beta2 = group["betas"]
        if group["weight_decay"]:
            grad = grad.add(param, alpha=group["weight_decay"])
        mean, most = state["exp_avg"], state["exp_inf"]
        mean.mul_(beta1).add_(grad, alpha=1 - beta1)
        most.copy_((most * beta2).maximum(grad.abs() + group["eps"]))
        param.addcdiv_(mean, most, value=-group["lr"] / (1 - beta1**step))


class SparseAdam(Optimizer):
    """Adam for sparse gradients: only the rows that a gradient names are changed, their means and steps too.

    Args:
        params: tensors or groups.
        lr: learning rate, above 0.
        betas: how much of the mean and of the mean square of the gradient is kept, in [0, 1).
        eps: added to the denominator, above 0.
    """

    takes_sparse = True

    def __init__(
        self, params: Iterable[Any], lr: float = 1e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8
    ) -> None:
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps})

    def check(self, group: dict[str, Any]) -> None:
        for name, key in (("learning rate", "lr"), ("epsilon value", "eps")):
            if not group[key] > 0:
                raise ArgumentError(f"Invalid {name}: {group[key]}.\nIt must be above 0.")
        check_range("beta parameter at index 0", group["betas"][0], 0.0, 1.0)
        check_range("beta parameter at index 1", group["betas"][1], 0.0, 1.0)

    def update(self, param: Any, grad: Any, state: dict[str, Any], group: dict[str, Any]) -> None:
        if not grad.is_sparse:
            raise AutogradError(
                f"SparseAdam does not support dense gradients, got one of shape {list(grad.shape)}.\nUse Adam instead."
            )
        if not state:
            state["step"] = 0
            state["exp_avg"], state["exp_avg_sq"] = param.new_zeros(param.shape), param.new_zeros(param.shape)
        state["step"] = step = state["step"] + 1
        beta1, beta2 = group["betas"]
        size = group["lr"] * math.sqrt(1 - beta2**step) / (1 - beta1**step)

        def change(grad: Any, param: Any, mean: Any, square: Any) -> None:
            mean.mul_(beta1).add_(grad, alpha=1 - beta1)
            square.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
            param.addcdiv_(mean, square.sqrt().add_(group["eps"]), value=-size)

        change_named(grad, change, param, state["exp_avg"], state["exp_avg_sq"])
