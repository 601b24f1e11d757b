"""Stochastic gradient descent."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..errors import ArgumentError
from ..ops.optimizer import sgd_steps_
from .optimizer import Optimizer, check_range

__all__ = ["SGD"]


class SGD(Optimizer):
    """Stochastic gradient descent, with momentum if asked (Sutskever et al., 2013).

    Sparse gradients change only the rows that they name, unless there is momentum or weight decay.

    Args:
        params: tensors or groups.
        lr: learning rate, at least 0.
        momentum: how much of the last step is kept, at least 0.
        dampening: how much of the gradient momentum leaves out.
        weight_decay: factor of the parameter that is added to its gradient.
        nesterov: look ahead along the momentum; needs momentum and no dampening.
    """

    def __init__(
        self, params: Iterable[Any], lr: float = 1e-3, momentum: float = 0, dampening: float = 0,
        weight_decay: float = 0, nesterov: bool = False,
    ) -> None:  # fmt: skip
        defaults = {
            "lr": lr, "momentum": momentum, "dampening": dampening, "weight_decay": weight_decay, "nesterov": nesterov,
        }  # fmt: skip
        super().__init__(params, defaults)

    def check(self, group: dict[str, Any]) -> None:
        check_range("learning rate", group["lr"], 0.0)
        check_range("momentum value", group["momentum"], 0.0)
        check_range("weight_decay value", group["weight_decay"], 0.0)
        if group["nesterov"] and (group["momentum"] <= 0 or group["dampening"] != 0):
            raise ArgumentError(
                "Nesterov momentum requires a momentum and zero dampening, "
                f"got {group['momentum']} and {group['dampening']}."
            )

    def update_group(self, group: dict[str, Any]) -> None:
        momentum, states = group["momentum"], self.state
        options = (group["lr"], momentum, group["dampening"], group["weight_decay"], group["nesterov"])
        batches: dict[Any, tuple[list[Any], list[Any], list[Any]]] = {}
        for param in group["params"]:
            grad = param.grad
            if grad is None:
                continue
            buffer, first = None, False
            if momentum:
                state = states[param]
                buffer = state.get("momentum_buffer")
                if buffer is None:
                    first = True
                    buffer = state["momentum_buffer"] = param.new_zeros(param.shape)
            place = param.key, grad.key.layout, first
            batch = batches.get(place)
            if batch is None:
                batch = batches[place] = ([], [], [])
            batch[0].append(param)
            batch[1].append(grad)
            batch[2].append(buffer)
        for (*_, first), batch in batches.items():
            sgd_steps_(*batch, *options, first)
