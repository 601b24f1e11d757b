"""L-BFGS: a quasi-Newton method that remembers a few steps."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from ..autograd.grad_mode import enable_grad, no_grad
from ..errors import ArgumentError, ArgumentTypeError
from ..ops.joining import cat
from .optimizer import Optimizer, check_range

__all__ = ["LBFGS"]

#: Sufficient decrease and curvature of the Wolfe conditions (Nocedal and Wright, 2006, section 3.1).
_DECREASE: Final = 1e-4
_CURVATURE: Final = 0.9
_MOST_TRIALS: Final = 25


class LBFGS(Optimizer):
    """Limited-memory BFGS (Nocedal and Wright, Numerical Optimization, 2006, algorithm 7.4).

    It takes a single parameter group, and ``step`` needs a closure that computes the loss and its gradients.

    Args:
        params: tensors.
        lr: length of a step, as a part of the quasi-Newton step.
        max_iter: most iterations in one call of ``step``.
        max_eval: most evaluations of the closure in one call; ``max_iter * 5 // 4`` if not given.
        tolerance_grad: stop when no element of the gradient is larger.
        tolerance_change: stop when neither loss nor parameters change by more.
        history_size: how many steps are remembered.
        line_search_fn: None, or ``"strong_wolfe"``.

    Raises:
        ValueError: there are several groups, or the line search is unknown.
    """

    def __init__(
        self, params: Iterable[Any], lr: float = 1, max_iter: int = 20, max_eval: int | None = None,
        tolerance_grad: float = 1e-7, tolerance_change: float = 1e-9, history_size: int = 100,
        line_search_fn: str | None = None,
    ) -> None:  # fmt: skip
        defaults = {
            "lr": lr, "max_iter": max_iter, "max_eval": max_iter * 5 // 4 if max_eval is None else max_eval,
            "tolerance_grad": tolerance_grad, "tolerance_change": tolerance_change, "history_size": history_size,
            "line_search_fn": line_search_fn,
        }  # fmt: skip
        super().__init__(params, defaults)
        if len(self.param_groups) != 1:
            raise ArgumentError(
                f"LBFGS doesn't support per-parameter options (parameter groups), got {len(self.param_groups)} groups."
            )
        self._params: list[Any] = self.param_groups[0]["params"]

    def check(self, group: dict[str, Any]) -> None:
        check_range("learning rate", group["lr"], 0.0)
        for name in ("tolerance_grad", "tolerance_change"):
            check_range(name, group[name], 0.0)
        for name in ("max_iter", "history_size"):
            check_range(name, group[name], 1)
        if group["line_search_fn"] not in (None, "strong_wolfe"):
            raise ArgumentError(f"only 'strong_wolfe' is supported as line_search_fn, got {group['line_search_fn']!r}.")

    # -- the parameters as one vector ----------------------------------------

    def _gradient(self) -> Any:
        return cat(
            [(p.new_zeros(p.numel()) if p.grad is None else p.grad.to_dense().reshape(-1)) for p in self._params]
        )

    def _move(self, size: float, direction: Any) -> None:
        start = 0
        for each in self._params:
            part = direction.narrow(0, start, each.numel()).reshape(each.shape)
            each.add_(part, alpha=size)
            start += each.numel()

    def _restore(self, values: list[Any]) -> None:
        for each, value in zip(self._params, values, strict=True):
            each.copy_(value)

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Iterate until a tolerance or a limit is reached; returns the loss at the start.

        Args:
            closure: zeroes the gradients, computes the loss, calls backward and returns the loss.
        """
        if closure is None:
            raise ArgumentTypeError("LBFGS.step() needs a closure that computes the loss and its gradients.")
        with no_grad():
            return self._minimise(enable_grad()(closure))

    def _minimise(self, closure: Callable[[], Any]) -> Any:
        group, state = self.param_groups[0], self.state[self._params[0]]
        state.setdefault("func_evals", 0)
        state.setdefault("n_iter", 0)
        first = closure()
        loss, gradient = float(first), self._gradient()
        evaluations = 1
        state["func_evals"] += 1
        for left in reversed(range(group["max_iter"])):
            if float(gradient.abs().max()) <= group["tolerance_grad"]:
                break
            self._remember(gradient, state, group["history_size"])
            state["n_iter"] += 1
            direction = self._direction(gradient, state, group["history_size"])
            slope = float(gradient.dot(direction))
            if slope > -group["tolerance_change"]:
                break
            size = min(1.0, 1.0 / float(gradient.abs().sum())) * group["lr"] if state["n_iter"] == 1 else group["lr"]
            before, state["prev_flat_grad"] = loss, gradient
            if group["line_search_fn"] is None:
                self._move(size, direction)
                used = 1 if left else 0  # after the last move the next step evaluates
                if left:
                    loss, gradient = float(closure()), self._gradient()
            else:
                size, loss, gradient, used = self._search(closure, size, direction, loss, gradient, slope)
            evaluations += used
            state["func_evals"] += used
            state["moved"] = direction * size
            small = float(state["moved"].abs().max()) <= group["tolerance_change"]
            if small or abs(loss - before) < group["tolerance_change"] or evaluations >= group["max_eval"]:
                break
        return first

    # -- the quasi-Newton direction ------------------------------------------

    @staticmethod
    def _remember(gradient: Any, state: dict[str, Any], size: int) -> None:
        """Keep what the last move changed in gradient and parameters, if it has curvature."""
        if "moved" not in state:
            return
        change, moved = gradient - state["prev_flat_grad"], state.pop("moved")
        curvature = float(change.dot(moved))
        if curvature <= 1e-10:
            return
        changes, moves = state.setdefault("old_dirs", []), state.setdefault("old_stps", [])
        changes.append(change)
        moves.append(moved)
        del changes[:-size], moves[:-size]
        state["H_diag"] = curvature / float(change.dot(change))

    @staticmethod
    def _direction(gradient: Any, state: dict[str, Any], size: int) -> Any:
        """The two-loop recursion."""
        pairs = list(zip(state.get("old_dirs", ()), state.get("old_stps", ()), strict=True))
        direction = -gradient
        factors = []
        for change, moved in reversed(pairs):
            factor = float(moved.dot(direction)) / float(change.dot(moved))
            factors.append(factor)
            direction = direction.add(change, alpha=-factor)
        direction = direction * state.get("H_diag", 1.0)
        for (change, moved), factor in zip(pairs, reversed(factors), strict=True):
            back = float(change.dot(direction)) / float(change.dot(moved))
            direction = direction.add(moved, alpha=factor - back)
        return direction

    # -- the line search -----------------------------------------------------

    def _search(
        self, closure: Callable[[], Any], size: float, direction: Any, loss: float, gradient: Any, slope: float
    ) -> tuple[float, float, Any, int]:
        """A step that meets the strong Wolfe conditions (Nocedal and Wright, algorithms 3.5 and 3.6).

        Returns its size, the loss and gradient there, and how often the closure was evaluated.
        """
        origin = [each.clone() for each in self._params]
        used = 0

        def at(size: float) -> tuple[float, Any, float]:
            nonlocal used
            used += 1
            self._restore(origin)
            self._move(size, direction)
            value, gradient = float(closure()), self._gradient()
            return value, gradient, float(gradient.dot(direction))

        # (size, loss, gradient, slope); the best end of the bracket stands first
        low: tuple[float, float, Any, float] = (0.0, loss, gradient, slope)
        high: tuple[float, float, Any, float] | None = None
        for _ in range(_MOST_TRIALS):
            here = (size, *at(size))
            if here[1] > loss + _DECREASE * size * slope or (here[1] >= low[1] and low[0] > 0) or here[1] != here[1]:
                high = here
            elif abs(here[3]) <= -_CURVATURE * slope:
                return (*here[:3], used)
            elif high is None and here[3] < 0:
                low, size = here, size * 2  # still descending: look further
                continue
            else:
                if here[3] * ((high[0] if high is not None else 0.0) - low[0]) >= 0:
                    high = low
                low = here
                if high is None:
                    high = (0.0, loss, gradient, slope)
            if high is not None and abs(high[0] - low[0]) * float(direction.abs().max()) < 1e-12:
                break
            assert high is not None
            size = _between(low, high)
        if size != low[0]:
            self._restore(origin)
            self._move(low[0], direction)
            closure()
            used += 1
        return (*low[:3], used)


def _between(low: tuple[float, float, Any, float], high: tuple[float, float, Any, float]) -> float:
    """The minimum of the cubic through two points and slopes, kept inside of the bracket."""
    a, b = low[0], high[0]
    theta = low[3] + high[3] - 3 * (low[1] - high[1]) / (a - b)
    square = theta * theta - low[3] * high[3]
    found = (a + b) / 2
    if square >= 0 and square == square and square != float("inf"):
        root = square**0.5 if b >= a else -(square**0.5)
        bottom = high[3] - low[3] + 2 * root
        if bottom:
            found = b - (b - a) * (high[3] + root - theta) / bottom
    left, right = min(a, b), max(a, b)
    margin = 0.1 * (right - left)
    return min(max(found, left + margin), right - margin)
