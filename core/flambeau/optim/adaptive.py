"""Optimisers that adapt each element's step to its gradients, by rules made of ordinary operators."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..errors import ArgumentError, AutogradError
from .optimizer import Optimizer, change_named, check_range

__all__ = ["ASGD", "Adadelta", "Adagrad", "RMSprop", "Rprop"]


def _decayed(param: Any, grad: Any, group: dict[str, Any]) -> Any:
    return grad.add(param, alpha=group["weight_decay"]) if group["weight_decay"] else grad


def _check(group: dict[str, Any], *names: str) -> None:
    for name in names:
        check_range({"lr": "learning rate"}.get(name, f"{name} value"), group[name], 0.0)


class Adagrad(Optimizer):
    """Divide by the root of the sum of all squared gradients (Duchi et al., 2011).

    Of sparse gradients, only the rows that they name are changed.
    """

    takes_sparse = True

    def __init__(
        self, params: Iterable[Any], lr: float = 1e-2, lr_decay: float = 0, weight_decay: float = 0,
        initial_accumulator_value: float = 0, eps: float = 1e-10,
    ) -> None:  # fmt: skip
        super().__init__(
            params,
            {
                "lr": lr, "lr_decay": lr_decay, "weight_decay": weight_decay,
                "initial_accumulator_value": initial_accumulator_value, "eps": eps,
            },
        )  # fmt: skip

    def check(self, group: dict[str, Any]) -> None:
        _check(group, "lr", "lr_decay", "weight_decay", "initial_accumulator_value", "eps")

    def update(self, param: Any, grad: Any, state: dict[str, Any], group: dict[str, Any]) -> None:
        if grad.is_sparse and group["weight_decay"]:
            raise AutogradError(
                "weight_decay option is not compatible with sparse gradients, "
                f"got {group['weight_decay']}.\nSet it to 0, or make gradients dense (sparse=False)."
            )
        if not state:
            state["step"], state["sum"] = 0, param.new_full(param.shape, group["initial_accumulator_value"])
        state["step"] += 1
        lr = group["lr"] / (1 + (state["step"] - 1) * group["lr_decay"])

        def change(grad: Any, param: Any, total: Any) -> None:
            total.addcmul_(grad, grad)
            param.addcdiv_(grad, total.sqrt().add_(group["eps"]), value=-lr)

        if grad.is_sparse:
            change_named(grad, change, param, state["sum"])
        else:
            change(_decayed(param, grad, group), param, state["sum"])


class Adadelta(Optimizer):
    """Steps in units of recent steps (Zeiler, 2012)."""

    def __init__(
        self, params: Iterable[Any], lr: float = 1.0, rho: float = 0.9, eps: float = 1e-6, weight_decay: float = 0
    ) -> None:
        super().__init__(params, {"lr": lr, "rho": rho, "eps": eps, "weight_decay": weight_decay})

    def check(self, group: dict[str, Any]) -> None:
        _check(group, "lr", "eps", "weight_decay")
        if not 0.0 <= group["rho"] <= 1.0:
            raise ArgumentError(f"Invalid rho value: {group['rho']}.\nIt must be in [0, 1].")

    def update(self, param: Any, grad: Any, state: dict[str, Any], group: dict[str, Any]) -> None:
        if not state:
            state["square_avg"], state["acc_delta"] = grad.new_zeros(param.shape), grad.new_zeros(param.shape)
        grad = _decayed(param, grad, group)
        rho, eps = group["rho"], group["eps"]
        state["square_avg"].mul_(rho).addcmul_(grad, grad, value=1 - rho)
        delta = (state["acc_delta"] + eps).sqrt() / (state["square_avg"] + eps).sqrt() * grad
        state["acc_delta"].mul_(rho).addcmul_(delta, delta, value=1 - rho)
        param.add_(delta, alpha=-group["lr"])


class RMSprop(Optimizer):
    """Divide by the root of the mean of recent squared gradients (Tieleman and Hinton, 2012; centred: Graves, 2013)."""

    def __init__(
        self, params: Iterable[Any], lr: float = 1e-2, alpha: float = 0.99, eps: float = 1e-8, weight_decay: float = 0,
        momentum: float = 0, centered: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(
            params,
            {
                "lr": lr, "alpha": alpha, "eps": eps, "weight_decay": weight_decay, "momentum": momentum,
                "centered": centered,
            },
        )  # fmt: skip

    def check(self, group: dict[str, Any]) -> None:
        _check(group, "lr", "eps", "momentum", "weight_decay", "alpha")

    def update(self, param: Any, grad: Any, state: dict[str, Any], group: dict[str, Any]) -> None:
        if not state:
            state["square_avg"] = grad.new_zeros(param.shape)
            if group["momentum"]:
                state["momentum_buffer"] = grad.new_zeros(param.shape)
            if group["centered"]:
                state["grad_avg"] = grad.new_zeros(param.shape)
        grad = _decayed(param, grad, group)
        alpha, square = group["alpha"], state["square_avg"]
        square.mul_(alpha).addcmul_(grad, grad, value=1 - alpha)
        if group["centered"]:
            mean = state["grad_avg"]
            mean.mul_(alpha).add_(grad, alpha=1 - alpha)
            scale = (square - mean * mean).sqrt().add_(group["eps"])
        else:
            scale = square.sqrt().add_(group["eps"])
        if group["momentum"]:
            buffer = state["momentum_buffer"]
            buffer.mul_(group["momentum"]).addcdiv_(grad, scale)
            param.add_(buffer, alpha=-group["lr"])
        else:
            param.addcdiv_(grad, scale, value=-group["lr"])


class Rprop(Optimizer):
    """Steps whose size depends on the sign of the gradient alone (Riedmiller and Braun, 1993)."""

    def __init__(
        self, params: Iterable[Any], lr: float = 1e-2, etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50),
    ) -> None:  # fmt: skip
        super().__init__(params, {"lr": lr, "etas": etas, "step_sizes": step_sizes})

    def check(self, group: dict[str, Any]) -> None:
        _check(group, "lr")
        down, up = group["etas"]
        if not 0.0 < down < 1.0 < up:
            raise ArgumentError(f"Invalid eta values: {down}, {up}.\nExpected 0 < first < 1 < second.")
        least, most = group["step_sizes"]
        if not 0.0 <= least <= most:
            raise ArgumentError(f"Invalid step sizes: {least}, {most}.\nExpected 0 <= least <= most.")

    def update(self, param: Any, grad: Any, state: dict[str, Any], group: dict[str, Any]) -> None:
        if not state:
            state["prev"], state["step_size"] = grad.new_zeros(param.shape), grad.new_full(param.shape, group["lr"])
        down, up = group["etas"]
        turn = (grad * state["prev"]).sign()
        factor = turn.new_ones(turn.shape).masked_fill_(turn > 0, up).masked_fill_(turn < 0, down)
        step = state["step_size"].mul_(factor).clamp_(*group["step_sizes"])
        grad = grad.masked_fill(turn < 0, 0)
        param.sub_(grad.sign() * step)
        state["prev"] = grad.clone()


class ASGD(Optimizer):
    """Gradient descent with an average of the iterates (Polyak and Juditsky, 1992); the average is ``state["ax"]``."""

    def __init__(
        self, params: Iterable[Any], lr: float = 1e-2, lambd: float = 1e-4, alpha: float = 0.75, t0: float = 1e6,
        weight_decay: float = 0,
    ) -> None:  # fmt: skip
        super().__init__(params, {"lr": lr, "lambd": lambd, "alpha": alpha, "t0": t0, "weight_decay": weight_decay})

    def check(self, group: dict[str, Any]) -> None:
        _check(group, "lr", "lambd", "alpha", "t0", "weight_decay")

    def update(self, param: Any, grad: Any, state: dict[str, Any], group: dict[str, Any]) -> None:
        if not state:
            state.update(step=0, eta=group["lr"], mu=1.0, ax=grad.new_zeros(param.shape))
        state["step"] += 1
        grad = _decayed(param, grad, group)
        param.mul_(1 - group["lambd"] * state["eta"])
        param.add_(grad, alpha=-state["eta"])
        if state["mu"] == 1:
            state["ax"].copy_(param)
        else:
            state["ax"].add_(param - state["ax"], alpha=state["mu"])
        state["eta"] = group["lr"] / (1 + group["lambd"] * group["lr"] * state["step"]) ** group["alpha"]
        state["mu"] = 1 / max(1, state["step"] - group["t0"])
