"""Losses of pairs of equal shape, and what all losses have in common.

All losses share ``reduction``: ``'none'`` gives the loss of every element, ``'mean'`` their mean,
``'sum'`` their sum.  The old keywords ``size_average`` and ``reduce`` are still understood.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, Final, TypeVar, cast

from ..dispatch.operator import composite, primitive
from ..dispatch.pointwise import result_type
from ..errors import ArgumentError, ArgumentTypeError, ShapeError, shown
from ..geometry import broadcast_shapes
from ..tensor import Tensor

__all__ = [
    "binary_cross_entropy", "binary_cross_entropy_with_logits", "declare_loss", "huber_loss", "l1_loss", "mse_loss",
    "reduce_loss", "reduction_of", "same_shape", "smooth_l1_loss",
]  # fmt: skip

F = TypeVar("F", bound=Callable[..., Any])

MEAN: Final = "mean"
REDUCTIONS: Final = ("none", "mean", "sum")


def reduction_of(reduction: str, size_average: bool | None = None, reduce: bool | None = None) -> str:
    """The reduction to use, also from the old keywords.

    Raises:
        ValueError: there is no such reduction.
    """
    if size_average is not None or reduce is not None:
        reduction = "none" if reduce is False else "sum" if size_average is False else "mean"
        warnings.warn(
            f"size_average and reduce are deprecated, please use reduction={shown(reduction)} instead.",
            DeprecationWarning,
            stacklevel=4,
        )
    if reduction not in REDUCTIONS:
        raise ArgumentError(f"{shown(reduction)} is not a valid value for reduction: expected one of {REDUCTIONS}.")
    return reduction


def reduce_loss(values: Any, reduction: str) -> Any:
    """Losses of elements reduced."""
    return values.mean() if reduction == "mean" else values.sum() if reduction == "sum" else values


def same_shape(name: str, input: Tensor, target: Tensor) -> tuple[Any, Any]:
    """Input and target, which must have one shape.

    Raises:
        RuntimeError: the shapes differ.
        TypeError: one is no tensor.
    """
    for what, each in (("input", input), ("target", target)):
        if not isinstance(each, Tensor):
            raise ArgumentTypeError(f"{name}(): expected {what} to be a Tensor, got {type(each).__name__}.")
    if input.geometry.shape != target.geometry.shape:
        raise ShapeError(
            f"{name}: expected input and target of the same size, got input {list(input.shape)} and "
            f"target {list(target.shape)}.\nReshape or expand one of them."
        )
    return input, target


# ---------------------------------------------------------------- pairs


Term = Callable[[Any, Any, float], Any]


class _Pair:
    """A loss of two numbers x and t with a parameter a, by its derivatives.

    Args:
        value: of the loss.
        slope: in x.
        curve: of ``slope``, in x.
        target_slope: in t, if the loss is not one of ``x - t`` alone.
        mixed: of ``slope``, in t; likewise.
    """

    __slots__ = ("curve", "mixed", "slope", "target_slope", "value")

    def __init__(
        self, value: Term, slope: Term, curve: Term, target_slope: Term | None = None, mixed: Term | None = None
    ) -> None:
        self.value, self.slope, self.curve = value, slope, curve
        self.target_slope, self.mixed = target_slope, mixed


def _smooth(x: Any, t: Any, a: float) -> Any:
    d = (x - t).abs()
    return (d * d / (2 * a)).where(d < a, d - a / 2)


def _huber(x: Any, t: Any, a: float) -> Any:
    d = (x - t).abs()
    return (d * d / 2).where(d <= a, a * (d - a / 2))


def _bce_logits(x: Any, t: Any, a: float) -> Any:
    return x.clamp(min=0) - x * t + (-x.abs()).exp().log1p()


def _logistic_curve(x: Any, t: Any, a: float) -> Any:
    p = x.sigmoid()
    return p * (1 - p)


def _bce(x: Any, t: Any, a: float) -> Any:
    return -(t * x.log().clamp(min=-100) + (1 - t) * (-x).log1p().clamp(min=-100))


def _spread(x: Any) -> Any:
    """x (1 - x), kept away from 0 where a slope divides by it."""
    return (x * (1 - x)).clamp(min=1e-12)


#: The losses that a backend's ``pair_loss`` kernel knows by name.
PAIRS: Final = {
    "l1": _Pair(lambda x, t, a: (x - t).abs(), lambda x, t, a: (x - t).sign(), lambda x, t, a: (x - t) * 0),
    "mse": _Pair(lambda x, t, a: (x - t) ** 2, lambda x, t, a: 2 * (x - t), lambda x, t, a: (x - t) * 0 + 2),
    "smooth_l1": _Pair(
        _smooth, lambda x, t, a: ((x - t) / a).clamp(-1, 1), lambda x, t, a: ((x - t).abs() < a).to(x.dtype) / a
    ),
    "huber": _Pair(_huber, lambda x, t, a: (x - t).clamp(-a, a), lambda x, t, a: ((x - t).abs() <= a).to(x.dtype)),
    "bce_logits": _Pair(
        _bce_logits, lambda x, t, a: x.sigmoid() - t, _logistic_curve,
        lambda x, t, a: -x, lambda x, t, a: -x.new_ones(x.shape),
    ),
    "bce": _Pair(
        _bce, lambda x, t, a: (x - t) / _spread(x), lambda x, t, a: (x * x - 2 * x * t + t) / _spread(x) ** 2,
        lambda x, t, a: (-x).log1p().clamp(min=-100) - x.log().clamp(min=-100), lambda x, t, a: -1 / _spread(x),
    ),
}  # fmt: skip


@primitive("self target | kind reduction parameter", method=False, namespaces=())
def pair_loss(self: Tensor, target: Tensor, kind: str, reduction: str, parameter: float = 0.0) -> Any:
    """A loss of :data:`PAIRS` of two tensors of one shape and dtype."""
    return pair_loss.run(self, target, kind, reduction, parameter)


@pair_loss.composite
def _pair_loss(self: Any, target: Any, kind: str, reduction: str, parameter: float) -> Any:
    return reduce_loss(PAIRS[kind].value(self, target, parameter), reduction)


@primitive("grad self target | kind reduction parameter", method=False, namespaces=())
def pair_loss_backward(grad: Tensor, self: Tensor, target: Tensor, kind: str, reduction: str, parameter: float) -> Any:
    """The gradient of ``pair_loss`` in ``self``; ``grad`` is one number if the loss was reduced."""
    return pair_loss_backward.run(grad, self, target, kind, reduction, parameter)


@pair_loss_backward.composite
def _pair_loss_backward(grad: Any, self: Any, target: Any, kind: str, reduction: str, parameter: float) -> Any:
    return PAIRS[kind].slope(self, target, parameter) * _share(grad, self, reduction)


def _share(grad: Any, self: Any, reduction: str) -> Any:
    """The gradient of each element's loss."""
    return grad / self.geometry.numel if reduction == MEAN else grad


def _target_gradient(grad: Any, self: Any, target: Any, kind: str, reduction: str, parameter: float) -> Any:
    slope = PAIRS[kind].target_slope
    if slope is None:
        return -pair_loss_backward(grad, self, target, kind, reduction, parameter)
    return slope(self, target, parameter) * _share(grad, self, reduction)


pair_loss.gradient(
    self=lambda grad, self, target, kind, reduction, parameter: pair_loss_backward(
        grad, self, target, kind, reduction, parameter
    ),
    target=_target_gradient,
)


@pair_loss_backward.gradients
def _(needs: Any, v: Any, grad: Any, self: Any, target: Any, kind: str, reduction: str, parameter: float) -> Any:
    pair = PAIRS[kind]
    along = pair.slope(self, target, parameter) * v
    if reduction != "none":
        along = along.sum() / (self.geometry.numel if reduction == MEAN else 1)
    if not needs[1] and not needs[2]:
        return along, None, None
    each = _share(grad, self, reduction) * v
    bent = each * pair.curve(self, target, parameter)
    return along, bent, -bent if pair.mixed is None else each * pair.mixed(self, target, parameter)


def _paired(
    name: str, kind: str, input: Any, target: Any, weight: Any, reduction: str, parameter: float = 0.0
) -> Tensor:
    if not isinstance(input, Tensor) or not isinstance(target, Tensor):
        same_shape(name, input, target)
    if input.geometry.shape != target.geometry.shape:
        warnings.warn(
            f"Using a target size ({list(target.shape)}) that is different to the input size "
            f"({list(input.shape)}) in {name}. "
            "This will likely lead to incorrect results due to broadcasting. Please ensure they have the same size.",
            UserWarning,
            stacklevel=3,
        )
        shape = broadcast_shapes(input.shape, target.shape)
        input, target = input.expand(shape), target.expand(shape)
    if input.key is not target.key:
        dtype = result_type(input, target)
        input, target = input.to(dtype=dtype), target.to(dtype=dtype)
    if weight is None:
        return cast(Tensor, pair_loss(input, target, kind, reduction, parameter))
    if weight.shape != input.shape:
        raise ArgumentError(
            f"{name}: Weights and input must have the same size, got {list(weight.shape)} and {list(input.shape)}."
        )
    values = pair_loss(input, target, kind, "none", parameter) * weight
    return cast(Tensor, values.sum() / weight.sum() if reduction == MEAN else reduce_loss(values, reduction))


def declare_loss(function: F) -> F:
    """Offer a loss in ``flambeau.nn.functional``."""
    return cast(F, composite(namespaces="nn.functional", method=False)(function))


@declare_loss
def l1_loss(
    input: Tensor, target: Tensor, size_average: bool | None = None, reduce: bool | None = None,
    reduction: str = "mean", weight: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """The absolute difference of each element; ``input`` and ``target`` have one shape.

    Args:
        reduction: ``'none'``, ``'mean'`` or ``'sum'``.
        weight: of each element.
    """
    if reduction is not MEAN or size_average is not None or reduce is not None:
        reduction = reduction_of(reduction, size_average, reduce)
    return _paired("l1_loss", "l1", input, target, weight, reduction)


@declare_loss
def mse_loss(
    input: Tensor, target: Tensor, size_average: bool | None = None, reduce: bool | None = None,
    reduction: str = "mean", weight: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """The squared difference of each element; ``input`` and ``target`` have one shape.

    Args:
        reduction: ``'none'``, ``'mean'`` or ``'sum'``.
        weight: of each element.
    """
    if reduction is not MEAN or size_average is not None or reduce is not None:
        reduction = reduction_of(reduction, size_average, reduce)
    return _paired("mse_loss", "mse", input, target, weight, reduction)


@declare_loss
def smooth_l1_loss(
    input: Tensor, target: Tensor, size_average: bool | None = None, reduce: bool | None = None,
    reduction: str = "mean", beta: float = 1.0,
) -> Tensor:  # fmt: skip
    """``d * d / (2 * beta)`` where the difference d is below ``beta``, else ``|d| - beta / 2``.

    Source: Girshick, "Fast R-CNN", 2015.

    Raises:
        RuntimeError: ``beta`` is negative.
    """
    if beta < 0:
        raise ShapeError(f"smooth_l1_loss does not support negative values for beta, got {beta}.")
    kind = "smooth_l1" if beta else "l1"
    return _paired(
        "smooth_l1_loss", kind, input, target, None, reduction_of(reduction, size_average, reduce), float(beta)
    )


@declare_loss
def huber_loss(
    input: Tensor, target: Tensor, reduction: str = "mean", delta: float = 1.0, weight: Tensor | None = None
) -> Tensor:
    """``d * d / 2`` where the difference d is at most ``delta``, else ``delta * (|d| - delta / 2)``.

    Source: Huber, "Robust estimation of a location parameter", 1964.

    Raises:
        RuntimeError: ``delta`` is not positive.
    """
    if delta <= 0:
        raise ShapeError(f"huber_loss does not support non-positive values for delta, got {delta}.")
    return _paired("huber_loss", "huber", input, target, weight, reduction_of(reduction), float(delta))


@declare_loss
def binary_cross_entropy(
    input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: bool | None = None,
    reduce: bool | None = None, reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """``-(target * log(input) + (1 - target) * log(1 - input))``, the logarithms not below -100.

    Args:
        input: probabilities in [0, 1].
        target: probabilities of the same shape.
        weight: factor of each element's loss, broadcast to it.

    Raises:
        ValueError: the shapes differ.
        RuntimeError: an input is outside [0, 1].
    """
    reduction = reduction_of(reduction, size_average, reduce)
    if not isinstance(target, Tensor) or input.geometry.shape != target.geometry.shape:
        raise ArgumentError(
            f"Using a target size ({list(target.shape)}) that is different to the input size "
            f"({list(input.shape)}) is deprecated. "
            "Please ensure they have the same size."
        )
    each = "none" if weight is not None else reduction
    values: Any = _paired("binary_cross_entropy", "bce", input, target, None, each)
    _check_probabilities(input, values)
    return values if weight is None else reduce_loss(values * weight, reduction)  # type: ignore[no-any-return]


def _check_probabilities(input: Any, losses: Any) -> None:
    # The loss of anything outside [0, 1] is NaN, so a number as the reduced loss proves all inputs right.
    if losses.geometry.ndim == 0 and losses.item() == losses.item():
        return
    if input.geometry.numel and not bool(((input.detach() >= 0) & (input.detach() <= 1)).all()):
        raise ShapeError(
            "binary_cross_entropy: all elements of input should be between 0 and 1.\n"
            "Use binary_cross_entropy_with_logits for scores."
        )


@declare_loss
def binary_cross_entropy_with_logits(
    input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: bool | None = None,
    reduce: bool | None = None, reduction: str = "mean", pos_weight: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """The binary cross entropy of ``sigmoid(input)``, computed without overflow.

    Args:
        target: probabilities, of the shape of ``input``.
        weight: factor of each element's loss, broadcast to it.
        pos_weight: factor of the loss of positive targets, broadcast to them.

    Raises:
        ValueError: the shapes of ``input`` and ``target`` differ.
    """
    reduction = reduction_of(reduction, size_average, reduce)
    if not isinstance(target, Tensor) or input.geometry.shape != target.geometry.shape:
        raise ArgumentError(f"Target size ({list(target.shape)}) must be the same as input size ({list(input.shape)}).")
    if pos_weight is None and weight is None:
        return _paired("binary_cross_entropy_with_logits", "bce_logits", input, target, None, reduction)
    values: Any = _paired("binary_cross_entropy_with_logits", "bce_logits", input, target, None, "none")
    if pos_weight is not None:
        x, t, p = (_any(each) for each in (input, target, pos_weight))
        # The positive part of the loss is log(1 + exp(-x)); it counts pos_weight times instead of once.
        values = values + t * (p - 1) * ((-x).clamp(min=0) + (-x.abs()).exp().log1p())
    return reduce_loss(values if weight is None else values * weight, reduction)  # type: ignore[no-any-return]


def _any(tensor: Tensor) -> Any:
    return tensor
