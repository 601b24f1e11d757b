"""Schedules of the learning rate, stepped once an epoch."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any

from ..errors import ArgumentError, ArgumentTypeError
from .optimizer import Optimizer

__all__ = ["CosineAnnealingLR", "ExponentialLR", "LambdaLR", "MultiStepLR", "ReduceLROnPlateau", "StepLR"]


class _Schedule:
    """A learning rate that is a function of the epoch and of the rate at the start."""

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        if not isinstance(optimizer, Optimizer):
            raise ArgumentTypeError(f"{type(optimizer).__name__} is not an Optimizer")
        self.optimizer = optimizer
        for group in optimizer.param_groups:
            if last_epoch == -1:
                group.setdefault("initial_lr", group["lr"])
            elif "initial_lr" not in group:
                raise ArgumentError("param 'initial_lr' is not specified in param_groups when resuming an optimizer")
        self.base_lrs = [group["initial_lr"] for group in optimizer.param_groups]
        self.last_epoch = last_epoch
        self.step()

    def factor(self, epoch: int) -> float:
        """By what the first learning rate is multiplied."""
        raise NotImplementedError

    def get_lr(self) -> list[float]:
        """The learning rate of each group at the current epoch."""
        return [base * self.factor(self.last_epoch) for base in self.base_lrs]

    def get_last_lr(self) -> list[float]:
        """The learning rates in force."""
        return [group["lr"] for group in self.optimizer.param_groups]

    def step(self, epoch: int | None = None) -> None:
        """Go to the next epoch, or to the one given."""
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        for group, lr in zip(self.optimizer.param_groups, self.get_lr(), strict=True):
            group["lr"] = lr

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimiser."""
        return {name: value for name, value in self.__dict__.items() if name != "optimizer"}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what :meth:`state_dict` gave."""
        self.__dict__.update(state_dict)


class LambdaLR(_Schedule):
    """The first rate times a function of the epoch (one for all groups, or one each)."""

    def __init__(
        self,
        optimizer: Optimizer,
        lr_lambda: Callable[[int], float] | Sequence[Callable[[int], float]],
        last_epoch: int = -1,
    ) -> None:
        count = len(optimizer.param_groups)
        self.lr_lambdas: list[Any] = [lr_lambda] * count if callable(lr_lambda) else list(lr_lambda)
        if len(self.lr_lambdas) != count:
            raise ArgumentError(f"Expected {count} lr_lambdas, but got {len(self.lr_lambdas)}")
        super().__init__(optimizer, last_epoch)

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimiser and functions; of callable objects, their attributes."""
        state = super().state_dict()
        state["lr_lambdas"] = [
            None if isinstance(each, FunctionType) else dict(each.__dict__) for each in self.lr_lambdas
        ]
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what :meth:`state_dict` gave; functions stay as they are."""
        kept = self.lr_lambdas
        super().load_state_dict(state_dict)
        for each, attributes in zip(kept, state_dict["lr_lambdas"], strict=True):
            if attributes is not None:
                each.__dict__.update(attributes)
        self.lr_lambdas = kept

    def get_lr(self) -> list[float]:
        return [base * each(self.last_epoch) for base, each in zip(self.base_lrs, self.lr_lambdas, strict=True)]


def _check_epochs(name: str, count: int) -> None:
    if not count > 0:
        raise ArgumentError(f"Expected {name} to be a positive number of epochs, got {count}.")


class StepLR(_Schedule):
    """Multiply by ``gamma`` every ``step_size`` epochs."""

    def __init__(self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1) -> None:
        _check_epochs("step_size", step_size)
        self.step_size, self.gamma = step_size, gamma
        super().__init__(optimizer, last_epoch)

    def factor(self, epoch: int) -> float:
        return float(self.gamma ** (epoch // self.step_size))


class MultiStepLR(_Schedule):
    """Multiply by ``gamma`` at each milestone."""

    def __init__(
        self, optimizer: Optimizer, milestones: Sequence[int], gamma: float = 0.1, last_epoch: int = -1
    ) -> None:
        if list(milestones) != sorted(milestones):
            raise ArgumentError(f"Milestones should be a list of increasing integers. Got {list(milestones)}")
        self.milestones, self.gamma = list(milestones), gamma
        super().__init__(optimizer, last_epoch)

    def factor(self, epoch: int) -> float:
        return float(self.gamma ** bisect_right(self.milestones, epoch))


class ExponentialLR(_Schedule):
    """Multiply by ``gamma`` every epoch."""

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def factor(self, epoch: int) -> float:
        return float(self.gamma**epoch)


class CosineAnnealingLR(_Schedule):
    """Half a cosine from the first rate down to ``eta_min`` over ``T_max`` epochs (Loshchilov and Hutter, 2017)."""

    def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0, last_epoch: int = -1) -> None:
        _check_epochs("T_max", T_max)
        self.T_max, self.eta_min = T_max, eta_min
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        share = (1 + math.cos(math.pi * self.last_epoch / self.T_max)) / 2
        return [self.eta_min + (base - self.eta_min) * share for base in self.base_lrs]


class ReduceLROnPlateau:
    """Multiply the rate by ``factor`` when a measure has not improved for ``patience`` epochs.

    Args:
        mode: ``"min"`` if less is better, else ``"max"``.
        threshold: by how much better counts, relative (``threshold_mode="rel"``) or absolute.
        cooldown: epochs to wait after a reduction.
        min_lr: lower bound of the rate, for all groups or each.
        eps: smaller reductions are not made.
    """

    def __init__(
        self, optimizer: Optimizer, mode: str = "min", factor: float = 0.1, patience: int = 10, threshold: float = 1e-4,
        threshold_mode: str = "rel", cooldown: int = 0, min_lr: float | Sequence[float] = 0, eps: float = 1e-8,
    ) -> None:  # fmt: skip
        if factor >= 1.0:
            raise ArgumentError(f"Factor should be < 1.0, got {factor}.")
        if mode not in ("min", "max") or threshold_mode not in ("rel", "abs"):
            raise ArgumentError(
                f"mode {mode!r} must be 'min' or 'max', threshold mode {threshold_mode!r} 'rel' or 'abs'."
            )
        self.optimizer, self.mode, self.factor, self.patience = optimizer, mode, factor, patience
        self.threshold, self.threshold_mode, self.cooldown, self.eps = threshold, threshold_mode, cooldown, eps
        count = len(optimizer.param_groups)
        self.min_lrs = list(min_lr) if isinstance(min_lr, (list, tuple)) else [min_lr] * count
        self.best = math.inf if mode == "min" else -math.inf
        self.num_bad_epochs = self.cooldown_counter = self.last_epoch = 0

    def _better(self, value: float) -> bool:
        margin = self.threshold * (abs(self.best) if self.threshold_mode == "rel" else 1)
        if math.isinf(self.best):
            return value != self.best
        return value < self.best - margin if self.mode == "min" else value > self.best + margin

    def step(self, metrics: Any) -> None:
        """Take note of the measure at the end of an epoch."""
        value = float(metrics)
        self.last_epoch += 1
        if self._better(value):
            self.best, self.num_bad_epochs = value, 0
        else:
            self.num_bad_epochs += 1
        if self.cooldown_counter:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            for group, low in zip(self.optimizer.param_groups, self.min_lrs, strict=True):
                new = max(group["lr"] * self.factor, low)
                if group["lr"] - new > self.eps:
                    group["lr"] = new
            self.cooldown_counter, self.num_bad_epochs = self.cooldown, 0

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimiser."""
        return {name: value for name, value in self.__dict__.items() if name != "optimizer"}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what :meth:`state_dict` gave."""
        self.__dict__.update(state_dict)
